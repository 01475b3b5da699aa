"""Whole runs of five hops against a server whose context window is small, and which refuses longer prompts."""

from __future__ import annotations

import pytest

from lab.windows import QUESTION, ircot, passages, ras
from ras_agent.config.settings import Settings
from ras_agent.eval.bench.loopback_model import serving

pytest.importorskip("langchain_openai")


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_the_passages_have_a_thousand_characters() -> None:
    assert [len(passage.text) for passage in passages()] == [1000] * 25
    assert "telephone" in QUESTION


@pytest.mark.parametrize(
    ("window", "preset"), [(4096, None), (8192, None), (32_768, None), (4096, "paper")]
)
def test_ras_answers_after_five_hops_in_every_window(
    window: int, preset: str | None
) -> None:
    with serving(window=window) as model:
        run = ras(model, preset)
    assert (run.out["failed"], run.out["stop_reason"], len(run.out["steps"])) == (
        "",
        "max_hops",
        5,
    )
    assert run.out["answer"]
    assert run.counts["longest"] < window
    # a role learns of the window once for all roles at the endpoint
    assert run.counts["refused"] <= 2
    left_out = [told.partition(" ")[0] for told in run.left_out][-1:]
    assert left_out in ([], ["answerer"])
    # the stand-in answers with words that no passage has
    expected = (
        "did not fit",
        "tokens of evidence",
        "no cited sentence supports the answer",
    )
    assert [
        failure
        for failure in run.out["failures"]
        if not any(map(failure["message"].count, expected))
    ] == []


@pytest.mark.parametrize("window", [4096, 32_768])
def test_ircot_answers_after_five_hops_in_every_window(window: int) -> None:
    with serving(window=window) as model:
        run = ircot(model)
    assert (run.out["failed"], len(run.out["steps"])) == ("", 5)
    assert run.counts["longest"] < window


@pytest.mark.parametrize("window", [4096, 8192])
def test_in_a_window_that_is_set_no_prompt_is_refused(window: int) -> None:
    with serving(window=window) as model:
        run = ras(model, settings=Settings(context_window=window))
    assert (run.out["failed"], run.counts["refused"]) == ("", 0)


def test_a_run_leaves_out_the_same_each_time() -> None:
    def told() -> tuple[str, list[str]]:
        with serving(window=4096) as model:
            run = ras(model)
            return run.out["answer"], run.left_out

    assert told() == told()

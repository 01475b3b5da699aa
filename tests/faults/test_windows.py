"""Windows of all sizes, of servers that name their numbers and of those that do not: every run ends in an answer."""

from __future__ import annotations

import pytest

from lab.windows import ircot, ras
from ras_agent.eval.bench.loopback_model import serving
from tests.faults.attack import Attack

MOST_REFUSALS = 8  # halved from 32,768, a window of 2,048 is found after four, and five calls are made at once


@pytest.mark.parametrize("loop", ["ras", "paper", "ircot"])
@pytest.mark.parametrize("vague", [False, True])
def test_a_run_in_any_window(
    attack: Attack, monkeypatch: pytest.MonkeyPatch, loop: str, vague: bool
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for _ in attack.times(12):
        window = int(2 ** attack.random.uniform(11, 15))
        with serving(window=window, vague=vague) as model:
            run = (
                ircot(model)
                if loop == "ircot"
                else ras(model, "paper" if loop == "paper" else None)
            )
        what = f"{loop}, window {window}{', vague' if vague else ''}"
        attack.expect(
            not run.out["failed"],
            f"{what}: {run.out['failed']} {run.out['failures'][-1:]}",
        )
        attack.expect(len(run.out["steps"]) == 5, f"{what}: {run.out['stop_reason']}")
        attack.expect(
            run.counts["refused"] <= MOST_REFUSALS,
            f"{what}: refused {run.counts['refused']} prompts",
        )
        attack.expect(
            run.counts["longest"] > window / 4 or not run.left_out,
            f"{what}: {run.counts} {run.left_out}",
        )

"""`ras-agent doctor` asks the models that the settings name, and advises the settings that fit them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp", reason="needs the extra 'openai'")

from ras_agent.app.cli import try_model
from ras_agent.app.cli.try_model import WAYS, Server, Trial, advised, ask_server
from ras_agent.config.settings import Settings
from tests.conftest import ScriptedLLM

Cli = Callable[..., Any]

SEARCH = {
    "when": "You steer",
    "reply": "[SUBQ] Where was Alexander Graham Bell born?",
    "repeat": True,
}
FACTS = {
    "when": "You read passages",
    "reply": "(S> Bell | P> was born in | O> Edinburgh)",
    "repeat": True,
}
ANSWER = {
    "when": "You answer questions",
    "reply": "Answer: Edinburgh [1]",
    "repeat": True,
}
EXAMPLES = "The Copper Kettle"  # of the planner's worked examples
LLAMA = {"lists": {"owned_by": "llamacpp", "meta": {"n_ctx": 4096}}}
FEW_SHOT = {"few_shot": True}


def doctor(cli: Cli, llm: ScriptedLLM, *script: dict[str, Any]) -> str:
    llm.script(*script)
    Path("ras-agent.toml").write_text(f'llm = "{llm.spec}"')
    return " ".join(cli("doctor").stdout.split())


def test_a_model_that_is_understood_is_shown_with_its_replies(
    cli: Cli, scripted_llm: ScriptedLLM
) -> None:
    shown = doctor(cli, scripted_llm, SEARCH, FACTS, ANSWER, LLAMA)
    assert "✓ server" in shown
    assert "llamacpp, 4,096 tokens" in shown
    assert "✓ planner understood, " in shown
    assert "tokens/s: Where was Alexander Graham Bell born?" in shown
    assert "✓ extractor understood, " in shown
    assert "tokens/s: 1 fact" in shown
    assert "✓ answerer understood, " in shown
    assert "tokens/s: Edinburgh" in shown
    assert (
        f'for this model, in ras-agent.toml llm = "{scripted_llm.spec}" context_window = 4096'
        in shown
    )
    assert "few_shot" not in shown
    assert "to add an LLM" not in shown


def test_a_model_that_needs_examples_is_advised_them(
    cli: Cli, scripted_llm: ScriptedLLM
) -> None:
    with_examples = {**SEARCH, "when": EXAMPLES}
    without = {"when": "You steer", "reply": "The river is long.", "repeat": True}
    shown = doctor(cli, scripted_llm, with_examples, without, FACTS, ANSWER)
    assert "✓ planner understood with few_shot = true" in shown
    assert "few_shot = true" in shown.partition("in ras-agent.toml")[2]


def test_each_way_of_asking_is_judged_by_its_first_reply(
    cli: Cli, scripted_llm: ScriptedLLM
) -> None:
    babble = {"when": "You steer", "reply": "The river is long.", "repeat": True}
    shown = doctor(cli, scripted_llm, babble, FACTS, ANSWER)
    asked = [
        body for body in scripted_llm.requests() if "You steer" in str(body["messages"])
    ]
    assert len(asked) == len(WAYS) + 1
    assert "– planner not understood, " in shown
    assert 'planner = "offline"' in shown.partition("in ras-agent.toml")[2]


def test_a_server_that_is_not_there_is_exit_code_1(cli: Cli) -> None:
    Path("ras-agent.toml").write_text(
        'llm = "vllm:http://127.0.0.1:9/v1#m"\nretries = 0'
    )
    result = cli("doctor")
    assert result.exit_code == 1
    assert "✗ planner" in result.stdout
    assert "start the server, or correct the address" in " ".join(result.stdout.split())


def test_a_call_that_fails_is_not_made_again(
    cli: Cli, scripted_llm: ScriptedLLM
) -> None:
    shown = doctor(cli, scripted_llm, {"status": 500, "repeat": True})
    assert len(scripted_llm.requests()) == 3
    assert "✗ planner" in shown
    assert "in ras-agent.toml" not in shown


def test_a_reply_that_does_not_end_in_time_is_not_understood(
    scripted_llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_model, "_LONGEST_CALL", 0.05)
    scripted_llm.script(
        {**SEARCH, "when": EXAMPLES}, {"when": "You steer", "hang": True}
    )
    settings = Settings(llm=scripted_llm.spec, timeout=0.05)
    trial = try_model.try_role("planner", scripted_llm.spec, settings)
    assert not trial.failed


def test_nobody_is_asked_where_no_model_is_set_or_wanted(
    cli: Cli, scripted_llm: ScriptedLLM
) -> None:
    assert "asking" not in cli("doctor").stderr
    Path("ras-agent.toml").write_text(f'llm = "{scripted_llm.spec}"')
    assert cli("doctor", "--no-ask").exit_code == 0
    assert scripted_llm.requests() == []


def test_advice_names_slots_window_and_time() -> None:
    settings = Settings(llm="vllm:http://localhost:8080/v1#small")
    trials = [
        Trial("planner", FEW_SHOT, "Where?", 20.5, 600),
        Trial("extractor", None, "no", 30.2, 300),
    ]
    server = Server("small", "llamacpp", window=4096, slots=1)
    assert advised(settings, trials, {"spec": server}) == {
        "llm": '"vllm:http://localhost:8080/v1#small"',
        "few_shot": "true",
        "extractor": '"offline"',
        "in_flight": "1",
        "context_window": "4096",
        "timeout": "160",
    }


@pytest.mark.parametrize(("pieces", "foreign"), [([1], False), ([27, 91, 318], True)])
def test_a_template_whose_marks_the_model_has_never_seen_is_noticed(
    scripted_llm: ScriptedLLM,
    monkeypatch: pytest.MonkeyPatch,
    pieces: list[int],
    foreign: bool,
) -> None:
    def asked(url: str, key: str, body: Any = None) -> dict[str, Any]:
        template = "<|im_start|>{{ message.role }}"
        return (
            {"tokens": pieces}
            if body
            else {"chat_template": template, "total_slots": 2}
        )

    monkeypatch.setattr(try_model, "_asked", asked)
    scripted_llm.script(LLAMA)
    server = ask_server(scripted_llm.spec)
    assert (server.owner, server.window, server.slots) == ("llamacpp", 4096, 2)
    assert server.foreign_template is foreign

"""The dialogue of a run: each prompt begins with the whole of the one before, by any planner."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ras_agent import Plan
from ras_agent.contracts.records import DialoguePart, Step
from ras_agent.prompts import ToolCall, Turn
from ras_agent.tools.plan.transcript import Transcript

OPENING = (Turn("system", "You search."), Turn("user", "Who?"))


def _so_far(steps: list[Step]) -> Transcript:
    return Transcript.so_far(
        "mine",
        steps,
        lambda: OPENING,
        lambda step: Turn("assistant", f"search {step.subquery}"),
        lambda step, said: (Turn("user", f"found for {step.subquery}"),),
    )


def _texts(transcript: Transcript) -> list[str]:
    return [turn.text for turn in transcript.turns]


def test_a_dialogue_begins_with_the_prompt() -> None:
    assert _so_far([]).turns == OPENING


def test_what_the_model_said_itself_stays_in_its_own_words() -> None:
    plan = (
        _so_far([])
        .adding(Turn("assistant", "Hm: a"))
        .recorded_in(Plan("subq", "a"), "m")
    )
    step = Step(1, "a", dialogue=plan.dialogue)
    assert _texts(_so_far([step])) == ["You search.", "Who?", "Hm: a", "found for a"]


def test_what_was_said_in_another_dialect_is_written_anew() -> None:
    other = DialoguePart("other", "m", ({"role": "assistant", "content": "[OTHER] a"},))
    assert _texts(_so_far([Step(1, "a", dialogue=other)])) == [
        "You search.",
        "Who?",
        "search a",
        "found for a",
    ]


def test_turns_survive_as_messages() -> None:
    call = ToolCall("search", {"query": "who is Ärla?"}, "call-7")
    for turn in (
        Turn("assistant", "I look", (call,), "need it"),
        Turn("tool", "found", (replace(call, arguments={}),)),
    ):
        assert Turn.of_message(turn.to_message()) == turn


@given(
    st.lists(
        st.tuples(
            st.text("ab", min_size=1, max_size=3), st.booleans(), st.integers(0, 2)
        ),
        max_size=6,
    )
)
def test_a_prompt_begins_with_the_whole_of_the_one_before(
    hops: list[tuple[str, bool, int]],
) -> None:
    """A hop is planned by this model, after some looks, or by somebody else."""
    steps: list[Step] = []
    before: tuple[Turn, ...] = ()
    for number, (subquery, own, looks) in enumerate(hops, 1):
        transcript = _so_far(steps)
        assert transcript.turns[: len(before)] == before
        step = Step(number, subquery)
        if own:
            for look in range(looks):
                transcript = transcript.adding(
                    Turn("assistant", f"look {look}"), Turn("user", "seen")
                )
            transcript = transcript.adding(Turn("assistant", f"I search {subquery}"))
            step = replace(
                step,
                dialogue=transcript.recorded_in(Plan("subq", subquery), "m").dialogue,
            )
        before = transcript.turns
        steps.append(step)
    assert _so_far(steps).turns[: len(before)] == before


def test_the_last_result_gives_way_first_and_keeps_its_frame() -> None:
    steps = [Step(1, "a "), Step(2, "b ")]
    transcript = Transcript.so_far(
        "mine",
        steps,
        lambda: OPENING,
        lambda step: Turn("assistant", "search"),
        lambda step, said: (Turn("user", f"<r>{step.subquery * 900}</r>"),),
    )
    short = transcript.fitting(1600, 2000, lambda turn: ("<r>", "</r>"))
    first, last = (turn.text for turn in short.turns if turn.text.startswith("<r>"))
    assert first == f"<r>{'a ' * 900}</r>"
    assert last.endswith("b</r>")
    assert len(last) < len(first)

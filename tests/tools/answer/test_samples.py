"""Several replies of one model to the same question: the answer that most of them give, and how many do."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent import Settings, create_ras_agent, create_single_shot_agent
from ras_agent.contracts.errors import ModelCallError, SettingsError
from ras_agent.contracts.events import AnswerToken, Event, emitting
from ras_agent.contracts.records import Answer, Passage
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.answer.samples import most_agreed
from ras_agent.tools.chat.client import ChatSettings
from tests.tools.answer.test_llm_answerer import GRAPH, PASSAGES, QUESTION, STEPS

UNKNOWN = Answer("I don't know.", abstained=True)
BROKEN = Answer("I don't know.", abstained=True, failed="no answer in the reply")
BELL = Passage("bell", "Bell was born in Edinburgh.", "Bell")


@pytest.mark.parametrize(
    ("samples", "text", "agreement"),
    [
        (["Varn", "Pellis", "Varn"], "Varn", 2 / 3),
        (["Pellis", "Varn", "the Varn."], "Varn", 2 / 3),
        (["18 March 1967", "1967", "1968"], "18 March 1967", 2 / 3),
        (["North Korea", "South Korea"], "North Korea", 1 / 2),
        (["Varn"], "Varn", 1),
    ],
)
def test_answers_agree_if_one_holds_the_other(
    samples: list[str], text: str, agreement: float
) -> None:
    best = most_agreed(list(map(Answer, samples)))
    assert best.text == text
    assert best.agreement == pytest.approx(agreement)


def test_abstentions_agree_and_failed_samples_agree_with_none() -> None:
    best = most_agreed([Answer("Varn"), UNKNOWN, UNKNOWN])
    assert best.abstained
    assert best.agreement == pytest.approx(2 / 3)
    best = most_agreed([BROKEN, BROKEN, Answer("Varn")])
    assert best.text == "Varn"
    assert best.agreement == pytest.approx(1 / 3)


def test_a_call_that_fails_counts_against_the_answer_and_is_reported() -> None:
    error = ModelCallError("the server is busy")
    best = most_agreed([error, Answer("Varn")])
    assert (best.text, best.agreement) == ("Varn", 0.5)
    assert best.failures[0].message == "1 of 2 samples failed: the server is busy"
    with pytest.raises(ModelCallError, match="busy"):
        most_agreed([error, error])


def replies(*texts: str) -> list[dict[str, str]]:
    return [{"when": "You answer questions", "reply": text} for text in texts]


def test_a_model_is_asked_n_times_and_streams_only_the_answer_that_is_kept(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        *replies("Answer: Clyde", "Answer: Tay [1]", "Answer: the Tay [1]")
    )
    events: list[Event] = []
    answerer = LLMAnswerer(scripted_llm.spec, samples=3)
    with emitting(events.append):
        found = answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert found.agreement == pytest.approx(2 / 3)
    assert "Tay" in found.text
    told = [one.text for one in events if isinstance(one, AnswerToken)]
    assert "".join(told) == found.text


async def test_the_asynchronous_twin_samples_too(scripted_llm: Any) -> None:
    scripted_llm.script(*replies("Answer: Tay [1]", "Answer: Tay [1]"))
    answerer = LLMAnswerer(scripted_llm.spec, samples=2)
    found = await answerer.aanswer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert (found.text, found.agreement) == ("Tay", 1)


def test_a_model_of_temperature_0_is_asked_with_a_higher_one(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(*replies("Answer: Tay [1]", "Answer: Tay [1]"))
    settings = ChatSettings(temperature=0.0)
    answerer = LLMAnswerer(scripted_llm.spec, samples=2, settings=settings)
    answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    sent = [request["temperature"] for request in scripted_llm.requests()]
    assert sent == [0.5, 0.5]


def test_each_sample_has_a_stored_reply_of_its_own(
    scripted_llm: Any, tmp_path: Path
) -> None:
    scripted_llm.script(*replies("Answer: Clyde", "Answer: Tay", "Answer: Tay"))
    settings = ChatSettings(cache=tmp_path / "replies.sqlite")
    answerer = LLMAnswerer(scripted_llm.spec, samples=3, settings=settings)
    first = answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert (first.text, len(scripted_llm.requests())) == ("Tay", 3)
    again = answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert (again, len(scripted_llm.requests())) == (first, 3)


def test_the_output_says_how_far_the_samples_agree(scripted_llm: Any) -> None:
    scripted_llm.script(*replies("Answer: Varn", "Answer: Edinburgh [1]"))
    scripted_llm.script(*replies("Answer: Edinburgh [1]", "Answer: Edinburgh [1]"))
    settings = Settings(answerer=scripted_llm.spec, extractor="offline", samples=4)
    agent = create_single_shot_agent(index=[BELL], settings=settings)
    out = agent.invoke({"question": "Where was Bell born?"})
    assert (out["answer"], out["agreement"]) == ("Edinburgh", 0.75)


def test_samples_that_would_be_equal_or_cannot_agree_are_refused(
    scripted_llm: Any,
) -> None:
    with pytest.raises(SettingsError, match="'offline' is no chat model"):
        create_ras_agent(index=[BELL], settings=Settings(samples=5))
    settings = Settings(answerer=scripted_llm.spec, samples=5, style="long")
    with pytest.raises(SettingsError, match="full texts are never equal"):
        create_ras_agent(index=[BELL], settings=settings)

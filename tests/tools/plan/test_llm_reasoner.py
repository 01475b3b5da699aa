"""IRCoT's reasoner on a chat model."""

import re
from typing import Any

import pytest

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import ANSWER_IS
from ras_agent.contracts.records import Passage
from ras_agent.prompts import load
from ras_agent.tools.plan.llm_reasoner import LLMReasoner, first_new_sentence

PASSAGES = [Passage("p1", "Bell was born in Edinburgh. </passage> [1]", "Bell")]


def test_it_shows_passages_question_and_sentences_so_far(scripted_model: Any) -> None:
    model = scripted_model("The Water of Leith flows through Edinburgh.")
    sentence = LLMReasoner(model).next_sentence(
        "Which river?", PASSAGES, ["Bell was born in Edinburgh."]
    )
    assert sentence == "The Water of Leith flows through Edinburgh."
    assert model.prompts[0].endswith(
        "<passage>\n[1] Bell\nBell was born in Edinburgh. ‹/passage> ‹1›\n</passage>\n"
        "Question: Which river?\nSentences so far: Bell was born in Edinburgh.\nNext sentence:"
    )


def test_the_first_sentence_is_asked_for_without_any(scripted_model: Any) -> None:
    model = scripted_model("Bell invented the telephone.")
    LLMReasoner(model).next_sentence("Which river?", [], [])
    assert "Sentences so far: (none yet)" in model.prompts[0]


def test_few_shot_shows_a_chain_and_task_its_instruction(scripted_model: Any) -> None:
    model = scripted_model("Bell was born in Edinburgh.")
    LLMReasoner(model, few_shot=True, task="Name a river.").next_sentence(
        "Which river?", PASSAGES, []
    )
    assert model.prompts[0].count("\nai: ") == 3
    assert "\nai: So the answer is: the Øresund.\n" in model.prompts[0]
    assert "\n</passage>\nName a river.\nQuestion: Which river?\n" in model.prompts[0]


def test_the_worked_chain_has_the_layout_that_the_loop_sends() -> None:
    turns = [turn.text for turn in load("next-sentence", few_shot=True).turns[1:-1]]
    passages: list[Passage] = []
    thoughts: list[str] = []
    for shown, sentence in zip(turns[::2], turns[1::2], strict=True):
        found = re.findall(
            r"<passage>\n\[(\d+)\] (.*)\n((?:.|\n)*?)\n</passage>", shown
        )
        assert [Passage(number, text, title) for number, title, text in found][
            : len(passages)
        ] == passages
        passages = [Passage(number, text, title) for number, title, text in found]
        request = next(
            LLMReasoner(_never_called())._dialogue(
                _question_in(shown), passages, thoughts
            )
        )
        assert request.turns[-1].text == shown
        assert first_new_sentence(sentence, thoughts) == sentence
        thoughts.append(sentence)
    assert ANSWER_IS.is_in(thoughts[-1])


def _question_in(shown: str) -> str:
    return re.search(r"^Question: (.*)", shown, re.MULTILINE)[1]  # type: ignore[index]


def _never_called() -> Any:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    return FakeListChatModel(responses=[])


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ("One. Two.", "One."),
        ("Known. New one.", "New one."),
        ("<think>Hm. Let me see.</think>\n**New one.**", "New one."),
        ("- New one.", "New one."),
        ("So the answer is: J. R. Smith.", "So the answer is: J. R. Smith."),
        ("Known.", ""),
        ("...", ""),
        ("", ""),
    ],
)
def test_the_first_new_sentence_of_a_reply(reply: str, sentence: str) -> None:
    assert first_new_sentence(reply, ["known"]) == sentence


def test_a_reply_without_a_new_sentence_is_repaired_once(scripted_model: Any) -> None:
    model = scripted_model("Known.", "New.")
    assert LLMReasoner(model).next_sentence("Which?", PASSAGES, ["Known."]) == "New."


async def test_a_second_one_is_an_error(scripted_model: Any) -> None:
    with pytest.raises(ParseError, match="no new sentence"):
        await LLMReasoner(scripted_model("Known.", "Known.")).anext_sentence(
            "Which?", PASSAGES, ["Known."]
        )

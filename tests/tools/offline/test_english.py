"""The offline roles say that they know English only, instead of guessing."""

import pytest

from ras_agent import create_ircot_agent, create_ras_agent
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IndexMismatch
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from tests.messages import says

GERMAN = Passage(
    "d",
    "Frau Müller wurde in Würzburg geboren. Sie gründete mit Herrn Brandl die Firma.",
    "Frau Müller",
)
ENGLISH = Passage("e", "Ann Lee was born in Leeds.", "Ann Lee")
REFUSED = "the offline {} knows English only, and {}; give it a model, --llm or --{}"


def refused(role: str, what: str) -> str:
    return REFUSED.format(role, what, role)


@pytest.mark.parametrize("create", [create_ras_agent, create_ircot_agent])
def test_a_question_in_another_language_gets_no_guess_but_the_reason(create) -> None:  # type: ignore[no-untyped-def]
    out = create(index=[GERMAN]).invoke({"question": "Wo wurde Frau Müller geboren?"})
    why = refused("answerer", "the question seems to be in German")
    assert (out["answer"], out["abstained"], out["failed"]) == (
        f"No answer: {why}.",
        True,
        why,
    )
    assert list(out["passages"]) == ["d"]
    assert refused("extractor", "the question seems to be in German") in [
        one["message"] for one in out["failures"]
    ]


def test_an_index_in_another_language_too() -> None:
    index = PassageIndex.in_memory([GERMAN], tokeniser=Tokeniser("german"))
    out = create_ras_agent(index=index).invoke({"question": "Müller?"})
    assert out["failed"] == refused("answerer", "the texts are in German")
    assert [plan["reason"] for plan in out["plans"]] == [
        refused("planner", "the texts are in German")
    ] * 2


def test_passages_in_another_language_are_left_out_and_told() -> None:
    out = create_ras_agent(index=[GERMAN, ENGLISH]).invoke(
        {"question": "Where was Ann Lee born, and Müller?"}
    )
    assert {fact["subject"] for fact in out["graph"]["facts"]} == {"Ann Lee"}
    assert refused("extractor", "1 passage seems to be in German") in [
        one["message"] for one in out["failures"]
    ]
    alone = create_ras_agent(index=[GERMAN]).invoke(
        {"question": "Where was Müller born?"}
    )
    assert alone["failed"] == refused("answerer", "1 passage seems to be in German")


def test_settings_name_the_language_of_passages_and_another_than_the_index_s_is_an_error() -> (
    None
):
    out = create_ras_agent(index=[GERMAN], settings=Settings(language="de")).invoke(
        {"question": "Müller?"}
    )
    assert out["failed"] == refused("answerer", "the texts are in German")
    with pytest.raises(
        IndexMismatch,
        match=says("index", "texts in english", "not in german", "leave the language"),
    ):
        create_ras_agent(
            index=PassageIndex.in_memory([ENGLISH]),
            settings=Settings(language="german"),
        )

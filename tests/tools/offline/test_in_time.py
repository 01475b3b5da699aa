"""A question is answered for the time that it asks for: now, in a year, or between two."""

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.in_time import in_its_time
from ras_agent.tools.offline.reading import read

ENDED = "Ada Brenn was director of the Aune Museum from 2012 to 2018."
SINCE = "Tom Vell has been director of the Aune Museum since 2018."
UNDATED = "The director of the Aune Museum is Olaf Brix."
OTHER = "The Aune Museum sold ship models from 1990 to 1994."


def left(question: str, *texts: str) -> tuple[str, list[str]]:
    """Return the question that is read, and the texts that are left of the passages."""
    passages = read([Passage(str(number), text) for number, text in enumerate(texts)])
    asked, found = in_its_time(question, passages)
    return asked, [one.text.strip() for one in found]


@pytest.mark.parametrize(
    ("question", "asked", "kept"),
    [
        ("Who is the director of the Aune Museum?", None, ["", SINCE, UNDATED]),
        (
            "Who was director of the Aune Museum in 2014?",
            "Who was director of the Aune Museum?",
            [ENDED, "", ""],
        ),
        (
            "Who was director of the Aune Museum between 2019 and 2021?",
            "Who was director of the Aune Museum?",
            ["", SINCE, ""],
        ),
        ("Who was director of the Aune Museum in 1990?", None, ["", "", UNDATED]),
        ("Who was director of the Aune Museum?", None, [ENDED, SINCE, UNDATED]),
        ("When was Ada Brenn director?", None, [ENDED, SINCE, UNDATED]),
    ],
)
def test_sentences_of_other_times_are_left_out(
    question: str, asked: str | None, kept: list[str]
) -> None:
    assert left(question, ENDED, SINCE, UNDATED) == (asked or question, kept)


def test_sentences_about_other_things_stay() -> None:
    _, kept = left("Who is the director of the Aune Museum?", OTHER)
    assert kept == [OTHER]


def test_what_is_left_keeps_its_place() -> None:
    text = f"{ENDED} {SINCE}"
    (passage,) = read([Passage("1", text)])
    question = "Who is the director of the Aune Museum?"
    _, (found,) = in_its_time(question, [passage])
    (sentence,) = (one for one in found.sentences if "Vell" in one.text)
    assert text[sentence.start :] == SINCE

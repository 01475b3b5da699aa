"""A name of a list is answered with all of its names."""

from __future__ import annotations

import pytest

from ras_agent.records import Passage
from ras_agent.tools.offline.reading import Sentence, read
from ras_agent.tools.offline.said import all_of_list

BULLETS = "Maintainers\n\n- Ann Ray\n- Bo Lind\n- Cy Falk\n\nLicence: free."


def _sentence(text: str, word: str) -> Sentence:
    (passage,) = read([Passage("p", text)])
    return next(one for one in passage.sentences if word in one.text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("It was founded by Ann Ray, Bo Lind and Cy Falk in 1990.", "Ann Ray, Bo Lind and Cy Falk"),
        ("Present: Ann Ray (chair), Bo Lind, Cy Falk", "Ann Ray, Bo Lind, Cy Falk"),
        ("It was begun by Bo Lind and the brothers Al and Ed Orr.", "Bo Lind and the brothers Al and Ed Orr"),
        (BULLETS, "Ann Ray, Bo Lind, Cy Falk"),
        ("Bo Lind founded it in Ulm.", "Bo Lind"),
    ],
)
def test_who_is_answered_with_the_whole_list(text: str, names: str) -> None:
    answer, sentences = all_of_list("Who founded it?", "Bo Lind", _sentence(text, "Bo Lind"))
    assert answer == names
    assert "Bo Lind" in sentences[0].text


def test_one_thing_is_no_list_and_neither_is_what_is_no_name() -> None:
    sentence = _sentence("It passes Ulm, Passau and Vienna.", "Passau")
    assert all_of_list("Which town does it pass?", "Passau", sentence)[0] == "Passau"
    assert all_of_list("Which towns does it pass?", "Passau", sentence)[0] == "Ulm, Passau and Vienna"
    assert all_of_list("Who passes?", "passes Ulm", sentence)[0] == "passes Ulm"

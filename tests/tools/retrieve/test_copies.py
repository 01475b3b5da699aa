"""Equal and near-equal passages among hits."""

import re

import pytest

from ras_agent.contracts.records import Hit, Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve import copies as module
from ras_agent.tools.retrieve.copies import without_copies
from ras_agent.tools.retrieve.registered import retriever_over

LAMP = "Ada Finn made the lamp in 1911. It stands in the hall of Orvena and burns oil from the mill."


def test_copies_take_one_place_and_are_named_in_it() -> None:
    copies = [Passage(f"copy{n}", LAMP) for n in range(8)]
    others = [
        Passage("other", "The lamp of Pellis."),
        Passage("third", "A lamp was lost."),
    ]
    hits = retriever_over(PassageIndex.in_memory([*copies, *others])).retrieve(
        "lamp", 5
    )
    assert {hit.passage.id for hit in hits} == {"copy0", "other", "third"}
    (copy,) = (hit for hit in hits if hit.passage.id == "copy0")
    assert copy.why == (
        "the same text: copy1, copy2, copy3, copy4, copy5, copy6, copy7",
    )


@pytest.mark.parametrize("old", ["A\u0301da", "lam\u00adp", "1911 [3]"])
def test_accents_and_marks_of_notes_make_no_other_text(old: str) -> None:
    plain = re.sub("[\u0301\u00ad]| \\[3\\]", "", old)
    copy = Passage("copy", LAMP.replace(plain, old))
    hits = [Hit(Passage("lamp", LAMP), 2.0), Hit(copy, 1.0)]
    assert [hit.why for hit in without_copies(hits)] == [("the same text: copy",)]


def test_the_longer_of_two_near_copies_is_shown_at_the_place_of_the_first() -> None:
    short, long = Passage("short", LAMP.upper()), Passage("long", f"{LAMP} Page 3.")
    assert without_copies([Hit(short, 2.0), Hit(long, 1.0)]) == [
        Hit(long, 2.0, ("the same text: short",))
    ]


def test_texts_that_say_other_things_are_no_copies() -> None:
    apart = [
        Passage("a", LAMP),
        Passage("b", LAMP.replace("1911", "1912")),
        Passage("c", LAMP.replace("made", "never made")),
        Passage("d", LAMP, title="Lamp of Merlin"),
        Passage("e", "!"),
        Passage("f", "?"),
    ]
    hits = [Hit(passage, 1.0) for passage in apart]
    assert without_copies(hits) == hits


def test_the_words_of_texts_under_different_titles_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "words_said", pytest.fail)
    hits = [Hit(Passage(f"p{n}", LAMP, title=f"Lamp {n}"), 1.0) for n in range(5)]
    assert without_copies(hits) == hits


def test_a_blank_text_is_no_copy_of_another() -> None:
    blank = [Hit(Passage(f"p{n}", "!", title="Lamp"), 1.0) for n in range(3)]
    assert without_copies(blank) == blank

"""A passage is read once: roles and steps share its readings, within a bound."""

from ras_agent.contracts.records import Hit, Passage, Step
from ras_agent.tools.offline.planner import gather
from ras_agent.tools.offline.reading import MOST_READ, read

LEITH = Passage(
    "leith",
    "The Water of Leith is a river. It flows through Edinburgh.",
    "Water of Leith",
)


def test_a_passage_with_the_same_content_is_read_once() -> None:
    again = Passage(LEITH.id, LEITH.text, LEITH.title, metadata={"page": 2})
    assert read([LEITH])[0] is read([again])[0]
    assert read([LEITH])[0].sentences[1].tokens is read([again])[0].sentences[1].tokens


def test_a_passage_that_was_changed_is_read_anew() -> None:
    changed = Passage(LEITH.id, "The Water of Leith is 35 km long.", LEITH.title)
    assert [sentence.text for sentence in read([changed])[0].sentences] == [
        "The Water of Leith is 35 km long."
    ]
    assert len(read([LEITH])[0].sentences) == 2


def test_equal_texts_of_two_passages_are_told_apart() -> None:
    other = Passage("copy", LEITH.text, LEITH.title)
    assert [passage.id for passage in read([LEITH, other, LEITH])] == ["leith", "copy"]


def test_a_passage_tells_of_another_one_by_its_title_in_any_writing() -> None:
    town, other = read([Passage("p", "The WATER of LEITH crosses it.", "Leith"), LEITH])
    assert town.tells_of(other)
    assert not read([Passage("q", "Water of Leithen.", "")])[0].tells_of(other)


def test_of_more_passages_than_can_be_compared_the_first_are() -> None:
    hits = tuple(
        Hit(Passage(str(number), "Leith."), 1.0) for number in range(MOST_READ + 3)
    )
    evidence = gather("Where?", [Step(1, "Where?", hits)])
    assert list(evidence.passages) == [str(number) for number in range(MOST_READ)]

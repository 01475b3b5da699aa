from ras_agent.records import Passage
from ras_agent.tools.offline.reading import read


def spans(text: str) -> dict[str, str]:
    (sentence,) = read([Passage("p", text)])[0].sentences
    return {sentence.text[mention.start : mention.end]: mention.kind for mention in sentence.mentions}


def test_names_dates_and_numbers_are_candidates() -> None:
    found = spans("In 1876 Alexander Graham Bell sold 150 million shares.")
    assert found["Alexander Graham Bell"] == "name"
    assert found["1876"] == "date"
    assert found["150 million"] == "number"


def test_a_place_with_its_region_is_one_candidate_and_so_are_its_parts() -> None:
    found = spans("He lives in Birmingham, Alabama.")
    assert found["Birmingham, Alabama"] == "place"
    assert found["Birmingham"] == found["Alabama"] == "name"


def test_the_sides_of_a_joint_inside_a_name_are_candidates() -> None:
    assert spans("She met the Earl of Northumbria.")["Northumbria"] == "part"


def test_noun_phrases_are_candidates_with_and_without_their_first_words() -> None:
    found = spans("He is a former tennis player and coach.")
    assert {"former tennis player", "tennis player", "coach"} <= found.keys()

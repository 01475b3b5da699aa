"""Parts of a question's graph, taken at random."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.eval.study.ablations import NeverRetrieves, SentencesAsFacts
from ras_agent.eval.study.abundance import kept_facts, kept_graph, kept_passages
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Extractor, Planner

TEXT = "Ida Falk built ships. She lived in Visby. Visby is on Gotland."
PASSAGE, OTHER = (
    Passage("p1", TEXT, "Ida Falk"),
    Passage("p2", "Gotland is an island.", "Gotland"),
)
SHIPS = Triple("Ida Falk", "built", "ships", (Source("p1", 0, 21),))
HOME = Triple("Ida Falk", "lived in", "Visby", (Source("p1", 22, 41),))
ISLAND = Triple("Gotland", "is", "island", (Source("p2", 0, 21),))
GRAPH = QuestionGraph((SHIPS, HOME, ISLAND))
PASSAGES = {"p1": PASSAGE, "p2": OTHER}


def _many(count: int) -> QuestionGraph:
    return QuestionGraph(
        tuple(Triple(f"s{n}", "p", f"o{n}", (Source("p1"),)) for n in range(count))
    )


@pytest.mark.parametrize(
    ("share", "kept"), [(0.1, 3), (0.3, 9), (0.34, 11), (0.5, 15), (1.0, 30)]
)
def test_a_share_is_rounded_up(share: float, kept: int) -> None:
    assert len(kept_facts(_many(30), share, "1")) == kept


@pytest.mark.parametrize("share", [0, -0.1, 1.1])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        kept_facts(GRAPH, share, "1")


@given(st.integers(0, 40), st.floats(0.01, 1), st.floats(0.01, 1), st.text(max_size=5))
def test_a_smaller_share_is_part_of_a_larger_one(
    count: int, one: float, other: float, seed: str
) -> None:
    graph = _many(count)
    small, large = (kept_facts(graph, share, seed) for share in sorted((one, other)))
    assert large[: len(small)] == small


def test_the_seed_decides_and_the_order_of_reading_does_not() -> None:
    forwards, backwards = _many(20), QuestionGraph(tuple(reversed(_many(20).readings)))
    assert kept_facts(forwards, 0.5, "1") == kept_facts(backwards, 0.5, "1")
    assert kept_facts(forwards, 0.5, "1") != kept_facts(forwards, 0.5, "2")


def test_a_kept_fact_keeps_all_its_readings() -> None:
    again = Triple("IDA FALK", "built", "ships", (Source("p2", 0, 7),))
    graph = kept_graph(QuestionGraph((SHIPS, again, HOME)), [SHIPS.id])
    assert [len(fact.sources) for fact in graph.facts] == [2]


def test_beside_kept_triples_stand_the_sentences_they_were_read_in_at_their_places() -> (
    None
):
    (shown,) = kept_passages(QuestionGraph((HOME,)), PASSAGES, "kept")
    assert shown.text == " " * 22 + "She lived in Visby." + " " * 21
    assert (shown.id, shown.title, len(shown.text)) == ("p1", "Ida Falk", len(TEXT))


def test_a_fact_without_a_place_shows_its_whole_passage() -> None:
    placeless = Triple("Visby", "is on", "Gotland", (Source("p1"),))
    assert kept_passages(QuestionGraph((placeless,)), PASSAGES, "kept") == [PASSAGE]


def test_triples_alone_and_all_passages() -> None:
    graph = QuestionGraph((HOME,))
    assert kept_passages(graph, PASSAGES, "facts") == []
    assert kept_passages(graph, PASSAGES, "all") == [PASSAGE, OTHER]


def test_without_text_to_triples_each_sentence_is_a_fact_of_its_passage() -> None:
    extractor = SentencesAsFacts()
    assert isinstance(extractor, Extractor)
    facts = extractor.extract([PASSAGE, Passage("p9", "No title.")]).triples
    assert [(fact.subject, fact.predicate, fact.object) for fact in facts] == [
        ("Ida Falk", "text", "Ida Falk built ships."),
        ("Ida Falk", "text", "She lived in Visby."),
        ("Ida Falk", "text", "Visby is on Gotland."),
        ("No title.", "text", "No title."),
    ]
    assert [
        (source.passage_id, source.start, source.end) for source in facts[1].sources
    ] == [("p1", 22, 41)]


def test_without_retrieval_nothing_is_looked_up() -> None:
    planner = NeverRetrieves()
    assert isinstance(planner, Planner)
    assert planner.plan("Who?", QuestionGraph(), ()).action == "no_retrieval"

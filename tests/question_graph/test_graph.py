"""The question graph: a set of facts with provenance that does not depend on the order of hops."""

import json
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ras_agent.contracts.records import Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.merge import first_hop
from ras_agent.text.canonical import canonical_key

SURFACES = [
    "Bell",
    "the Bell",
    "BELL",
    "Edinburgh",
    "edinburgh",
    "Leith",
    "1847",
    "1850",
    "about 1850",
]
SOURCES = st.builds(
    Source,
    st.sampled_from(["p1", "p2", "p3"]),
    st.integers(0, 2),
    st.integers(3, 5),
    st.integers(1, 3),
    st.sampled_from(["who?", "where?"]),
    st.just("offline"),
)
TRIPLES = st.builds(
    Triple,
    st.sampled_from(SURFACES[:5]),
    st.sampled_from(["born in", "Born in", "born on", "saw"]),
    st.sampled_from(SURFACES),
    st.lists(SOURCES, max_size=3).map(tuple),
)
NAMES = st.sampled_from(
    ["Bell", "BELL", "Watt", "Leith", "Bath", "Wells", "Stoke", "Frome"]
)
HOPS = st.lists(st.lists(TRIPLES, max_size=6), max_size=4)


def fact(
    subject: str, predicate: str, object_: str, *passage_ids: str, hop: int = 1
) -> Triple:
    return Triple(
        subject,
        predicate,
        object_,
        tuple(Source(passage_id, hop=hop) for passage_id in passage_ids),
    )


def graph_of(*triples: Triple) -> QuestionGraph:
    return QuestionGraph().merge(triples)


def shown(graph: QuestionGraph) -> list[str]:
    return [str(fact) for fact in graph.facts]


class TestMerge:
    def test_one_copy_of_a_repeated_fact_with_the_sources_of_both(self) -> None:
        graph = graph_of(fact("Bell", "was born in", "Edinburgh", "p2")).merge(
            [fact("bell", "was born in", "the Edinburgh", "p1")]
        )
        assert [source.passage_id for source in graph.facts[0].sources] == ["p1", "p2"]
        assert len(graph) == 1

    def test_a_very_frequent_fact_is_merged_in_one_pass_over_its_sources(self) -> None:
        looks = []

        class Looked(Source):
            def __hash__(self) -> int:
                looks.append(self.start)
                return hash(self.start)

        often = [
            Triple("Bell", "saw", "Leith", (Looked("p", start),))
            for start in range(300)
        ]
        assert [source.start for source in graph_of(*often).facts[0].sources] == list(
            range(300)
        )
        assert len(looks) <= 3 * 300

    def test_a_fact_is_shown_in_the_form_that_most_sources_have(self) -> None:
        graph = graph_of(
            fact("BELL", "saw", "Leith", "p1"), fact("Bell", "saw", "Leith", "p2", "p3")
        )
        assert shown(graph) == ["(S> Bell | P> saw | O> Leith)"]

    def test_equally_frequent_forms_are_decided_by_length_then_alphabet(self) -> None:
        graph = graph_of(
            fact("bell", "saw", "Leith", "p1"),
            fact("Bell", "saw", "Leith", "p2"),
            fact("Bell’s", "saw", "Leith", "p3"),
        )
        assert shown(graph) == ["(S> Bell’s | P> saw | O> Leith)"]
        graph = graph_of(
            fact("bell", "saw", "Leith", "p1"), fact("Bell", "saw", "Leith", "p2")
        )
        assert shown(graph) == ["(S> Bell | P> saw | O> Leith)"]

    def test_an_entity_has_every_form_it_was_read_in(self) -> None:
        graph = graph_of(
            fact("The Beatles", "came from", "Liverpool", "p1"),
            fact("the Beatles", "came from", "Liverpool", "p2"),
            fact("The Beatles", "recorded", "Help!", "p3"),
        )
        assert graph.entities["beatles"].label == "The Beatles"
        assert graph.entities["beatles"].forms == ("The Beatles", "the Beatles")

    def test_an_entity_is_called_what_most_facts_call_it_also_if_another_form_is_longer(
        self,
    ) -> None:
        graph = graph_of(
            fact("Bell", "saw", "Leith", "p1"),
            fact("Bell", "met", "Watt", "p1"),
            fact("the Bell", "left", "Bath", "p1"),
        )
        assert graph.entities["bell"].label == "Bell"

    def test_facts_without_a_source_come_before_those_of_any_hop(self) -> None:
        graph = graph_of(fact("A", "is", "b", "p1", hop=0), fact("C", "is", "d"))
        assert shown(graph) == ["(S> C | P> is | O> d)", "(S> A | P> is | O> b)"]

    def test_facts_are_in_the_order_of_hops_and_passages(self) -> None:
        late, early = (
            fact("A", "is", "b", "p1", hop=2),
            fact("C", "is", "d", "p9", hop=1),
        )
        assert shown(graph_of(late, early)) == [
            "(S> C | P> is | O> d)",
            "(S> A | P> is | O> b)",
        ]

    def test_the_sources_of_one_reading_are_sorted_and_each_is_there_once(self) -> None:
        late, early = Source("p2", hop=2), Source("p1", hop=1)
        graph = graph_of(Triple("Bell", "saw", "Leith", (late, early, late)))
        assert graph.facts[0].sources == tuple(sorted({late, early}))
        assert graph.facts[0].sources == (early, late)
        assert graph == graph_of(Triple("Bell", "saw", "Leith", (early, late)))
        assert graph == graph_of(Triple("Bell", "saw", "Leith", (late, early)))

    def test_facts_of_one_place_are_in_the_order_of_their_words_whatever_came_first(
        self,
    ) -> None:
        one, other = (
            fact("Bell", "saw", "Leith", "p1"),
            fact("Adam", "saw", "Leith", "p1"),
        )
        for graph in (
            graph_of(one, other),
            graph_of(other, one),
            graph_of(one).merge([other]),
        ):
            assert shown(graph) == [
                "(S> Adam | P> saw | O> Leith)",
                "(S> Bell | P> saw | O> Leith)",
            ]

    def test_ids_find_facts(self) -> None:
        graph = graph_of(fact("Bell", "saw", "Leith", "p1"))
        assert graph.by_id[fact("bell", "Saw", "leith").id] == graph.facts[0]

    def test_a_given_fact_needs_no_source(self) -> None:
        assert graph_of(fact("Bell", "saw", "Leith")).facts[0].sources == ()

    def test_the_old_graph_does_not_change(self) -> None:
        before = graph_of(fact("Bell", "saw", "Leith", "p1"))
        before.merge([fact("Bell", "saw", "Edinburgh", "p1")])
        assert len(before) == 1

    @given(st.lists(TRIPLES, max_size=6))
    def test_merging_twice_changes_nothing(self, triples: list[Triple]) -> None:
        once = QuestionGraph().merge(triples)
        assert once.merge(triples) == once
        assert once.merge(once.readings) == once

    @given(st.lists(TRIPLES, max_size=6))
    @example(
        [
            fact("Bell", "born in", "Bell", "p1"),
            fact("BELL", "born in", "Bell", "p1", hop=2),
            fact("BELL", "born on", "Bell", "p1"),
        ]
    )
    def test_merging_its_own_facts_changes_no_shown_fact(
        self, triples: list[Triple]
    ) -> None:
        once = QuestionGraph().merge(triples)
        twice = once.merge(once.facts)
        assert (twice.facts, twice.entities) == (once.facts, once.entities)

    @given(HOPS, st.randoms(use_true_random=False))
    def test_the_order_of_hops_changes_nothing(
        self, hops: list[list[Triple]], random: Random
    ) -> None:
        in_order, shuffled = QuestionGraph(), QuestionGraph()
        for hop in hops:
            in_order = in_order.merge(hop)
        random.shuffle(hops)
        for hop in hops:
            shuffled = shuffled.merge(reversed(hop))
        assert in_order == shuffled
        assert set(in_order.by_id) == {triple.id for hop in hops for triple in hop}
        assert in_order.facts == shuffled.facts
        assert list(in_order.entities.items()) == list(shuffled.entities.items())
        assert in_order.conflicts == shuffled.conflicts

    @given(
        st.lists(
            st.lists(
                st.tuples(NAMES, NAMES, st.sampled_from(["p1", "p2"])), max_size=4
            ),
            max_size=4,
        )
    )
    def test_a_graph_grown_hop_by_hop_equals_one_made_at_once(
        self, hops: list[list[tuple[str, str, str]]]
    ) -> None:
        grown = QuestionGraph()
        for hop, read in enumerate(hops, start=1):
            grown = grown.merge(
                fact(one, "saw", other, passage_id, hop=hop)
                for one, other, passage_id in read
            )
            at_once = QuestionGraph(tuple(grown.readings))
            assert list(grown.by_id.items()) == list(at_once.by_id.items())
            assert (grown, grown.to_dict()) == (at_once, at_once.to_dict())

    @given(
        st.lists(TRIPLES, max_size=5),
        st.lists(TRIPLES, max_size=5),
        st.lists(TRIPLES, max_size=5),
    )
    def test_merging_graphs_is_associative(
        self, one: list[Triple], two: list[Triple], three: list[Triple]
    ) -> None:
        a, b, c = (QuestionGraph().merge(triples) for triples in (one, two, three))
        assert a.merge(b.merge(c.readings).readings) == a.merge(b.readings).merge(
            c.readings
        )

    @given(st.lists(TRIPLES, max_size=8))
    def test_every_mention_is_in_some_fact(self, triples: list[Triple]) -> None:
        graph = QuestionGraph().merge(triples)
        assert set(graph.by_id) == {triple.id for triple in triples}
        for triple in triples:
            assert set(triple.sources) <= set(graph.by_id[triple.id].sources)
            for name in (triple.subject, triple.object):
                assert name in graph.entities[canonical_key(name)].forms


class TestTouching:
    def test_facts_on_either_side_of_an_entity(self) -> None:
        graph = graph_of(
            fact("Bell", "saw", "Leith", "p1"), fact("Leith", "is in", "Scotland", "p1")
        )
        assert graph.touching("leith") == graph.facts
        assert graph.touching("scotland") == (
            graph.by_id[fact("Leith", "is in", "Scotland").id],
        )
        assert graph.touching("nowhere") == ()

    def test_a_fact_about_itself_touches_once(self) -> None:
        assert len(graph_of(fact("Bell", "taught", "Bell", "p1")).touching("bell")) == 1


class TestBounded:
    def test_a_small_graph_is_unchanged(self) -> None:
        graph = graph_of(fact("Bell", "saw", "Leith", "p1"))
        assert graph.bounded(1, "q") is graph

    def test_the_least_supported_facts_are_hidden_first(self) -> None:
        graph = graph_of(
            fact("A", "is", "b", "p1", "p2"),
            fact("C", "is", "d", "p1"),
            fact("E", "is", "f", "p2", "p3"),
        )
        assert [f.subject for f in graph.bounded(2, "what is d?").facts] == ["A", "E"]

    def test_support_counts_passages_not_mentions(self) -> None:
        repeated = Triple(
            "A",
            "is",
            "b",
            (Source("p1", 0, 5), Source("p1", 9, 14), Source("p1", 20, 25)),
        )
        graph = graph_of(repeated, fact("C", "is", "d", "p1", "p2"))
        assert [f.subject for f in graph.bounded(1, "a").facts] == ["C"]

    def test_then_the_facts_least_similar_to_the_question(self) -> None:
        graph = graph_of(
            fact("Leith", "is", "a port", "p1"),
            fact("Bell", "invented", "the telephone", "p1"),
        )
        assert [
            f.subject for f in graph.bounded(1, "Who invented the telephone?").facts
        ] == ["Bell"]

    def test_a_word_that_most_facts_share_has_little_weight(self) -> None:
        common = [fact(f"Town {n}", "is in", "Scotland", "p1") for n in "abcd"]
        graph = graph_of(*common, fact("Zurich", "has", "a port", "p1"))
        assert "Zurich" in [f.subject for f in graph.bounded(1, "port Scotland").facts]

    def test_one_rare_word_outweighs_two_that_four_of_five_facts_share(self) -> None:
        common = [
            fact(f"Town {n}", "is in", "Scotland, by a river", "p1") for n in "abcd"
        ]
        graph = graph_of(*common, fact("Zurich", "has", "a port", "p1"))
        assert [f.subject for f in graph.bounded(1, "Scotland river port").facts] == [
            "Zurich"
        ]

    def test_two_words_that_half_of_the_facts_share_outweigh_one_that_a_quarter_has(
        self,
    ) -> None:
        both = [fact(f"Town {n}", "is in", "Scotland, by a river", "p1") for n in "ab"]
        graph = graph_of(
            *both,
            fact("Aberdeen", "has", "a port", "p1"),
            fact("Zurich", "has", "a lake", "p1"),
        )
        assert [f.subject for f in graph.bounded(1, "Scotland river port").facts] == [
            "Town a"
        ]

    def test_ties_go_by_key(self) -> None:
        graph = graph_of(fact("C", "is", "d", "p1"), fact("A", "is", "b", "p1"))
        assert [f.subject for f in graph.bounded(1, "q").facts] == ["A"]

    def test_facts_to_keep_stay_visible(self) -> None:
        cited = fact("Z", "is", "y", "p1")
        graph = graph_of(fact("A", "is", "b", "p1", "p2"), cited).bounded(
            1, "q", keep=[cited.id]
        )
        assert shown(graph) == [str(cited)]

    def test_conflicting_facts_stay_visible_beyond_the_bound(self) -> None:
        one, other = (
            fact("Bell", "was born in", "1847", "p1"),
            fact("Bell", "was born in", "1850", "p2"),
        )
        others = [
            fact("A", "is", "b", "p1", "p2", "p3"),
            fact("C", "is", "d", "p1", "p2"),
        ]
        graph = graph_of(one, other, *others).bounded(1, "q")
        assert [f.object for f in graph.facts] == ["1847", "1850"]
        assert len(graph.conflicts) == 1

    def test_hidden_facts_are_invisible_everywhere(self) -> None:
        graph = graph_of(
            fact("A", "is", "b", "p1", "p2"), fact("C", "is", "d", "p1")
        ).bounded(1, "q")
        assert "c" not in graph.entities
        assert graph.touching("c") == ()
        assert "C" not in graph.to_text()
        assert len(graph) == len(graph.by_id) == 1

    def test_a_hidden_fact_returns_with_all_its_sources_when_later_hops_support_it(
        self,
    ) -> None:
        first = graph_of(
            fact("A", "is", "b", "p1", "p2"), fact("C", "is", "d", "p1")
        ).bounded(1, "q")
        later = first.merge([fact("C", "is", "d", "p3", "p4", hop=2)]).bounded(1, "q")
        assert [source.passage_id for source in later.facts[0].sources] == [
            "p1",
            "p3",
            "p4",
        ]

    def test_a_hidden_fact_that_is_merged_again_is_visible(self) -> None:
        again = fact("C", "is", "d", "p1")
        hidden = graph_of(
            fact("A", "is", "b", "p1", "p2"), again, fact("E", "is", "f", "p1")
        ).bounded(1, "q")
        assert [f.subject for f in hidden.facts] == ["A"]
        assert [f.subject for f in hidden.merge([again]).facts] == ["A", "C"]

    def test_a_fact_whose_rival_is_hidden_is_in_no_conflict(self) -> None:
        one, other = (
            fact("Bell", "was born in", "1847", "p1"),
            fact("Bell", "was born in", "1850", "p2"),
        )
        graph = QuestionGraph(graph_of(one, other).readings, frozenset({other.id}))
        assert [f.object for f in graph.facts] == ["1847"]
        assert graph.conflicts == ()

    def test_the_shelf_is_written_in_the_order_of_ids(self) -> None:
        facts = [fact(letter, "is", "b", "p1") for letter in "ACEGIK"]
        graph = graph_of(fact("Bell", "saw", "Leith", "p1", "p2"), *facts).bounded(
            1, "q"
        )
        by_id = {f.id: f.subject for f in facts}
        assert [row["subject"] for row in graph.to_dict()["shelf"]] == [
            by_id[name] for name in sorted(by_id)
        ]

    def test_a_wider_bound_shows_every_fact_again(self) -> None:
        graph = graph_of(fact("A", "is", "b", "p1", "p2"), fact("C", "is", "d", "p1"))
        assert graph.bounded(1, "q").bounded(2, "q") == graph

    @given(HOPS, st.integers(1, 6), st.randoms(use_true_random=False))
    def test_bounding_after_every_hop_gives_the_same_in_any_order(
        self, hops: list[list[Triple]], most: int, random: Random
    ) -> None:
        def grown() -> QuestionGraph:
            graph = QuestionGraph()
            for hop in hops:
                graph = graph.merge(hop).bounded(most, "who saw Leith?")
                graph = QuestionGraph.from_dict(json.loads(json.dumps(graph.to_dict())))
            return graph.bounded(most, "who saw Leith?")

        in_order = grown()
        random.shuffle(hops)
        shuffled = grown()
        assert in_order == shuffled
        assert in_order.facts == shuffled.facts
        at_once = (
            QuestionGraph()
            .merge(triple for hop in hops for triple in hop)
            .bounded(most, "who saw Leith?")
        )
        assert at_once == in_order

    @given(st.lists(TRIPLES, max_size=12), st.integers(1, 6))
    def test_no_more_than_the_bound_unless_they_conflict(
        self, triples: list[Triple], most: int
    ) -> None:
        graph = QuestionGraph().merge(triples).bounded(most, "who saw Leith?")
        conflicting = {fact.id for group in graph.conflicts for fact in group}
        assert len(graph) <= max(most, len(conflicting))
        assert conflicting <= set(graph.by_id)


class TestJSON:
    @given(st.lists(TRIPLES, max_size=10), st.integers(1, 12))
    def test_round_trip(self, triples: list[Triple], most: int) -> None:
        graph = QuestionGraph().merge(triples).bounded(most, "q")
        assert QuestionGraph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph

    def test_shape(self) -> None:
        graph = graph_of(
            fact("Bell", "born in", "1847", "p1"), fact("Bell", "born in", "1850", "p2")
        )
        source = {"start": 0, "end": 0, "hop": 1, "subquery": "", "extractor": ""}
        ids = [f.id for f in graph.facts]
        assert graph.to_dict() == {
            "facts": [
                {
                    "id": ids[0],
                    "subject": "Bell",
                    "predicate": "born in",
                    "object": "1847",
                }
                | {"sources": [{"passage_id": "p1", **source}]},
                {
                    "id": ids[1],
                    "subject": "Bell",
                    "predicate": "born in",
                    "object": "1850",
                }
                | {"sources": [{"passage_id": "p2", **source}]},
            ],
            "conflicts": [ids],
            "shelf": [],
        }

    def test_only_facts_are_needed(self) -> None:
        assert QuestionGraph.from_dict(
            {"facts": [{"subject": "A", "predicate": "is", "object": "b"}]}
        ) == graph_of(fact("A", "is", "b"))

    def test_text_for_prompts_has_one_fact_per_line(self) -> None:
        graph = graph_of(
            fact("Bell", "saw", "Leith", "p1"), fact("Leith", "is in", "Scotland", "p2")
        )
        assert (
            graph.to_text()
            == "(S> Bell | P> saw | O> Leith)\n(S> Leith | P> is in | O> Scotland)"
        )


def test_a_fact_was_first_read_at_its_lowest_hop_and_one_that_was_given_at_none() -> (
    None
):
    assert (
        first_hop(Triple("A", "is", "b", (Source("p1", hop=3), Source("p2", hop=2))))
        == 2
    )
    assert first_hop(Triple("A", "is", "b")) == 0


@pytest.mark.parametrize("triples", [(), (fact("A", "is", "b"),)])
def test_length_is_the_number_of_facts(triples: tuple[Triple, ...]) -> None:
    assert len(graph_of(*triples)) == len(triples)


def test_a_value_of_a_later_hop_is_in_conflict_with_that_of_an_earlier_one() -> None:
    born, again = (
        Triple("Alexander Bell", "was born in", year, (Source(passage, 0, 5, hop),))
        for year, passage, hop in (("1847", "p1", 1), ("1850", "p2", 2))
    )
    graph = QuestionGraph().merge((born,))
    assert graph.conflicts == ()
    assert graph.merge((again,)).conflicts == ((born, again),)

from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Hit, Passage, Source, Step, Triple
from ras_agent.graphs.records import Records
from ras_agent.question_graph import QuestionGraph

FACT = Triple("Leith", "flows through", "Edinburgh", (Source("p1", 0, 5),))


def test_a_value_that_was_dumped_is_not_parsed_again():
    records, graph = Records(), QuestionGraph((FACT,))
    assert records.graph(records.dump(graph)) is graph


def test_an_equal_value_from_elsewhere_is_parsed_once():
    records = Records()
    loaded = QuestionGraph((FACT,)).to_dict()
    assert records.graph(loaded).facts == (FACT,)
    assert records.graph(loaded) is records.graph(loaded)


def test_an_overfull_memory_forgets_and_goes_on():
    records = Records(size=2)
    dumped = [records.dump(Passage(str(n), "text")) for n in range(5)]
    assert [records.passage(data).id for data in dumped] == ["0", "1", "2", "3", "4"]


def test_a_graph_that_grew_has_the_json_of_its_facts_again():
    records, born = (
        Records(),
        Triple("Bell", "was born in", "Edinburgh", (Source("p2", 0, 5, hop=2),)),
    )
    graph = QuestionGraph().merge((FACT,))
    earlier = records.dump_graph(graph)
    data = records.dump_graph(graph.merge((born,)), earlier)
    assert data["facts"][0] is earlier["facts"][0]
    assert data == QuestionGraph((FACT, born)).to_dict()


def test_a_fact_that_was_merged_as_it_was_read_is_not_dumped_again():
    records, source = (
        Records(),
        {
            "passage_id": "p1",
            "start": 0,
            "end": 5,
            "hop": 0,
            "subquery": "",
            "extractor": "",
        },
    )
    read = records.dump_triples((FACT,))
    triples = records.triples(read)
    data = records.dump_graph(QuestionGraph().merge(triples), triples=triples)
    assert data["facts"] == [{"id": FACT.id, **read[0]}]
    assert data["facts"][0]["sources"] is read[0]["sources"]
    assert data["facts"][0]["sources"] == [source]


def test_what_a_person_wrote_for_a_fact_is_not_taken_over():
    records = Records()
    written = [
        {
            "subject": "Leith",
            "predicate": "flows through",
            "object": "Edinburgh",
            "id": "x",
            "sources": [],
        }
    ]
    triples = records.triples(written)
    data = records.dump_graph(QuestionGraph().merge(triples), triples=triples)
    assert data == QuestionGraph(triples).to_dict()


def test_a_fact_that_a_merge_changed_has_new_json():
    records = Records()
    graph = QuestionGraph().merge((FACT,))
    earlier = records.dump_graph(graph)
    again = Triple(
        *(FACT.subject, FACT.predicate, FACT.object), (Source("p2", 0, 5, hop=2),)
    )
    data = records.dump_graph(graph.merge((again,)), earlier)
    assert [source["passage_id"] for source in data["facts"][0]["sources"]] == [
        "p1",
        "p2",
    ]
    assert [source["passage_id"] for source in earlier["facts"][0]["sources"]] == ["p1"]


def test_a_step_is_read_with_the_passages_of_the_state():
    records, passage = Records(), Passage("p1", "The Leith flows through Edinburgh.")
    data = Step(1, "Which river?", (Hit(passage, 2.0),), ("t1",)).to_dict()
    step = records.step(data, {"p1": records.dump(passage)})
    assert step.hits == (Hit(passage, 2.0),)
    assert records.step(data, {}) is step


def test_a_graph_that_a_person_wrote_is_dumped_anew_when_it_grows():
    records = Records()
    other = Triple("Bell", "was born in", "Edinburgh", (Source("p0", 0, 5),))
    written = QuestionGraph((FACT, other)).to_dict()
    written["facts"].reverse()
    born = Triple("Watt", "was born in", "Greenock", (Source("p2", 0, 5, hop=2),))
    graph = records.graph(written).merge((born,))
    assert (
        records.dump_graph(graph, written)
        == QuestionGraph((FACT, other, born)).to_dict()
    )


_NAMES = st.sampled_from(["Bell", "bell", "the Bell", "Leith"])
_SOURCES = st.lists(
    st.builds(Source, st.sampled_from("pq"), st.just(0), st.sampled_from([3, 4])),
    min_size=1,
    max_size=2,
)
_FACTS = st.builds(
    Triple, _NAMES, st.sampled_from(["was", "Was"]), _NAMES, _SOURCES.map(tuple)
)


@given(st.lists(st.lists(_FACTS, max_size=4), min_size=1, max_size=3))
def test_a_graph_is_dumped_whole_however_its_facts_were_stated(hops):
    """A fact in several surface forms keeps them all, also where one sentence states them."""
    records, graph, data = Records(), QuestionGraph(), None
    for facts in map(tuple, hops):
        records.dump_triples(facts)
        graph = graph.merge(facts)
        data = records.dump_graph(graph, data, facts)
        assert data == graph.to_dict()
        assert QuestionGraph.from_dict(data) == graph

from ras_agent.graphs.records import Records
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Source, Triple

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

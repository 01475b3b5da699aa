"""The plain graph: its sources, and parts of it."""

from __future__ import annotations

from ras_agent.contracts.records import Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.subgraph.graph import Graph, Step, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import Path

BORN = Triple("Bell", "was born in", "Edinburgh", (Source("p1", 0, 9),))
AGAIN = Triple("bell", "was born in", "Edinburgh", (Source("p2", 3, 8),))
FLOWS = Triple("Water of Leith", "flows through", "Edinburgh", (Source("p2", 9, 20),))


def test_names_with_one_key_are_one_node_and_a_fact_stated_twice_has_both_sources() -> (
    None
):
    graph = Graph.from_triples([BORN, AGAIN, FLOWS])
    assert list(graph.nodes) == ["Bell", "Edinburgh", "Water of Leith"]
    assert graph.edges.tolist() == [[0, 0, 1], [2, 1, 1]]
    assert graph.triple(0) == Triple(
        "Bell", "was born in", "Edinburgh", (Source("p1", 0, 9), Source("p2", 3, 8))
    )
    assert (graph.find("BELL"), graph.find("Paris")) == (0, None)


def test_a_question_graph_and_an_index_give_the_same_facts() -> None:
    of_question = Graph.from_question_graph(QuestionGraph().merge([BORN, FLOWS]))
    facts = [PassageFacts("p1", (BORN,)), PassageFacts("p2", (FLOWS,))]
    of_index = Graph.from_index(KGIndex.in_memory(facts))
    for graph in (of_question, of_index):
        edges = range(len(graph.edges))
        assert {graph.triple(edge).key for edge in edges} == {BORN.key, FLOWS.key}
        assert {
            source.passage_id for edge in edges for source in graph.triple(edge).sources
        } == {"p1", "p2"}
        assert graph.nodes[graph.find("water of leith") or 0] == "Water of Leith"


def test_an_induced_subgraph_has_every_edge_between_its_nodes(family: Graph) -> None:
    part = Subgraph.induced(family, [0, 1, 3])
    assert part.nodes.tolist() == [0, 1, 3]
    assert [family.edge_text(edge) for edge in part.edges.tolist()] == [
        "frederica spouse ernest augustus",
        "frederica parents charles ii",
        "charles ii children frederica",
    ]
    assert part.steps[0] == [Step(0, 1), Step(2, 3), Step(3, 3)]


def test_a_subgraph_of_edges_has_their_ends(family: Graph) -> None:
    part = Subgraph.of_edges(family, [1], [7])
    assert (part.nodes.tolist(), part.edges.tolist()) == ([1, 2, 7], [1])


def test_the_empty_graph_has_empty_parts() -> None:
    graph = Graph.from_triples([])
    assert Subgraph.full(graph).steps == {}
    assert Subgraph.induced(graph, []).edges.tolist() == []


def test_a_path_shows_which_way_its_edges_point(family: Graph) -> None:
    path = Path((0, 1, 5), (0, 5))
    assert (
        path.text(family) == "frederica → spouse → ernest_augustus ← parents ← george_v"
    )
    assert (
        path.scored_text(family)
        == "frederica → spouse → ernest augustus ← parents ← george v"
    )
    assert [str(triple) for triple in path.triples(family)] == [
        "(S> frederica | P> spouse | O> ernest_augustus)",
        "(S> george_v | P> parents | O> ernest_augustus)",
    ]


def test_plain_names_drop_what_only_databases_write() -> None:
    assert plain_name("people.person.place_of_birth") == "place of birth"
    assert plain_name("Washington, D.C.") == "Washington, D.C."
    assert plain_name("e.") == "e."

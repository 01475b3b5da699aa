"""The parts of a graph that a reply lists, in the forms in which models write it, and its answer apart from the list."""

import pytest

from ras_agent.contracts.records import Triple
from ras_agent.eval.metrics import Outcome, score
from ras_agent.eval.metrics.cited_graph import (
    CitedGraph,
    GraphValidity,
    answer_apart,
    graph_validity,
    read_cited_graph,
)
from ras_agent.eval.question import Question

NODES = ("mill", "Ardle", "Tam Orr")
EDGES = (("mill", "river", "Ardle"), ("Tam Orr", "owned", "mill"))
# each cites the nodes @ and Ardle, behind the answer "the Ardle"
NODE_FORMS = {
    "bullets": "the Ardle\nNodes:\n- @\n- Ardle",
    "bold heading, stars": "the Ardle\n\n**Nodes:**\n\n* **@**\n* `Ardle`",
    "numbers": "the Ardle\nNodes:\n1. @\n2) Ardle",
    "one line, commas": "the Ardle\nNodes: @, Ardle",
    "one line, semicolons": "the Ardle\nNodes: @; Ardle",
    "lines without bullets": "the Ardle\nNodes:\n@\nArdle",
    "lines without bullets, then words": "the Ardle\nNodes:\n@\nArdle\n\nThat is all.",
    "another heading": "the Ardle\nEntities:\n- @\n- Ardle",
    "a heading of more words": "the Ardle\nThe nodes used (2):\n- @\n- Ardle",
    "Markdown heading": "the Ardle\n\n### Nodes\n- @\n- Ardle",
    "quotes": 'the Ardle\nNodes: "@", "Ardle"',
    "JSON list": 'the Ardle\nNodes: ["@", "Ardle"]',
    "JSON object": '{"answer": "the Ardle", "nodes": ["@", {"name": "Ardle"}]}',
    "JSON object in a fence": '```json\n{"answer": "the Ardle", "nodes": ["@", "Ardle"], "edges": []}\n```',
    "CSV": "the Ardle\nnode_id,node_attr\n0,@\n4,Ardle",
    "CSV in a fence": "the Ardle\n```csv\nnode_id,node_attr\n0,@\n4,Ardle\n```",
    "numbers of nodes": "the Ardle\nNodes:\n- Node 0: @\n- Ardle (node 4)",
    "table": "the Ardle\nNodes:\n| id | node |\n|---|---|\n| 0 | @ |\n| 4 | Ardle |",
    "explanations": "the Ardle\nNodes:\n- @ — it turns there\n- Ardle – the river",
    "a heading of a sentence": "the Ardle\nThe nodes that support this answer are:\n* @\n* Ardle",
    "a heading for the answer": "the Ardle\nNodes that support the answer:\n- @\n- Ardle",
    "behind a sentence": "the Ardle. Supporting nodes: @; Ardle.",
    "a sentence's items": "the Ardle\nThe nodes I used to answer are: @, Ardle.",
    "the list first": "Nodes:\n- @\n- Ardle\n\nthe Ardle",
}
# each cites the edge from @ to the Ardle
EDGE_FORMS = {
    "semicolons": "the Ardle\nEdges:\n- (@; river; Ardle)",
    "marks of the prompts": "the Ardle\nEdges:\n- (S> @ | P> river | O> Ardle)",
    "commas": "the Ardle\nEdges:\n- (@, river, Ardle)",
    "no parentheses": "the Ardle\nEdges:\n- @; river; Ardle",
    "bars": "the Ardle\nEdges:\n@ | river | Ardle",
    "commas without parentheses": "the Ardle\nTriples:\n@, river, Ardle",
    "an arrow with its relation": "the Ardle\nEdges:\n- @ --river--> Ardle",
    "an arrow as in Cypher": "the Ardle\nEdges:\n- (@)-[river]->(Ardle)",
    "an arrow with brackets": "the Ardle\nRelations:\n- @ -[river]-> Ardle",
    "two arrows": "the Ardle\nEdges:\n- @ -> river -> Ardle",
    "two arrows of Unicode": "the Ardle\nRelationships: @ → river → Ardle",
    "CSV": "the Ardle\nnode_id,node_attr\n0,@\n4,Ardle\n\nsrc,edge_attr,dst\n0,river,4",
    "JSON object": '{"answer": "the Ardle", "edges": [{"source": "@", "relation": "river", "target": "Ardle"}]}',
    "JSON lists": 'the Ardle\nEdges: [["@", "river", "Ardle"]]',
    "table": "the Ardle\nEdges:\n| head | relation | tail |\n|---|---|---|\n| @ | river | Ardle |",
    "a heading of a sentence": "the Ardle\nThe edges that support this answer are:\n* (@; river; Ardle)",
    "behind a sentence": "the Ardle. Supporting edges: (@; river; Ardle).",
    "nodes and edges together": "the Ardle\nNodes and edges:\n- (@; river; Ardle)",
}


@pytest.mark.parametrize("form", NODE_FORMS)
def test_nodes_are_read_in_each_form_and_an_invented_one_is_never_valid(
    form: str,
) -> None:
    reply = NODE_FORMS[form]
    cited = graph_validity(read_cited_graph(reply.replace("@", "mill")), NODES, EDGES)
    assert (cited.nodes, cited.valid_nodes, cited.fully_valid) == (2, 2, True)
    invented = graph_validity(
        read_cited_graph(reply.replace("@", "wheel")), NODES, EDGES
    )
    assert (invented.nodes, invented.valid_nodes, invented.fully_valid) == (2, 1, False)
    assert answer_apart(reply.replace("@", "mill")).rstrip(".") == "the Ardle"


@pytest.mark.parametrize("form", EDGE_FORMS)
def test_edges_are_read_in_each_form_and_an_invented_one_is_never_valid(
    form: str,
) -> None:
    reply = EDGE_FORMS[form]
    cited = graph_validity(read_cited_graph(reply.replace("@", "mill")), NODES, EDGES)
    assert (cited.edges, cited.valid_edges, cited.fully_valid) == (1, 1, True)
    invented = graph_validity(
        read_cited_graph(reply.replace("@", "wheel")), NODES, EDGES
    )
    assert (invented.edges, invented.valid_edges, invented.fully_valid) == (1, 0, False)
    assert answer_apart(reply.replace("@", "mill")).rstrip(".") == "the Ardle"


@pytest.mark.parametrize(
    "node",
    [
        "1912 mill",
        "1912: mill",
        "7, mill",
        "old mill",
        "mill wheel",
        "mill (old)",
        "mill: old",
        "mi",
        "4",
        "Node 4",
    ],
)
def test_a_text_that_only_holds_a_nodes_is_no_node(node: str) -> None:
    assert graph_validity(
        read_cited_graph(f"the Ardle\nNodes:\n- {node}"), NODES, EDGES
    ) == GraphValidity(1, 0, 0, 0)


def test_what_is_cited_either_exists_or_not() -> None:
    cited = CitedGraph(
        ("Mill", "wheel"), (("mill", "river", "Ardle"), ("Ardle", "river", "mill"))
    )
    assert graph_validity(cited, NODES, EDGES) == GraphValidity(
        nodes=2, valid_nodes=1, edges=2, valid_edges=1
    )
    assert not graph_validity(cited, NODES, EDGES).fully_valid


def test_a_fully_valid_graph_cites_something() -> None:
    assert graph_validity(CitedGraph(("mill",), EDGES), NODES, EDGES).fully_valid
    assert not graph_validity(CitedGraph(), NODES, EDGES).fully_valid


def test_an_object_of_a_scene_may_be_cited_by_its_name_or_with_its_attributes() -> None:
    scene = (
        "name: mill; attribute: old, white; (x,y,w,h): (1, 2, 3, 4)",
        "name: tree; (x,y,w,h): (5, 6, 7, 8)",
    )
    reply = (
        "old\nNodes:\n- mill\n- name: mill; attribute: old, white\n- name: tree; (x,y,w,h): (5, 6, 7, 8)\n"
        "- name: pond\n"
        "Edges:\n- (mill; near; tree)\n- (tree; near; mill)"
    )
    found = graph_validity(
        read_cited_graph(reply), scene, [(scene[0], "near", scene[1])]
    )
    assert found == GraphValidity(nodes=4, valid_nodes=3, edges=2, valid_edges=1)


def test_a_line_that_cannot_be_read_as_an_edge_is_one_that_does_not_exist() -> None:
    reply = "the Ardle\nEdges:\n- (mill; river; Ardle)\n- the mill stands on the Ardle"
    assert graph_validity(read_cited_graph(reply), NODES, EDGES) == GraphValidity(
        0, 0, 2, 1
    )


def test_the_same_node_counts_once() -> None:
    assert read_cited_graph("Nodes: mill, Tam Orr; the Mill\nThat is all.").nodes == (
        "mill",
        "Tam Orr",
    )


def test_bullets_below_nodes_and_edges_anywhere_are_read() -> None:
    reply = """The mill is on the Ardle (Tam Orr; owned; mill).

    **Nodes:**
    - mill
    - Ardle
    That is all.

    Edges:
    - (mill; river; Ardle)
    - (mill, near, tree)
    - (mill; river; Ardle)
    """
    assert read_cited_graph(reply) == CitedGraph(
        ("mill", "Ardle"),
        (
            ("Tam Orr", "owned", "mill"),
            ("mill", "river", "Ardle"),
            ("mill", "near", "tree"),
        ),
    )


@pytest.mark.parametrize(
    "reply",
    ["", "No graph.", "at (3, 4, 5)", "(x,y,w,h): (1, 2, 3, 4)", "a (b) c (d; e)", "no\nNodes: none\nEdges:\n- None",
     "The nodes of the lymph are small.", "well-known -> x"],
)  # fmt: skip
def test_a_reply_may_cite_nothing(reply: str) -> None:
    assert read_cited_graph(reply) == CitedGraph()


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("yellow [1][2]", "yellow"),
        ("Yes [1]. It is.\n\nIt rests on this:\n\nNodes:\n- mill", "Yes. It is."),
        ("The nodes of the lymph are small.", "The nodes of the lymph are small."),
        ("(mill; river; Ardle)", "(mill; river; Ardle)"),
        ("Nodes:\n- mill", "Nodes:\n- mill"),
        ("yellow (mill; river; Ardle)", "yellow"),
        ("a -> b", "a -> b"),
    ],
)
def test_the_answer_is_what_stands_apart_from_the_list(reply: str, answer: str) -> None:
    assert answer_apart(reply) == answer


def test_a_question_without_a_graph_is_held_to_the_one_that_the_agent_built() -> None:
    metrics = ("valid_nodes", "valid_edges", "fully_valid")
    reply = "Ardle\nNodes: mill, Isla\nEdges:\n- (mill; river; Ardle)"
    question = Question("1", "Which river?", ("Ardle",))
    built = {"1": Triple("mill", "river", "Ardle")}
    assert score(question, Outcome(reply, facts=built), metrics) == {
        "valid_nodes": 0.5,
        "valid_edges": 1.0,
        "fully_valid": 0.0,
    }
    assert score(question, Outcome(reply), metrics) == {}


@pytest.mark.parametrize(
    ("reply", "shares"),
    [
        ("the Ardle\nNodes: 0, 2\nEdges: 2,owned,0", (1.0, 1.0)),
        ("the Ardle\nNodes:\n- Node 1\n- [3]\nEdges:\n- (0; river; 1)", (0.5, 1.0)),
        ("the Ardle\nNodes: 7\nEdges: (1; river; 0)", (0.0, 0.0)),
    ],
)
def test_a_bare_number_is_that_row_of_the_shown_graph(
    reply: str, shares: tuple[float, float]
) -> None:
    graph = {"nodes": list(NODES), "edges": [[0, "river", 1], [2, "owned", 0]]}
    question = Question("1", "Which river?", ("Ardle",), metadata={"graph": graph})
    outcome = Outcome(reply, shown_nodes=NODES)
    scores = score(question, outcome, ("valid_nodes", "valid_edges"))
    assert tuple(scores.values()) == shares

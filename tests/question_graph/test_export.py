"""GraphML and Mermaid: complete, and well-formed for any text."""

import json
import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.export import to_graphml, to_mermaid

HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from("\"'<>&#;`|[](){}-=\n\x00\u2028 end%%")),
    max_size=30,
)
GRAPHS = st.lists(st.builds(Triple, HOSTILE, HOSTILE, HOSTILE), max_size=5).map(
    lambda facts: QuestionGraph(tuple(facts))
)

GRAPH = QuestionGraph().merge(
    [
        Triple(
            "Telephone",
            "was patented by",
            "Alexander Graham Bell",
            (Source("p1", 0, 40, 1, "q", "offline"),),
        ),
        Triple(
            "The telephone",
            "was patented by",
            "Alexander Graham Bell",
            (Source("p4", hop=2),),
        ),
        Triple("Alexander Graham Bell", "was born in", "1847", (Source("p2", hop=1),)),
        Triple("Alexander Graham Bell", "was born in", "1850", (Source("p3", hop=2),)),
    ]
)


def table(graph: QuestionGraph, tag: str) -> list[dict[str, str]]:
    """The nodes or edges of the GraphML form, as attribute -> text."""
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.fromstring(to_graphml(graph))
    return [
        {
            **element.attrib,
            **{
                data.attrib["key"].partition("-")[2]: data.text or ""
                for data in element
            },
        }
        for element in root.iter(space + tag)
    ]


class TestGraphML:
    def test_entities_are_nodes_with_label_forms_and_first_hop(self) -> None:
        assert table(GRAPH, "node")[0] == {
            "id": "n0",
            "label": "The telephone",
            "key": "telephone",
            "forms": '["Telephone", "The telephone"]',
            "hop": "1",
        }

    def test_facts_are_edges_with_provenance(self) -> None:
        edge = table(GRAPH, "edge")[0]
        assert (edge["id"], edge["source"], edge["target"]) == (
            GRAPH.facts[0].id,
            "n0",
            "n1",
        )
        assert (edge["label"], edge["hop"], edge["support"]) == (
            "was patented by",
            "1",
            "2",
        )
        assert json.loads(edge["sources"]) == [
            source.to_dict() for source in GRAPH.facts[0].sources
        ]

    def test_conflicting_facts_are_marked(self) -> None:
        assert [edge["conflict"] for edge in table(GRAPH, "edge")] == [
            "false",
            "true",
            "true",
        ]

    def test_every_attribute_is_declared(self) -> None:
        root = ET.fromstring(to_graphml(GRAPH))
        declared = {
            key.attrib["id"]
            for key in root.iter("{http://graphml.graphdrawing.org/xmlns}key")
        }
        used = {
            data.attrib["key"]
            for data in root.iter("{http://graphml.graphdrawing.org/xmlns}data")
        }
        assert used <= declared

    @given(GRAPHS)
    def test_any_text_gives_valid_xml(self, graph: QuestionGraph) -> None:
        assert len(table(graph, "node")) == len(graph.entities)
        assert len(table(graph, "edge")) == len(graph)


class TestMermaid:
    def test_a_flowchart_with_labelled_edges_and_tinted_hops(self) -> None:
        assert to_mermaid(GRAPH).splitlines()[:6] == [
            "flowchart LR",
            '  n0["The telephone"]:::hop1',
            '  n1["Alexander Graham Bell"]:::hop1',
            '  n2["1847"]:::hop1',
            '  n3["1850"]:::hop2',
            '  n0 -->|"was patented by"| n1',
        ]
        assert "  linkStyle 1,2 stroke:#dc2626,stroke-dasharray:4" in to_mermaid(GRAPH)

    def test_long_labels_are_cut(self) -> None:
        graph = QuestionGraph((Triple("word " * 40, "is", "long"),))
        assert f'n0["{"word " * 11}word…"]' in to_mermaid(graph)

    def test_a_large_graph_counts_what_is_not_drawn(self) -> None:
        facts = tuple(Triple(f"A{n}", "is", f"b{n}") for n in range(5))
        drawn = to_mermaid(QuestionGraph(facts), max_facts=3)
        assert drawn.count("-->") == 3
        assert 'more["... and 2 more facts"]' in drawn

    @given(GRAPHS)
    def test_any_text_stays_inside_its_label(self, graph: QuestionGraph) -> None:
        node = r'  n\d+\["[^"\[\]<>|`\n]*"\]:::hop\d+'
        edge = r'  n\d+ -->\|"[^"\[\]<>|`\n]*"\| n\d+'
        style = r"  (?:classDef|linkStyle) .*"
        head, *lines = to_mermaid(graph).splitlines()
        assert head == "flowchart LR"
        assert all(re.fullmatch(f"{node}|{edge}|{style}", line) for line in lines)

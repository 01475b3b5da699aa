"""Exports and imports of a knowledge graph."""

from __future__ import annotations

import ast
import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.formats.export import (
    write_graphml,
    write_jsonl,
    write_nt,
    write_tsv,
)
from ras_agent.tools.kg.formats.gfm_csv import (
    GFMFiles,
    read_gfm_files,
    write_gfm_csv,
    write_gfm_files,
)
from ras_agent.tools.kg.formats.gfm_questions import (
    read_starts,
)
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.openie import ExtractedPassage, load_openie
from ras_agent.tools.kg.formats.triples import load_triples
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.other_nodes import Link, Node, OtherNodes, node_text
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from tests.messages import says

PASSAGES = [
    PassageFacts(
        "bell",
        (
            Triple("Graham Bell", "born in", "Edinburgh <&>", (Source("bell", 0, 9),)),
            Triple(
                "Bell Graham", "patented", 'the "telephone"', (Source("bell", 10, 20),)
            ),
        ),
        ("Scotland", "Scotland"),
    ),
    PassageFacts(
        "Edinburgh <&>",
        (
            Triple(
                "Graham Bell",
                "born in",
                "Edinburgh <&>",
                (Source("Edinburgh <&>", 1, 2),),
            ),
        ),
    ),
]


@pytest.fixture
def graph(hash_embedder: Any) -> KGIndex:
    return KGIndex.in_memory(PASSAGES, hash_embedder, equivalence=Equivalence(0.9))


def whole_of(files: GFMFiles, **options: Any) -> KGIndex:
    return KGIndex.in_memory(
        files.facts,
        edges=files.edges,
        equivalence=Equivalence(kind="imported"),
        **options,
    )


def test_gfm_rag_s_files_hold_the_whole_graph(graph: KGIndex, tmp_path: Path) -> None:
    write_gfm_csv(graph, tmp_path)
    again = whole_of(read_gfm_files(tmp_path))
    assert again.fingerprint.partition("/")[0] == graph.fingerprint.partition("/")[0]
    with (tmp_path / "edges.csv").open(newline="") as file:
        (same,) = (row for row in csv.reader(file) if row[1] == "equivalent")
    assert same == ["Bell Graham", "equivalent", "Graham Bell", '{"similarity": 1.0}']


def stating(
    passage_id: str, *facts: tuple[str, str, str], names: tuple[str, ...] = ()
) -> PassageFacts:
    return PassageFacts(
        passage_id,
        tuple(Triple(*fact, (Source(passage_id, 1, 2),)) for fact in facts),
        names,
    )


_NAMES = st.sampled_from(
    [
        "a",
        "b",
        "document: a",
        "document: document: a",
        "equivalent",
        "is_mentioned_in",
        'x,"y"',
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    stated=st.dictionaries(
        _NAMES, st.tuples(st.sets(st.tuples(_NAMES, _NAMES, _NAMES)), st.sets(_NAMES))
    )
)
def test_names_that_clash_come_back_as_they_were(stated: Any, tmp_path: Path) -> None:
    passages = [
        stating(name, *sorted(facts), names=tuple(names))
        for name, (facts, names) in stated.items()
    ]
    whole = KGIndex.in_memory(passages)
    write_gfm_csv(whole, tmp_path)
    assert whole_of(read_gfm_files(tmp_path)).fingerprint == whole.fingerprint


def test_a_fact_called_equivalent_is_a_fact_where_a_document_states_it(
    tmp_path: Path,
) -> None:
    write_gfm_csv(
        KGIndex.in_memory([stating("p", ("Mass", "equivalent", "Energy"))]), tmp_path
    )
    (found,) = read_gfm_files(tmp_path).facts
    assert [str(triple) for triple in found.triples] == [
        "(S> Mass | P> equivalent | O> Energy)"
    ]
    header = "source,relation,target,attributes\n"
    (tmp_path / "edges.csv").write_text(f"{header}Mass,equivalent,Energy,{{}}\n")
    files = read_gfm_files(tmp_path)
    assert (files.facts, files.edges) == (
        [PassageFacts("p")],
        [UnstatedEdge("Mass", "equivalent", "Energy", 1.0)],
    )


def test_documents_called_alike_keep_their_names_apart(tmp_path: Path) -> None:
    passages = [
        stating("a", ("a", "r", "b")),
        stating("document: a", ("c", "r", "d"), names=("extra",)),
    ]
    write_gfm_csv(KGIndex.in_memory(passages), tmp_path)
    assert read_gfm_files(tmp_path).facts == passages


@pytest.mark.parametrize(
    "sources",
    [
        "5",
        "[5]",
        '[[""p"", 0, 99999999999]]',
        '[[""p"", 9, 3]]',
        '[[""p"", -1, 3]]',
        '{""p"": 1}',
    ],
)
def test_places_of_another_kind_are_left_out_and_reported(
    sources: str, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_text("name,type,attributes\n")
    (tmp_path / "edges.csv").write_text(
        f'source,relation,target,attributes\na,r,b,"{{""sources"": {sources}}}"\n'
    )
    skipped: list[Skipped] = []
    assert read_gfm_files(tmp_path, skipped).edges == [UnstatedEdge("a", "r", "b")]
    assert [item.place for item in skipped] == [f"{tmp_path / 'edges.csv'} line 2"]
    assert skipped[0].reason.startswith(
        "expected [passage, start, end] as places, got "
    )


@pytest.mark.parametrize("count", ["30000000", "0", '""many""'])
def test_a_count_that_cannot_be_is_one_and_reported(count: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,type,attributes\np,document,{}\n")
    (tmp_path / "edges.csv").write_text(
        f'source,relation,target,attributes\nBell,is_mentioned_in,p,"{{""count"": {count}}}"\n'
    )
    skipped: list[Skipped] = []
    assert read_gfm_files(tmp_path, skipped).facts == [PassageFacts("p", (), ("Bell",))]
    assert [item.reason.split(", got")[0] for item in skipped] == [
        "expected a count from 1 to 100,000"
    ]


def test_gfm_rag_s_own_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "name,type,attributes\nFrance,document,\"{'x': 1}\"\nBell,document,{}\nparis,entity,{}\nfrance,entity,{}\n"
    )
    (tmp_path / "edges.csv").write_text(
        "source,relation,target,attributes\nparis,capital of,france,{}\nFrance,mentions,paris,{}\n"
        "france,is_mentioned_in,France,{}\nparis,north of,lyon,{}\n"
    )
    (tmp_path / "relations.csv").write_text("name,attributes\ncapital of,{}\n")
    files = read_gfm_files(tmp_path)
    france, bell = files.facts
    assert france == PassageFacts(
        "France", (Triple("paris", "capital of", "france", (Source("France"),)),)
    )
    assert bell == PassageFacts("Bell")
    assert files.edges == [UnstatedEdge("paris", "north of", "lyon")]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            "name,kind\n",
            r"nodes\.csv line 1: expected the columns name, type, attributes",
        ),
        (
            "name,type,attributes\na,document,nonsense\n",
            r"nodes\.csv line 2: the attributes should be an object",
        ),
        (
            "name,type,attributes\na,document\n",
            r"nodes\.csv line 2: expected 3 fields, found 2",
        ),
    ],
)
def test_files_of_another_kind_are_reported_with_their_line(
    nodes: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_text(nodes)
    with pytest.raises(IngestError, match=message):
        read_gfm_files(tmp_path)


def test_the_first_version_s_files_are_read(tmp_path: Path) -> None:
    tables = tmp_path / "rivers" / "processed" / "stage1"
    tables.mkdir(parents=True)
    (tmp_path / "rivers" / "raw").mkdir()
    (tmp_path / "rivers" / "raw" / "dataset_corpus.json").write_text(
        '{"Bell": "Bell lived.", "Leith": "It flows."}'
    )
    (tables / "kg.txt").write_text(
        "bell,born in,edinburgh\nbell,equivalent,a g bell\na g bell,equivalent,bell\nleith,flows through\n"
        "edinburgh,lies on,forth\n"
    )
    (tables / "document2entities.json").write_text(
        '{"Bell": ["bell", "edinburgh", "unknown"], "Leith": ["forth"]}'
    )
    skipped: list[Skipped] = []
    files = read_gfm_files(tmp_path / "rivers", skipped)
    assert files.facts == [
        PassageFacts(
            "Bell", (Triple("bell", "born in", "edinburgh", (Source("Bell"),)),)
        ),
        PassageFacts("Leith", (), ("forth",)),
    ]
    assert files.edges == [
        UnstatedEdge("edinburgh", "lies on", "forth"),
        UnstatedEdge("bell", "equivalent", "a g bell", 1.0),
        UnstatedEdge("a g bell", "equivalent", "bell", 1.0),
    ]
    assert [(one.id, one.text) for one in files.passages] == [
        ("Bell", "Bell lived."),
        ("Leith", "It flows."),
    ]
    assert [item.place for item in skipped] == [f"{tables / 'kg.txt'} line 4"]
    (tables / "document2entities.json").unlink()
    with pytest.raises(
        IngestError, match=says("no document2entities.json", "first version", "kg.txt")
    ):
        read_gfm_files(tables)


def test_nodes_may_be_called_by_a_uid(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "uid,name,type\nd1,Bell,document\nn1,bell,entity\nn2,bell,attribute\nn3,edinburgh,entity\n"
    )
    (tmp_path / "relations.csv").write_text("uid,name,attributes\nr1,born in,{}\n")
    (tmp_path / "edges.csv").write_text(
        "source,relation,target\nn1,r1,n3\nn1,in,d1\nn3,in,d1\nn2,in,d1\n"
    )
    (tmp_path / "test.json").write_text(
        '[{"question": "Who?", "start_nodes": {"entity": ["n1", "n3"], "document": ["d1"]}}]'
    )
    (facts,) = read_gfm_files(tmp_path).facts
    assert facts.triples == (
        Triple("bell (n1)", "born in", "edinburgh", (Source("Bell"),)),
    )
    assert facts.entities == ("bell (n2)",)
    starts = {"entity": ("bell (n1)", "edinburgh"), "document": ("Bell",)}
    assert read_starts(tmp_path / "test.json") == {"Who?": starts}


def test_attributes_of_nodes_keep_their_text_whatever_literals_they_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "nodes.csv").write_text(
        "name,type,attributes\nBell,document,{}\nrivers,community,\"{'size': 2, 3: (4, 5), 'about': None}\"\n"
    )
    (tmp_path / "relations.csv").write_text("name,attributes\nbelongs to,{}\n")
    (tmp_path / "edges.csv").write_text(
        "source,relation,target,attributes\nBell,belongs to,rivers,{}\n"
    )
    others = read_gfm_files(tmp_path, exact=True).others
    assert OtherNodes.from_json(others.to_json()) == others
    node = Node("community", "rivers")
    assert (
        node_text(others.nodes[node], name="rivers")
        == "name: rivers\nsize: 2\n3: (4, 5)"
    )
    assert others.links == (Link(Node("document", "Bell"), "belongs to", node),)


def test_questions_of_the_first_version_start_from_their_entities(
    tmp_path: Path,
) -> None:
    path = tmp_path / "test.json"
    path.write_text(
        '[{"question": "Who?", "question_entities": ["bell"], "supporting_facts": ["Bell"]}]'
    )
    assert read_starts(path) == {"Who?": {"entity": ("bell",)}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "expected an array of questions, found dict"),
        ("nonsense", "not JSON"),
        ('[{"q": 1}]', 'record 1: expected an object with "question"'),
        (
            '[{"question": "Who?", "start_nodes": ["a"]}]',
            "record 1: expected start_nodes by type of node",
        ),
        (
            '[{"question": "Who?", "start_nodes": {"entity": "a"}}]',
            "record 1: expected a list of names",
        ),
    ],
)
def test_questions_of_another_kind_are_reported_with_their_place(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "test.json").write_text(text)
    with pytest.raises(IngestError, match=message):
        read_starts(tmp_path / "test.json")


def test_texts_that_are_none_are_reported(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "documents.json").write_text('{"Bell": ["Bell lived."]}')
    with pytest.raises(
        IngestError, match=says("documents.json", "expected the text of each document")
    ):
        read_gfm_files(tmp_path)


def test_relations_that_are_called_as_equivalences_and_mentions_are_named_once(
    tmp_path: Path,
) -> None:
    facts = stating(
        "p",
        ("Mass", "equivalent", "Energy"),
        ("Mass", "is_mentioned_in", "Law"),
        ("Mass", "is", "big"),
    )
    write_gfm_csv(KGIndex.in_memory([facts]), tmp_path)
    with (tmp_path / "relations.csv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == [
            "name",
            "equivalent",
            "is",
            "is_mentioned_in",
        ]


def test_texts_and_titles_go_with_their_documents(tmp_path: Path) -> None:
    graph = KGIndex.in_memory(
        [stating("bell", ("Bell", "is", "here")), stating("lost", ("It", "is", "far"))]
    )
    passage = Passage("bell", 'He said "null": never.', "Graham Bell")
    write_gfm_files(graph, tmp_path / "data" / "mine", {"bell": passage}.get)
    texts = json.loads(
        (tmp_path / "data" / "mine" / "raw" / "documents.json").read_text()
    )
    assert texts == {"bell": passage.text, "lost": ""}
    with (tmp_path / "data" / "mine" / "processed" / "stage1" / "nodes.csv").open(
        newline=""
    ) as file:
        about = {
            row[0]: ast.literal_eval(row[2])
            for row in csv.reader(file)
            if row[1] == "document"
        }
    assert about["bell"] == {
        "id": "bell",
        "title": "Graham Bell",
        "content": passage.text,
    }
    again = read_gfm_files(tmp_path / "data" / "mine").passages
    # a document without a text is found by its name
    assert [(one.id, one.text, one.title) for one in again] == [
        ("bell", passage.text, "Graham Bell"),
        ("lost", "lost", "lost"),
    ]


def test_a_folder_without_files_is_reported(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"no nodes\.csv"):
        read_gfm_files(tmp_path)


def test_graphml_is_well_formed_and_whole(graph: KGIndex, tmp_path: Path) -> None:
    write_graphml(graph, tmp_path / "g.graphml")
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    root = ET.parse(tmp_path / "g.graphml").getroot()
    labels = [
        node.findtext("g:data[@key='node-label']", None, space)
        for node in root.iterfind(".//g:node", space)
    ]
    assert labels == list(graph.entities)
    edges = {
        (
            edge.get("source"),
            edge.get("target"),
            edge.findtext("g:data[@key='edge-kind']", None, space),
        )
        for edge in root.iterfind(".//g:edge", space)
    }
    assert edges == {
        ("n2", "n1", "fact"),
        ("n0", "n4", "fact"),
        ("n0", "n2", "equivalence"),
    }


def test_graphml_can_be_read_by_networkx(graph: KGIndex, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    write_graphml(graph, tmp_path / "g.graphml")
    drawn = networkx.read_graphml(tmp_path / "g.graphml", force_multigraph=True)
    assert [drawn.nodes[f"n{number}"]["label"] for number in range(len(drawn))] == list(
        graph.entities
    )
    assert drawn.number_of_edges() == len(graph.edges)


@pytest.mark.parametrize(
    ("write", "name"),
    [(write_tsv, "g.tsv"), (write_nt, "g.nt"), (write_jsonl, "g.jsonl")],
)
def test_exported_triples_can_be_loaded_again(
    write: Any, name: str, graph: KGIndex, tmp_path: Path
) -> None:
    write(graph, tmp_path / name)
    found = [
        item
        for item in load_triples(tmp_path / name, name)
        if isinstance(item, PlacedTriple)
    ]
    facts = {(fact.subject, fact.predicate, fact.object) for fact in found}
    expected = {
        (triple.subject, triple.predicate, triple.object)
        for triple in map(graph.triple, graph.facts)
    }
    assert facts == expected


def test_ready_openie_is_placed_at_its_sentences(tmp_path: Path) -> None:
    record = {
        "id": 7,
        "title": "Bell",
        "text": "It rang. Bell was born in Edinburgh.",
        "entities": ["Edinburgh", ""],
        "triples": [["Bell", "was born in", "Edinburgh"], ["Bell", "", "x"], ["Bell"]],
    }
    (tmp_path / "o.jsonl").write_text(json.dumps(record) + '\n{"id": 8}\nnonsense\n')
    ready, *skipped = load_openie(tmp_path / "o.jsonl", "o.jsonl")
    assert isinstance(ready, ExtractedPassage)
    assert ready.passage == Passage("7", record["text"], "Bell")  # type: ignore[arg-type]  # a text
    assert ready.facts == PassageFacts(
        "7",
        (Triple("Bell", "was born in", "Edinburgh", (Source("7", 9, 36),)),),
        ("Edinburgh", "Bell"),
    )
    assert [item.place for item in skipped if isinstance(item, Skipped)] == [
        f"o.jsonl line {n}" for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            '{"id": 1, "text": "t", "triples": [], "entities": 5}',
            "no list of entities in passage 1",
        ),
        (
            '{"id": 1, "text": "t", "triples": [], "entities": "Bell"}',
            "no list of entities in passage 1",
        ),
        ('{"id": 1, "text": "t", "triples": {}}', "no list of triples in passage 1"),
        (
            f'{{"id": 1, "text": "t", "triples": [], "x": {5000 * "1"}}}',
            "cannot be read: Exceeds the limit",
        ),
        (
            f'{{"id": 1, "text": "t", "triples": [{900 * "["}{900 * "]"}]}}',
            "nested too deeply to be read",
        ),
    ],
    ids=["number", "text", "object", "digits", "nested"],
)
def test_a_bad_line_of_ready_openie_is_skipped_alone(
    line: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "o.jsonl").write_text(
        line + '\n{"id": 2, "text": "t", "triples": [], "entities": null}\n'
    )
    skipped, ready = load_openie(tmp_path / "o.jsonl", "o.jsonl")
    assert str(skipped).startswith(f"o.jsonl line 1: {reason}")
    assert isinstance(ready, ExtractedPassage)

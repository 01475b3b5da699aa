"""Graphs as people have them: tables, Neo4j's files, GraphML, node-link JSON, RDF. Each says the same few facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.stated_facts import STATED, stated_facts
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import add_triples
from ras_agent.tools.kg.edit import add_fact
from ras_agent.tools.kg.formats.export import (
    write_csv,
    write_graphml,
    write_jsonl,
    write_neo4j,
    write_node_link,
    write_nt,
    write_rdf,
    write_tsv,
)
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.triples import load_triples
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker
from tests.messages import says

Facts = list[tuple[str, str, str]]


def loaded(folder: Path, **files: str) -> list[PlacedTriple | Skipped]:
    """Write files, "name.suffix" as name_suffix, and read them together."""
    paths = []
    for name, text in files.items():
        path = folder / ".".join(name.rsplit("_", 1))
        path.write_text(text, "utf-8")
        paths.append(path)
    return [item for path in paths for item in load_triples(path, path.name, paths)]


def facts(items: list[PlacedTriple | Skipped]) -> Facts:
    assert not [item for item in items if isinstance(item, Skipped)]
    return [
        (item.subject, item.predicate, item.object)
        for item in items
        if isinstance(item, PlacedTriple)
    ]


EDGES: Facts = [("Ada Finn", "works at", "Acme"), ("Acme", "is in", "Orvena")]
CSV = "source,relation,target\nAda Finn,works at,Acme\nAcme,is in,Orvena\n"
PEOPLE = "personId:ID(Person),name,:LABEL\np1,Ada Finn,Person\n"
PLACES = "placeId:ID(Place),name:string,age:int\n1,Acme,\n2,Orvena,7\n"
RELATIONSHIPS = ":START_ID(Person),:END_ID(Place),:TYPE\np1,1,WORKS_AT\n"
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="name"/><key id="d1" for="edge" attr.name="label"/>
<graph edgedefault="directed">
<node id="a"><data key="d0">Ada Finn</data></node>
<node id="b"><data key="d0">Acme</data></node><node id="Orvena"/>
<edge source="a" target="b"><data key="d1">works at</data></edge>
<edge source="b" target="Orvena"><data key="d1">is in</data></edge>
</graph></graphml>"""
NODE_LINK = json.dumps(
    {
        "nodes": [
            {"id": 1, "name": "Ada Finn"},
            {"id": 2, "name": "Acme"},
            {"id": "Orvena"},
        ],
        "links": [
            {"source": 1, "target": 2, "relation": "works at"},
            {"source": 2, "target": "Orvena", "relation": "is in"},
        ],
    }
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph_csv", CSV),
        (
            "graph_csv",
            CSV.replace(",", ";")
            .replace("source", "Subject")
            .replace("target", "OBJECT"),
        ),
        ("graph_graphml", GRAPHML),
        ("graph_json", NODE_LINK),
    ],
)
def test_each_form_says_the_same_facts(tmp_path: Path, name: str, text: str) -> None:
    assert facts(loaded(tmp_path, **{name: text})) == EDGES


def test_places_name_the_line(tmp_path: Path) -> None:
    places = [
        item.place
        for item in loaded(tmp_path, a_csv=CSV, b_graphml=GRAPHML)
        if isinstance(item, PlacedTriple)
    ]
    assert places == [
        "a.csv line 2",
        "a.csv line 3",
        "b.graphml line 6",
        "b.graphml line 7",
    ]


def test_neo4j_s_relationships_are_named_by_the_files_of_nodes(tmp_path: Path) -> None:
    items = loaded(
        tmp_path, people_csv=PEOPLE, places_csv=PLACES, works_csv=RELATIONSHIPS
    )
    assert facts(items) == [
        ("Ada Finn", "is a", "Person"),
        ("Orvena", "age", "7"),
        ("Ada Finn", "works at", "Acme"),
    ]


def linked(graph: KGIndex, question: str) -> list[str]:
    return [graph.entities[link.entity] for link in EntityLinker(graph).link(question)]


def test_two_entities_of_one_label_stay_two_and_are_told_apart_by_a_fact(
    tmp_path: Path,
) -> None:
    people = "id:ID,name,job\n1,Li Wei,painter\n2,Li Wei,pilot\n3,Ada,pilot\n"
    knows = ":START_ID,:END_ID,:TYPE\n1,3,KNOWS\n3,2,KNOWS\n"
    found = facts(loaded(tmp_path, people_csv=people, knows_csv=knows))
    assert found[-2:] == [
        ("Li Wei (job painter)", "knows", "Ada"),
        ("Ada", "knows", "Li Wei (job pilot)"),
    ]
    assert ("Li Wei (job painter)", "is also called", "Li Wei") in found
    report = add_triples(
        tmp_path / "i", [tmp_path / "people.csv", tmp_path / "knows.csv"]
    )
    assert linked(report.graph, "Whom does Li Wei know?") == [
        "Li Wei (job painter)",
        "Li Wei (job pilot)",
    ]
    assert linked(report.graph, "Whom does the pilot Li Wei know?") == [
        "Li Wei (job pilot)"
    ]


RDFS = "http://www.w3.org/2000/01/rdf-schema#label"
WD = "http://www.wikidata.org"
WIKIDATA = f"""
<{WD}/entity/Q1> <{RDFS}> "Ada Finn"@en .
<{WD}/entity/Q2> <{RDFS}> "Acme" .
<{WD}/entity/P108> <{RDFS}> "employer"@en .
<{WD}/entity/Q1> <{WD}/prop/direct/P108> <{WD}/entity/Q2> .
<{WD}/entity/Q1> <http://www.w3.org/2004/02/skos/core#altLabel> "A. Finn"@en .
<{WD}/entity/Q1> <http://www.w3.org/2004/02/skos/core#altLabel> "Adele F."@fr .
<{WD}/entity/Q1> <{RDFS}> "Ada of Orvena"@en .
<{WD}/entity/Q1> <http://schema.org/description> "painter of lamps"@en .
"""


def test_direct_properties_have_labels_and_aliases_and_descriptions_are_facts(
    tmp_path: Path,
) -> None:
    assert facts(loaded(tmp_path, wd_nt=WIKIDATA)) == [
        ("Ada Finn", "employer", "Acme"),
        ("Ada Finn", "is also called", "A. Finn"),
        ("Ada Finn", "is also called", "Ada of Orvena"),
        ("Ada Finn", "is described as", "painter of lamps"),
    ]
    graph = add_triples(tmp_path / "i", tmp_path / "wd.nt").graph
    assert linked(graph, "Where did A. Finn work?") == ["Ada Finn"]
    (passage,) = [
        one
        for one in PassageIndex.open(tmp_path / "i").passages
        if one.title == "Ada Finn"
    ]
    assert (passage.file, passage.metadata[STATED][0][3]) == ("wd.nt", "wd.nt line 5")


TURTLE = """@prefix x: <http://x.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
x:1 rdfs:label "Ada Finn" ; x:works_at x:2 . x:2 rdfs:label "Acme" ; x:is_in x:Orvena .
"""
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x.org/">
<rdf:Description rdf:about="http://x.org/Ada_Finn"><x:works_at rdf:resource="http://x.org/Acme"/></rdf:Description>
<rdf:Description rdf:about="http://x.org/Acme"><x:is_in rdf:resource="http://x.org/Orvena"/></rdf:Description>
</rdf:RDF>"""
JSON_LD = json.dumps(
    {
        "@context": {
            "x": "http://x.org/",
            "works_at": {"@id": "x:works_at", "@type": "@id"},
        },
        "@id": "x:Ada_Finn",
        "works_at": {"@id": "x:Acme", "x:is_in": {"@id": "x:Orvena"}},
    }
)


@pytest.mark.parametrize(
    ("name", "text"), [("a_ttl", TURTLE), ("a_rdf", RDF_XML), ("a_jsonld", JSON_LD)]
)
def test_rdf_in_other_syntaxes_says_the_same_facts(
    tmp_path: Path, name: str, text: str
) -> None:
    pytest.importorskip("pyoxigraph")
    assert sorted(facts(loaded(tmp_path, **{name: text}))) == sorted(EDGES)


@pytest.mark.parametrize(
    ("entity", "is_read"),
    [
        ('"http://x.org/"', True),
        ('"&b;&b;"', False),
        (f'"{"x" * 400}"', False),
    ],
)
def test_entities_of_rdf_stand_for_the_beginnings_of_names(
    tmp_path: Path, entity: str, is_read: bool
) -> None:
    pytest.importorskip("pyoxigraph")
    document_type = f'<!DOCTYPE rdf:RDF [<!ENTITY x {entity}><!ENTITY b "&#38;">]>'
    text = document_type + RDF_XML.replace('"http://x.org/A', '"&x;A')
    if is_read:
        assert sorted(facts(loaded(tmp_path, a_rdf=text))) == sorted(EDGES)
        return
    with pytest.raises(IngestError, match="write their values into the text"):
        loaded(tmp_path, a_rdf=text)


def test_what_stands_behind_an_error_of_rdf_is_reported_as_unread(
    tmp_path: Path,
) -> None:
    pytest.importorskip("pyoxigraph")
    fact, error = loaded(tmp_path, a_ttl="<x:a> <x:b> <x:c> .\n<x:a> oops\n")
    assert isinstance(fact, PlacedTriple)
    assert str(error).startswith(
        "a.ttl statement 2: cannot be read, nor what comes behind it:"
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a_csv", "name,age\nAda,7\n", "no column holds the head"),
        ("a_json", '{"a": 1}', 'no object with "nodes" and "links"'),
        (
            "a_graphml",
            '<!DOCTYPE g [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml>&e;</graphml>',
            "document type",
        ),
    ],
)
def test_other_files_are_refused_with_a_remedy(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(IngestError, match=says(message)):
        loaded(tmp_path, **{name: text})


def test_damaged_parts_are_skipped_alone(tmp_path: Path) -> None:
    nodes = {
        "nodes": [{"id": "a"}, {"name": "no id"}],
        "edges": [{"source": "a", "target": "b", "type": "likes"}, 7],
    }
    items = loaded(
        tmp_path,
        a_csv=CSV + "one,two\n",
        b_json=json.dumps(nodes),
        c_graphml=GRAPHML[:-20],
    )
    skipped = [item.place for item in items if isinstance(item, Skipped)]
    assert skipped == [
        "a.csv line 4",
        "b.json node 2",
        "b.json edge 2",
        "c.graphml line 7",
    ]
    assert len(items) - len(skipped) == 2 + 1 + 1


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
REIFIED = f"""<urn:Ada> <urn:knows> <urn:Bo> .
_:x <{RDF}type> <{RDF}Statement> .
_:x <urn:x/since> "1999" .
_:x <{RDF}subject> <urn:Ada> .
_:x <{RDF}predicate> <urn:knows> .
_:x <{RDF}object> <urn:Bo> .
"""
KNOWS: Facts = [("Ada", "knows", "Bo")]
YED = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
<key for="node" id="d6" yfiles.type="nodegraphics"/><key for="edge" id="d9" yfiles.type="edgegraphics"/><graph>
<node id="n0"><data key="d6"><y:ShapeNode> <y:NodeLabel>Ada</y:NodeLabel></y:ShapeNode></data></node>
<node id="n1"><data key="d6"><y:ShapeNode> <y:NodeLabel>Bo</y:NodeLabel></y:ShapeNode></data></node>
<edge source="n0" target="n1"><data key="d9"><y:Line> <y:EdgeLabel>knows</y:EdgeLabel></y:Line></data></edge>
</graph></graphml>"""


@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        ("graphml", YED),
        (
            "json",
            '{"nodes": [{"name": "Ada"}, {"name": "Bo"}], "links": [{"source": 0, "target": 1, "type": "knows"}]}',
        ),
        (
            "json",
            '{"graph": {"nodes": {"a": {"label": "Ada"}, "b": {"label": "Bo"}}, "edges": '
            '[{"source": "a", "target": "b", "relation": "knows"}]}}',
        ),
        (
            "json",
            '{"elements": {"nodes": [{"data": {"id": "Ada"}}, {"data": {"id": "Bo"}}], "edges": '
            '[{"data": {"source": "Ada", "target": "Bo", "interaction": "knows"}}]}}',
        ),
        ("json", '[{"subject": "Ada", "predicate": "knows", "object": "Bo"}]'),
        (
            "json",
            '{"nodes": [{"id": "1", "properties": {"name": "Ada"}}, {"id": "2", "properties": {"name": "Bo"}}], '
            '"relationships": [{"type": "KNOWS", "startNode": "1", "endNode": {"id": "2"}}]}',
        ),
        (
            "jsonl",
            '{"type": "node", "id": "1", "properties": {"name": "Ada"}}\n'
            '{"type": "node", "id": "2", "properties": {"name": "Bo"}}\n'
            '{"type": "relationship", "id": "3", "label": "KNOWS", "start": {"id": "1"}, "end": {"id": "2"}}\n',
        ),
        ("csv", "_id,name,_start,_end,_type\n1,Ada,,,\n2,Bo,,,\n,,1,2,KNOWS\n"),
    ],
    ids=[
        "yEd",
        "D3 by place",
        "JSON Graph Format",
        "Cytoscape",
        "list of facts",
        "properties",
        "APOC JSON",
        "APOC CSV",
    ],
)
def test_graphs_of_other_programs_are_read(
    tmp_path: Path, suffix: str, content: str
) -> None:
    assert facts(loaded(tmp_path, **{f"a_{suffix}": content})) == KNOWS


def test_other_values_of_edges_are_attributes(tmp_path: Path) -> None:
    since = {
        "a_csv": "from,edge,to,since\nAda,knows,Bo,1999\n",
        "a_graphml": GRAPHML.replace(
            "</graph>",
            '<edge source="n0" target="n1"><data key="since">1999</data></edge></graph>',
        ),
        "a_json": '{"nodes": [{"id": "a"}], "links": [{"source": "a", "target": "b", "type": "knows", "since": "1999"}]}',
        "a_nt": REIFIED,
    }
    for name, text in since.items():
        (fact,) = (
            item
            for item in loaded(tmp_path, **{name: text})
            if isinstance(item, PlacedTriple) and item.attributes
        )
        assert fact.attributes == {"since": "1999"}
    *_, unstated = loaded(tmp_path, b_nt=REIFIED.partition("\n")[2])
    assert isinstance(unstated, Skipped)
    assert "that the file does not contain" in unstated.reason


def test_a_number_may_be_the_tail_of_a_triple(tmp_path: Path) -> None:
    lines = '["Ada", "age", 41]\n{"s": "Ada", "p": "is", "o": true}\n[1, "is", "x"]'
    fact, *skipped = loaded(tmp_path, a_jsonl=lines)
    assert facts([fact]) == [("Ada", "age", "41")]
    assert [item.place for item in skipped] == ["a.jsonl line 2", "a.jsonl line 3"]


def test_nodes_without_a_name_have_the_same_one_each_time(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    turtle = '@prefix x: <http://x/> .\nx:a x:has [ x:part "lid" ] .'
    assert facts(loaded(tmp_path, a_ttl=turtle)) == [
        ("a", "has", "_:b1 of a.ttl"),
        ("_:b1 of a.ttl", "part", "lid"),
    ]
    (refused,) = loaded(tmp_path, b_jsonld='{"@context": "http://x/c", "@id": "a"}')
    assert "nothing is fetched: write the context into the file" in str(refused)


NASTY = (
    ('Ada "the" <&> Finn', "is CEO of", "O'Neil, Sons; Co | x\\y"),
    ("R2D2", "CEO", "C++"),
    ("works_at_x", "HAS_PART", "C#"),
    ("שלום עולם", "قال", "مرحبا"),
    ("👩‍👩‍👧 family", "loves", "🏳️‍🌈"),
    ("50%", "won in 1999", "a/b?c#d"),
    ("head", "relation", "tail"),
    ("#comment", "label", "^^<x>"),
    ("=1+1", "is", "_:b1"),
    ("null", "true", "NaN"),
    ("tab\there", "new\nline", "cr\rlf"),
    ("Straße", "is also called", "Strasse 5"),
    ("!!!", "is described as", "***"),
)
TWO_OF_ONE_LABEL = """<urn:1> <http://www.w3.org/2000/01/rdf-schema#label> "Li Wei" .
<urn:2> <http://www.w3.org/2000/01/rdf-schema#label> "Li Wei" .
<urn:1> <http://x/job> "painter" .
<urn:2> <http://x/job> "pilot" .
<urn:2> <http://www.w3.org/2004/02/skos/core#altLabel> "Wei \\"the wing\\" Li" .
<urn:2> <http://schema.org/description> "flies" .
"""
WRITERS: list[tuple[str, Callable[[KGIndex, Path], None]]] = [
    (".nt", write_nt),
    (".tsv", write_tsv),
    (".csv", write_csv),
    (".jsonl", write_jsonl),
    (".graphml", write_graphml),
    (".json", write_node_link),
    (".neo4j", write_neo4j),
    (".ttl", write_rdf),
    (".rdf", write_rdf),
    (".jsonld", write_rdf),
]


def files_of(path: Path) -> list[Path]:
    """Return the files of an export, of which Neo4j's is a folder."""
    return sorted(path.iterdir()) if path.is_dir() else [path]


def content_of(graph: KGIndex) -> tuple[list[tuple[str, str]], Facts]:
    """Return the names of the entities with their keys, and the facts."""
    triples = map(graph.triple, graph.facts)
    facts = [(one.subject, one.predicate, one.object) for one in triples]
    return sorted(zip(graph.keys, graph.entities, strict=True)), sorted(facts)


@pytest.fixture(scope="module")
def nasty_graph(tmp_path_factory: pytest.TempPathFactory) -> KGIndex:
    folder = tmp_path_factory.mktemp("nasty")
    lines = [json.dumps(fact) for fact in NASTY]
    (folder / "a.jsonl").write_text("\n".join(lines), "utf-8")
    (folder / "b.nt").write_text(TWO_OF_ONE_LABEL, "utf-8")
    files = [folder / "a.jsonl", folder / "b.nt"]
    return add_triples(folder / "index", files).graph


@pytest.mark.parametrize(("suffix", "write"), WRITERS)
def test_an_export_is_read_back_as_the_same_graph(
    nasty_graph: KGIndex,
    tmp_path: Path,
    suffix: str,
    write: Callable[[KGIndex, Path], None],
) -> None:
    if write is write_rdf:
        pytest.importorskip("pyoxigraph")
    write(nasty_graph, tmp_path / f"out{suffix}")
    report = add_triples(tmp_path / "again", files_of(tmp_path / f"out{suffix}"))
    assert report.skipped == ()
    assert content_of(report.graph) == content_of(nasty_graph)
    assert {"Li Wei (job painter)", "Li Wei (job pilot)"} <= set(report.graph.entities)
    assert len(report.graph.facts) == len(NASTY) + 6
    write(report.graph, tmp_path / f"twice{suffix}")
    twice = add_triples(tmp_path / "third", files_of(tmp_path / f"twice{suffix}")).graph
    assert content_of(twice) == content_of(nasty_graph)


@pytest.mark.parametrize(("suffix", "write"), WRITERS)
def test_attributes_and_the_person_who_made_a_fact_are_read_back(
    tmp_path: Path,
    suffix: str,
    write: Callable[[KGIndex, Path], None],
) -> None:
    if write is write_rdf:
        pytest.importorskip("pyoxigraph")
    likes = ["Ada", "likes", "Bo", {"since": 1999, "said": 'as "ever", Ł\n'}]
    record = dict(zip(("head", "relation", "tail", "attributes"), likes, strict=True))
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + '\n["Bo", "is", "in"]')
    add_triples(tmp_path / "index", tmp_path / "a.jsonl")
    graph = add_fact(tmp_path / "index", ("Ada", "knows", "Cy"), by="Eve X").graph
    write(graph, tmp_path / f"g{suffix}")
    files = files_of(tmp_path / f"g{suffix}")
    again = add_triples(tmp_path / "again", files)
    assert again.skipped == ()
    (attributes,) = filter(
        None, (again.graph.triple(n).attributes for n in again.graph.facts)
    )
    assert attributes == likes[-1]
    places = {}
    for passage in PassageIndex.open(tmp_path / "again").passages:
        for fact in stated_facts(passage) or ():
            (source,) = fact.sources
            assert source.extractor.startswith(f"stated: {files[-1].name}")
            places[fact.object] = source.extractor.partition(", by ")[2]
    assert places == {"Bo": "", "in": "", "Cy": "person:Eve X"}


def test_the_graph_s_json_is_what_networkx_reads(
    nasty_graph: KGIndex, tmp_path: Path
) -> None:
    networkx = pytest.importorskip("networkx")
    write_node_link(nasty_graph, tmp_path / "g.json")
    written = json.loads((tmp_path / "g.json").read_text("utf-8"))
    read = networkx.node_link_graph(written, edges="links")
    labels = networkx.get_node_attributes(read, "label").values()
    assert sorted(labels) == sorted(nasty_graph.entities)
    assert read.number_of_edges() == len(nasty_graph.facts)

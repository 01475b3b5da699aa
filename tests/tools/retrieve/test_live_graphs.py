"""Graphs searched where they are: a SPARQL endpoint on the loopback, and Neo4j's Query API as it is documented."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import (
    MissingExtra,
    SearchError,
    SettingsError,
    UnknownName,
)
from ras_agent.tools.index.stated_facts import STATED, stated_facts
from ras_agent.tools.retrieve import remote
from ras_agent.tools.retrieve.live_graph import MOST_FACTS, in_rounds
from ras_agent.tools.retrieve.resolve import resolve_retriever
from tests.messages import says

Reply = tuple[int, bytes]
Facts = list[tuple[str, str, str]]


@contextmanager
def server(answer: Callable[[str, bytes, Any], Reply]) -> Iterator[str]:
    """Serve the result of `answer` for a path, a body and the headers; yield the address, without a scheme."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, data = answer(self.path, body, self.headers)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://elsewhere.example/sparql")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(
            target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()


TURTLE = """@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
wd:Q1 rdfs:label "Ada Finn"@en, "Adele Finn"@fr ; skos:altLabel "A. Finn"@en ; wdt:P108 wd:Q2 ; wdt:P569 "1950" .
wd:Q2 rdfs:label "Acme"@en ; wdt:P131 wd:Q3 . wd:Q3 rdfs:label "Orvena"@en ; wdt:P1 "the \\"Old\\""@en .
wd:P108 rdfs:label "employer"@en . wd:P131 rdfs:label "located in"@en . wd:P569 rdfs:label "year of birth"@en .
wd:Q6 rdfs:label "Hub"@de-AT ; wdt:P108 wd:Q2 . wd:Q7 rdfs:label "ACME treaty"@mul ; wdt:P108 wd:Q3 .
wd:Q4 rdfs:label "Li Wei"@en ; wdt:P108 wd:Q2 . wd:Q5 rdfs:label "Li Wei"@en ; wdt:P108 wd:Q3 .
"""


@pytest.fixture
def sparql() -> Iterator[str]:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    store = pyoxigraph.Store()
    store.load(TURTLE.encode(), format=pyoxigraph.RdfFormat.TURTLE)

    def answer(path: str, body: bytes, headers: Any) -> Reply:
        query = parse_qs(body.decode())["query"][0]
        try:
            found = store.query(query)
        except SyntaxError as error:
            return 400, str(error).encode()
        return 200, found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)

    with server(answer) as place:
        yield f"sparql:http://ada:secret@{place}/sparql"


def facts_for(spec: str, query: str) -> Facts:
    hits = resolve_retriever(spec).retrieve(query, 5)
    found = []
    for hit in hits:
        for fact in stated_facts(hit.passage) or ():
            found.append((fact.subject, fact.predicate, fact.object))
    return sorted(found)


def test_an_endpoint_gives_the_facts_next_to_what_a_question_names(sparql: str) -> None:
    ada = [
        ("Ada Finn", "employer", "Acme"),
        ("Ada Finn", "is also called", "A. Finn"),
        ("Ada Finn", "year of birth", "1950"),
    ]
    assert facts_for(sparql, "Where does Ada Finn work?") == ada
    assert facts_for(sparql, "where does a. finn work?") == ada
    in_orvena = facts_for(sparql, "What is located in Orvena?")
    assert ("Acme", "located in", "Orvena") in in_orvena
    assert ("Orvena", "P1", 'the "Old"') in in_orvena


def test_names_are_found_in_other_languages_and_with_other_capitals(
    sparql: str,
) -> None:
    treaty = ("ACME treaty", "employer", "Orvena")
    assert treaty in facts_for(sparql, "Where was the ACME Treaty signed?")
    assert facts_for(sparql, "Where is Hub?") == []
    assert ("Hub", "employer", "Acme") in facts_for(f"{sparql}#de-AT", "Where is Hub?")
    with pytest.raises(SettingsError, match=says("'d e' is not a language", "#de,fr")):
        resolve_retriever(f"{sparql}#d e")


def test_facts_of_a_rare_relation_are_found_behind_many_others() -> None:
    facts = ["has"] * 2 * MOST_FACTS + ["born in"]

    def ask(frequent: Sequence[str]) -> list[str]:
        return [fact for fact in facts if fact not in frequent][:MOST_FACTS]

    found = list(in_rounds(ask, str))
    assert found == ["has"] * MOST_FACTS + ["born in"]


def test_two_of_one_label_stay_two(sparql: str) -> None:
    found = facts_for(sparql, "Where does Li Wei work?")
    assert ("Li Wei (employer Acme)", "employer", "Acme") in found
    assert ("Li Wei (employer Orvena)", "employer", "Orvena") in found


def test_passages_say_where_they_are_from_without_the_password(sparql: str) -> None:
    (hit,) = resolve_retriever(sparql).retrieve("Where does Ada Finn work?", 1)
    where = sparql.removeprefix("sparql:").replace("ada:secret@", "")
    assert hit.passage.file == where
    assert {fact[3] for fact in hit.passage.metadata[STATED]} == {
        f"{where} http://www.wikidata.org/entity/Q1"
    }
    assert "secret" not in repr(hit)


def test_what_a_graph_does_not_name_is_no_passage(sparql: str) -> None:
    for query in (
        "Where was Zorbex born?",
        'is "} UNION { ?s ?p ?o } #" known?',
        "???",
    ):
        assert facts_for(sparql, query) == []


def test_an_agent_answers_from_an_endpoint(sparql: str) -> None:
    out = create_ras_agent(retriever=sparql).invoke(
        {"question": "Where is the employer of Ada Finn located?"}
    )
    assert "Orvena" in out["answer"]
    assert all("secret" not in citation["file"] for citation in out["citations"])


NODES = {
    "4:x:0": (["Person"], {"name": "Ada Finn", "born": 1950, "vector": [0.5] * 999}),
    # the first name of an address counts, not the first that a node has
    "4:x:1": (["Company"], {"title": "Acme plc", "name": "Acme"}),
}


def query_api(path: str, body: bytes, headers: Any) -> Reply:
    """Answer as Neo4j's Query API does: 202, with the fields and values of the rows."""
    request = json.loads(body)
    assert (path, request["accessMode"]) == ("/db/neo4j/query/v2", "Read")
    if headers.get("Authorization") != "Basic YWRhOnNlY3JldA==":
        error = {
            "code": "Neo.ClientError.Security.Unauthorized",
            "message": "Invalid credential.",
        }
        return 401, json.dumps({"errors": [error]}).encode()
    given = request["parameters"]
    rows: list[list[object]] = []
    if "names" in given:
        for node, (_, values) in NODES.items():
            if str(values["name"]).lower() in given["names"]:
                rows.append([node, [values["name"]]])
    elif "most" in given:
        other = next(node for node in NODES if node != given["id"])
        rows = [[other, *NODES[other], "WORKS_AT", "4:x:0", "4:x:1"]]
    else:
        rows = [[given["id"], *NODES[given["id"]]]]
    return 202, json.dumps(
        {"data": {"fields": [], "values": rows}, "bookmarks": []}
    ).encode()


def test_neo4j_gives_the_facts_next_to_what_a_question_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with server(query_api) as place:
        assert facts_for(
            f"neo4j:http://ada:secret@{place}", "Where does Ada Finn work?"
        ) == [
            ("Ada Finn", "born", "1950"),
            ("Ada Finn", "is a", "Person"),
            ("Ada Finn", "works at", "Acme"),
        ]
        assert ("Ada Finn", "works at", "Acme") in facts_for(
            f"neo4j:http://ada:secret@{place}", "who works at Acme?"
        )
        monkeypatch.setenv("NEO4J_USERNAME", "ada")
        monkeypatch.setenv("NEO4J_PASSWORD", "secret")
        assert facts_for(f"neo4j:http://{place}/neo4j", "Where does Zorbex work?") == []


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((401, b"no"), "401 (no): give user and password in the address"),
        (
            (302, b""),
            "answered 302 (Found): give the address to which it redirects, http://elsewhere.example/sparql",
        ),
        ((404, b""), "404 (Not Found): correct the path of the address"),
        ((503, b""), "503 (Service Unavailable): ask again later"),
        ((500, b"broken"), "500 (broken): see the server's log"),
        ((200, b"<html>"), "not JSON (<html>): give the address that takes queries"),
        ((200, b"[7]"), "give the address of its endpoint"),
        ((200, b"x" * 300), "answered with more than 0 MB: use a smaller graph"),
    ],
)
@pytest.mark.parametrize("kind", ["sparql", "neo4j"])
def test_what_a_server_refuses_is_an_error_with_a_remedy(
    kind: str, reply: Reply, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_MOST", 200)
    if kind == "neo4j" and reply[1] == b"[7]":
        message = "answered without rows"
    with (
        server(lambda *_: reply) as place,
        pytest.raises(SearchError, match=says(place, message)),
    ):
        resolve_retriever(f"{kind}:http://{place}/x").retrieve("Where is Ada?")


def test_a_server_that_is_not_there_or_silent_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        SearchError,
        match=says(
            "http://127.0.0.1:9/s cannot be reached", "start the server, or correct"
        ),
    ):
        resolve_retriever("sparql:http://127.0.0.1:9/s").retrieve("Where is Ada?")
    monkeypatch.setattr(remote, "PATIENCE", 0.01)
    ended = threading.Event()

    def wait(*_: object) -> Reply:
        ended.wait(5)
        return 200, b"{}"

    with server(wait) as place:
        with pytest.raises(SearchError, match=says(place, "gave no answer within")):
            resolve_retriever(f"sparql:http://{place}/s").retrieve("Where is Ada?")
        ended.set()
    out = create_ras_agent(retriever="sparql:http://127.0.0.1:9/s").invoke(
        {"question": "Where is Ada?"}
    )
    assert any("cannot be reached" in failure["message"] for failure in out["failures"])


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (
            "sparql:ftp://host/x",
            SettingsError,
            "begins with https://, http:// and names a host",
        ),
        ("sparql:https://", SettingsError, "names a host"),
        ("neo4j:bolt://host:port", SettingsError, "Port"),
        ("cypher:bolt://host", UnknownName, "known: langchain, neo4j, sparql"),
    ],
)
def test_wrong_addresses_are_refused(
    spec: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=says(message)):
        resolve_retriever(spec)


def test_bolt_needs_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "neo4j", None)
    with pytest.raises(MissingExtra, match=says("ras-agent[neo4j]")):
        resolve_retriever("neo4j:bolt://127.0.0.1")

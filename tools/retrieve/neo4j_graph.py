"""Searches a Neo4j database: `neo4j:bolt://host` by its driver, `neo4j:https://host:7473` over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from ras_agent.contracts.errors import SearchError, needs_extra
from ras_agent.running.protocols import Retriever
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.formats.graph_files import NodesAndEdges, texts_of
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.retrieve.live_graph import MOST_FACTS, LiveGraph, in_rounds
from ras_agent.tools.retrieve.remote import (
    PATIENCE,
    RemoteAddress,
    post,
    remote_address,
)

_HTTP = ("https", "http")
_BOLT = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_DATABASE = "neo4j"
_NAMES = "name,title,label"
_RETRIES = 3.0  # seconds
_LONGEST = 1000  # characters of a value; longer ones, such as vectors and whole texts, are not facts
_FIND = """\
MATCH (n) WHERE any(key IN $keys WHERE toLower(toStringOrNull(n[key])) IN $names)
RETURN elementId(n), [key IN $keys WHERE toStringOrNull(n[key]) IS NOT NULL | toStringOrNull(n[key])] LIMIT 50"""
_NODES = (
    "MATCH (n) WHERE elementId(n) = $id RETURN elementId(n), labels(n), properties(n)"
)
_EDGES = """\
MATCH (n)-[r]-(m) WHERE elementId(n) = $id AND NOT type(r) IN $frequent
RETURN elementId(m), labels(m), properties(m), type(r), elementId(startNode(r)), elementId(endNode(r)) LIMIT $most"""
_TYPE = 3
"""The index of the relationship's type in a row of `_EDGES`."""


def neo4j_retriever(address: str) -> Retriever:
    """Build the retriever over the Neo4j database at an address.

    Raises SettingsError for an invalid address, and MissingExtra if the address needs the driver and it is not
    installed.
    """
    return LiveGraph("neo4j", Neo4jGraph(address))


class Neo4jGraph:
    """Reads entities and facts from a Neo4j database, given by its address: bolt://host:7687/movies?names=title.

    The path names the database, by default neo4j. The parameter `names` lists the properties that name a node, by
    default name, title and label. User and password are in the address, or in NEO4J_USERNAME and NEO4J_PASSWORD.
    """

    def __init__(self, address: str) -> None:
        known = remote_address(address, (*_BOLT, *_HTTP))
        parts = urlsplit(known.url)
        options = parse_qs(parts.query)
        names = options.get("names", [_NAMES])[0]
        server = parts._replace(path="", query="")
        self._names = names.split(",")
        self._database = parts.path.strip("/") or _DATABASE
        self._address = RemoteAddress(
            url=urlunsplit(server),
            user=known.user or os.environ.get("NEO4J_USERNAME", ""),
            password=known.password or os.environ.get("NEO4J_PASSWORD", ""),
        )
        self._is_http = parts.scheme in _HTTP
        self.where = f"{self._address.url}/{self._database}"
        if not self._is_http:
            self._driver  # noqa: B018  # a missing package is an error now, not at the first question

    def entities(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of the nodes with these names, keyed by the names' canonical keys. Raises SearchError."""
        lowered = [name.lower() for name in names]
        found: dict[str, list[str]] = {}
        parameters = {"keys": self._names, "names": lowered}
        for node, values in self._rows(_FIND, parameters):
            for value in values:
                key = canonical_key(value)
                found.setdefault(key, []).append(node)
        return found

    def facts(self, entities: Sequence[str]) -> Iterable[PlacedTriple | Skipped]:
        """Return, as facts, the properties of nodes, given by id, and the relationships that begin or end at them.

        Raises SearchError.
        """
        graph = NodesAndEdges()
        known: set[str] = set()
        for entity in entities:
            for node in self._rows(_NODES, {"id": entity}):
                self._add_node(graph, known, node)
            place = self._place(entity)
            for *node, relation, head, tail in self._edges_at(entity):
                self._add_node(graph, known, node, with_values=False)
                graph.add_edge(head, tail, {"type": relation}, place)
        return graph.facts()

    def _edges_at(self, entity: str) -> Iterator[list[Any]]:
        def ask(frequent: Sequence[str]) -> list[list[Any]]:
            parameters = {
                "id": entity,
                "most": MOST_FACTS,
                "frequent": frequent,
            }
            return self._rows(_EDGES, parameters)

        return in_rounds(ask, itemgetter(_TYPE))

    def _add_node(
        self,
        graph: NodesAndEdges,
        known: set[str],
        node: Sequence[Any],
        *,
        with_values: bool = True,
    ) -> None:
        """Add a node's name to the graph and, the first time, its property values as facts.

        Args:
            known: the nodes whose values were already added.
        """
        entity, labels, properties = node
        texts = texts_of(properties)
        if entity not in graph.labels:
            names = [texts.get(key, "") for key in self._names]
            graph.labels[entity] = next(filter(str.strip, names), entity)
        if not with_values or entity in known:
            return
        known.add(entity)
        place = self._place(entity)
        for key, text in texts.items():
            is_name = key in self._names
            if not is_name and text.strip() and len(text) <= _LONGEST:
                graph.add_value(entity, key, text, place)
        for label in labels:
            graph.add_value(entity, "is a", label, place)

    def _place(self, entity: str) -> str:
        return f"{self.where} node {entity}"

    def _rows(self, statement: str, parameters: Mapping[str, Any]) -> list[list[Any]]:
        """Return the rows that a statement yields. Raises SearchError."""
        if self._is_http:
            return self._rows_by_http(statement, parameters)
        from neo4j.exceptions import DriverError, Neo4jError  # pyright: ignore[reportMissingImports]

        try:
            result = self._driver.execute_query(
                statement,
                parameters_=dict(parameters),
                database_=self._database,
                routing_="r",
            )
        except (DriverError, Neo4jError, OSError) as error:
            said = " ".join(str(error).split())
            raise SearchError(
                f"{self.where} gave no answer ({type(error).__name__}: {said:.200}): start Neo4j, or correct the address, "
                "NEO4J_USERNAME and NEO4J_PASSWORD"
            ) from error
        return [record.values() for record in result.records]

    def _rows_by_http(
        self, statement: str, parameters: Mapping[str, Any]
    ) -> list[list[Any]]:
        """Return the rows that a statement yields through Neo4j's Query API. Raises SearchError."""
        request = {
            "statement": statement,
            "parameters": parameters,
            "accessMode": "Read",
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        url = f"{self._address.url}/db/{self._database}/query/v2"
        body = json.dumps(request).encode()
        found = post(self._address, body, headers, url)
        try:
            rows: list[list[Any]] = found["data"]["values"]
        except (LookupError, TypeError) as error:
            errors = found.get("errors") if isinstance(found, dict) else None
            raise SearchError(
                f"{self.where} answered without rows ({errors or found!r:.200}): see the server's log"
            ) from error
        return rows

    @cached_property
    def _driver(self) -> Any:
        with needs_extra("neo4j:bolt addresses", "neo4j"):
            import neo4j  # pyright: ignore[reportMissingImports]
        auth = None
        if self._address.user:
            auth = (self._address.user, self._address.password)
        return neo4j.GraphDatabase.driver(
            self._address.url,
            auth=auth,
            connection_timeout=PATIENCE,
            max_transaction_retry_time=_RETRIES,
        )

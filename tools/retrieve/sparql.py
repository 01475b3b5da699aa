"""Searches a SPARQL 1.1 endpoint: `sparql:https://query.wikidata.org/sparql`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import capwords
from typing import Any
from urllib.parse import urlencode

from ras_agent.contracts.errors import SearchError, SettingsError
from ras_agent.running.protocols import Retriever
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.reified import Statement, Term
from ras_agent.tools.kg.formats.triples import (
    ALSO_LABELS,
    LABELS,
    direct_property,
    facts_of_statements,
)
from ras_agent.tools.retrieve.live_graph import MOST_FACTS, LiveGraph, in_rounds
from ras_agent.tools.retrieve.remote import post, remote_address

_HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Accept": "application/sparql-results+json",
    "User-Agent": "ras-agent (https://pypi.org/project/ras-agent)",
}
_KINDS = {
    "uri": "iri",
    "literal": "literal",
    "typed-literal": "literal",
    "bnode": "blank",
}
_NOT_IN_IRIS = frozenset('<>"{}|^`\\')
_ANY_LANGUAGE = "mul"
"""Wikidata's language tag for a name that is the same in all languages."""
_ENGLISH = ("en", "en-GB", "en-US")
_AT_ONCE = 200
_LONGEST_INITIALS = 5


def sparql_retriever(address: str) -> Retriever:
    """Build the retriever over the SPARQL endpoint at an address. Raises SettingsError for an invalid address."""
    return LiveGraph("sparql", SparqlGraph(address))


class SparqlGraph:
    """Reads entities and facts from a SPARQL endpoint, given by its address.

    https://host/sparql#de,fr looks for names in German and French. English names, and names without a language, are
    always found too.
    """

    def __init__(self, address: str) -> None:
        """Parse an address. Raises SettingsError if the address or a language in it is invalid."""
        place, _, listed = address.partition("#")
        languages = listed.split(",") if listed else []
        for language in languages:
            letters = language.replace("-", "")
            if not letters.isascii() or not letters.isalnum():
                raise SettingsError(
                    f"{language!r} is not a language tag: write the address as https://host/sparql#de,fr"
                )
        self._languages = (*languages, *_ENGLISH, _ANY_LANGUAGE)
        self._address = remote_address(place, ("https", "http"))
        self.where = self._address.shown

    def entities(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the IRIs with these labels, keyed by the labels' canonical keys. Raises SearchError."""
        labels = list(self._literals(names))
        if not labels:
            return {}
        properties = ", ".join(map(_iri, (*LABELS, *ALSO_LABELS)))
        values = " ".join(labels)
        pattern = f"VALUES ?o {{ {values} }} ?s ?p ?o FILTER(?p IN ({properties}))"
        found: dict[str, list[str]] = {}
        for row in self._rows(f"SELECT DISTINCT ?s ?o WHERE {{ {pattern} }}"):
            subject = row["s"]
            if subject.kind == "iri" and _is_iri(subject.value):
                key = canonical_key(row["o"].value)
                found.setdefault(key, []).append(subject.value)
        return found

    def facts(self, entities: Sequence[str]) -> Iterable[PlacedTriple | Skipped]:
        """Return the facts whose subject or object is one of these entities, given by IRI. Raises SearchError.

        In the facts, IRIs are replaced by their labels.
        """
        statements: dict[Statement, None] = {}
        for entity in entities:
            statements.update(dict.fromkeys(self._next_to(entity)))
        terms = _named_in(statements)
        labels = self._labels(terms)
        statements.update(dict.fromkeys(labels))
        placed = []
        for statement in statements:
            place = f"{self.where} {statement.subject.value}"
            placed.append((statement, place))
        language = self._languages[0].partition("-")[0].lower()
        return facts_of_statements(placed, self.where, language)

    def _literals(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the literals as which names may be written, in each language and without one."""
        for name in names:
            for form in forms_of(name):
                literal = json.dumps(form, ensure_ascii=False)
                yield literal
                for language in self._languages:
                    yield f"{literal}@{language}"

    def _in_languages(self) -> str:
        """Return the SPARQL condition that an object's language is one of the graph's, or missing."""
        conditions = ['lang(?o) = ""']
        for language in self._languages:
            conditions.append(f'langMatches(lang(?o), "{language}")')
        return " || ".join(conditions)

    def _next_to(self, entity: str) -> Iterator[Statement]:
        iri = _iri(entity)
        condition = f"!isBlank(?o) && (!isLiteral(?o) || {self._in_languages()})"
        outwards = f"BIND({iri} AS ?s) {iri} ?p ?o FILTER({condition})"
        inwards = f"BIND({iri} AS ?o) ?s ?p {iri} FILTER(!isBlank(?s))"
        for pattern in (outwards, inwards):
            for statement in self._of_pattern(pattern):
                if not _is_repeated(statement.predicate.value):
                    yield statement

    def _of_pattern(self, pattern: str) -> Iterator[Statement]:
        def ask(frequent: Sequence[str]) -> list[Statement]:
            others = ", ".join(map(_iri, frequent))
            rare = f" FILTER(?p NOT IN ({others}))" if frequent else ""
            query = f"SELECT ?s ?p ?o WHERE {{ {pattern}{rare} }} LIMIT {MOST_FACTS}"
            found = self._statements(query)
            return list(found)

        return in_rounds(ask, lambda statement: statement.predicate.value)

    def _labels(self, terms: Sequence[str]) -> Iterator[Statement]:
        properties = _iris(LABELS)
        for start in range(0, len(terms), _AT_ONCE):
            end = start + _AT_ONCE
            some = _iris(terms[start:end])
            pattern = f"VALUES ?s {{ {some} }} VALUES ?p {{ {properties} }} ?s ?p ?o"
            condition = f"FILTER({self._in_languages()})"
            yield from self._statements(
                f"SELECT ?s ?p ?o WHERE {{ {pattern} {condition} }}"
            )

    def _statements(self, query: str) -> Iterator[Statement]:
        for row in self._rows(query):
            yield Statement(row["s"], row["p"], row["o"])

    def _rows(self, query: str) -> list[dict[str, Term]]:
        """Return the rows of a query's results.

        Raises SearchError if the endpoint returns none in the expected form.
        """
        body = urlencode({"query": query}).encode()
        found = post(self._address, body, _HEADERS)
        try:
            bindings = found["results"]["bindings"]
            return list(map(_row, bindings))
        except (LookupError, TypeError, AttributeError) as error:
            raise SearchError(
                f"{self.where} answered without SPARQL results ({found!r:.100}): give the address of its endpoint"
            ) from error


def _row(binding: Mapping[str, Any]) -> dict[str, Term]:
    """Return the terms of a result row, by their variables."""
    row = {}
    for name, value in binding.items():
        row[name] = _term(value)
    return row


def _term(value: Mapping[str, Any]) -> Term:
    """Return a term from the JSON form of results."""
    language = value.get("xml:lang", "")
    return Term(
        value=str(value["value"]), kind=_KINDS[value["type"]], language=language.lower()
    )


def forms_of(name: str) -> list[str]:
    """Return a name in different capitalisations, since endpoints compare labels exactly.

    >>> forms_of("NATO Treaty")
    ['NATO Treaty', 'Nato Treaty', 'nato treaty', 'NATO treaty']
    """
    first, *others = name.split() or [""]
    begun = name[:1].upper() + name[1:]
    sentence = [first[:1].upper() + first[1:]]
    for word in others:
        small = word if word.isupper() else word.lower()
        sentence.append(small)
    forms = [
        name,
        begun,
        name.title(),
        capwords(name),
        name.lower(),
        " ".join(sentence),
    ]
    may_be_initials = not others and len(name) <= _LONGEST_INITIALS
    if may_be_initials:
        forms.append(name.upper())
    return list(dict.fromkeys(forms))


def _iri(value: str) -> str:
    return f"<{value}>"


def _iris(values: Iterable[str]) -> str:
    return " ".join(map(_iri, values))


def _named_in(statements: Iterable[Statement]) -> list[str]:
    """Return the IRIs in statements that may have labels, including the properties behind Wikidata's direct ones."""
    terms: dict[str, None] = {}
    for subject, predicate, object_ in statements:
        values = [subject.value, predicate.value, direct_property(predicate.value)]
        if object_.kind == "iri":
            values.append(object_.value)
        terms.update(dict.fromkeys(values))
    return list(filter(_is_iri, terms))


def _is_iri(text: str) -> bool:
    """Return whether a text may stand between < and > in a query."""
    has_blank = min(text, default=" ") <= " "
    return not has_blank and not _NOT_IN_IRIS.intersection(text)


def _is_repeated(predicate: str) -> bool:
    """Return whether a predicate leads to Wikidata's second form of a fact, which repeats the direct one."""
    return "/prop/" in predicate and "/prop/direct" not in predicate

"""Checks everything from outside before it enters the state: input, hits, facts, citations.

The state holds only plain JSON with valid Unicode. An unusable result of a tool is dropped and recorded as a
Failure. A caller's mistake, or a result of the wrong type, raises an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from math import isfinite
from operator import attrgetter, index
from typing import Any, NamedTuple

from ras_agent.config.filters import Filter, as_of_filter
from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import (
    JSON,
    NO_ATTRIBUTES,
    Answer,
    Citation,
    Extraction,
    Failure,
    Hit,
    Passage,
    Source,
    Triple,
    all_attributes,
)
from ras_agent.graphs.state import Inputs
from ras_agent.text.lines import shown_name
from ras_agent.text.markup import inert_markup
from ras_agent.text.normal_form import storable
from ras_agent.tools.index.given import Text, passage_of

_SCALARS = frozenset((bool, type(None)))
# the default, as in RAS on ASQA and ELI5: five fixed passages in five iterations
_STATIC_ITERATIONS = 5
_SHOWN_FACTS = 3
_WHERE = attrgetter(
    "passage_id", "start", "end", "extractor", "unchecked", "attributes"
)

_NO_TRIPLE = "dropped: no Triple of three texts with Sources"
_BLANK = "dropped: a blank subject, predicate or object"
_NO_PASSAGE = "dropped: no source is one of the passages to read"
_SOURCE_ELSEWHERE = (
    "accepted without one of its sources, which is none of the passages to read"
)
_NO_SUCH_SPAN = "accepted without its span: its passage has no such characters"


def to_json_value(value: Any) -> Any:
    """Return `value` as JSON: mappings as dicts, sequences as lists, and any value that JSON cannot hold as text.

    >>> import datetime
    >>> to_json_value({"year": 1921, "seen": datetime.date(2024, 5, 1), "tags": ("a", "b"), "ratio": float("inf")})
    {'year': 1921, 'seen': '2024-05-01', 'tags': ['a', 'b'], 'ratio': 'inf'}
    """
    kind = type(value)
    if kind is str:
        return storable(value)
    if (
        kind in _SCALARS
        or (kind is float and isfinite(value))
        or (kind is int and -(1 << 63) <= value < 1 << 64)
    ):
        return value
    if isinstance(value, Mapping):
        return {storable(str(key)): to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json_value(item) for item in value]
    return storable(str(value))


def finite(number: float | None) -> float | None:
    """Return a number that JSON can hold; None for NaN and infinities."""
    if number is not None and isfinite(number):
        return float(number)
    return None


def read_given_passages(inputs: Inputs) -> list[list[JSON]]:
    """Return the caller's passages as one list for each hop.

    All seed passages belong to the first hop. Static passages are spread evenly over the iterations in order,
    so five passages in five iterations are read one at a time. There are never more iterations than passages.

    Raises:
        ValueError: for inputs that contradict each other.
    """
    seed = inputs.get("seed_passages") or ()
    static = inputs.get("static_passages") or ()
    iterations = inputs.get("static_iterations")
    if seed and static:
        raise ValueError(
            "seed_passages and static_passages exclude each other: give seed_passages if the loop should search after them"
        )
    if iterations is not None and (not static or iterations < 1):
        raise ValueError(
            f"static_iterations must be at least 1, and needs static_passages; got {iterations!r}"
        )
    passages = [
        _given_passage(item, number)
        for number, item in enumerate(seed or static, start=1)
    ]
    if not static:
        if passages:
            return [passages]
        return []
    count = min(iterations or _STATIC_ITERATIONS, len(passages))
    size = len(passages)
    return [passages[size * i // count : size * (i + 1) // count] for i in range(count)]


def read_filter(inputs: Inputs) -> Any:
    """Return the caller's filter, combined with the date of `as_of`, as plain JSON.

    Raises:
        FilterError: for a filter or a date that cannot be read.
    """
    filter: Any = inputs.get("filter")
    Filter.of(filter)
    date = inputs.get("as_of")
    if date is not None:
        until = as_of_filter(date)
        filter = [filter, until] if filter else until
    if filter is None:
        return None
    return to_json_value(filter)


def check_admitted(passages: Iterable[Passage], admitted: Filter) -> None:
    """Raise FilterError if one of the caller's passages is outside the filter of the question."""
    for passage in passages:
        if not admitted.matches(passage):
            raise FilterError(
                f"given passage {passage.id!r} is outside the filter ({admitted}): give only passages whose metadata "
                "it admits, or leave them out"
            )


def _given_passage(item: Text, number: int) -> JSON:
    given = passage_of(item, f"given-{number}", f"given passage {number}")
    passage = _valid_passage(given)
    if passage is None:
        raise ValueError(
            f"given passage {number}: id, text, title and document_id must be texts, got {item!r:.200}"
        )
    data: JSON = to_json_value(passage.to_dict())
    return data


def valid_hit(hit: object) -> Hit:
    """Return a retriever's hit with a finite score and storable text. Raises TypeError for any object other
    than a hit.
    """
    passage = _valid_passage(hit.passage) if isinstance(hit, Hit) else None
    if not isinstance(hit, Hit) or passage is None:
        raise TypeError(
            f"a retriever must return hits, Hit(Passage(id, text), score), got {hit!r:.200}"
        )
    score = float(hit.score)
    if (
        passage is hit.passage
        and score is hit.score
        and isfinite(score)
        and not hit.why
    ):
        return hit
    return Hit(
        passage,
        score if isfinite(score) else 0.0,
        tuple(storable(str(line)) for line in hit.why),
    )


def _valid_passage(passage: object) -> Passage | None:
    """Return the passage with storable texts; None if it is not a Passage or has fields that are not texts."""
    if not isinstance(passage, Passage):
        return None
    texts = (passage.id, passage.text, passage.title, passage.document_id)
    if not all(isinstance(text, str) for text in texts):
        return None
    clean = tuple(map(storable, texts))
    if clean == texts:
        return passage
    name, text, title, document_id = clean
    return replace(passage, id=name, text=text, title=title, document_id=document_id)


def valid_facts(
    extraction: Extraction,
    passages: Mapping[str, Passage],
    extractor: str,
    hop: int,
    subquery: str,
) -> Extraction:
    """Return the usable facts, with hop and sub-query in each source, and one Failure for each kind of mistake.

    A span outside its passage is replaced by the empty span 0 to 0.

    Args:
        extractor: the extractor's name, for the failures and for sources without a name.
    """
    triples: list[Triple] = []
    wrong: dict[str, list[Triple]] = {}
    places: dict[
        tuple[Any, ...], _Place
    ] = {}  # facts of the same sentence share one place

    def place_of(source: Source) -> _Place:
        if type(source) is not Source:
            return _valid_place(source, passages, extractor, hop, subquery)
        where = _WHERE(source)
        if where not in places:
            places[where] = _valid_place(source, passages, extractor, hop, subquery)
        return places[where]

    for triple in extraction.triples:
        sources: tuple[Source, ...] = ()
        problems: set[str] = set()
        try:
            if "" in triple.key:
                problems.add(_BLANK)
            else:
                for place in map(place_of, triple.sources):
                    sources += place.sources
                    problems.update(place.problems)
                if not sources:
                    problems = {_NO_PASSAGE}
        # a field that is not a text, or a source that is not a Source
        except (TypeError, AttributeError):
            problems = {_NO_TRIPLE}
            sources = ()
        if sources:
            valid = Triple(
                subject=storable(triple.subject),
                predicate=storable(triple.predicate),
                object=storable(triple.object),
                sources=sources,
                attributes=_storable_attributes(triple),
            )
            triples.append(valid)
        for problem in problems:
            wrong.setdefault(problem, []).append(triple)
    failures = [
        replace(failure, role="extractor", hop=hop) for failure in extraction.failures
    ]
    for problem, facts in sorted(wrong.items()):
        counted = "1 fact" if len(facts) == 1 else f"{len(facts)} facts"
        detail = "\n".join(f"{fact!r:.300}" for fact in facts[:_SHOWN_FACTS])
        failures.append(
            Failure("extractor", f"{extractor}: {counted} {problem}", hop, detail)
        )
    return Extraction(tuple(triples), tuple(failures))


def _storable_attributes(record: Triple | Source) -> Mapping[str, Any]:
    attributes = all_attributes(record)
    if not attributes:
        return NO_ATTRIBUTES
    storable_ones: Mapping[str, Any] = to_json_value(attributes)
    return storable_ones


class _Place(NamedTuple):
    """Holds a source with its hop and sub-query, or () if its passage is not one to read, and the problems
    found.
    """

    sources: tuple[Source, ...]
    problems: tuple[str, ...] = ()


def _valid_place(
    source: Source,
    passages: Mapping[str, Passage],
    extractor: str,
    hop: int,
    subquery: str,
) -> _Place:
    passage = passages.get(source.passage_id)
    if passage is None:
        return _Place((), (_SOURCE_ELSEWHERE,))
    span = _valid_span(passage.text, source.start, source.end)
    start, end = span or (0, 0)
    valid = Source(
        passage_id=passage.id,
        start=start,
        end=end,
        hop=hop,
        subquery=subquery,
        extractor=str(source.extractor or extractor),
        unchecked=bool(source.unchecked),
        attributes=_storable_attributes(source),
    )
    return _Place((valid,), () if span else (_NO_SUCH_SPAN,))


def valid_citations(
    answer: Answer,
    passages: Mapping[str, Passage],
    triple_ids: Collection[str],
    hop: int,
) -> Answer:
    """Return the answer without citations of passages, spans and facts that do not exist. Each removed citation
    adds a Failure.

    Markup in the answer's text is made inert, and titles and file names are put on one line.
    """
    citations: list[Citation] = []
    failures: list[Failure] = []

    def drop(what: str) -> None:
        failures.append(
            Failure(
                "answerer",
                f"dropped an invented citation: {what}",
                hop,
                answer.text[:200],
            )
        )

    for citation in answer.citations:
        passage = passages.get(citation.passage_id)
        if passage is None:
            drop(f"passage {citation.passage_id!r} was not retrieved")
            continue
        span = _valid_span(passage.text, citation.start, citation.end)
        if span is None:
            drop(
                f"characters {citation.start} to {citation.end} of passage {passage.id!r} do not exist"
            )
            citation = replace(citation, quote="")
        start, end = span or (0, 0)
        title = shown_name(citation.title)
        file = shown_name(passage.file)
        citation = replace(
            citation, start=start, end=end, title=title, file=file, page=passage.page
        )
        headings = tuple(map(shown_name, passage.headings))
        quote = storable(str(citation.quote))
        citation = replace(citation, quote=quote, headings=headings)
        unknown = [name for name in citation.triple_ids if name not in triple_ids]
        if unknown:
            drop(f"facts {', '.join(unknown)} are not in the graph")
            citation = replace(
                citation,
                triple_ids=tuple(n for n in citation.triple_ids if n in triple_ids),
            )
        citations.append(citation)
    text = inert_markup(storable(answer.text))
    return replace(
        answer,
        text=text,
        citations=tuple(citations),
        failures=(*answer.failures, *failures),
    )


def _valid_span(text: str, start: Any, end: Any) -> tuple[int, int] | None:
    """Return `start` and `end` as plain integers; None if they are not a span of `text`."""
    try:
        start = index(start)  # JSON cannot hold numpy's integers
        end = index(end)
    except TypeError:
        return None
    if 0 <= start <= end <= len(text):
        return (start, end)
    return None

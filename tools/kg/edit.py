"""Edits the stored knowledge graph of an index: removes, replaces and adds facts, merges entities, and undoes edits.

    replace_fact("my.index", ("Bell", "was born in", "Boston"), ("Bell", "was born in", "Edinburgh"), by="Ada")

Each call is one transaction: if it is killed, either both its edit and the resulting graph are stored, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ras_agent.config.address import Address, as_argument, place_of
from ras_agent.contracts.errors import EditError, IndexNotFound
from ras_agent.contracts.records import Triple, person
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.edits import (
    MOST_ANCHORS,
    Anchor,
    Edit,
    MergedNames,
    key_of,
)
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.writer import KGProgress, KGWriter, open_writer

Fact = tuple[str, str, str]
_OnProgress = Callable[[KGProgress], None] | None
_LONGEST = 1000
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class EditReport:
    """Reports an edit that was made or undone, and the resulting graph."""

    graph: KGIndex
    edit: Edit
    left_out: tuple[Triple, ...] = ()
    """The facts between two entities that were merged into one; the graph no longer has them."""


def edits_of(index: str | Path | Address) -> tuple[Edit, ...]:
    """Return the edits in the graph of the index at `index`, oldest first.

    Raises IndexNotFound if there is no index or graph, and IndexMismatch for a damaged one.
    """
    return KGIndex.open(_with_graph(index)).edits


def _with_graph(index: str | Path | Address) -> PassageIndex:
    """Open the index. Raises IndexNotFound if it has no graph."""
    place = place_of(index)
    passages = PassageIndex.open(place)
    if not KGIndex.exists(passages):
        raise IndexNotFound(
            f"{place} has no knowledge graph: make it with `ras-agent kg build {as_argument(place)}`"
        )
    return passages


def remove_fact(
    index: str | Path | Address,
    fact: Fact,
    *,
    by: str = "",
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Remove a fact from the graph of the index at `index`, and from every graph that is built there later.

    Args:
        fact: subject, predicate and object.
        by: the name of the person who edits.
        embedder: embeds new names. It is needed if the graph has vectors and their embedder cannot be loaded by its
            name.
        on_progress: receives progress reports.

    Raises:
        EditError: for a fact that the graph does not have.
        IndexNotFound, IndexMismatch: if there is no graph, or it is damaged.
        IngestError: while another process writes.
    """
    with _editing(index, embedder, on_progress) as work:
        return work.done(
            Edit(
                0, "remove", old=_fact(fact), by=_person(by), anchors=work.stating(fact)
            )
        )


def replace_fact(
    index: str | Path | Address,
    fact: Fact,
    by_fact: Fact,
    *,
    by: str = "",
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Correct a fact: `by_fact` replaces `fact`, and the same passages are its sources.

    Other arguments and errors are those of `remove_fact`.
    """
    with _editing(index, embedder, on_progress) as work:
        edit = Edit(
            0,
            "replace",
            old=_fact(fact),
            new=work.of_two(by_fact),
            by=_person(by),
            anchors=work.stating(fact),
        )
        return work.done(edit)


def add_fact(
    index: str | Path | Address,
    fact: Fact,
    *,
    passage_id: str = "",
    quote: str = "",
    by: str = "",
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Add a fact to the graph of the index at `index`. Other arguments and errors are those of `remove_fact`.

    Args:
        passage_id: the passage that states the fact; "" if there is no such passage.
        quote: the words in the passage that state it, exactly.
    """
    with _editing(index, embedder, on_progress) as work:
        anchors, start, end = work.place(passage_id, quote)
        edit = Edit(
            0,
            "add",
            new=work.of_two(fact),
            by=_person(by),
            anchors=anchors,
            start=start,
            end=end,
        )
        return work.done(edit)


def merge_entities(
    index: str | Path | Address,
    name: str,
    into: str,
    *,
    by: str = "",
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Merge two entities into one: all facts about `name` become facts about `into`.

    A question that contains `name` then finds `into`. Facts between the two are dropped; the report lists them.
    Raises EditError for an unknown entity; other arguments and errors are those of `remove_fact`.
    """
    with _editing(index, embedder, on_progress) as work:
        old, new = _words((name, into))
        if work.key(old) == work.key(new):
            raise EditError(
                f"{name!r} and {into!r} are one entity already: give two different entities"
            )
        between = work.facts_between(old, new)
        edit = Edit(
            number=0,
            kind="merge",
            old=(old,),
            new=(new,),
            by=_person(by),
            anchors=work.naming(old),
            new_anchors=work.naming(new, must=False),
        )
        report = work.done(edit)
        return replace(report, left_out=between)


def split_entity(
    index: str | Path | Address,
    name: str,
    into: str,
    passages: Sequence[str],
    *,
    by: str = "",
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Split an entity in two: in some passages, `name` then means the new entity `into`.

    A question that contains `name` finds both entities; its other words decide between them. Raises EditError for
    an unknown entity or passage; other arguments and errors are those of `remove_fact`.

    Args:
        passages: ids of passages, or of documents for all of their passages.
    """
    with _editing(index, embedder, on_progress) as work:
        old, new = _words((name, into))
        if work.key(old) == work.key(new):
            raise EditError(
                f"{name!r} and {into!r} are the same name: give the second entity another name, such as '{name} (2)'"
            )
        edit = Edit(
            number=0,
            kind="split",
            old=(old,),
            new=(new,),
            by=_person(by),
            anchors=work.naming_in(old, passages),
        )
        return work.done(edit)


def undo_edit(
    index: str | Path | Address,
    number: int | None = None,
    *,
    embedder: object = None,
    on_progress: _OnProgress = None,
) -> EditReport:
    """Undo an edit, by default the last one. Other arguments and errors are those of `remove_fact`.

    Raises EditError if there is no edit, or no edit with the given number.
    """
    with _editing(index, embedder, on_progress) as work:
        edits = work.edits
        if number is None and not edits:
            raise EditError(f"{index} has no edits that could be undone")
        taken = (
            edits[-1]
            if number is None
            else next((edit for edit in edits if edit.number == number), None)
        )
        if taken is None:
            raise EditError(
                f"{index} has no edit {number}: choose one from `ras-agent kg edit {as_argument(index)} list`"
            )
        return work.without(taken)


@contextmanager
def _editing(
    index: str | Path | Address, embedder: object, on_progress: _OnProgress
) -> Iterator[_Editing]:
    passages = _with_graph(index)
    with open_writer(passages, embedder, None, on_progress) as writer:
        yield _Editing(passages, writer)


class _Editing:
    """Makes one edit in a graph that is up to date, while no other process writes it."""

    def __init__(self, passages: PassageIndex, writer: KGWriter) -> None:
        self._path = str(passages)
        self._passages = passages
        self._writer = writer
        self.graph = writer.write()
        self.edits = self.graph.edits

    def key(self, name: str) -> str:
        return key_of(name, exact=self.graph.manifest.exact)

    def of_two(self, fact: Fact) -> Fact:
        """Return the fact, with its white space normalised. Raises EditError if its ends are two names of one merged
        entity."""
        fact = _fact(fact)
        subject, _, object_ = fact
        merged = MergedNames(self.edits, exact=self.graph.manifest.exact)
        is_loop = self.key(merged.of(subject)) == self.key(merged.of(object_))
        if is_loop and self.key(subject) != self.key(object_):
            raise EditError(
                f"{subject!r} and {object_!r} are one entity, since they were merged: undo the merge, or give a fact "
                "about two entities"
            )
        return fact

    def done(self, edit: Edit) -> EditReport:
        """Store an edit and publish the graph. An edit that exists already is not stored again."""
        for known in self.edits:
            if _about(known) == _about(edit):
                return EditReport(self.graph, known)
        numbers = [one.number for one in self.edits]
        now = datetime.now(UTC)
        edit = replace(
            edit,
            number=1 + max(numbers, default=0),
            at=now.isoformat(timespec="seconds"),
        )
        graph = self._writer.write((*self.edits, edit))
        return EditReport(graph, edit)

    def without(self, edit: Edit) -> EditReport:
        """Undo an edit and publish the graph."""
        return EditReport(
            self._writer.write(
                [one for one in self.edits if one.number != edit.number]
            ),
            edit,
        )

    def stating(self, fact: Fact) -> tuple[Anchor, ...]:
        """Return the passages that state a fact. Raises EditError if the graph does not have the fact."""
        subject, predicate, object_ = _fact(fact)
        edge = self._edge(fact)
        if edge is not None:
            return self._anchors(
                source.passage_id for source in self.graph.triple(edge).sources
            )
        for edit in self.edits:
            if edit.old == (subject, predicate, object_):
                return edit.anchors  # the same call was made before
        raise EditError(self._unknown(fact))

    def naming(self, name: str, *, must: bool = True) -> tuple[Anchor, ...]:
        """Return some of the passages that name an entity. Raises EditError for an unknown entity if `must`, otherwise
        returns ()."""
        for edit in self.edits:
            if edit.kind == "merge" and edit.old == (name,):
                return edit.anchors
        entity = self.graph.entity_id(name)
        if entity is None:
            if not must:
                return ()
            export = f"ras-agent kg export {as_argument(self._path)} facts.tsv"
            raise EditError(
                f"{self._path} has no entity {name!r}: choose a name from the facts, which `{export}` lists"
            )
        numbers: list[int] = self.graph.mentions.row(entity).tolist()
        return self._anchors(
            self.graph.documents[number] for number in numbers[:MOST_ANCHORS]
        )

    def naming_in(self, name: str, passages: Sequence[str]) -> tuple[Anchor, ...]:
        """Return the given passages, and those of the given documents, that name an entity. Raises EditError for one
        that does not."""
        self.naming(name)
        entity = self.graph.entity_id(name)
        if not passages:
            raise EditError(
                "a split needs the passages in which the name means the second entity: give --passage"
            )
        naming = [] if entity is None else self.graph.mentions.row(entity).tolist()
        by_passage = {}
        for number in naming:
            passage_id = self.graph.documents[int(number)]
            by_passage[passage_id] = self._document_of(passage_id)
        chosen: list[str] = []
        for wanted in passages:
            found = [
                one for one, document in by_passage.items() if wanted in (one, document)
            ]
            found = found or self._split_before(name, wanted)
            if not found:
                raise EditError(
                    f"no passage {wanted!r} names {name!r}: choose from {_some(by_passage)}"
                )
            chosen.extend(found)
        return self._anchors(chosen)

    def _document_of(self, passage_id: str) -> str:
        passage = self._passages.get(passage_id)
        return passage.document_id if passage else ""

    def _split_before(self, name: str, passage: str) -> list[str]:
        """Return the passages of an earlier edit that already split this name in `passage`, or []."""
        for edit in self.edits:
            if edit.kind != "split" or edit.old != (name,):
                continue
            passages = [anchor.passage_id for anchor in edit.anchors]
            if passage in passages or passage in map(self._document_of, passages):
                return passages
        return []

    def facts_between(self, name: str, other: str) -> tuple[Triple, ...]:
        """Return the facts between two entities, in either direction."""
        graph = self.graph
        first = graph.entity_id(name)
        second = graph.entity_id(other)
        if first is None or second is None or first == second:
            return ()
        between = []
        for edge in graph.edges_of(first).tolist():
            ends = graph.edges[edge, [0, 2]]
            if edge in graph.facts and second in ends:
                between.append(graph.triple(edge))
        return tuple(between)

    def place(self, passage_id: str, quote: str) -> tuple[tuple[Anchor, ...], int, int]:
        """Return the passage that states an added fact, and the start and end of the quote in it.

        Without a passage, the result is ((), 0, 0). Raises EditError for an unknown passage and for words that it does
        not have.
        """
        if not passage_id:
            if quote:
                raise EditError(
                    "a quote needs the id of the passage that it is from: give --passage"
                )
            return (), 0, 0
        passage = self._passages.get(passage_id)
        if passage is None or self.graph.document_id(passage_id) is None:
            missing = (
                "is not in the index"
                if passage is None
                else "was not read yet: `ras-agent kg build` reads it"
            )
            raise EditError(f"passage {passage_id!r} {missing}")
        start = passage.text.find(quote)
        if start < 0:
            raise EditError(
                f"passage {passage_id!r} does not contain the quote {quote!r:.80}: copy it exactly"
            )
        return self._anchors([passage_id]), start, start + len(quote)

    def _anchors(self, passage_ids: Iterable[str]) -> tuple[Anchor, ...]:
        known = self._writer.known()
        return tuple(
            Anchor(name, known[name].text if name in known else 0)
            for name in dict.fromkeys(passage_ids)
        )

    def _edge(self, fact: Fact) -> int | None:
        """Return the number of the fact's edge, or None if the graph does not have the fact."""
        graph = self.graph
        subject, predicate, object_ = _fact(fact)
        head = self._entity(subject)
        tail = self._entity(object_)
        relation = graph.relation_id(predicate)
        if head is None or tail is None or relation is None:
            return None
        numbers = graph.edges_of(head)
        rows = graph.edges[numbers]
        found = numbers[(rows == np.array([head, relation, tail])).all(axis=1)]
        return int(found[0]) if len(found) and int(found[0]) in graph.facts else None

    def _entity(self, name: str) -> int | None:
        """Return the number of the entity that has this name, or had it until a merge; None if there is none."""
        key = self.key(self.graph.merged_names.of(name))
        return self.graph.arrays.keys.find(key)

    def _unknown(self, fact: Fact) -> str:
        """Return the message for a missing fact, with some facts that the graph has about its subject."""
        message = f"{self._path} has no fact ({' | '.join(fact)})"
        head = self.graph.entity_id(fact[0])
        if head is None:
            export = f"ras-agent kg export {as_argument(self._path)} facts.tsv"
            return f"{message}: it has no entity {fact[0]!r}; `{export}` lists all"
        edges = self.graph.edges_of(head)
        facts = edges[edges < len(self.graph.facts)]
        near = map(self.graph.triple, facts[:_SHOWN].tolist())
        some = " ".join(
            f"({one.subject} | {one.predicate} | {one.object})" for one in near
        )
        stats = f"ras-agent kg stats {as_argument(self._path)} --entity {as_argument(fact[0])}"
        return f"{message}; of {fact[0]!r} it has {some or 'none'}: `{stats}` lists all"


def _about(edit: Edit) -> tuple[object, ...]:
    """Return the fields that decide whether two edits are the same."""
    places = edit.anchors if edit.kind == "split" else ()
    return edit.kind, edit.old, edit.new, edit.start, edit.end, places


def _some(names: Iterable[str]) -> str:
    shown = list(names)
    some = ", ".join(shown[:_SHOWN])
    return f"{some}, ..." if len(shown) > _SHOWN else some


def _fact(fact: Fact) -> Fact:
    if len(fact) != 3:
        raise EditError(
            f"a fact has {len(fact)} texts: give a subject, a predicate and an object"
        )
    subject, predicate, object_ = _words(fact)
    return subject, predicate, object_


def _words(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each text on one line. Raises EditError for a text that is blank or too long."""
    words = tuple(" ".join(text.split()) for text in texts)
    for text in words:
        if not key_of(text):
            raise EditError(
                "a subject, predicate, object or name is blank: give a text"
            )
        if len(text) > _LONGEST:
            raise EditError(
                f"{text[:60]!r}... has {len(text):,} characters, and a name may have {_LONGEST:,}: shorten it"
            )
    return words


def _person(name: str) -> str:
    shown = " ".join(name.split())
    return person(shown[:80])

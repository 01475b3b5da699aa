"""Describes the edits that persons made in a knowledge graph, and applies them to a graph.

A graph is always assembled from the facts that were read, to which the edits are then applied in order. So edits
survive every build. An edit is dropped once its subject is gone: the fact or name that it changes is no longer
read, and no passage in which it was read still exists with the same text. So no edit keeps words of a deleted text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import starmap
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.records import JSON, person
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import Occurrences

EditKind = Literal["remove", "replace", "add", "merge", "split"]

MOST_ANCHORS = 8  # kept per edit: a frequent name is in thousands of passages


class Anchor(NamedTuple):
    """Names a passage that contains the fact or name of an edit."""

    passage_id: str
    text: int = 0
    """The hash of the passage's text, as in a passage index; 0 if unknown."""


PassageLookup = Callable[[Iterable[Anchor]], set[Anchor]]
"""Returns which of the given passages still exist with the same text."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Holds one edit of a person.

    Attributes:
        number: the number of the edit; edits are applied in ascending order.
        kind: what the edit does.
        old: the fact that is removed or replaced, or the one name that is merged into another or split.
        new: the fact that is added or replaces `old`, or the one name of the entity that `old` is merged into or that
            is split off from it.
        by: the person, "person" or "person:Ada".
        at: the time of the edit, in UTC.
        anchors: the passages that state `old`; for an added fact the passage that states it, for a split the passages
            in which the name means the new entity.
        new_anchors: for a merge, the passages that name the entity `new`.
        start: where an added fact begins in its passage, in characters.
        end: where an added fact ends.
    """

    number: int
    kind: EditKind
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    by: str = person()
    at: str = ""
    anchors: tuple[Anchor, ...] = ()
    new_anchors: tuple[Anchor, ...] = ()
    start: int = 0
    end: int = 0

    def to_dict(self) -> JSON:
        """Return the edit as JSON values, which `from_dict` reads."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: JSON) -> Self:
        """Return the edit that `to_dict` wrote."""
        fields = dict(data)
        for name in ("old", "new"):
            fields[name] = tuple(data[name])
        for name in ("anchors", "new_anchors"):
            fields[name] = tuple(starmap(Anchor, data[name]))
        return cls(**fields)

    def __str__(self) -> str:
        """Describe the change in words."""
        old = _words_of(self.old)
        new = _words_of(self.new)
        match self.kind:
            case "remove":
                return f"removed {old}"
            case "replace":
                return f"replaced {old} by {new}"
            case "add":
                return f"added {new}"
            case "merge":
                return f"merged {old} into {new}"
            case "split":
                return f"split {new} from {old}"


def _words_of(words: Sequence[str]) -> str:
    """Return a fact or a name in the form shown in listings."""
    if len(words) == 3:
        return f"({' | '.join(words)})"
    return repr("".join(words))


# ---- how edits are applied to a graph


def key_of(name: str, *, exact: bool = False) -> str:
    """Return the key of a name. A graph takes names with the same key for one entity.

    The key is the canonical key, or the name itself if `exact`.
    """
    return name if exact else canonical_key(name)


class MergedNames:
    """Maps the names of entities that persons merged into others to the current names."""

    def __init__(self, edits: Iterable[Edit] = (), *, exact: bool = False) -> None:
        self._exact = exact
        self._names: dict[str, str] = {}
        for edit in edits:
            if edit.kind == "merge":
                self.merge(edit.old[0], edit.new[0])

    def __bool__(self) -> bool:
        return bool(self._names)

    def of(self, name: str) -> str:
        """Return the current name of an entity; a name that was not merged is returned unchanged."""
        return self._names.get(self._key(name), name)

    def of_fact(self, words: Sequence[str]) -> tuple[str, str, str]:
        """Return a fact with the current names of its subject and object."""
        subject, predicate, object_ = words
        return self.of(subject), predicate, self.of(object_)

    def merge(self, name: str, into: str) -> tuple[str, str]:
        """Record that the entity `name` was merged into the entity `into`. Returns the current names of both, in that
        order.
        """
        old = self.of(name)
        new = self.of(into)
        key = self._key(old)
        if self._key(new) == key:
            new = into  # the entity gets back a name that it had before
        for merged, current in self._names.items():
            if self._key(current) == key:
                self._names[merged] = new
        self._names[key] = new
        self._names.pop(self._key(new), None)
        return old, new

    def _key(self, name: str) -> str:
        return key_of(name, exact=self._exact)


def edited(
    found: Occurrences,
    edits: Sequence[Edit],
    held: PassageLookup,
    texts: Mapping[str, int],
    *,
    exact: bool = False,
) -> tuple[Occurrences, tuple[Edit, ...]]:
    """Apply edits to the occurrences that were read, which are not modified.

    Args:
        held: returns which of the given passages still exist with the same text.
        texts: the hash of each passage's text when it was read, by passage id.

    Returns:
        The changed occurrences, and the edits that still apply, with the passages that state their subjects now.
    """
    anchors: set[Anchor] = set()
    for edit in edits:
        anchors.update(edit.anchors, edit.new_anchors)
    there = held(anchors)
    replay = _Replay(found, held, texts, edits, exact=exact)
    stay = []
    for before in edits:
        left = replace(
            before,
            anchors=tuple(filter(there.__contains__, before.anchors)),
            new_anchors=tuple(filter(there.__contains__, before.new_anchors)),
        )
        kept = replay.apply(left, before)
        if kept is not None:
            stay.append(kept)
    return replay.result(), tuple(stay)


class _Replay:
    """Applies edits, one after another, to a copy of the occurrences that were read."""

    def __init__(
        self,
        found: Occurrences,
        held: PassageLookup,
        texts: Mapping[str, int],
        edits: Sequence[Edit],
        *,
        exact: bool,
    ) -> None:
        self._found = found
        self._held = held
        self._texts = texts
        self._exact = exact
        self._documents = list(found.documents)
        self._added = list[str]()
        self._merged = MergedNames(exact=exact)
        self._keys = found.entity_keys(exact=exact)
        # by key, the written forms of the names in edits, and the number of each form; no other name is looked up
        self._forms: dict[bytes, dict[str, int]] = {}
        for edit in edits:
            for word in edit.old + edit.new:
                self._forms[self._key(word)] = {}
        # edits change only the rows with these names, so the other rows are set aside
        spoken_of = np.zeros(len(found.names), dtype=np.bool_)
        for number, key in enumerate(self._keys.encoded()):
            if key in self._forms:
                self._forms[key][found.names[number]] = number
                spoken_of[number] = True
        self._places = {name: number for number, name in enumerate(self._documents)}
        in_facts = spoken_of[found.facts[:, 1:4]].any(axis=1)
        in_mentions = spoken_of[found.mentions[:, 1]]
        self._facts = found.facts[in_facts]
        self._other_facts = found.facts[~in_facts]
        self._mentions = found.mentions[in_mentions]
        self._other_mentions = found.mentions[~in_mentions]
        self._edges = found.edges.copy()
        self._similarities = found.similarities.copy()

    def result(self) -> Occurrences:
        names = self._found.names.joined(StringTable.of(self._added))
        keys = None
        if not self._exact:
            added = map(canonical_key, self._added)
            keys = self._keys.joined(StringTable.of(added))
        facts = np.concatenate([self._other_facts, self._facts])
        mentions = np.concatenate([self._other_mentions, self._mentions])
        return Occurrences(
            names,
            self._found.documents,
            facts,
            mentions,
            self._edges,
            self._similarities,
            keys,
            self._found.notes,
        )

    def apply(self, edit: Edit, before: Edit) -> Edit | None:
        """Apply an edit. Return the edit as it is kept, or None if it is dropped.

        Args:
            before: the same edit, still with its anchors in passages that no longer exist.
        """
        if edit.kind == "add":
            return self._add(edit, before)
        if edit.kind == "merge":
            return self._merge(edit, before)
        if edit.kind == "split":
            return self._split(edit)
        in_facts, in_edges = self._stating(edit.old)
        if not (in_facts.any() or in_edges.any()):
            return edit if edit.anchors else None
        stating = self._facts[in_facts, 0]
        anchors = self._anchored(edit.anchors, stating)
        edit = replace(edit, anchors=anchors)
        if edit.kind == "remove":
            self._facts = self._facts[~in_facts]
            self._leave_edges(~in_edges)
        else:
            numbers = self._numbers(edit.new)
            self._facts[in_facts, 1:4] = numbers
            self._edges[in_edges] = numbers
        return edit

    def _add(self, edit: Edit, before: Edit) -> Edit | None:
        if before.anchors and not edit.anchors:
            return None
        numbers = self._numbers(edit.new)
        if edit.anchors:
            document = self._places.get(edit.anchors[0].passage_id)
            if document is not None:  # None: the passage was not read yet
                row = [document, *numbers, edit.start, edit.end, 0]
                self._facts = np.vstack([self._facts, [row]])
            return edit
        self._edges = np.vstack([self._edges, [numbers]])
        self._similarities = np.append(self._similarities, np.float32(np.nan))
        return edit

    def _merge(self, edit: Edit, before: Edit) -> Edit | None:
        name, into = self._merged.merge(edit.old[0], edit.new[0])
        old = self._known(name)
        new = self._known(into)
        is_named = self._is_named(old)
        is_gone = not is_named and not edit.anchors
        has_lost_target = bool(before.new_anchors) and not edit.new_anchors
        if is_gone:
            return None
        if has_lost_target and not self._is_named(new):
            return None
        naming = self._naming(old)
        anchors = self._anchored(edit.anchors, naming)
        naming = self._naming(new)
        new_anchors = self._anchored(edit.new_anchors, naming)
        if is_named:
            number = self._name(into)
            self._drop_between(old, new, number)
            self._rename(old, number)
        return replace(
            edit, anchors=anchors[:MOST_ANCHORS], new_anchors=new_anchors[:MOST_ANCHORS]
        )

    def _drop_between(self, old: Ints, new: Ints, number: int) -> None:
        """Drop the facts and edges between two entities that become one. The passages of these facts still mention the
        entity."""
        if np.isin(old, new).any():
            return
        ends = self._facts[:, [1, 3]]
        between = _is_between(ends, old, new)
        documents = self._facts[between, 0]
        named = np.full(len(documents), number)
        once = np.ones_like(named)
        mentions = np.stack([documents, named, once], axis=1)
        self._mentions = np.concatenate([self._mentions, mentions])
        self._facts = self._facts[~between]
        ends = self._edges[:, [0, 2]]
        between = _is_between(ends, old, new)
        self._leave_edges(~between)

    def _split(self, edit: Edit) -> Edit | None:
        """Give an entity another name in the anchor passages of the edit."""
        if not edit.anchors:
            return None
        name = self._merged.of(edit.old[0])
        into = self._merged.of(edit.new[0])
        places = []
        for anchor in edit.anchors:
            place = self._places.get(anchor.passage_id)
            if place is not None:
                places.append(place)
        numbers = self._known(name)
        self._rename(numbers, self._name(into), places)
        return edit

    def _rename(
        self, old: Ints, number: int, documents: Sequence[int] | None = None
    ) -> None:
        """Replace the numbers `old` of a name by `number`, in the given documents or, by default, everywhere."""
        names = [(self._facts, 1), (self._facts, 3), (self._mentions, 1)]
        if documents is None:
            names.append((self._edges, 0))
            names.append((self._edges, 2))
        for table, column in names:
            is_old = np.isin(table[:, column], old)
            if documents is not None:
                is_old &= np.isin(table[:, 0], documents)
            table[is_old, column] = number

    def _leave_edges(self, left: npt.NDArray[np.bool_]) -> None:
        self._edges = self._edges[left]
        self._similarities = self._similarities[left]

    def _stating(self, fact: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the masks of the rows of facts and of the edges that state a fact; equivalences are never among
        them."""
        in_facts = np.ones(len(self._facts), np.bool_)
        in_edges = np.isnan(self._similarities)
        for at, word in enumerate(self._merged.of_fact(fact)):
            numbers = self._known(word)
            in_facts &= np.isin(self._facts[:, at + 1], numbers)
            in_edges &= np.isin(self._edges[:, at], numbers)
        return in_facts, in_edges

    def _is_named(self, numbers: Ints) -> bool:
        ends = (
            self._facts[:, 1],
            self._facts[:, 3],
            self._mentions[:, 1],
            self._edges[:, 0],
            self._edges[:, 2],
        )
        return any(bool(np.isin(column, numbers).any()) for column in ends)

    def _naming(self, numbers: Ints) -> Ints:
        """Return the documents whose facts or mentions have one of these names; a document may be repeated."""
        in_facts = np.isin(self._facts[:, [1, 3]], numbers).any(axis=1)
        in_mentions = np.isin(self._mentions[:, 1], numbers)
        of_facts = self._facts[in_facts, 0]
        of_mentions = self._mentions[in_mentions, 0]
        return np.concatenate([of_facts, of_mentions])

    def _anchored(self, known: Sequence[Anchor], documents: Ints) -> tuple[Anchor, ...]:
        """Return the passages that an edit rests on: those in `known`, and the first existing ones of `documents`."""
        anchors = dict.fromkeys(known)
        now = []
        for number in np.unique(documents)[:MOST_ANCHORS].tolist():
            passage = self._documents[number]
            now.append(Anchor(passage, self._texts.get(passage, 0)))
        there = self._held(now)
        for anchor in now:
            if anchor in there:
                anchors[anchor] = None
        return tuple(anchors)

    def _known(self, name: str) -> Ints:
        """Return the numbers of all written forms of a name."""
        forms = self._forms[self._key(name)]
        return np.fromiter(forms.values(), np.int64)

    def _numbers(self, fact: Sequence[str]) -> list[int]:
        """Return the numbers of the words of a fact, with the current names of merged entities."""
        return list(map(self._name, self._merged.of_fact(fact)))

    def _name(self, name: str) -> int:
        """Return the number of this written form of a name; a new form gets a new number."""
        forms = self._forms[self._key(name)]
        if name not in forms:
            forms[name] = len(self._found.names) + len(self._added)
            self._added.append(name)
        return forms[name]

    def _key(self, name: str) -> bytes:
        key = key_of(name, exact=self._exact)
        return key.encode("utf-8", "surrogatepass")


def _is_between(ends: Ints, old: Ints, new: Ints) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of `ends`, (n, 2), that join one of the two entities to the other, in either
    direction."""
    is_old = np.isin(ends, old)
    is_new = np.isin(ends, new)
    forwards = is_old[:, 0] & is_new[:, 1]
    backwards = is_new[:, 0] & is_old[:, 1]
    between: npt.NDArray[np.bool_] = forwards | backwards
    return between


def persons_of(
    edits: Iterable[Edit], *, exact: bool = False
) -> dict[tuple[str, ...], Edit]:
    """Return the last edit that added each fact, or replaced another fact by it, keyed by the keys of subject,
    predicate and object.
    """
    edits = list(edits)
    merged = MergedNames(edits, exact=exact)
    made: dict[tuple[str, ...], Edit] = {}
    for edit in edits:
        if edit.kind not in ("add", "replace"):
            continue
        words = merged.of_fact(edit.new)
        keys = [key_of(word, exact=exact) for word in words]
        made[tuple(keys)] = edit
    return made


def split_names(edits: Iterable[Edit], *, exact: bool = False) -> dict[str, list[str]]:
    """Return the names that were split off from each entity, by the entity's key."""
    names: dict[str, list[str]] = {}
    for edit in edits:
        if edit.kind == "split":
            key = key_of(edit.old[0], exact=exact)
            names.setdefault(key, []).append(edit.new[0])
    return names


def shown(edit: Edit) -> dict[str, Any]:
    """Return an edit as a dictionary for listings: its number, kind, facts or names, person, time and passages."""
    return {
        "number": edit.number,
        "kind": edit.kind,
        "old": list(edit.old),
        "new": list(edit.new),
        "by": edit.by,
        "at": edit.at,
        "passages": [anchor.passage_id for anchor in edit.anchors],
    }

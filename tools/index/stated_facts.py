"""Reads facts that are stated in the metadata of a passage or record, so that no extractor has to read the text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

from ras_agent.contracts.records import Attributes, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.overlap import holds
from ras_agent.text.standing import fact_text

STATED = "facts"
"""The metadata key of a passage's own facts, each [subject, predicate, object, place], perhaps with an object of
attributes."""

_MOST_PIECES = 4
"""The maximum number of pieces of a text that a fact belongs to."""

FACT_KEYS = (
    ("subject", "head", "s"),
    ("predicate", "relation", "p"),
    ("object", "tail", "o"),
)
"""The keys of a fact's parts in records and in files of triples."""
_PARTS = len(FACT_KEYS)
_KEYS_OF_PARTS = {key for keys in FACT_KEYS for key in keys} | {"place", "attributes"}


def read_facts(value: object, place: str) -> tuple[list[list[Any]], list[str]]:
    """Return the facts in a record, in the form in which they are stored, and the problem of each invalid one.

    A fact is [subject, predicate, object], perhaps followed by its place and attributes, or an object with these
    keys, or with head, relation and tail, whose other keys are attributes.

    Args:
        value: the record's value under "facts".
        place: the place of the record, for facts without one.
    """
    if value is None:
        return [], []
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [], [f"{STATED!r} must hold a list of facts, got {value!r:.60}"]
    facts: list[list[Any]] = []
    problems: list[str] = []
    for number, item in enumerate(value, start=1):
        parts = _parts_of(item)
        if parts is None:
            problems.append(
                f"fact {number} is no [subject, predicate, object]: {item!r:.80}"
            )
            continue
        fact: list[Any] = parts
        if len(fact) == _PARTS:
            fact.append(place)
        attributes = attributes_of(item)
        if attributes:
            fact.append(attributes)
        facts.append(fact)
    return facts, problems


def attributes_of(item: object, own_keys: Sequence[str] = ()) -> dict[str, Any]:
    """Return the attributes of a fact in a record: everything except its three parts, its place and `own_keys`."""
    if isinstance(item, Sequence):
        if isinstance(item[-1], Mapping):
            return dict(item[-1])
        return {}
    if not isinstance(item, Mapping):
        return {}
    attributes: dict[str, Any] = {}
    given = item.get("attributes")
    if isinstance(given, Mapping):
        attributes.update(given)
    for key, value in item.items():
        if key not in _KEYS_OF_PARTS and key not in own_keys:
            attributes[key] = value
    return attributes


def _parts_of(item: object) -> list[str] | None:
    """Return the parts of a fact, and its place if it names one, as texts; None if the item is not a fact."""
    if isinstance(item, Mapping):
        held = [
            next((item[key] for key in keys if key in item), None) for keys in FACT_KEYS
        ]
        if item.get("place"):
            held.append(item["place"])
    elif isinstance(item, Sequence) and not isinstance(item, str):
        held = list(item)
        if held and isinstance(held[-1], Mapping):
            held.pop()
        if len(held) not in (_PARTS, _PARTS + 1):
            return None
        if len(held) == 4 and not str(held[3] or "").strip():
            held.pop()
    else:
        return None
    texts = []
    for part in held:
        if (
            isinstance(part, bool)
            or not isinstance(part, str | int | float)
            or not str(part).strip()
        ):
            return None
        texts.append(str(part).strip())
    return texts


def sentence_of(subject: str, predicate: str, object_: str) -> str:
    """Return a fact as a sentence."""
    return f"{subject} {predicate} {object_}."


def stated_facts(passage: Passage) -> tuple[Triple, ...] | None:
    """Return the facts in a passage's metadata, each with the span of the sentence that states it or is most similar
    to it.

    Their extractor is "stated: " and the place, so that no record can present its facts as those of an extractor.
    Returns None if the passage has no such facts, or if its metadata has something else under that key.
    """
    listed = _listed(passage.metadata)
    if listed is None:
        return None
    facts = []
    for subject, predicate, object_, place, *attributes in listed:
        sentence = sentence_of(subject, predicate, object_)
        start = passage.text.find(sentence)
        end = start + len(sentence)
        if start < 0:
            text = fact_text(passage.text, passage.heading)
            start, end = text.sentence(subject, predicate, object_) or (
                0,
                len(passage.text),
            )
        source = Source(passage.id, start, end, extractor=f"stated: {place}")
        fact = Triple(
            subject=subject,
            predicate=predicate,
            object=object_,
            sources=(source,),
        )
        if attributes:
            fact = replace(fact, attributes=Attributes.of_others(attributes[0]))
        facts.append(fact)
    return tuple(facts)


def metadata_of_pieces(
    metadata: Mapping[str, Any], texts: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the metadata of each piece of a text: the facts that it states, and everything else unchanged.

    A fact belongs to the pieces that contain its sentence, otherwise to those that name both of its ends, otherwise to
    the first piece.
    """
    listed = _listed(metadata)
    if listed is None:
        return [dict(metadata) for _ in texts]
    own: list[list[Any]] = [[] for _ in texts]
    pieces = PiecesByWord(texts)
    for fact in listed:
        for piece in pieces.about(fact[:3]):
            own[piece].append(fact)
    others = {key: value for key, value in metadata.items() if key != STATED}
    return [{**others, STATED: facts} if facts else dict(others) for facts in own]


class PiecesByWord:
    """Holds the pieces of a text by their words, so that a fact need not be searched in each of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Take the texts of the pieces."""
        self._texts = texts
        self._naming_key: dict[str, list[int]] = {}

    @cached_property
    def _keys(self) -> list[str]:
        return [f" {canonical_key(text)} " for text in self._texts]

    @cached_property
    def _with_word(self) -> Mapping[str, set[int]]:
        pieces = defaultdict[str, set[int]](set)
        for number, key in enumerate(self._keys):
            for word in key.split():
                pieces[word].add(number)
        return pieces

    def about(self, fact: Sequence[str]) -> list[int]:
        """Return the pieces that contain a fact's sentence, else those that name both of its ends, else the first.

        Only the first few are returned, so that many facts about a long, repetitive text do not multiply.
        """
        sentence = sentence_of(*fact)
        around = self._with_words_of(canonical_key(sentence))
        holding = (number for number in around if sentence in self._texts[number])
        verbatim = list(islice(holding, _MOST_PIECES))
        if verbatim:
            return verbatim
        subject, _, object_ = fact
        objects = set(self._naming(object_))
        naming = (number for number in self._naming(subject) if number in objects)
        return list(islice(naming, _MOST_PIECES)) or [0]

    def _naming(self, name: str) -> list[int]:
        key = canonical_key(name)
        if key not in self._naming_key:
            sought = f" {key} " if key.isascii() else key
            around = self._with_words_of(key)
            naming = [number for number in around if sought in self._keys[number]]
            self._naming_key[key] = naming
        return self._naming_key[key]

    def _with_words_of(self, key: str) -> Sequence[int]:
        """Return the pieces that may contain a phrase, in order."""
        if not key.isascii():
            # scripts without spaces between words
            return range(len(self._texts))
        holding = [self._with_word.get(word, set()) for word in key.split()]
        rarest_first = sorted(holding, key=len)
        if not rarest_first:
            return ()
        return sorted(rarest_first[0].intersection(*rarest_first[1:]))


def mentions(text: str, name: str) -> bool:
    """Return whether a text contains a name, ignoring case and articles."""
    key = canonical_key(name)
    # scripts without spaces between words
    return holds(text, name) if key.isascii() else key in canonical_key(text)


def _listed(metadata: Mapping[str, Any]) -> Sequence[Any] | None:
    listed = metadata.get(STATED)
    if (
        not isinstance(listed, Sequence)
        or isinstance(listed, str)
        or not listed
        or not all(map(_is_fact, listed))
    ):
        return None
    return listed


def _is_fact(item: Any) -> bool:
    if isinstance(item, str | Mapping) or not isinstance(item, Sequence):
        return False
    texts = item[:4]
    if len(texts) < 4 or not all(_is_text(text) for text in texts):
        return False
    attributes = item[4:]
    if not attributes:
        return True
    return len(attributes) == 1 and isinstance(attributes[0], Mapping)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""

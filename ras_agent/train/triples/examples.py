"""Reads texts with the triples that they state, from which a text-to-triples model learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.eval.question_file import read_records
from ras_agent.eval.study.extractors import GOLD_TRIPLES
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.tools.structure.triple_text import TripleText, titled_text
from ras_agent.train.data import Split, split_of, write_rows

_POOL = 64  # the number of batches whose examples are sorted by length together


@dataclass(frozen=True, slots=True)
class TripleExample:
    """Holds a text with its title and the triples that it states."""

    title: str
    text: str
    triples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """Holds the token ids of an example."""

    source: list[int]
    """the prompt"""
    target: list[int]
    """the reply to learn"""


def triple_examples(files: Iterable[Path]) -> list[TripleExample]:
    """Return the examples of some files, each text once.

    A file is JSON Lines with `text`, `triples` and optionally `title`; or, as WikiOFGraph is prepared for RAS,
    with `input` and `output`, a line of (S> ...| P> ...| O> ...).

    Raises:
        IngestError: for any other record; the message names its place.
    """
    examples: dict[str, TripleExample] = {}
    for file in files:
        first = next(iter(read_records(file)), None)
        if first is not None and "input" in first:
            of_file = _prepared(file)
        else:
            of_file = _gold(file)
        for example in of_file:
            examples.setdefault(example.text, example)
    return list(examples.values())


def _prepared(file: Path) -> Iterator[TripleExample]:
    for record in read_records(file):
        facts = parse_triples(record.text("output")).triples
        triples = tuple((fact.subject, fact.predicate, fact.object) for fact in facts)
        yield TripleExample("", record.text("input"), triples)


def _gold(file: Path) -> Iterator[TripleExample]:
    for question in GOLD_TRIPLES.load(file):
        title = str(question.metadata.get("title", ""))
        triples = tuple(_readable(*triple) for triple in question.metadata["triples"])
        yield TripleExample(title, question.question, triples)


def split(
    examples: Sequence[TripleExample], share: float
) -> tuple[list[TripleExample], list[TripleExample]]:
    """Split examples into those to train on and a share `share` that is held out.

    The part of an example depends only on a hash of its text, not on the other examples.
    """
    parts: dict[Split, list[TripleExample]] = {"train": [], "validation": []}
    for example in examples:
        parts[split_of(example.text, share)].append(example)
    return parts["train"], parts["validation"]


def write_examples(file: Path, examples: Iterable[TripleExample]) -> None:
    """Write examples as `triple_examples` and `ras-agent study extractors --gold` read them."""
    write_rows(file, map(asdict, examples))


def encode(
    example: TripleExample, text: TripleText, target_tokens: int
) -> EncodedExample:
    """Return an example as tokens. A text that is too long is cut, and triples that exceed `target_tokens` are left
    out.
    """
    _, source = text.fitting(titled_text(example.title, example.text))
    count = len(example.triples)
    target = text.target(example.triples)
    while len(target) > target_tokens and count:
        count -= 1
        target = text.target(example.triples[:count])
    return EncodedExample(source, target)


class BatchesByLength:
    """Groups an epoch's examples into batches of similar length, in random order, and encodes a batch when it
    is accessed.
    """

    def __init__(
        self,
        examples: Sequence[TripleExample],
        rows: int,
        seed: Any,
        encode: Callable[[TripleExample], EncodedExample],
    ) -> None:
        self._examples = examples
        self._encode = encode
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(examples)).tolist()
        batches = []
        for start in range(0, len(order), _POOL * rows):
            pool = order[start : start + _POOL * rows]
            pool.sort(key=lambda place: _characters(examples[place]))
            for first in range(0, len(pool), rows):
                batches.append(pool[first : first + rows])
        self._batches = [batches[place] for place in rng.permutation(len(batches))]

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, place: int, /) -> list[EncodedExample]:
        return [self._encode(self._examples[number]) for number in self._batches[place]]

    def __iter__(self) -> Iterator[list[EncodedExample]]:
        for place in range(len(self)):
            yield self[place]


def _characters(example: TripleExample) -> int:
    return len(example.text) + sum(
        len(part) for triple in example.triples for part in triple
    )


def _readable(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    """Return a triple with DBpedia's names written as in texts: Alan_Turing becomes Alan Turing."""

    def name(text: str) -> str:
        return " ".join(text.replace("_", " ").strip('" ').split()) or text

    return name(subject), predicate, name(object_)

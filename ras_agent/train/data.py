"""Reads the public data on which the packaged weights are trained; also splits, shuffles and writes samples for
any training.

docs/data.md says where each file comes from. A set may be in the folder under its publisher's file name, or as
a sample in the plain format.
"""

from __future__ import annotations

import hashlib
import json
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

from ras_agent.contracts.errors import IngestError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question, context_passage, union_of_contexts
from ras_agent.eval.question_file import OnBad, read_records
from ras_agent.text.overlap import holds
from ras_agent.tools.store.durable import replace_file
from ras_agent.tools.subgraph.graph import Subgraph
from ras_agent.tools.subgraph.paths import Path as GraphPath
from ras_agent.tools.subgraph.paths import shortest

Sample = TypeVar("Sample")
Split = Literal["train", "validation"]
_BYTES = 8
_FILES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "hotpotqa": (
        "hotpotqa",
        ("hotpotqa_train/questions.jsonl", "hotpotqa_train/hotpotqa_train.json"),
    ),
    "musique": ("musique", ("musique_train200/questions.jsonl",)),
    "nq": (
        "natural-questions",
        ("reading/nq_oracle.jsonl", "reading/nq-open-oracle.jsonl.gz"),
    ),
    "squad": ("squad", ("reading/squad_sample.jsonl", "reading/xquad.en.json")),
    "ircot": ("ircot", ("reading/ircot_cot.jsonl",)),
}


@dataclass(frozen=True)
class TrainingSet:
    """Holds questions and their corpus: a corpus.jsonl next to the questions, or else all their contexts."""

    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]

    def gold(self, question: Question) -> list[Passage]:
        """Return the gold passages of a question, in the question's order.

        Each is taken from the contexts of the question, or else from the corpus; one that is in neither is left out.
        """
        own = {}
        for passage in question.contexts:
            name = passage.title if question.by_title else passage.id
            own[name] = passage
        corpus = self._by_title if question.by_title else self._by_id
        passages = ChainMap(own, corpus)
        return [passages[name] for name in question.supporting if name in passages]

    @cached_property
    def _by_title(self) -> dict[str, Passage]:
        return {passage.title: passage for passage in self.passages}

    @cached_property
    def _by_id(self) -> dict[str, Passage]:
        return {passage.id: passage for passage in self.passages}


def training_set(name: str, data: Path) -> TrainingSet:
    """Return the set `name`, such as "hotpotqa", from the folder `data`.

    Raises:
        UnknownName: If there is no such set.
        IngestError: If a record cannot be read; the message names its place.
    """
    if name not in _FILES:
        raise UnknownName("training set", name, tuple(_FILES))
    reader, files = _FILES[name]
    return questions_and_corpus(reader, first_file(data, files))


def questions_and_corpus(
    reader: str, file: Path, on_bad: OnBad | None = None
) -> TrainingSet:
    """Return the questions of a benchmark's file, with the corpus next to the file.

    Args:
        reader: The name of the benchmark.
        file: The question file.
        on_bad: Is called with the error of a bad record, which is then left out; without it such a record raises
            IngestError.
    """
    questions = benchmark(reader).load(file, on_bad=on_bad)
    corpus = file.with_name("corpus.jsonl")
    if corpus.is_file():
        passages = passages_in(corpus)
    else:
        passages = union_of_contexts(questions)
    return TrainingSet(tuple(questions), tuple(passages))


def passages_in(path: Path) -> list[Passage]:
    """Return the passages of a JSON Lines file or a JSON array: objects with text, title and an optional id."""
    passages = []
    for record in read_records(path):
        title = record.text("title")
        text = record.text("text")
        passages.append(
            Passage(record.text("id"), text, title)
            if "id" in record
            else context_passage(title, text)
        )
    return passages


def paths_to_answers(
    subgraph: Subgraph, starts: Iterable[str], answers: Iterable[str]
) -> list[GraphPath]:
    """Return the shortest path from one of the starts to each answer, the shortest first; [] if no path reaches
    an answer.

    `starts` and `answers` are names of entities.
    """
    graph = subgraph.graph
    ends = {graph.find(answer) for answer in answers}
    places = [place for place in map(graph.find, starts) if place is not None]
    if not places or ends <= {None}:
        return []
    first: dict[int, GraphPath] = {}
    for path in shortest(subgraph, places).paths:
        if path.end in ends:
            first.setdefault(path.end, path)
    return list(first.values())


def names_any(text: str, names: Iterable[str]) -> bool:
    """Tell whether a text contains any of the names as whole words, whatever their case and punctuation."""
    return any(holds(text, name) for name in names)


def digest(examples: Iterable[object]) -> str:
    """Return a hash of training examples, by which a resumed training checks that they are the same."""
    return hashlib.sha256(
        "\n".join(map(repr, examples)).encode("utf-8", "replace")
    ).hexdigest()[:12]


def split_of(text: str, validation: float) -> Split:
    """Return the split of a question or text by a hash of its words, so that it is the same in every file, run and
    source.

    `validation` is the share of texts in the split "validation".
    """
    words = " ".join(text.casefold().split())
    digest = hashlib.blake2b(
        words.encode(errors="surrogatepass"), digest_size=_BYTES
    ).digest()
    if int.from_bytes(digest) < validation * 256**_BYTES:
        return "validation"
    return "train"


def shuffled_batches(
    samples: Iterable[Sample], size: int, dice: Random
) -> list[list[Sample]]:
    """Return all samples in batches of `size`, in an order that `dice` draws."""
    shuffled = list(samples)
    dice.shuffle(shuffled)
    return [shuffled[first : first + size] for first in range(0, len(shuffled), size)]


def spread_out(samples: Sequence[Sample], count: int) -> Sequence[Sample]:
    """Return at most `count` of the samples, evenly spread over them."""
    every = max(1, -(-len(samples) // count))
    return samples[::every]


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write a JSON object a line. The file is replaced as a whole or left unchanged.

    Raises:
        StoreError: If the file cannot be written.
    """
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    replace_file(path, "".join(lines).encode("utf-8", "replace"))


def first_file(data: Path, files: tuple[str, ...]) -> Path:
    """Return the first of `files` that is in the folder `data`. Raises IngestError if none is."""
    for file in files:
        if (data / file).is_file():
            return data / file
    raise IngestError(
        f"{data}: holds neither {' nor '.join(files)}; docs/data.md says where to get it"
    )

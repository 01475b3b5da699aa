"""Reads and writes the training samples of the aligner: a question with its graph, its answers and linking reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ras_agent.eval.benchmarks.pathquestion import Part
from ras_agent.eval.question_file import read_records
from ras_agent.tools.graph_tokens.features import Fact
from ras_agent.train.data import write_rows
from ras_agent.train.graphqa.parts import Learnt, key_of

PARTS: tuple[Part, ...] = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class AlignerSample:
    """Holds a question with its graph, its answers, and the reasoning that leads to them, which is used only
    for training.
    """

    id: str
    part: Part
    question: str
    answers: tuple[str, ...]
    facts: tuple[Fact, ...]
    reasoning: str
    image: str = ""
    """The image that the graph describes, if other questions may be about it."""

    @property
    def key(self) -> str:
        """Return a short key of the question, by which a training checks that the question is not in its test
        set.
        """
        return key_of(self.question, self.image)


def learnt_from(samples: Iterable[AlignerSample]) -> Learnt:
    """Return the keys of the samples' questions: those that an aligner learns from, and those that choose its weights."""
    keys: dict[Part, set[str]] = {part: set() for part in PARTS}
    for sample in samples:
        keys[sample.part].add(sample.key)
    return Learnt(
        train=frozenset(keys["train"]),
        validation=frozenset(keys["dev"]),
    )


def write_samples(path: Path, samples: Iterable[AlignerSample]) -> None:
    """Write a file that `read_samples` reads. The file is replaced as a whole or left unchanged."""
    write_rows(path, map(asdict, samples))


def read_samples(path: Path) -> list[AlignerSample]:
    """Return the samples of a file.

    Raises:
        IngestError: If a record is invalid; the message names its line.
    """
    return list(_samples(path))


def _samples(path: Path) -> Iterator[AlignerSample]:
    graphs: dict[
        tuple[Fact, ...], tuple[Fact, ...]
    ] = {}  # questions about one entity share a graph
    for record in read_records(path):
        part = record.text("part")
        if part not in PARTS:
            raise record.error(
                f"'part' should be train, dev or test, found {part!r:.40}"
            )
        facts = tuple((fact[0], fact[1], fact[2]) for fact in record.triples("facts"))
        yield AlignerSample(
            id=record.text("id"),
            part=part,
            question=record.text("question"),
            answers=tuple(record.texts("answers")),
            facts=graphs.setdefault(facts, facts),
            reasoning=record.text("reasoning"),
            image=record.text("image") if "image" in record else "",
        )

"""ExplaGraphs as examples of stance: two arguments, the facts between them, and whether they agree."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.errors import IngestError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.tools.graph_tokens.features import Fact

SUPPORT, COUNTER = "support", "counter"
FOLDS = 5

_ARGUMENTS = re.compile(r"Argument 1: (?P<first>.*)\nArgument 2: (?P<second>.*)\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StanceExample:
    """Holds two arguments, the common-sense facts that join them, and "support" or "counter" ("" where unknown)."""

    first: str
    second: str
    facts: tuple[Fact, ...]
    label: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the concepts of the graph, each once, in the order of the facts."""
        return tuple(dict.fromkeys(end for fact in self.facts for end in (fact[0], fact[2])))


def read_examples(path: Path) -> list[StanceExample]:
    """Read a file of the benchmark `explagraphs`. Raises IngestError with the line of a bad record."""
    return [example_of(question) for question in benchmark("explagraphs").load(path)]


def example_of(question: Question) -> StanceExample:
    """Return the example of a question as the benchmark `explagraphs` words it. Raises IngestError for another."""
    first, second = arguments_of(question.question)
    return StanceExample(first, second, question.graph.triples(), question.label)


def arguments_of(question: str) -> tuple[str, str]:
    """Return the two arguments of the benchmark's question. Raises IngestError where it has none."""
    found = _ARGUMENTS.match(question)
    if found is None:
        raise IngestError(
            f"expected a question of the benchmark explagraphs, 'Argument 1: ...', a line 'Argument 2: ...' and a last "
            f"line, found {question!r:.80}"
        )
    return found["first"], found["second"]


def folds(examples: Sequence[StanceExample], fold: int) -> tuple[list[StanceExample], list[StanceExample]]:
    """Return the examples outside and inside one of five folds, the same for every seed: a design is chosen on them."""
    order = list(range(len(examples)))
    random.Random(0).shuffle(order)
    inside = set(order[fold::FOLDS])
    return (
        [example for number, example in enumerate(examples) if number not in inside],
        [example for number, example in enumerate(examples) if number in inside],
    )


def reordered(example: StanceExample, order: int) -> StanceExample:
    """Return the example with its facts in another order, the same one for the same number; 0 is the file's."""
    if not order:
        return example
    return replace(example, facts=tuple(random.Random(order).sample(example.facts, len(example.facts))))


def graph_text(facts: Sequence[Fact]) -> str:
    """Return the facts as sentences, "cats; capable of; purring" as "cats capable of purring"."""
    return ". ".join(" ".join(fact) for fact in facts)

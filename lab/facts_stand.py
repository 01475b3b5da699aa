"""Measures the rule by which facts are kept: right triples of three sets, and the same with objects of other passages.

    python -m lab.facts_stand musique=corpus_openie.jsonl redocred=redocred_train500.jsonl edc=edc.jsonl

A planted fact is a right one whose object is that of a random fact of another passage. An object that stands in the
passage by chance is no foreign one: it is left out where it, or another name that the set has for the same entity,
is in the passage or its title word for word, and counted.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.text.overlap import holds
from ras_agent.text.standing import FactText, Standing
from ras_agent.text.titles import with_title

Fact = tuple[str, str, str]
Aliases = dict[str, set[str]]
_SEED = 41
_OUTCOMES = ("refused", "unchecked")


@dataclass
class Sample:
    """A passage and its right facts."""

    title: str
    text: str
    facts: list[Fact]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def musique(path: Path) -> tuple[list[Sample], Aliases]:
    """Return HippoRAG's passages with the triples that GPT-3.5 read in them."""
    samples = []
    for record in _records(path):
        whole = [item for item in record["triples"] if len(item) == 3 and all(map(str.strip, item))]
        facts = [(subject, predicate, object_) for subject, predicate, object_ in whole]
        samples.append(Sample(record["title"], record["text"], facts))
    return samples, {}


def redocred(path: Path) -> tuple[list[Sample], Aliases]:
    """Return documents with their relations, each end under a random one of the names that the document has for it."""
    samples = []
    aliases: Aliases = defaultdict(set)
    for record in _records(path):
        rng = random.Random(record["title"])
        entities = [[mention["name"] for mention in entity] for entity in record["vertexSet"]]
        for names in entities:
            for name in names:
                aliases[name].update(names)
        facts = [(rng.choice(entities[one["h"]]), one["r"], rng.choice(entities[one["t"]])) for one in record["labels"]]
        text = " ".join(" ".join(sentence) for sentence in record["sents"])
        samples.append(Sample(record["title"], text, facts))
    return samples, aliases


def edc(path: Path) -> tuple[list[Sample], Aliases]:
    """Return the test sets of EDC, of single texts; underscores and quotation marks are no part of a name."""
    samples = []
    for record in _records(path):
        facts = [
            (_plain(subject), _plain(predicate), _plain(object_)) for subject, predicate, object_ in record["triples"]
        ]
        samples.append(Sample("", record["text"], facts))
    return samples, {}


def _plain(field: str) -> str:
    return field.replace("_", " ").strip('"')


SETS: dict[str, Callable[[Path], tuple[list[Sample], Aliases]]] = {"musique": musique, "redocred": redocred, "edc": edc}


def row(name: str, samples: list[Sample], aliases: Aliases) -> str:
    """Return the row of the table for a set."""
    right: Counter[Standing] = Counter()
    began = time.process_time()
    texts = [FactText(sample.text, sample.title) for sample in samples]
    for sample, text in zip(samples, texts, strict=True):
        right.update(text.standing(*fact) for fact in sample.facts)
    cost = 1000 * (time.process_time() - began) / len(samples)
    planted: Counter[Standing] = Counter()
    by_chance = 0
    for number, planted_fact in _planted(samples, texts):
        if _is_there(samples[number], planted_fact[2], aliases):
            by_chance += 1
        else:
            planted[texts[number].standing(*planted_fact)] += 1
    facts, foreign = right.total(), planted.total()
    cells = [
        name,
        f"{len(samples):,}",
        f"{facts:,}",
        f"{right[Standing.MISSING] / facts:.2%}",
        f"{right[Standing.UNKNOWN] / facts:.2%}",
        f"{foreign:,}",
        f"{by_chance:,}",
        f"{planted[Standing.MISSING] / foreign:.2%}",
        f"{planted[Standing.UNKNOWN] / foreign:.2%}",
        f"{cost:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _planted(samples: list[Sample], texts: list[FactText]) -> Iterator[tuple[int, Fact]]:
    """Yield facts whose subject stands and whose object is another passage's, each with its passage's number."""
    rng = random.Random(_SEED)
    facts = [(number, fact) for number, sample in enumerate(samples) for fact in sample.facts]
    for number, (subject, predicate, _) in facts:
        elsewhere, other = rng.choice(facts)
        if elsewhere != number and texts[number].words.standing(subject) is Standing.STANDS:
            yield number, (subject, predicate, other[2])


def _is_there(sample: Sample, name: str, aliases: Aliases) -> bool:
    text = with_title(sample.title, sample.text)
    return any(holds(text, one) for one in {name, *aliases.get(name, ())})


def main(arguments: list[str]) -> None:
    """Print the table of the sets that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("sets", nargs="+", metavar="NAME=PATH", help=f"a set and its file; known: {', '.join(SETS)}")
    named = parser.parse_args(arguments).sets
    columns = ("set", "passages", "right facts", *_OUTCOMES, "planted", "by chance there", *_OUTCOMES, "ms a passage")
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for argument in named:
        name, _, path = argument.partition("=")
        samples, aliases = SETS[name](Path(path))
        print(row(name, samples, aliases), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Make training samples for planner and answerer by Algorithm 1 of RAS; write them and a JSON card of statistics.

    python -m ras_agent.train.subq.build --musique musique_ans_v1.0_train.jsonl --out subq.jsonl

The same command goes on where a killed one stopped: read facts are in --triple-cache. What was built is written at the
end, in the order of the files, so that equal files and settings give equal bytes. Use training splits alone: this
command cannot know which questions you report on.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

from ras_agent.calling import acall
from ras_agent.errors import IngestError, ParseError, SettingsError
from ras_agent.eval.question_file import OnBad
from ras_agent.graphs.from_settings import extractor_from_settings
from ras_agent.program import run_program
from ras_agent.protocols import Extractor
from ras_agent.records import Extraction, Passage
from ras_agent.settings import Settings
from ras_agent.tools.index.durable import replace_file
from ras_agent.tools.spread.pool import Here, results_in_order
from ras_agent.train.ranges import COUNT, SHARE, check_ranges
from ras_agent.train.subq.label import First, as_subquery, distinct, retrieval_samples
from ras_agent.train.subq.samples import SubqSample, SubqStep, split_of, write_samples
from ras_agent.train.subq.sources import SubqQuestion, musique
from ras_agent.train.subq.statistics import statistics

_RANGES = {"validation": SHARE, "concurrency": COUNT}


@dataclass(frozen=True, slots=True)
class SubqConfig:
    """Everything that decides what comes out. Raises SettingsError for a number out of its range, or without a source.

    extractor: who reads the documents' triples, as a role's spec. triple_cache: stores them for a later run. first: see
    `label.First`. validation: the share of questions that go to that split.
    """

    out: Path
    musique: tuple[Path, ...] = ()
    extractor: str = "offline"
    triple_cache: Path | None = None
    first: First = "question"
    validation: float = 0.1
    concurrency: int = 8

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        if not self.musique:
            raise SettingsError("there is nothing to build from: give --musique FILE")


def build(config: SubqConfig) -> dict[str, Any]:
    """Write the samples and their card; return the card. Raises RasError children."""
    left_out: list[str] = []
    samples: list[SubqSample] = []
    worker = _Worker(config)

    def leave_out(problem: IngestError) -> None:
        left_out.append(str(problem))
        print(f"left out: {problem}", flush=True)

    asked = _distinct(_questions(config, leave_out), leave_out)
    for one, made in results_in_order(Here(worker.samples), asked, concurrency=config.concurrency):
        if isinstance(made, str):
            leave_out(IngestError(f"{one.source} {one.question.id}: {made}"))
        else:
            samples += made
    if not samples:
        raise IngestError("no question gave a sample; what was wrong with each is written above")
    write_samples(config.out, samples)
    card = {
        "what": "samples for planner and answerer, labelled by Algorithm 1 of RAS",
        "made_by": "python -m ras_agent.train.subq.build",
        "settings": {name: _plain(value) for name, value in asdict(config).items()},
        "statistics": statistics(samples),
        "sources": dict(Counter(sample.source for sample in samples)),
        "left_out": left_out,
    }
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    replace_file(config.out.with_suffix(".json"), text.encode("utf-8", "replace"))
    return card


class _Worker:
    """Makes the samples of one question."""

    def __init__(self, config: SubqConfig) -> None:
        settings = Settings(triple_cache=config.triple_cache)
        self._config = config
        self._extractor: Extractor = extractor_from_settings(settings, config.extractor)

    async def samples(self, asked: SubqQuestion) -> list[SubqSample] | str:
        """Return the samples, or why the question is left out."""
        split = split_of(asked.question.question, self._config.validation)
        try:
            subqueries = [as_subquery(text) for text in asked.subqueries]
            steps = [
                await self._step(subquery, document)
                for subquery, document in zip(subqueries, asked.documents, strict=True)
            ]
            return retrieval_samples(asked, steps, split, self._config.first)
        except ParseError as error:
            return str(error)

    async def _step(self, subquery: str, document: Passage) -> SubqStep:
        found: Extraction = await acall(self._extractor, "extract", [document], subquery)
        facts = [(triple.subject, triple.predicate, triple.object) for triple in found.triples]
        return SubqStep(subquery, (document,), distinct(facts))


def _questions(config: SubqConfig, on_bad: OnBad) -> Iterator[SubqQuestion]:
    for file in config.musique:
        yield from musique(file, on_bad)


def _distinct(questions: Iterator[SubqQuestion], on_bad: OnBad) -> Iterator[SubqQuestion]:
    """Yield each question once, by its id."""
    seen = set()
    for one in questions:
        if (name := (one.source, one.question.id)) in seen:
            on_bad(IngestError(f"{one.source} {one.question.id}: came before"))
        else:
            seen.add(name)
            yield one


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.name if isinstance(value, Path) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--musique", type=Path, action="append", default=[], help="questions of MuSiQue's training part"
    )
    parser.add_argument("--out", type=Path, required=True, help="the samples; their card is next to them (.json)")
    parser.add_argument("--extractor", default="offline", help="who reads the triples, as --extractor of ras-agent")
    parser.add_argument("--triple-cache", type=Path, help="a file that stores what was read, for a later run")
    parser.add_argument("--first", choices=get_args(First), default="question", help="what the added first search asks")
    parser.add_argument("--validation", type=float, default=0.1, help="the share of questions to validate with")
    parser.add_argument("--concurrency", type=int, default=8, help="how many questions are worked on at once")
    given = vars(parser.parse_args())
    config = SubqConfig(**{**given, "musique": tuple(given["musique"]), "first": cast(First, given["first"])})
    print(json.dumps(build(config)["statistics"], indent=2))


if __name__ == "__main__":
    run_program(main)

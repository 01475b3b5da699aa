"""How far the confidences of an evaluation's answers are from the answers' true rates.

    python -m lab.calibration RUN...
    python -m lab.calibration --fit DATA --out signals.jsonl
    python -m lab.calibration --fit signals.jsonl

A run is a folder that `ras-agent eval --least-confidence 0` wrote; several are parts of one. The expected calibration
error is the mean distance of confidence and worth over equally wide bins, each counted by its answers (Guo et al. 2017,
arXiv:1706.04599).

--fit asks the sets that may be looked at, prints the weights of the offline answerer's confidence in an answer to an
open question (ras_agent/data/confidence.json), and how far those of the other kinds are off on each set. --out keeps
the signals, a line for each answer, which are fitted again without asking.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from lab import near_misses, untitled
from lab.ordinary.__main__ import SETS, mark
from lab.weights.reader.examples import ReaderExample
from ras_agent import Limits, Passage, PassageIndex
from ras_agent.app.sample import sample_passages
from ras_agent.config.settings import Settings
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.metrics import token_f1
from ras_agent.eval.metrics.confidences import calibration_error
from ras_agent.eval.run.folder import RunFolder
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.program import run_program
from ras_agent.text.overlap import holds
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.answerer import answer as offline
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE
from ras_agent.tools.offline.answerer.confidence import (
    OFFSET,
    Signals,
    confidence,
    likelihood,
)

_RIGHT = 0.5  # token F1 from which an answer counts as right
_BINS = 5
_DRAWS = 200  # of outcomes that follow confidences, for the error that few answers have anyhow
OF_ANOTHER = "of_another"
_SIGNALS = ("borne", "first", "likely", "chained")


class Told(NamedTuple):
    """Holds the signals of an answer, and whether it is right, 0 or 1."""

    signals: Signals
    right: float


Worth = Callable[[dict[str, Any]], float]
"""How right the outputs of an agent are, 0..1"""
Asked = Iterable[tuple[str, Worth]]


def told_of(passages: Iterable[Passage] | PassageIndex, asked: Asked) -> Iterator[Told]:
    """Yield the signals of the offline mode's answers to open questions over passages, everything said."""
    index = passages
    if not isinstance(index, PassageIndex):
        index = PassageIndex.in_memory(index)
    settings = Settings(least_confidence=0.0)
    agent = create_agent(
        "ras", index=index, retriever="bm25", llm="offline", settings=settings
    )
    known: dict[float, Signals] = {}

    def remembered(signals: Signals) -> float:
        sure = confidence(signals)
        known[sure] = signals
        return sure

    with patch.object(offline, "confidence", remembered):
        for question, worth in asked:
            known.clear()
            out = agent.invoke({"question": question}, context=Limits())
            signals = known.get(out["confidence"])
            if signals is not None:
                yield Told(signals, float(worth(out) >= _RIGHT))


def looked_at(data: Path) -> Iterator[tuple[str, str, list[Told]]]:
    """Yield the kind and the name of each set that may be looked at, and the signals of its answers."""
    plain = benchmark("jsonl")
    hotpot = list(plain.corpus(data / "hotpotqa" / "corpus.jsonl"))
    questions = plain.load(data / "hotpotqa" / "questions.jsonl")[:150]
    asked = [(one.question, _f1(one.answers)) for one in questions]
    yield "HotpotQA", "tuning half", list(told_of(hotpot, asked))
    lacking = _lacking_one(questions, hotpot)
    yield "HotpotQA", "one passage is lacking", list(told_of(lacking, asked[:70]))
    musique = list(plain.corpus(data / "musique" / "corpus_openie.jsonl"))
    file = data / "musique" / "questions.jsonl"
    whole = [(one.question, _f1(one.answers)) for one in plain.load(file)]
    yield "MuSiQue", "whole questions", list(told_of(musique, whole))
    yield "MuSiQue", "single questions", list(told_of(musique, _parts_of(file)))
    over_parts = list(_examples_of(file, musique))
    yield "MuSiQue", "near misses", _told_of_near_misses(over_parts, 22)
    held_out = [
        one for one in near_misses.held_out(data) if near_misses.may_be_looked_at(one)
    ]
    paragraphs = [
        Passage(str(number), text)
        for number, text in enumerate(dict.fromkeys(one.text for one in held_out))
    ]
    drawn = random.Random(0).sample(held_out, min(80, len(held_out)))
    read = [(one.question, _f1([one.answer])) for one in drawn]
    yield "SQuAD", "paragraphs", list(told_of(paragraphs, read))
    yield "SQuAD", "near misses", _told_of_near_misses(held_out, 30)
    yield "TimeQA", "times", list(told_of(*_of_times(data)))
    sample = plain.load(str(files("ras_agent.data") / "sample_questions.jsonl"))
    asked = [(one.question, _f1(one.answers)) for one in sample]
    yield "sample", "sample", list(told_of(sample_passages(), asked))
    for name, chosen in SETS.items():
        looked = [one for one in chosen.questions() if one["id"] in chosen.looked_at()]
        of_set = [(one["question"], partial(_marked, one)) for one in looked]
        with chosen.index() as index:
            yield "ordinary documents", f"{name} set", list(told_of(index, of_set))
    told: list[Told] = []
    for world in [*untitled.worlds("looked-at", 4), *untitled.worlds("looked-at", 5)]:
        texts = [Passage(str(place), text) for place, text in enumerate(world.texts)]
        told += told_of(texts, [(world.question, partial(_holds, world.answer))])
    yield "worlds", "looked at", told


def _lacking_one(
    questions: Sequence[Any], passages: Sequence[Passage]
) -> list[Passage]:
    """Return the passages without one that each question needs."""
    draw = random.Random(5)
    gone = {draw.choice(sorted(one.supporting)) for one in questions}
    return [passage for passage in passages if passage.title not in gone]


def _told_of_near_misses(examples: Sequence[ReaderExample], most: int) -> list[Told]:
    told: list[Told] = []
    for one in near_misses.questions(examples, 5, most):
        worth = _f1(one.answers) if one.answers else _nothing_is_right
        told += told_of([Passage("0", one.text)], [(one.question, worth)])
    return told


def _nothing_is_right(_: Mapping[str, Any]) -> float:
    return 0.0


def _holds(answer: str, out: Mapping[str, Any]) -> float:
    return float(answer.lower() in out["answer"].lower())


def _of_times(data: Path) -> tuple[list[Passage], list[tuple[str, Worth]]]:
    """Return paragraphs of 60 articles, and a question with a time over each."""
    with gzip.open(data / "timeqa_train" / "easy.jsonl.gz", "rt") as lines:
        records = [json.loads(line) for line in lines]
    of_article: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        of_article.setdefault(record["idx"].split("#")[0], []).append(record)
    draw = random.Random(3)
    passages: list[Passage] = []
    asked: list[tuple[str, Worth]] = []
    for name in draw.sample(sorted(of_article), 60):
        title = name.rpartition("/")[2].replace("_", " ")
        one = draw.choice(of_article[name])
        for number, paragraph in enumerate(one["paragraphs"]):
            passages.append(Passage(f"{name} {number}", paragraph["text"], title))
        asked.append((one["question"], _f1(list(one["targets"]))))
    return passages, asked


def _parts_of(file: Path) -> Iterator[tuple[str, Worth]]:
    """Yield the single questions of which MuSiQue's are made, and the right answers."""
    for question, answer in _singles(file):
        yield question, _f1([answer])


def _singles(file: Path) -> Iterator[tuple[str, str]]:
    """Yield single questions, earlier answers in their places, and their answers; no "X >> country"."""
    for record in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        parts = record["decomposition"]
        for part in (one for one in parts if ">>" not in one["question"]):
            asked = part["question"].rstrip(" ?")
            for number, earlier in enumerate(parts, 1):
                asked = asked.replace(f"#{number}", earlier["answer"])
            yield f"{asked[0].upper()}{asked[1:]}?", part["answer"]


def _examples_of(file: Path, passages: Sequence[Passage]) -> Iterator[ReaderExample]:
    """Yield single questions over the passage that holds the answer and most words of the question."""
    texts = [f"{passage.title}. {passage.text}" for passage in passages]
    roots = [stem_set(text) for text in texts]
    for question, answer in _singles(file):
        wanted = stem_set(question)
        best = -1
        for place, text in enumerate(texts):
            if not holds(text, answer):
                continue
            if best < 0 or len(wanted & roots[place]) > len(wanted & roots[best]):
                best = place
        start = texts[best].find(answer) if best >= 0 else -1
        if start >= 0:
            span = (start, start + len(answer))
            yield ReaderExample(question, texts[best], (span,), "musique")


def _f1(answers: Sequence[str]) -> Worth:
    return lambda out: token_f1(out["answer"], answers)


def _marked(question: dict[str, Any], out: dict[str, Any]) -> float:
    return float(mark(question, out["answer"], bool(out["abstained"])) == "right")


def fitted(sets: Iterable[Sequence[Told]]) -> dict[str, float]:
    """Return weights by logistic regression, with scikit-learn's default penalty on signals of equal spread.

    Answers whose proof is of something else are left out of it; how much less often they are right is the share that
    is left to them. A set counts by the square root of its answers.
    """
    from sklearn.linear_model import LogisticRegression

    rows: list[list[float]] = []
    right: list[float] = []
    shares: list[float] = []
    of_another: list[Told] = []
    for told in sets:
        for one in told:
            if one.signals.of_another:
                of_another.append(one)
                continue
            rows.append([getattr(one.signals, name) for name in _SIGNALS])
            right.append(one.right)
            shares.append(len(told) ** -0.5)
    signals = np.array(rows)
    centre = signals.mean(axis=0)
    spread = signals.std(axis=0)
    spread[spread == 0] = 1.0
    mean_share = fmean(shares)
    model = LogisticRegression(max_iter=1000)
    model.fit(
        (signals - centre) / spread,
        right,
        sample_weight=[share / mean_share for share in shares],
    )
    slopes = np.ravel(model.coef_) / spread
    offset = float(np.ravel(model.intercept_)[0] - slopes @ centre)
    weights = dict(zip(_SIGNALS, map(float, slopes), strict=True))
    weights |= {OFFSET: offset, OF_ANOTHER: 1.0}
    expected = sum(likelihood(one.signals, weights) for one in of_another)
    # as if one of two more had been right
    met = 1 + sum(one.right for one in of_another)
    weights[OF_ANOTHER] = met / (expected + 2)
    return weights


def fit(sets: Sequence[tuple[str, str, list[Told]]]) -> None:
    """Print the weights, and how far those that were fitted to the other kinds are off on each set."""
    weights = fitted([told for _, _, told in sets])
    shown = {name: round(weight, 3) for name, weight in weights.items()}
    print(json.dumps(shown, indent=1))
    every_sure: list[float] = []
    every_right: list[float] = []
    for kind, name, told in sets:
        others = fitted([of for other, _, of in sets if other != kind])
        sure = [likelihood(one.signals, others) for one in told]
        right = [one.right for one in told]
        print(f"{kind}, {name}: {_told_in_words(sure, right)}")
        every_sure += sure
        every_right += right
    print(f"all: {_told_in_words(every_sure, every_right)}")


def _told_in_words(sure: Sequence[float], right: Sequence[float]) -> str:
    error = calibration_error(sure, right, bins=_BINS)
    draw = random.Random(0)
    by_chance: list[float] = []
    for _ in range(_DRAWS):
        drawn = [float(draw.random() < one) for one in sure]
        by_chance.append(calibration_error(sure, drawn, bins=_BINS))
    outcomes = Counter(
        is_right
        for confidence, is_right in zip(sure, right, strict=True)
        if confidence >= LEAST_CONFIDENCE
    )
    return (
        f"{len(sure)} answers, {100 * fmean(right):.0f} % right, mean {100 * fmean(sure):.0f}, error "
        f"{100 * error:.1f} (by chance {100 * fmean(by_chance):.1f}), said {outcomes.total()}, wrong {outcomes[0.0]}"
    )


def kept(file: Path) -> list[tuple[str, str, list[Told]]]:
    """Return the sets whose signals a file keeps."""
    sets: dict[tuple[str, str], list[Told]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        told = Told(Signals(**record["signals"]), record["right"])
        sets.setdefault((record["kind"], record["set"]), []).append(told)
    return [(kind, name, told) for (kind, name), told in sets.items()]


def keep(sets: Iterable[tuple[str, str, list[Told]]], file: Path) -> None:
    """Write the signals of sets, each as soon as it was asked."""
    with file.open("w", encoding="utf-8") as lines:
        for kind, name, told in sets:
            for one in told:
                record = {"kind": kind, "set": name, "right": one.right}
                record["signals"] = asdict(one.signals)
                lines.write(json.dumps(record) + "\n")
            lines.flush()


def main() -> None:
    """Print the error against token F1 and against being right, in points; or the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument(
        "--fit",
        type=Path,
        metavar="DATA",
        help="the folder of data sets, or a file of signals",
    )
    parser.add_argument("--out", type=Path, help="a file that keeps the signals")
    arguments = parser.parse_args()
    if arguments.fit:
        file = arguments.fit
        if file.is_dir():
            file = arguments.out or Path("signals.jsonl")
            keep(looked_at(arguments.fit), file)
        fit(kept(file))
        return
    if not arguments.runs:
        parser.error("name the folders of runs, or --fit DATA")
    results = [
        one
        for run in arguments.runs
        for one in RunFolder(run).results()
        if not one.abstained
    ]
    rows = [
        (one.confidence, one.scores["f1"])
        for one in results
        if one.confidence is not None
    ]
    sure, f1 = [confidence for confidence, _ in rows], [worth for _, worth in rows]
    right = [float(worth >= _RIGHT) for worth in f1]
    print(
        f"{len(rows)} answers, mean confidence {100 * fmean(sure):.1f}, F1 {100 * fmean(f1):.1f}"
    )
    for bins in (5, 10):
        errors = (100 * calibration_error(sure, worths, bins) for worths in (f1, right))
        print(
            f"{bins} bins: error against F1 {next(errors):.1f}, against right {next(errors):.1f}"
        )


if __name__ == "__main__":
    run_program(main)

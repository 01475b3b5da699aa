"""How far the confidences of an evaluation's answers are from what the answers are worth.

    python -m lab.calibration RUN...
    python -m lab.calibration --fit DATA

A run is a folder that `ras-agent eval --least-confidence 0` wrote; several are parts of one. The expected calibration
error is the mean distance of confidence and worth over equally wide bins, each counted by its answers (Guo et al. 2017,
arXiv:1706.04599).

--fit prints the curves of the offline answerer's confidence in an answer to an open question, fitted to all sets that
may be looked at, and how far the curves of the other sets are off on each.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from lab.ordinary.__main__ import SETS, mark
from lab.weights.reader.train import ReaderTrainingConfig, training_examples
from ras_agent import Limits, Passage, PassageIndex
from ras_agent.app.sample import sample_passages
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.metrics import token_f1
from ras_agent.eval.run.folder import RunFolder
from ras_agent.graphs.resolve import create_agent
from ras_agent.program import run_program
from ras_agent.settings import Settings
from ras_agent.tools.offline.answerer import answer as offline

Curve = tuple[float, float, float]
CURVES = {
    offline.OF_CHAINS: "chains",
    offline.OF_WHOLES: "wholes",
    offline.OF_VERDICTS: "verdicts",
}
_RIGHT = 0.5  # token F1 from which an answer counts as right


def calibration_error(
    confidences: Sequence[float], worths: Sequence[float], bins: int
) -> float:
    """Return the expected calibration error, 0..1. confidences and worths: 0..1, one of each for an answer.

    >>> round(calibration_error([0.9, 0.9, 0.1], [1.0, 0.0, 0.1], bins=2), 3)
    0.267
    """
    rows = list(zip(confidences, worths, strict=True))
    groups = [
        [row for row in rows if min(int(row[0] * bins), bins - 1) == place]
        for place in range(bins)
    ]
    return sum(
        abs(sum(sure - worth for sure, worth in group)) for group in groups
    ) / len(rows)


class Told(NamedTuple):
    """What the answerer told of a question, all said. curve: blank where its confidence has none; right: 0..1."""

    confidence: float
    right: float
    curve: str = ""
    sign: float = 0.0
    borne: float = 0.0


Worth = Callable[[dict[str, Any]], float]
"""How right the outputs of an agent are, 0..1"""


def told_of(
    passages: Iterable[Passage] | PassageIndex, asked: Iterable[tuple[str, Worth]]
) -> Iterator[Told]:
    """Yield what the offline mode tells of questions over passages, everything said."""
    index = (
        passages
        if isinstance(passages, PassageIndex)
        else PassageIndex.in_memory(passages)
    )
    agent = create_agent(
        "ras",
        index=index,
        retriever="bm25",
        llm="offline",
        settings=Settings(least_confidence=0.0),
    )
    signs: dict[float, tuple[str, float, float]] = {}

    def confidence(sign: float, borne: float, curve: Curve) -> float:
        sure = offline_confidence(sign, borne, curve)
        signs[sure] = CURVES[curve], sign, borne
        return sure

    offline_confidence = offline.confidence
    with patch.object(offline, "confidence", confidence):
        for question, worth in asked:
            signs.clear()
            out = agent.invoke({"question": question}, context=Limits())
            if out["confidence"] is not None:
                curve, sign, borne = signs.get(out["confidence"], ("", 0.0, 0.0))
                yield Told(out["confidence"], worth(out), curve, sign, borne)


def looked_at(data: Path) -> Iterator[tuple[str, list[Told]]]:
    """Yield the name of each set that may be looked at, and what is told of it."""
    plain = benchmark("jsonl")
    for name, folder, corpus in (
        ("HotpotQA, tuning half", "hotpotqa", "corpus"),
        ("MuSiQue", "musique", "corpus_openie"),
    ):
        questions = plain.load(data / folder / "questions.jsonl")[:150]
        passages = list(plain.corpus(data / folder / f"{corpus}.jsonl"))
        yield (
            name,
            list(
                told_of(
                    passages, [(one.question, _f1(one.answers)) for one in questions]
                )
            ),
        )
    yield (
        "MuSiQue, its single questions",
        list(told_of(passages, _parts_of(data / "musique" / "questions.jsonl"))),
    )
    examples, held_out = training_examples(
        ReaderTrainingConfig(data=data, out=data / "reader.safetensors")
    )
    rng, single = random.Random(0), [one for one in held_out if one.spans]
    others = rng.sample([one for one in examples if one.source == "squad"], 2500)
    texts = dict.fromkeys(one.text for one in (*single, *others))
    passages = [Passage(str(number), text) for number, text in enumerate(texts)]
    read = [
        (one.question, _f1([one.text[a:b] for a, b in one.spans]))
        for one in rng.sample(single, 75)
    ]
    yield "SQuAD, held out", list(told_of(passages, read))
    verdicts = [
        told
        for one in held_out
        if one.source == "verdict"
        for told in told_of(
            [Passage("0", one.text)],
            [(one.question, partial(_same, _SAID[one.verdict]))],
        )
    ]
    yield "yes or no of SQuAD, each over its passage", verdicts
    sample = plain.load(str(files("ras_agent.data") / "sample_questions.jsonl"))
    yield (
        "the sample",
        list(
            told_of(
                sample_passages(), [(one.question, _f1(one.answers)) for one in sample]
            )
        ),
    )
    for name, chosen in SETS.items():
        looked = [one for one in chosen.questions() if one["id"] in chosen.looked_at()]
        with chosen.index() as index:
            told = list(
                told_of(
                    index, [(one["question"], partial(_marked, one)) for one in looked]
                )
            )
        yield f"ordinary documents, {name} set", told


def _parts_of(file: Path) -> Iterator[tuple[str, Worth]]:
    """Yield the single questions of which MuSiQue's are made, earlier answers in their places; no "X >> country"."""
    for record in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        parts = record["decomposition"]
        for part in (one for one in parts if ">>" not in one["question"]):
            asked = part["question"].rstrip(" ?")
            for number, earlier in enumerate(parts, 1):
                asked = asked.replace(f"#{number}", earlier["answer"])
            yield f"{asked[0].upper()}{asked[1:]}?", _f1([part["answer"]])


_SAID = {"true": "yes", "false": "no", "not said": ""}


def _same(answer: str, out: dict[str, Any]) -> float:
    return float(out["answer"] == answer)


def _f1(answers: Sequence[str]) -> Worth:
    return lambda out: token_f1(out["answer"], answers)


def _marked(question: dict[str, Any], out: dict[str, Any]) -> float:
    return float(mark(question, out["answer"], bool(out["abstained"])) == "right")


def fitted(told: Sequence[Told]) -> Curve:
    """Return the logistic curve that is nearest to how right the answers are, with scikit-learn's default penalty."""
    from sklearn.linear_model import LogisticRegression

    signs, right = (
        np.array([(one.sign, one.borne) for one in told]),
        np.array([one.right for one in told]),
    )
    centre, spread = signs.mean(axis=0), signs.std(axis=0)
    spread[spread == 0] = 1.0
    scaled, labels = (signs - centre) / spread, np.repeat([1, 0], len(told))
    model = LogisticRegression()
    model.fit(
        np.concatenate([scaled, scaled]),
        labels,
        sample_weight=np.concatenate([right, 1 - right]),
    )
    weights, intercept = (
        np.ravel(model.coef_) / spread,
        float(np.ravel(model.intercept_)[0]),
    )
    return intercept - float(weights @ centre), float(weights[0]), float(weights[1])


def fit(data: Path) -> None:
    """Print both curves, and how far the curves of the other sets are off on each set."""
    sets = dict(looked_at(data))

    def curves(names: Sequence[str]) -> dict[str, Curve]:
        every = [one for name in names for one in sets[name]]
        return {
            curve: fitted([one for one in every if one.curve == curve])
            for curve in CURVES.values()
        }

    for curve, numbers in curves(list(sets)).items():
        print(f"{curve}: " + ", ".join(f"{number:.2f}" for number in numbers))
    for name, told in sets.items():
        others = curves(
            [other for other in sets if other.split(",")[0] != name.split(",")[0]]
        )
        sure = [
            offline.confidence(one.sign, one.borne, others[one.curve])
            if one.curve
            else one.confidence
            for one in told
        ]
        error = calibration_error(sure, [one.right for one in told], bins=5)
        print(
            f"{name}: {len(told)} answers, {100 * fmean(one.right for one in told):.1f} right, error {100 * error:.1f}"
        )
        for least in (0.4, 0.5, 0.6, 0.65, 0.7):
            said = [
                one.right
                for one, confidence in zip(told, sure, strict=True)
                if confidence >= least
            ]
            wrong = fmean(one < _RIGHT for one in said) if said else math.nan
            print(
                f"    from {least} on: {100 * len(said) / len(told):.0f} % said, {100 * wrong:.0f} % of them wrong"
            )


def main() -> None:
    """Print the error against token F1 and against being right, in points; or the curves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--fit", type=Path, metavar="DATA")
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.fit)
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

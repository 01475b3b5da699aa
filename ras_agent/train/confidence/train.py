"""Train how far the offline answerer trusts its spans.

    python -m ras_agent.train.confidence.train --data DATA --out ras_agent/data/answer_confidence.safetensors --seed 0

DATA is a folder with hotpotqa_train, musique_train200 and reading (nq_oracle, squad_sample). The offline loop runs over
each set twice: over its passages, and over them without those that support the question, where every answer is a
guess. Rankers that have not seen a question rank its spans, and a logistic regression learns from the signs under which
the best one was found what token F1 to expect of it. About four minutes on one
idle core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Doubles
from ras_agent.eval.metrics import token_f1
from ras_agent.program import run_program
from ras_agent.protocols import Retriever
from ras_agent.records import Hit
from ras_agent.tools.offline.answerer.confidence import SIGNS, Confidence, signs_of
from ras_agent.tools.offline.answerer.rank import Ranker, likeliest, packaged_ranker
from ras_agent.tools.offline.answerer.weights import read_safetensors, write_safetensors
from ras_agent.tools.offline.reading import read
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.ranges import AMOUNT, COUNT, SEED, Range, check_ranges
from ras_agent.train.ranker.config import RankerConfig
from ras_agent.train.ranker.examples import Evidence, RankerExample, RankerQuestion, examples, find, questions_in
from ras_agent.train.ranker.fit import best_candidates, train_ranker

SETS = {"hotpot": 2.0, "musique": 0.6, "nq": 1.0, "squad": 1.0}
"""The sets of questions, and how much a question of each counts."""

_MADE_BY = "python -m ras_agent.train.confidence.train"
_LICENCES = {
    "hotpot": "HotpotQA training set, 100 questions (CC BY-SA 4.0)",
    "musique": "MuSiQue training set, 199 questions (CC BY 4.0)",
    "nq": "Natural Questions, lost-in-the-middle sample (CC BY-SA 3.0 text, MIT)",
    "squad": "SQuAD development set, XQuAD sample (CC BY-SA 4.0)",
}
_RANGES = {
    **dict.fromkeys(("questions", "members", "steps"), COUNT),
    **dict.fromkeys(("withheld", "ridge"), AMOUNT),
    "folds": Range(2),
    "seed": SEED,
}


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Settings that decide the result. Raises SettingsError for a number out of its range.

    questions: at most so many of each set. withheld: how much a question without its passages counts, beside one with
    them. ridge: how much a weight's square costs. folds, members, steps: of the rankers that have not seen a question.
    """

    data: Path
    out: Path
    seed: int = 0
    questions: int = 200
    withheld: float = 0.5
    ridge: float = 30.0
    folds: int = 4
    members: int = 2
    steps: int = 400

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)


@dataclass(frozen=True, slots=True)
class _Case:
    """A question's spans, whether its passages were withheld, and its weight in the training."""

    set: str
    example: RankerExample
    evidence: Evidence
    withheld: bool
    share: float


@dataclass(frozen=True, slots=True)
class Judged:
    """N answers: their signs (N, len(SIGNS)), token F1 (N,), weights (N,), folds (N,), and whether withheld (N,)."""

    signs: Doubles
    f1: Doubles
    share: Doubles
    fold: npt.NDArray[np.int64]
    withheld: npt.NDArray[np.bool_]


def train(config: ConfidenceConfig) -> dict[str, Any]:
    """Train the model of how likely an offline answer is right, and write it to `config.out`.

    Beside its weights lies a card, which says how they were trained and how they score; it is returned.
    """
    cases = list(_cases(config))
    judged = _judge(cases, config)
    held_out = np.zeros(len(judged.f1))
    for fold in range(config.folds):
        learning, testing = judged.fold != fold, judged.fold == fold
        confidence = Confidence(
            fit_confidence(judged.signs[learning], judged.f1[learning], judged.share[learning], config.ridge)
        )
        held_out[testing] = [confidence(signs) for signs in judged.signs[testing]]
        print(json.dumps({"fold": fold, "answers": int(testing.sum())}), flush=True)
    weights = fit_confidence(judged.signs, judged.f1, judged.share, config.ridge)
    odds = judged.signs[:, SIGNS.index("odds")]
    card = {
        "what": "the offline answerer's confidence: a logistic regression from the signs of a span to its token F1",
        "made_by": _MADE_BY,
        "settings": {name: value for name, value in asdict(config).items() if not isinstance(value, Path)},
        "signs": {name: round(float(weight), 3) for name, weight in zip(SIGNS, weights["weight"], strict=True)},
        "answers": len(judged.f1),
        "held_out_scores": {"confidence": _scores(held_out, judged), "share alone": _scores(odds, judged)},
        "data_licences": _LICENCES,
    }
    write_safetensors(config.out, weights, {"made_by": _MADE_BY})
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _cases(config: ConfidenceConfig) -> Iterator[_Case]:
    ranker = packaged_ranker()
    for name, share in SETS.items():
        corpus, questions = questions_in(name, config.data)
        questions = questions[: config.questions]
        searched = BM25Retriever.from_passages(corpus)
        for hidden in (False, True):
            for evidence in find_without_support(searched, questions) if hidden else find(searched, questions, "bm25"):
                for example in examples([evidence], ranker.rarity, [ranker.types]):
                    if example.analysis.kind == "open":
                        counts = share * (config.withheld if hidden else 1.0)
                        yield _Case(name, example, evidence, hidden, counts)
            print(json.dumps({"set": name, "withheld": hidden, "questions": len(questions)}), flush=True)


class _WithoutSupport:
    """Retriever that leaves out the passages in `hidden`."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self.hidden: frozenset[str] = frozenset()

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        hits = self._retriever.retrieve(query, k + len(self.hidden))
        return [hit for hit in hits if hit.passage.id not in self.hidden][:k]


def find_without_support(retriever: Retriever, questions: Sequence[RankerQuestion]) -> Iterator[Evidence]:
    """Run the offline loop for each question over all passages except those that support it."""
    without = _WithoutSupport(retriever)

    def each() -> Iterator[RankerQuestion]:
        for question in questions:
            without.hidden = question.supporting
            yield question

    return find(without, each(), "bm25")


def _judge(cases: Sequence[_Case], config: ConfidenceConfig) -> Judged:
    """Let a ranker that has not seen a question's group answer it, and judge the answer."""
    with as_file(files("ras_agent.data")) as folder:
        packaged = read_safetensors(Path(folder) / "answer_ranker.safetensors")
    fixed = {name: packaged[name] for name in ("rarity", "type.questions", "type.answers")}
    training = RankerConfig(
        config.data, config.out, seed=config.seed, members=config.members, steps=config.steps, folds=config.folds
    )
    rows: list[tuple[Doubles, float, float, int, bool]] = []
    for fold in range(config.folds):
        others = {
            (name, "bm25"): [
                case.example
                for case in cases
                if case.set == name and not case.withheld and case.example.group % config.folds != fold
            ]
            for name in SETS
        }
        ranker = Ranker({**fixed, **train_ranker(others, training)})
        for case in cases:
            if case.example.group % config.folds == fold:
                analysis, passages = case.example.analysis, read(case.evidence.passages)
                ranked = best_candidates(ranker, case.example)
                best = likeliest(analysis, ranked)
                signs = signs_of(analysis, best, ranked, passages, case.evidence.hops, ranker.rarity)
                rows.append((signs, token_f1(best.text, case.example.answers), case.share, fold, case.withheld))
    columns = map(np.array, zip(*rows, strict=True))
    return Judged(*columns)


def fit_confidence(signs: Doubles, f1: Doubles, share: Doubles, ridge: float) -> dict[str, npt.NDArray[np.float32]]:
    """Return the weights of `Confidence` that make `f1` (N,) likeliest for `signs` (N, S), by Newton's method.

    share: (N,), the weight of each answer. ridge: the cost of a weight's square, in answers.
    """
    mean, deviation = np.average(signs, axis=0, weights=share), signs.std(axis=0) + 1e-3
    inputs = np.column_stack([(signs - mean) / deviation, np.ones(len(signs))])  # (N, S + 1)
    cost = ridge * np.diag([1.0] * signs.shape[1] + [0.0])
    weight = np.zeros(signs.shape[1] + 1)
    for _ in range(30):
        expected = 1 / (1 + np.exp(-(inputs @ weight)))
        slope = inputs.T @ (share * (f1 - expected)) - cost @ weight
        curve = (inputs * (share * expected * (1 - expected))[:, None]).T @ inputs + cost
        weight = weight + np.linalg.solve(curve + 1e-9 * np.eye(len(weight)), slope)
    parts = {"mean": mean, "deviation": deviation, "weight": weight[:-1], "offset": weight[-1:]}
    return {name: part.astype(np.float32) for name, part in parts.items()}


def _scores(confidence: Doubles, judged: Judged) -> dict[str, float]:
    """Measure how well `confidence` (N,) ranks better answers above worse ones.

    The figures are in per cent: the area under the ROC curve, and the token F1 of the most confident answers.
    """
    order = np.argsort(-confidence, kind="stable")
    answered = order[~judged.withheld[order]]
    half, most = (answered[: round(part * len(answered))] for part in (0.5, 0.8))
    right = judged.f1 >= 0.5
    ranks = np.empty(len(order))
    ranks[order[::-1]] = np.arange(len(order))
    area = (ranks[right].mean() - (right.sum() - 1) / 2) / max(1, (~right).sum())
    figures = {"auroc": area, "f1 of all": judged.f1[answered].mean()}
    figures |= {"f1 at 80 % coverage": judged.f1[most].mean(), "f1 at 50 % coverage": judged.f1[half].mean()}
    return {name: round(100 * float(value), 1) for name, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the confidence of the offline answerer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    defaults = {field.name: field.default for field in fields(ConfidenceConfig)}
    for name, kind in (("seed", int), ("questions", int), ("withheld", float), ("ridge", float)):
        parser.add_argument(f"--{name}", type=kind, default=defaults[name])
    options = parser.parse_args()
    print(json.dumps(train(ConfidenceConfig(**vars(options))), indent=2))


if __name__ == "__main__":
    run_program(main)

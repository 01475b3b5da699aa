"""Train the offline answerer's ranker: word rarity, the type of an answer, and the weights of its features.

    python -m ras_agent.train.ranker.train --data DATA --out ras_agent/data/answer_ranker.safetensors --seed 0

DATA is a folder with hotpotqa_train, musique_train200, reading (nq_oracle, squad_sample, hotpot_2wiki_train_qa) and
2wikimultihopqa's corpus. The offline loop runs for every question, over several retrievers; the ranker learns to find
the answer among the spans of what the loop found. Indexes and graphs for it go to --work, where a later run finds them.

The type model learns from questions and answers alone, by telling the right answer from those of other questions
(InfoNCE, arXiv:1807.03748); the ranker's own training questions are typed by a model that has not seen them. About ten
minutes on one idle core.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ras_agent.program import run_program
from ras_agent.protocols import Retriever
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.coverage import Rarity
from ras_agent.tools.offline.answerer.weights import read_safetensors, write_safetensors
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.train.data import question_answers
from ras_agent.train.ranker.config import SETS, RankerConfig
from ras_agent.train.ranker.examples import (
    SINGLE_SHOT,
    Evidence,
    corpus_texts,
    examples,
    find,
    questions_in,
    rarity_table,
    searchable,
)
from ras_agent.train.ranker.fit import asks_for_a_span, cross_validated, train_ranker, train_types

_MADE_BY = "ras_agent.train.ranker.train"
_DATA = (
    "training questions of HotpotQA, MuSiQue, Natural Questions and SQuAD; "
    "question-answer pairs of HotpotQA and 2WikiMultihopQA; word counts of 2WikiMultihopQA's corpus"
)
_NOT_ON_THE_CARD = ("data", "out", "earlier", "work", "embedder")


def train(config: RankerConfig) -> dict[str, Any]:
    """Train the ranker, write its weights and their card, and return the card."""
    began = time.monotonic()
    evidence = {}
    for name, loop, answers in _evidence(config):
        evidence[name, loop] = answers
        print(f"{name} over {loop}: {len(answers)} questions, {time.monotonic() - began:.0f} s", flush=True)
    earlier = read_safetensors(config.earlier) if config.earlier else None
    table = earlier["rarity"] if earlier else rarity_table(corpus_texts(config.data))
    types, unseen = _types(evidence, config)
    if earlier:
        types = TypeModel(earlier["type.questions"], earlier["type.answers"])
    sets = {
        (name, loop): examples(answers, Rarity(table), unseen.get(name, [types]))
        for (name, loop), answers in evidence.items()
    }
    print(f"features: {time.monotonic() - began:.0f} s", flush=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        "rarity": table,
        "type.questions": types.questions,
        "type.answers": types.answers,
    }
    left_out = cross_validated(sets, arrays, config)
    arrays |= train_ranker(sets, config)
    card = {
        "what": "the offline answerer's ranker: word rarity, answer types, and the mean of small networks over a span",
        "made_by": _MADE_BY,
        "config": {name: value for name, value in asdict(config).items() if name not in _NOT_ON_THE_CARD},
        "shares": {", ".join(name): round(share, 3) for name, share in SETS.items()},
        "earlier": config.earlier is not None,
        "cross_validated_f1": left_out,
        "seconds": round(time.monotonic() - began),
        "data": _DATA,
    }
    write_safetensors(config.out, arrays, {"made_by": _MADE_BY})
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _evidence(config: RankerConfig) -> Iterator[tuple[str, str, list[Evidence]]]:
    """Yield what each loop finds for the questions of each set."""
    with tempfile.TemporaryDirectory() as passing:
        for name, loop in SETS:
            corpus, questions = questions_in(name, config.data)
            retriever: Retriever
            if loop in (SINGLE_SHOT, "bm25"):
                retriever = BM25Retriever.from_passages(corpus)
            else:
                retriever = retriever_over(
                    searchable((config.work or Path(passing)) / name, corpus, config.embedder), loop
                )
            yield name, loop, list(find(retriever, questions[: config.questions], loop))


def _types(
    evidence: dict[tuple[str, str], list[Evidence]], config: RankerConfig
) -> tuple[TypeModel, dict[str, list[TypeModel]]]:
    """Return a type model of all pairs; and for the sets whose own pairs it knows, two models that know half of them.

    The first of the two is for questions of even place, which it has not seen, the second for the others.
    """
    own_pairs = {
        name: [(case.question.question, min(case.question.answers, key=len)) for case in evidence[name, "bm25"]]
        for name in ("nq", "squad")
    }
    test_questions = {
        case.question.question for (name, _), answers in evidence.items() if name not in own_pairs for case in answers
    }
    others = [pair for pair in question_answers(config.data) if pair[0] not in test_questions]
    halves = [[pair for pairs in own_pairs.values() for pair in pairs[half::2]] for half in (1, 0)]

    def trained(pairs: list[tuple[str, str]]) -> TypeModel:
        return train_types([pair for pair in pairs if asks_for_a_span(*pair, config)], config)

    apart = [trained([*others, *half]) for half in halves]
    return trained([*others, *halves[0], *halves[1]]), dict.fromkeys(own_pairs, apart)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the ranker of the offline answerer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--earlier", type=Path, help="weights whose word rarity and type model are taken over")
    parser.add_argument("--work", type=Path, help="a folder that stores the indexes for a later run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = RankerConfig(options.data, options.out, options.earlier, options.work, options.seed)
    print(json.dumps(train(config), indent=2))


if __name__ == "__main__":
    run_program(main)

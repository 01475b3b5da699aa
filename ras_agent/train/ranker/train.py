"""Train the offline answerer's ranker: word rarity, the type of an answer, and the weights of its features.

    python -m ras_agent.train.ranker.train --data DATA --out ras_agent/data/answer_ranker.safetensors --seed 0

DATA is a folder with hotpotqa_train, musique_train200, reading (nq_oracle, squad_sample, hotpot_2wiki_train_qa) and
2wikimultihopqa's corpus. The offline loop runs for every question; the ranker learns to find the answer among the spans
of what it found. In a first round the loop plans without a ranker and searches with BM25. In the second it is the loop
as users have it, over several retrievers, and each question's links are named by a first ranker that has not seen it.
Indexes and graphs for it, a quarter of the time, go to --work, where a later run takes them up.

The type model learns from questions and answers alone, by telling the right answer from those of other questions
(InfoNCE, arXiv:1807.03748); for the ranker's own training questions it is one that has not seen them. About twenty
minutes on one idle core.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ras_agent.program import run_program
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.question_words import Rarity
from ras_agent.tools.offline.answerer.rank import Ranker
from ras_agent.tools.offline.answerer.weights import read_safetensors, write_safetensors
from ras_agent.train.data import question_answers, two_wiki_passages
from ras_agent.train.ranker.confidence import cross_validated
from ras_agent.train.ranker.config import AGAIN, SETS, Config, second_shares
from ras_agent.train.ranker.examples import Found, asked_in, find
from ras_agent.train.ranker.loops import found_over, searchable
from ras_agent.train.ranker.network import train_ranker
from ras_agent.train.ranker.spans import examples, rarity_table
from ras_agent.train.ranker.types import asks_for_a_span, train_types

__all__ = ["Config", "train"]

DATA = (
    "training questions of HotpotQA, MuSiQue, Natural Questions and SQuAD; "
    "question-answer pairs of HotpotQA and 2WikiMultihopQA; word counts of 2WikiMultihopQA's corpus"
)

PLACES = ("data", "out", "kept", "work")
"""What of `Config` says only where things lie."""


def train(config: Config) -> dict[str, Any]:
    """Write weights and card; returns the card."""
    began = time.monotonic()
    collected: dict[tuple[str, str], list[Found]] = {}
    texts = [f"{passage.title} {passage.text}" for passage in two_wiki_passages(config.data)]
    for name, loop in SETS:
        corpus, asked = asked_in(name, config.data)
        if not any(name == known for known, _ in collected):
            texts += [f"{passage.title} {passage.text}" for passage in corpus]
        collected[name, loop] = list(find(corpus, asked[: config.questions], loop))
        print(f"{name}: {len(collected[name, loop])} questions, {time.monotonic() - began:.0f} s", flush=True)
    kept = read_safetensors(config.kept) if config.kept else None
    table = kept["rarity"] if kept else rarity_table(texts)
    rarity = Rarity(table)

    held = {
        one.asked.question for (name, _), found in collected.items() if name not in ("nq", "squad") for one in found
    }
    pairs = [pair for pair in question_answers(config.data) if pair[0] not in held]
    own = {
        name: [(one.asked.question, min(one.asked.answers, key=len)) for one in collected[name, "ras"]]
        for name in ("nq", "squad")
    }
    usable = [pair for pair in pairs if asks_for_a_span(*pair, config)]
    halves = [[pair for name in ("nq", "squad") for pair in own[name][half::2]] for half in (1, 0)]
    apart = [train_types([*usable, *(p for p in half if asks_for_a_span(*p, config))], config) for half in halves]
    if kept:
        types = TypeModel(kept["type.questions"], kept["type.answers"])
    else:
        types = train_types([*usable, *(p for half in halves for p in half if asks_for_a_span(*p, config))], config)

    sets = {
        (name, loop): examples(found, rarity, apart if name in own else [types])
        for (name, loop), found in collected.items()
    }
    print(f"features: {time.monotonic() - began:.0f} s", flush=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        "rarity": table,
        "type.questions": types.questions,
        "type.answers": types.answers,
    }
    first = cross_validated(sets, arrays, config)
    print(f"first round: {first.figures}, {time.monotonic() - began:.0f} s", flush=True)
    for (name, retriever), found in _again(config, first.rankers).items():
        sets[name, retriever] = examples(found, rarity, [types])
    print(f"second round found: {time.monotonic() - began:.0f} s", flush=True)
    shares = second_shares(config)
    second = replace(config, share=tuple(shares.values()))
    chosen = {name: sets[name] for name in shares}
    left_out = cross_validated(chosen, arrays, second)
    arrays |= {**train_ranker(list(chosen.values()), second), "confidence": left_out.confidence}
    card = {
        "what": "the offline answerer's ranker: word rarity, answer types, and the mean of small networks over a span",
        "made_by": "ras_agent.train.ranker.train",
        "config": {name: value for name, value in asdict(config).items() if name not in PLACES},
        "kept": config.kept is not None,
        "first_round_f1": first.figures,
        "cross_validated_f1": left_out.figures,
        "seconds": round(time.monotonic() - began),
        "data": DATA,
    }
    write_safetensors(config.out, arrays, {"made_by": "ras_agent.train.ranker.train"})
    config.out.with_suffix(".json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _again(config: Config, rankers: Sequence[Ranker]) -> dict[tuple[str, str], list[Found]]:
    """What the loop finds in the second round, by set and retriever."""
    found = {}
    with tempfile.TemporaryDirectory() as passing:
        for name in AGAIN:
            corpus, asked = asked_in(name, config.data)
            index = searchable((config.work or Path(passing)) / name, corpus)
            for retriever in config.retrievers:
                found[name, retriever] = list(found_over(index, retriever, asked[: config.questions], rankers))
                print(f"{name} over {retriever}: {len(found[name, retriever])} questions", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the ranker of the offline answerer.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kept", type=Path, help="weights whose word rarity and type model are taken over")
    parser.add_argument("--work", type=Path, help="a folder that keeps the indexes for a later run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = Config(options.data, options.out, options.kept, options.work, options.seed)
    print(json.dumps(train(config), indent=2))


if __name__ == "__main__":
    run_program(main)

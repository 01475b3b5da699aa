"""Score a reader on what it has not learnt from: SQuAD's passages that were held out, and made statements.

    python -m lab.reader --data DATA --weights ras_agent/data/reader.safetensors --corpus DATA/hotpotqa/corpus.jsonl

The statements are questions of yes and no made of sentences of a corpus that the training does not read, each judged
over the passage that its sentence is in.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from ras_agent.eval.metrics import exact_match, token_f1
from ras_agent.program import run_program
from ras_agent.tools.offline.reader import Reader
from ras_agent.train.data import passages_in
from ras_agent.train.reader.examples import VERDICTS, ReaderExample, text_with_title
from ras_agent.train.reader.statements import sentence_verdicts
from ras_agent.train.reader.train import ReaderTrainingConfig, training_examples

_SURE = 0.7  # probability from which a verdict counts as said


def spans(reader: Reader, examples: list[ReaderExample]) -> dict[str, float]:
    """Return mean F1 and exact match in percent, each question read over its own text."""
    scores = []
    for example in examples:
        found = reader.read(example.question, [example.text])[0]
        answer = example.text[found[0].start : found[0].end] if found else ""
        golds = [example.text[start:end] for start, end in example.spans]
        scores.append((token_f1(answer, golds), exact_match(answer, golds)))
    f1, em = (round(100 * sum(part) / len(scores), 1) for part in zip(*scores, strict=True))
    return {"questions": len(scores), "f1": f1, "em": em}


def statements(reader: Reader, examples: list[ReaderExample]) -> dict[str, object]:
    """Return how many are judged, and how often the truth and the verdict meet, "truth: verdict"."""
    met: Counter[str] = Counter()
    said = 0
    for example in examples:
        verdict = reader.judge(example.question, [example.text])[0]
        best = max(range(3), key=lambda place: verdict[place])
        if verdict[best] >= _SURE and VERDICTS[best] != "not said":
            said += 1
            met[f"{example.verdict}: {VERDICTS[best]}"] += 1
    return {"statements": len(examples), "judged": said, **dict(sorted(met.items()))}


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--weights", "--corpus"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--statements", type=int, default=400)
    arguments = parser.parse_args()
    reader = Reader(arguments.weights)
    _, held_out = training_examples(ReaderTrainingConfig(data=arguments.data, out=arguments.weights))
    print(json.dumps(spans(reader, [one for one in held_out if one.spans])))
    judged = [one for one in held_out if one.verdict]
    print(json.dumps(statements(reader, judged)))
    rng = random.Random(0)
    texts = list(map(text_with_title, passages_in(arguments.corpus)))
    made = list(sentence_verdicts(rng.sample(texts, len(texts)), rng))[: arguments.statements]
    print(json.dumps(statements(reader, made)))


if __name__ == "__main__":
    run_program(main)

"""Score a reader on texts that it has not learnt from: SQuAD's passages that were held out, and made statements.

    python -m lab.reader --data DATA --weights ras_agent/data/reader.safetensors --corpus DATA/hotpotqa/corpus.jsonl

The statements are questions of yes and no made of sentences of a corpus that the training does not read, each judged
over the passage that its sentence is in: by the reader by itself, and by the offline answerer as it answers by default.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from lab.weights.reader.examples import VERDICTS, ReaderExample, text_with_title
from lab.weights.reader.statements import sentence_verdicts
from lab.weights.reader.train import ReaderTrainingConfig, training_examples
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics import exact_match, token_f1
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.program import run_program
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
from ras_agent.tools.offline.reader import Reader
from ras_agent.train.data import passages_in

_SURE = 0.7  # probability from which a verdict counts as said


def spans(reader: Reader, examples: list[ReaderExample]) -> dict[str, float]:
    """Return mean F1 and exact match in percent, each question read over its own text."""
    scores = []
    for example in examples:
        found = reader.read(example.question, [example.text])[0]
        answer = example.text[found[0].start : found[0].end] if found else ""
        golds = [example.text[start:end] for start, end in example.spans]
        scores.append((token_f1(answer, golds), exact_match(answer, golds)))
    f1, em = (
        round(100 * sum(part) / len(scores), 1) for part in zip(*scores, strict=True)
    )
    return {"questions": len(scores), "f1": f1, "em": em}


def statements(reader: Reader, examples: list[ReaderExample]) -> dict[str, object]:
    """Return how many are judged, and how often the truth and the verdict meet, "truth: verdict"."""
    found: list[str] = []
    for example in examples:
        verdict = reader.judge(example.question, [example.text])[0]
        best = max(range(3), key=lambda place: verdict[place])
        found.append(VERDICTS[best] if verdict[best] >= _SURE else "not said")
    return _met(examples, found)


def answered(reader: Reader, examples: list[ReaderExample]) -> dict[str, object]:
    """Return the same of the answerer's yes and no; an answer that is unsaid or of another kind is not judged."""
    answerer, named = OfflineAnswerer(reader), {"yes": "true", "no": "false"}
    texts = [
        Passage(str(number), example.text) for number, example in enumerate(examples)
    ]
    answers = (
        answerer.answer(one.question, QuestionGraph(), [text], [])
        for one, text in zip(examples, texts, strict=True)
    )
    return _met(examples, [named.get(answer.text, "not said") for answer in answers])


def _met(examples: list[ReaderExample], found: list[str]) -> dict[str, object]:
    pairs = zip(examples, found, strict=True)
    met = Counter(
        f"{example.verdict}: {verdict}"
        for example, verdict in pairs
        if verdict != "not said"
    )
    return {
        "statements": len(examples),
        "judged": met.total(),
        **dict(sorted(met.items())),
    }


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("--data", "--weights", "--corpus"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--statements", type=int, default=400)
    arguments = parser.parse_args()
    reader = Reader(arguments.weights)
    _, held_out = training_examples(
        ReaderTrainingConfig(data=arguments.data, out=arguments.weights)
    )
    print(json.dumps(spans(reader, [one for one in held_out if one.spans])))
    judged = [one for one in held_out if one.verdict]
    print(
        "held out",
        json.dumps(statements(reader, judged)),
        json.dumps(answered(reader, judged)),
    )
    rng = random.Random(0)
    texts = list(map(text_with_title, passages_in(arguments.corpus)))
    made = list(sentence_verdicts(rng.sample(texts, len(texts)), rng))[
        : arguments.statements
    ]
    print(
        "made", json.dumps(statements(reader, made)), json.dumps(answered(reader, made))
    )


if __name__ == "__main__":
    run_program(main)

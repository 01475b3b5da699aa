"""Near misses: questions of which a paragraph answers a neighbour, over SQuAD's paragraphs that the reader never saw.

    python -m lab.near_misses --data DATA --seed 1
    python -m lab.near_misses --data DATA --seed 1 --part scored

Each question of a paragraph is asked as it is, and with one thing changed so that no text answers it: a figure, a
name, a relation ("founded" for "sold"), or a negation; and over another paragraph in place of its own, as an
unanswerable one.
Half of the paragraphs may be looked at. The other half is scored, with other relations, which were written before
anybody had seen the answers about them.
DATA is the folder of data sets (reading/squad1_*.jsonl). --out keeps a line for each question.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.weights.reader.examples import ReaderExample, squad
from lab.weights.reader.train import ReaderTrainingConfig
from ras_agent import Limits, Passage, PassageIndex
from ras_agent.config.settings import Settings
from ras_agent.eval.metrics import token_f1
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.program import run_program
from ras_agent.text.names import name_spans
from ras_agent.text.overlap import holds
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE

KINDS = ("true", "figure", "name", "relation", "negation", "unanswerable")
_RIGHT = 0.5  # token F1 from which an answer counts as right
_FIGURE = re.compile(r"\b\d[\d,]*\b")
_RELATIONS = {
    "founded": "sold",
    "wrote": "translated",
    "written": "translated",
    "built": "demolished",
    "won": "lost",
    "born": "buried",
    "died": "married",
    "discovered": "denied",
    "invented": "copied",
    "published": "banned",
    "opened": "closed",
    "began": "stopped",
    "started": "stopped",
    "increased": "shrank",
    "created": "destroyed",
    "designed": "criticised",
    "elected": "dismissed",
    "defeated": "supported",
    "ruled": "visited",
    "arrived": "left",
    "first": "last",
    "largest": "smallest",
    "highest": "lowest",
    "most": "least",
    "before": "after",
}
_SCORED_RELATIONS = {
    "founded": "visited",
    "wrote": "recited",
    "written": "censored",
    "built": "measured",
    "won": "postponed",
    "born": "arrested",
    "died": "preached",
    "discovered": "painted",
    "invented": "patented",
    "published": "plagiarised",
    "opened": "guarded",
    "began": "resumed",
    "started": "resumed",
    "increased": "doubled",
    "created": "smuggled",
    "designed": "owned",
    "elected": "poisoned",
    "defeated": "married",
    "ruled": "cursed",
    "directed": "translated",
    "moved": "wrote",
    "received": "sold",
    "released": "rejected",
    "named": "destroyed",
    "capital": "cathedral",
    "president": "architect",
    "population": "harvest",
    "author": "owner",
    "leader": "brother",
    "cause": "victim",
    "language": "currency",
    "longest": "steepest",
    "oldest": "cheapest",
    "last": "second",
    "largest": "quietest",
    "first": "fourth",
    "used": "banned",
    "made": "eaten",
    "led": "mocked",
    "held": "cancelled",
    "lost": "found",
    "killed": "rescued",
    "took": "sent",
    "known": "punished",
    "located": "built",
    "called": "painted",
}
_AUXILIARY = re.compile(
    r"\b(?:did|does|do|was|were|is|are|has|had|can|could|will|would)\b(?! not)"
)


@dataclass(frozen=True)
class Asked:
    """A question over a paragraph. answers: () where the paragraph does not answer it."""

    kind: str
    question: str
    text: str
    answers: tuple[str, ...] = ()


def held_out(data: Path) -> list[ReaderExample]:
    """Return the answerable questions of the paragraphs that the reader's training left out."""
    share = ReaderTrainingConfig(data=data, out=data / "none.safetensors").held_out
    kept: list[ReaderExample] = []
    for example in squad(data):
        is_held_out = random.Random(example.text).random() < share
        if is_held_out and example.spans:
            kept.append(example)
    return kept


def may_be_looked_at(example: ReaderExample) -> bool:
    """Return whether a question's paragraph is of the half that may be looked at."""
    return random.Random(f"half{example.text}").random() < 1 / 2


def questions(
    examples: Sequence[ReaderExample],
    seed: int,
    most: int,
    relations: Mapping[str, str] = _RELATIONS,
) -> Iterator[Asked]:
    """Yield `most` questions of each kind. relations: the replacement of each word."""
    draw = random.Random(seed)
    drawn = draw.sample(examples, len(examples))
    names = sorted({name for one in drawn for name in _names(one.question)})
    counts: Counter[str] = Counter()
    for example in drawn:
        asked = {
            "true": example.question,
            "figure": _with_other_figure(example, draw),
            "name": _with_other_name(example, names, draw),
            "relation": _with_other_relation(example, relations),
            "negation": _AUXILIARY.sub(r"\g<0> not", example.question, count=1),
            "unanswerable": example.question,
        }
        for kind, question in asked.items():
            is_changed = question != example.question
            if (
                counts[kind] >= most
                or not question
                or not (is_changed or kind in ("true", "unanswerable"))
            ):
                continue
            counts[kind] += 1
            if kind == "unanswerable":
                yield Asked(kind, question, _neighbour(example, drawn))
            elif kind == "true":
                yield Asked(kind, question, example.text, (example.answer,))
            else:
                yield Asked(kind, question, example.text)


def _names(question: str) -> list[str]:
    """Return the names of a question; its first word does not count."""
    _, _, rest = question.partition(" ")
    return [rest[start:end] for start, end in name_spans(rest)]


def _with_other_figure(example: ReaderExample, draw: random.Random) -> str:
    figure = _FIGURE.search(example.question)
    if figure is None or not holds(example.text, figure.group()):
        return ""
    changed = str(int(figure.group().replace(",", "")) + draw.randint(1, 9))
    if holds(example.text, changed):
        return ""
    return (
        example.question[: figure.start()] + changed + example.question[figure.end() :]
    )


def _with_other_name(
    example: ReaderExample, names: Sequence[str], draw: random.Random
) -> str:
    for name in _names(example.question):
        other = draw.choice(names)
        if holds(example.text, name) and stem_set(other).isdisjoint(
            stem_set(example.text)
        ):
            return example.question.replace(name, other)
    return ""


def _with_other_relation(example: ReaderExample, relations: Mapping[str, str]) -> str:
    for word, other in relations.items():
        if re.search(rf"\b{word}\b", example.question) and not re.search(
            rf"\b{other}\b", example.text
        ):
            return re.sub(rf"\b{word}\b", other, example.question, count=1)
    return ""


def _neighbour(example: ReaderExample, others: Sequence[ReaderExample]) -> str:
    """Return the other paragraph with most of a question's words that does not hold its answer."""
    wanted = stem_set(example.question)
    best = ""
    most = -1
    for other in others:
        shared = len(wanted & stem_set(other.text))
        if (
            other.text != example.text
            and shared > most
            and not holds(other.text, example.answer)
        ):
            best = other.text
            most = shared
    return best


def asked_of(one: Asked) -> dict[str, Any]:
    """Return the output of the offline mode, which says all."""
    index = PassageIndex.in_memory([Passage("0", one.text)])
    settings = Settings(least_confidence=0.0)
    agent = create_agent(
        "ras", index=index, retriever="bm25", llm="offline", settings=settings
    )
    return dict(agent.invoke({"question": one.question}, context=Limits()))


def is_said(out: dict[str, Any]) -> bool:
    """Return whether an answer is sure enough to be said by default."""
    confidence = out["confidence"]
    if out["abstained"]:
        return False
    return confidence is None or confidence >= LEAST_CONFIDENCE


def main() -> None:
    """Ask and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder of data sets"
    )
    parser.add_argument("--part", choices=("looked-at", "scored"), default="looked-at")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    parser.add_argument(
        "--most", type=int, default=40, help="questions of each kind (40)"
    )
    parser.add_argument(
        "--out", type=Path, help="a file of JSON Lines, one for each question"
    )
    options = parser.parse_args()
    said: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    right = 0
    lines: list[str] = []
    is_scored = options.part == "scored"
    relations = _SCORED_RELATIONS if is_scored else _RELATIONS
    examples = [
        one for one in held_out(options.data) if may_be_looked_at(one) is not is_scored
    ]
    for one in questions(examples, options.seed, options.most, relations):
        out = asked_of(one)
        asked[one.kind] += 1
        said[one.kind] += is_said(out)
        worth = token_f1(out["answer"], one.answers) if one.answers else 0.0
        right += is_said(out) and worth >= _RIGHT
        about = {
            "kind": one.kind,
            "question": one.question,
            "text": one.text,
            "worth": worth,
        }
        lines.append(json.dumps(about | {"trace": out}, default=str))
    for kind in KINDS:
        print(f"{kind}: {said[kind]} of {asked[kind]} said")
    print(f"true: {right} right")
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)

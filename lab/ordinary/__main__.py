"""Score agents on ordinary documents that this repository invented: 60 questions over 20, a second set 100 over 24.

    python -m lab.ordinary                                  # the third that may be looked at, question by question
    python -m lab.ordinary --part scored                    # the two thirds that are scored: only counts
    python -m lab.ordinary --set second                     # the half of the second set that may be looked at
    python -m lab.ordinary --set second --part scored       # its other half: only counts

Every answer is right, wrong or left unsaid. A question that the documents do not answer is right if it is left unsaid.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ras_agent import Limits, PassageIndex
from ras_agent.eval.metrics import normalise_answer, token_f1
from ras_agent.eval.metrics.answer_sets import split_answers
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.program import run_program
from ras_agent.tools.index.ingest import ingest

KINDS = ("one", "two", "names", "yes or no", "passage", "not told")
_SEED = 24
_MORE_WORDS = 4  # that an answer may have next to an accepted one
_LIKE = 0.5  # token F1 from which two names are one: "Luis" of "the brothers Luis and Mateo Ferrer"
_LISTED = 0.8  # precision and recall of a list that is right

Mark = Literal["right", "unsaid", "wrong"]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Documents and their questions.

    folder: has documents/ and questions.jsonl, whose keys lab/ordinary.md explains.
    share: of each kind, that may be looked at.
    """

    folder: Path
    share: float

    def questions(self) -> list[dict[str, Any]]:
        """Return all questions."""
        with (self.folder / "questions.jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @contextmanager
    def index(self) -> Iterator[PassageIndex]:
        """Open an index of the documents, which is gone afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            ingest([self.folder / "documents"], Path(folder) / "index")
            yield PassageIndex.open(Path(folder) / "index")

    def looked_at(self) -> frozenset[str]:
        """Return the ids of the questions that may be looked at: of each kind the share, drawn with a seed."""
        rng = random.Random(_SEED)
        groups = [
            [one["id"] for one in self.questions() if one["kind"] == kind]
            for kind in KINDS
        ]
        return frozenset(
            name
            for group in groups
            for name in rng.sample(group, round(len(group) * self.share))
        )


_HERE = Path(__file__).parent
SETS = {
    "first": QuestionSet(_HERE, 1 / 3),
    "second": QuestionSet(_HERE / "second", 1 / 2),
}


def mark(question: Mapping[str, Any], answer: str, abstained: bool) -> Mark:
    """Return whether an answer is right.

    >>> told = {"kind": "one", "answers": ["4 May 2026", "4 May"]}
    >>> mark(told, "on 4 May 2026", False), mark(told, "12 March 2026", False), mark(told, "", True)
    ('right', 'wrong', 'unsaid')
    """
    kind, accepted = question["kind"], question["answers"]
    if kind == "not told":
        return "right" if abstained else "wrong"
    if abstained:
        return "unsaid"
    said = f" {normalise_answer(answer)} "
    held = sum(f" {normalise_answer(one)} " in said for one in accepted)
    if kind == "yes or no":
        good = said.split()[:1] == accepted
    elif kind == "names":
        good = min(precision_and_recall(accepted, answer)) >= _LISTED
    elif kind == "passage":
        good = held >= question.get("least", 1)
    else:
        words = len(said.split())
        short = [one for one in accepted if f" {normalise_answer(one)} " in said]
        good = any(
            words <= len(normalise_answer(one).split()) + _MORE_WORDS for one in short
        )
    return "right" if good else "wrong"


def precision_and_recall(accepted: Sequence[str], answer: str) -> tuple[float, float]:
    """Return the share of the listed names that are accepted, and of the accepted names that are listed.

    >>> precision_and_recall(["Ann Ray", "Bo Lind"], "Ann Ray and Cy Falk")
    (0.5, 0.5)
    """
    listed = split_answers(answer.replace(" and ", ", "))
    right = [
        one
        for one in listed
        if any(token_f1(one, [name]) >= _LIKE for name in accepted)
    ]
    found = [
        name
        for name in accepted
        if any(token_f1(one, [name]) >= _LIKE for one in listed)
    ]
    return len(right) / max(1, len(listed)), len(found) / len(accepted)


def main() -> None:
    """Print a table for each agent, and for the part that may be looked at each question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--set",
        choices=tuple(SETS),
        default="first",
        dest="name",
        help="which documents and questions",
    )
    parser.add_argument("--part", choices=("looked", "scored"), default="looked")
    parser.add_argument(
        "--llm", nargs="+", default=["offline"], help="models of all roles"
    )
    parser.add_argument("--loop", nargs="+", default=["ras", "single-shot"])
    arguments = parser.parse_args()
    chosen = SETS[arguments.name]
    looked = chosen.looked_at()
    asked = [
        one
        for one in chosen.questions()
        if (one["id"] in looked) == (arguments.part == "looked")
    ]
    with chosen.index() as index:
        for llm in arguments.llm:
            for loop in arguments.loop:
                _score(
                    f"{loop}, {llm}",
                    create_agent(loop, index=index, llm=llm),
                    asked,
                    arguments.part == "looked",
                )


def _score(
    name: str, agent: Any, asked: Sequence[Mapping[str, Any]], shown: bool
) -> None:
    marks: Counter[tuple[str, Mark]] = Counter()
    listed: list[tuple[float, float]] = []
    print(f"\n{name}")
    for one in asked:
        out = agent.invoke({"question": one["question"]}, context=Limits())
        answer, abstained = out["answer"], bool(out["abstained"])
        got = mark(one, answer, abstained)
        marks[one["kind"], got] += 1
        if one["kind"] == "names":
            listed.append(
                (math.nan, 0.0)
                if abstained
                else precision_and_recall(one["answers"], answer)
            )
        if shown:
            print(
                f"  {got:6} {one['id']:18} {one['question']}\n{'':28}{answer!r} ({out.get('confidence')})"
            )
    print(f"  {'kind':12} right unsaid wrong")
    for kind in (*KINDS, "all"):
        row = [
            sum(
                n
                for (of, got), n in marks.items()
                if got == each and kind in (of, "all")
            )
            for each in get_args(Mark)
        ]
        print(f"  {kind:12} {row[0]:5} {row[1]:6} {row[2]:5}")
    said = [precision for precision, _ in listed if not math.isnan(precision)]
    recall = sum(recall for _, recall in listed) / len(listed)
    print(
        f"  names listed: precision {sum(said) / max(1, len(said)):.2f}, recall {recall:.2f}"
    )


if __name__ == "__main__":
    run_program(main)

"""Measures whether the entities that a question is linked to lead to its gold passages.

    python -m lab.linking questions.jsonl --index my.index --limit 150

Reported are the share of questions with a linked entity that a gold passage names (`any`), the share with one for every
gold passage (`all`), the mean number of linked entities per question, and the share of links that lead to a gold
passage (`precision`). Over a graph without vectors, or with `--letters`, names are linked by their letters alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ras_agent.eval.formats import load_questions
from ras_agent.eval.question import Question
from ras_agent.program import run_program
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker


@dataclass(frozen=True, slots=True)
class LinkingScores:
    """Holds shares of questions (`any`, `all`), links per question (`linked`), and a share of links (`precision`)."""

    questions: int
    any: float
    all: float
    linked: float
    precision: float


def measure(
    linker: EntityLinker, passages: PassageIndex, questions: Iterable[Question]
) -> tuple[LinkingScores, list[Question]]:
    """Return how well `linker` does, and the questions without a link to a gold passage.

    Questions whose gold passages are not all in the graph are left out.
    """
    graph = linker.graph
    by_title = {passage.title: passage.id for passage in passages.passages}
    counted, every, links, right = 0, 0, 0, 0
    missed = []
    for question in questions:
        ids = [by_title.get(name, "") if question.by_title else name for name in dict.fromkeys(question.supporting)]
        gold = [number for name in ids if (number := graph.document_id(name)) is not None]
        if not gold or len(gold) < len(ids):
            continue
        named = [graph.mentions.row(link.entity) for link in linker.link(question.question)]
        counted, links = counted + 1, links + len(named)
        right += sum(bool(np.isin(documents, gold).any()) for documents in named)
        reached = {document for documents in named for document in documents.tolist()}
        every += reached.issuperset(gold)
        if reached.isdisjoint(gold):
            missed.append(question)
    count = max(counted, 1)
    shares = (1 - len(missed) / count) * bool(counted), every / count, links / count, right / max(links, 1)
    return LinkingScores(counted, *(round(share, 4) for share in shares)), missed


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, help="JSON Lines of id, question, supporting_ids or supporting_titles")
    parser.add_argument("--index", type=Path, required=True, help="an index with a graph")
    parser.add_argument("--limit", type=int, help="the first questions alone")
    parser.add_argument("--letters", action="store_true", help="link by letters alone, without vectors")
    parser.add_argument("--missed", action="store_true", help="also print the questions without a link to gold")
    arguments = parser.parse_args(argv)
    graph = KGIndex.open(arguments.index)
    linker = EntityLinker(graph, None if arguments.letters else graph.embedder)
    questions = load_questions(arguments.questions)[: arguments.limit]
    found, missed = measure(linker, PassageIndex.open(arguments.index), questions)
    print(json.dumps(asdict(found)))
    for question in missed if arguments.missed else ():
        print(json.dumps({"id": question.id, "question": question.question}))


if __name__ == "__main__":
    run_program(main)

"""Writes a set on which the GFM network is trained: a knowledge graph, with questions and their supporting passages.

`ras-agent kg examples` takes the graph of an index, made with any extractor and embedder, and a question file of any
benchmark that names supporting passages. A set is a folder as described in ras_agent.train.gfm.sets. Pseudo questions
are made from the passages' sentences (ras_agent.train.pseudo_questions) and added.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ras_agent.config.address import as_argument
from ras_agent.contracts.errors import IndexMismatch, IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.disk import SavedGraph, write_graph
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.train.gfm.sets import GRAPH, GFMQuestion, write_linked
from ras_agent.train.pseudo_questions import clozes

_PER_PASSAGE = 2
_TWO_HOP = 0.8


@dataclass(frozen=True, slots=True)
class SetReport:
    """Reports on a training set that was written."""

    graph: KGIndex
    labelled: int
    """the number of labelled questions"""
    pseudo: int
    """the number of pseudo questions"""
    skipped: tuple[str, ...] = ()
    """a line for each question that was left out"""


def write_set_of(
    index: PassageIndex,
    questions: Sequence[Question] | None,
    folder: Path,
    seed: int = 0,
    pseudo: int | None = 0,
) -> SetReport:
    """Write a training set into `folder`: the graph of `index`, and questions.

    Supporting passages are named by the id or the title of passages or documents; all passages of a named document
    support the question. Questions are left out if the graph has none of their supporting passages.

    Args:
        index: An index with a knowledge graph that has vectors.
        questions: Labelled questions. Without these and pseudo questions, the set is only for completing facts.
        folder: The folder to write.
        seed: The seed by which pseudo questions are drawn.
        pseudo: The largest number of pseudo questions; None for all.

    Raises:
        IndexMismatch: If the index has no graph, or the graph no vectors.
        IngestError: If no question is left.
    """
    linked_graph = LinkedGraph.of(index)
    kg = linked_graph.graph
    if kg.manifest.embedder is None:
        raise IndexMismatch(
            f"the knowledge graph of {index} has no vectors: build it with an embedder, "
            f"`ras-agent kg build {as_argument(index)} --embedder minilm`"
        )
    documents = set(kg.documents)
    labelled, skipped = labelled_questions(questions or (), index, documents)
    if pseudo != 0:
        passages = [passage for passage in index.passages if passage.id in documents]
    else:
        passages = []
    made = pseudo_questions(passages, seed, pseudo)
    if questions is not None and not labelled and not made:
        raise IngestError(
            f"no question is left to train on: {skipped[0] if skipped else 'the file holds none'}"
        )
    kg = KGIndex(kg.arrays, kg.manifest, linked_graph.embedder, kg.database)
    write_graph_and_questions(folder, kg, labelled, made)
    return SetReport(kg, len(labelled), len(made), tuple(skipped))


def labelled_questions(
    questions: Sequence[Question], index: PassageIndex, documents: set[str]
) -> tuple[list[GFMQuestion], list[str]]:
    """Return the questions that are supported by some of `documents` (ids), and a reason for each question left
    out.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for passage in index.passages:
        if passage.id in documents:
            for name in {passage.id, passage.document_id, passage.title} - {""}:
                names[name].append(passage.id)
    labelled = []
    skipped = []
    for question in questions:
        ids: list[str] = []
        for name in question.supporting:
            ids += [name] if name in documents else names[name]
        if ids:
            graph_question = GFMQuestion(
                question=question.question,
                supporting=tuple(dict.fromkeys(ids)),
                start=question.metadata.get("start_nodes", {}),
            )
            labelled.append(graph_question)
        elif question.supporting:
            named = ", ".join(question.supporting[:3])
            skipped.append(
                f"question {question.id}: none of {named} in the graph supports it"
            )
        else:
            skipped.append(
                f"question {question.id}: no passage in the graph supports it"
            )
    return labelled, skipped


def pseudo_questions(
    passages: Sequence[Passage], seed: int, limit: int | None
) -> list[GFMQuestion]:
    """Return questions made from the passages' sentences, a random sample of at most `limit`, or all if it is None."""
    questions = []
    for cloze in clozes(passages, _PER_PASSAGE, _TWO_HOP, random.Random(seed)):
        ids = [cloze.passage.id]
        if cloze.other is not None:
            ids.append(cloze.other.passage.id)
        questions.append(GFMQuestion(cloze.question, tuple(ids), "pseudo"))
    if limit is None or len(questions) <= limit:
        return questions
    return random.Random(seed).sample(questions, limit)


def write_graph_and_questions(
    folder: Path,
    kg: KGIndex,
    labelled: Sequence[GFMQuestion],
    pseudo: Sequence[GFMQuestion],
) -> None:
    """Write a graph and questions, which are linked to it, as a training set into `folder`."""
    write_graph(folder / GRAPH, SavedGraph(kg.arrays, kg.manifest))
    write_linked(folder, kg, [*labelled, *pseudo])


def report_lines(report: SetReport, folder: Path) -> tuple[str, ...]:
    """Return lines for the user: one about the set, followed by one for each question that was left out."""
    facts = f"{report.graph.manifest.facts:,} facts"
    line = f"{folder} {report.labelled} questions · {report.pseudo} pseudo questions · {facts}"
    return line, *(f"left out  {reason}" for reason in report.skipped)

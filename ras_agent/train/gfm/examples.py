"""Write the sets that the GFM network is trained on: knowledge graphs, with questions and what supports them.

    python -m ras_agent.train.gfm.examples --index my.index --questions questions.jsonl --out SETS/mine
    python -m ras_agent.train.gfm.examples --data DATA --out SETS

The first takes the graph of an index, whichever extractor and embedder made it, and a question file of any benchmark
that names what supports its questions (`ras-agent kg examples` is the same). The second makes the sets of the network
that ships: DATA is a folder with hotpotqa_train, musique_train200 and 2wikimultihopqa's corpus; the offline extractor
reads the facts, and the packaged MiniLM makes the vectors. Each set becomes a folder as ras_agent.train.gfm.sets
describes it. Pseudo questions are made from the passages' sentences (ras_agent.train.pseudo_questions) and added;
2WikiMultihopQA's corpus comes without questions and has these alone.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ras_agent.errors import IndexMismatch, IngestError, SettingsError, UnknownName
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.disk import SavedGraph, write_graph
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import PassageFacts, facts_in
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.train.data import training_set, two_wiki_passages
from ras_agent.train.gfm.sets import GRAPH, GFMQuestion, write_linked
from ras_agent.train.pseudo_questions import supported_questions

_PER_PASSAGE, _TWO_HOP = 2, 0.8


def _labelled_set(name: str, data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return a training set's passages and its questions with the passages that support them."""
    source = training_set(name, data)
    questions = [
        GFMQuestion(question.question, tuple(passage.id for passage in source.gold(question)))
        for question in source.questions
    ]
    return list(source.passages), questions


SETS: dict[str, Callable[[Path], tuple[list[Passage], list[GFMQuestion]]]] = {
    "hotpotqa": partial(_labelled_set, "hotpotqa"),
    "musique": partial(_labelled_set, "musique"),
    "2wiki": lambda data: (two_wiki_passages(data), []),
}


def facts_of(passages: Iterable[Passage]) -> Iterator[PassageFacts]:
    """Yield each passage's facts, as the offline extractor reads them."""
    extractor = offline_extractor()
    for passage in passages:
        yield facts_in(passage, extractor.extract([passage]).triples)


def write_set(
    folder: Path, passages: Sequence[Passage], questions: Sequence[GFMQuestion], seed: int = 0, limit: int | None = None
) -> KGIndex:
    """Write a set's graph and questions, with at most `limit` pseudo questions, by default all."""
    kg = KGIndex.in_memory(facts_of(passages), embedder="minilm", extractor="offline")
    _write(folder, kg, questions, _pseudo_questions(passages, seed, limit))
    return kg


@dataclass(frozen=True, slots=True)
class SetReport:
    """Report on a set: its graph, its numbers of labelled and pseudo questions, and the questions left out."""

    graph: KGIndex
    labelled: int
    pseudo: int
    skipped: tuple[str, ...] = ()


def write_set_of(
    index: PassageIndex, questions: Sequence[Question] | None, folder: Path, seed: int = 0, pseudo: int | None = 0
) -> SetReport:
    """Write a set of the graph of `index` and of `questions`, with at most `pseudo` pseudo questions; None for all.

    Without `questions`, and without pseudo questions, the set is a graph alone, whose facts are completed.

    What supports a question is named by the id or the title of passages or of documents; all pieces of a document that
    was cut support it. Questions none of whose passages the graph knows are left out. Raises IndexMismatch for an index
    without a graph, or a graph without vectors, and IngestError where no question is left.
    """
    linked_graph = LinkedGraph.of(index)
    kg = linked_graph.graph
    if kg.manifest.embedder is None:
        raise IndexMismatch(
            f"the knowledge graph of {index} holds no vectors: build it with an embedder, "
            f"`ras-agent kg build {index} --embedder minilm`"
        )
    documents = set(kg.documents)
    labelled, skipped = labelled_questions(questions or (), index, documents)
    passages = [passage for passage in index.passages if passage.id in documents] if pseudo != 0 else []
    pseudo_questions = _pseudo_questions(passages, seed, pseudo)
    if questions is not None and not labelled and not pseudo_questions:
        raise IngestError(f"no question is left to train on: {skipped[0] if skipped else 'the file holds none'}")
    kg = KGIndex(kg.arrays, kg.manifest, linked_graph.embedder, kg.database)
    _write(folder, kg, labelled, pseudo_questions)
    return SetReport(kg, len(labelled), len(pseudo_questions), tuple(skipped))


def labelled_questions(
    questions: Sequence[Question], index: PassageIndex, documents: set[str]
) -> tuple[list[GFMQuestion], list[str]]:
    """Return the questions that some of `documents` support, by their ids, and why each of the others is left out."""
    names: dict[str, list[str]] = defaultdict(list)
    for passage in index.passages:
        if passage.id in documents:
            for name in {passage.id, passage.document_id, passage.title} - {""}:
                names[name].append(passage.id)
    labelled, skipped = [], []
    for question in questions:
        ids = [id_ for name in question.supporting for id_ in ([name] if name in documents else names.get(name, ()))]
        if ids:
            start = question.metadata.get("start_nodes", {})
            labelled.append(GFMQuestion(question.question, tuple(dict.fromkeys(ids)), start=start))
        else:
            subject = f"none of {', '.join(question.supporting[:3])}" if question.supporting else "no passage"
            skipped.append(f"question {question.id}: {subject} in the graph supports it")
    return labelled, skipped


def _pseudo_questions(passages: Sequence[Passage], seed: int, limit: int | None) -> list[GFMQuestion]:
    questions = [
        GFMQuestion(question, tuple(passage.id for passage in support), "pseudo")
        for question, support in supported_questions(passages, _PER_PASSAGE, _TWO_HOP, seed)
    ]
    return questions if limit is None or len(questions) <= limit else random.Random(seed).sample(questions, limit)


def _write(folder: Path, kg: KGIndex, labelled: Sequence[GFMQuestion], pseudo: Sequence[GFMQuestion]) -> None:
    write_graph(folder / GRAPH, SavedGraph(kg.arrays, kg.manifest))
    write_linked(folder, kg, [*labelled, *pseudo])


def report_lines(report: SetReport, folder: Path) -> tuple[str, ...]:
    """Return a line about a set, and one for each question that was left out."""
    facts = f"{report.graph.manifest.facts:,} facts"
    line = f"{folder} {report.labelled} questions · {report.pseudo} pseudo questions · {facts}"
    return line, *(f"left out  {reason}" for reason in report.skipped)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="the folder of the training sets of the network that ships")
    source.add_argument("--index", type=Path, help="an index with a knowledge graph")
    parser.add_argument("--questions", type=Path, help="a question file, with --index; for a graph alone, none")
    parser.add_argument("--benchmark", default="jsonl", help="the form of the question file (jsonl)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS), help="parted by commas")
    parser.add_argument("--pseudo", type=int, help="at most so many pseudo questions a set (all)")
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    for name in names:
        if name not in SETS:
            raise UnknownName("set", name, tuple(SETS))
    if options.pseudo is not None and options.pseudo < 0:
        raise SettingsError(f"--pseudo has to be at least 0, got {options.pseudo}")
    if options.index is not None:
        index = PassageIndex.open(options.index)
        questions = None if options.questions is None else benchmark(options.benchmark).load(options.questions)
        report = write_set_of(index, questions, options.out, pseudo=options.pseudo)
        print("\n".join(report_lines(report, options.out)))
        return
    for name in names:
        kg = write_set(options.out / name, *SETS[name](options.data), limit=options.pseudo)
        print(f"{name}: {kg.manifest}", flush=True)


if __name__ == "__main__":
    run_program(main)

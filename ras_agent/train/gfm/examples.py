"""Write the sets that the GFM network is trained on: knowledge graphs, with questions and what supports them.

    python -m ras_agent.train.gfm.examples --index my.index --questions questions.jsonl --out SETS/mine
    python -m ras_agent.train.gfm.examples --data DATA --out SETS

The first takes the graph of an index, whichever extractor and embedder made it, and a question file of any benchmark
that names what supports its questions (`ras-agent kg examples` is the same). The second makes the sets of the network
that ships from DATA, a folder as docs/data.md describes it; the offline extractor reads the facts, and the packaged
MiniLM makes the vectors. Each set becomes a folder as ras_agent.train.gfm.sets describes it. Pseudo questions are made
from the passages' sentences (ras_agent.train.pseudo_questions) and added; the texts of "composed" have no titles, and
get two-hop questions that are made of their readers' single ones (ras_agent.train.reader.compose) instead.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ras_agent.address import as_argument
from ras_agent.errors import IndexMismatch, IngestError, SettingsError, UnknownName
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import read_records
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.disk import SavedGraph, write_graph
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import PassageFacts, facts_in
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.train.data import training_set
from ras_agent.train.gfm.sets import GRAPH, GFMQuestion, write_linked
from ras_agent.train.pseudo_questions import supported_questions
from ras_agent.train.reader.compose import compositions
from ras_agent.train.reader.examples import nq, reported_steps, squad

_PER_PASSAGE, _TWO_HOP = 2, 0.8
_HARD, _TWO_WIKI = "hotpotqa_train/hard100_contexts.jsonl", "2wikimultihopqa/train500_contexts.jsonl"


def _labelled_set(name: str, data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return a training set's passages and its questions with the passages that support them."""
    source = training_set(name, data)
    questions = [
        GFMQuestion(question.question, tuple(passage.id for passage in source.gold(question)))
        for question in source.questions
    ]
    return list(source.passages), questions


def _hotpotqa(data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return HotpotQA's training sample with its corpus, and the hard questions with contexts, where they are there."""
    passages, questions = _labelled_set("hotpotqa", data)
    if not (data / _HARD).is_file():
        return passages, questions
    of_title = {passage.title: passage for passage in passages}
    every, hard = _contexts_of(_HARD, data, of_title)
    return every, [*questions, *hard]


def _contexts_of(
    file: str, data: Path, known: Mapping[str, Passage] | None = None
) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return the contexts of a file of questions in HotpotQA's form, each title once, and the questions.

    known: passages by title, which come first and stand for contexts of their titles.
    """
    passages = dict(known or {})
    questions = []
    for record in read_records(data / file):
        for title, sentences in record.items("context"):
            passages.setdefault(title, context_passage(title, " ".join(sentence.strip() for sentence in sentences)))
        titles = dict.fromkeys(fact[0] for fact in record.items("supporting_facts"))
        questions.append(GFMQuestion(record.text("question"), tuple(passages[title].id for title in titles)))
    return list(passages.values()), questions


def _composed_set(data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return texts of SQuAD and Natural Questions, two-hop questions over two of them, and as many over one."""
    rng, reported = random.Random(0), reported_steps(data)
    singles = [one for one in (*squad(data), *nq(data)) if one.question.lower().strip() not in reported]
    made = list(compositions(singles, rng))
    texts = dict.fromkeys(text for one in made for text in (one.first.text, one.second.text))
    passages = {text: Passage(f"text-{number}", text) for number, text in enumerate(texts)}
    questions: dict[str, tuple[str, ...]] = {one.question: (one.first.text, one.second.text) for one in made}
    over_one = [one for one in singles if one.text in passages and one.question not in questions]
    questions |= {one.question: (one.text,) for one in rng.sample(over_one, min(len(over_one), len(made)))}
    return list(passages.values()), [
        GFMQuestion(question, tuple(dict.fromkeys(passages[text].id for text in needed)), "pseudo")
        for question, needed in questions.items()
    ]


SETS: dict[str, Callable[[Path], tuple[list[Passage], list[GFMQuestion]]]] = {
    "hotpotqa": _hotpotqa,
    "musique": partial(_labelled_set, "musique"),
    "2wiki": partial(_contexts_of, _TWO_WIKI),
    "composed": _composed_set,
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
            f"`ras-agent kg build {as_argument(index)} --embedder minilm`"
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
    parser.add_argument("--benchmark", default="jsonl", help="the form of the question file (default: jsonl)")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the sets, one a folder")
    every = ",".join(SETS)
    parser.add_argument("--sets", default=every, help=f"which sets of --data, with commas (default: {every})")
    parser.add_argument("--pseudo", type=int, help="most pseudo questions of a set; if not set, all")
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
        passages, labelled = SETS[name](options.data)
        titled = any(passage.title for passage in passages)  # pseudo questions name titles
        kg = write_set(options.out / name, passages, labelled, limit=options.pseudo if titled else 0)
        print(f"{name}: {kg.manifest}", flush=True)


if __name__ == "__main__":
    run_program(main)

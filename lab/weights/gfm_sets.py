"""Write the sets that the packaged GFM network was trained on.

    python -m lab.weights.gfm_sets --data DATA --out SETS

DATA is a folder as docs/data.md describes it; the offline extractor reads the facts, and the packaged MiniLM makes the
vectors. Each set becomes a folder as ras_agent.train.gfm.sets describes it. Pseudo questions are made from the
sentences of the passages and added; the texts of "composed" have no titles, and get two-hop questions that are made of
the reader's single ones (lab.weights.reader.compose) instead.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lab.weights.reader.compose import compositions
from lab.weights.reader.examples import nq, reported_steps, squad
from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import context_passage
from ras_agent.eval.question_file import read_records
from ras_agent.running.program import run_program
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, facts_in
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.train.data import training_set
from ras_agent.train.gfm.examples import pseudo_questions, write_graph_and_questions
from ras_agent.train.gfm.sets import GFMQuestion

_HARD, _TWO_WIKI = (
    "hotpotqa_train/hard100_contexts.jsonl",
    "2wikimultihopqa/train500_contexts.jsonl",
)


def _labelled_set(name: str, data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return a training set's passages and its questions with the passages that support them."""
    source = training_set(name, data)
    questions = [
        GFMQuestion(
            question.question, tuple(passage.id for passage in source.gold(question))
        )
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
            passages.setdefault(
                title,
                context_passage(
                    title, " ".join(sentence.strip() for sentence in sentences)
                ),
            )
        titles = dict.fromkeys(fact[0] for fact in record.items("supporting_facts"))
        questions.append(
            GFMQuestion(
                record.text("question"), tuple(passages[title].id for title in titles)
            )
        )
    return list(passages.values()), questions


def _composed_set(data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return texts of SQuAD and Natural Questions, two-hop questions over two of them, and as many over one."""
    rng, reported = random.Random(0), reported_steps(data)
    singles = [
        one
        for one in (*squad(data), *nq(data))
        if one.question.lower().strip() not in reported
    ]
    made = list(compositions(singles, rng))
    texts = dict.fromkeys(
        text for one in made for text in (one.first.text, one.second.text)
    )
    passages = {
        text: Passage(f"text-{number}", text) for number, text in enumerate(texts)
    }
    questions: dict[str, tuple[str, ...]] = {
        one.question: (one.first.text, one.second.text) for one in made
    }
    over_one = [
        one for one in singles if one.text in passages and one.question not in questions
    ]
    questions |= {
        one.question: (one.text,)
        for one in rng.sample(over_one, min(len(over_one), len(made)))
    }
    return list(passages.values()), [
        GFMQuestion(
            question,
            tuple(dict.fromkeys(passages[text].id for text in needed)),
            "pseudo",
        )
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
    folder: Path,
    passages: Sequence[Passage],
    questions: Sequence[GFMQuestion],
    seed: int = 0,
    limit: int | None = None,
) -> KGIndex:
    """Write a set's graph and questions, with at most `limit` pseudo questions, by default all."""
    kg = KGIndex.in_memory(facts_of(passages), embedder="minilm", extractor="offline")
    write_graph_and_questions(
        folder, kg, questions, pseudo_questions(passages, seed, limit)
    )
    return kg


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder of the training data"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="the folder of the sets, one a folder"
    )
    every = ",".join(SETS)
    parser.add_argument(
        "--sets",
        default=every,
        help=f"the sets to write, with commas (default: {every})",
    )
    parser.add_argument(
        "--pseudo", type=int, help="most pseudo questions of a set; if not set, all"
    )
    options = parser.parse_args(arguments)
    names = options.sets.split(",")
    for name in names:
        if name not in SETS:
            raise UnknownName("set", name, tuple(SETS))
    if options.pseudo is not None and options.pseudo < 0:
        raise SettingsError(f"--pseudo has to be at least 0, got {options.pseudo}")
    for name in names:
        passages, labelled = SETS[name](options.data)
        # pseudo questions name titles
        titled = any(passage.title for passage in passages)
        kg = write_set(
            options.out / name,
            passages,
            labelled,
            limit=options.pseudo if titled else 0,
        )
        print(f"{name}: {kg.manifest}", flush=True)


if __name__ == "__main__":
    run_program(main)

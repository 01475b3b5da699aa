"""Write the sets that the GFM network is trained on: knowledge graphs, with questions and what supports them.

    python -m ras_agent.train.gfm.examples --data DATA --out SETS

DATA is a folder with hotpotqa_train, musique_train200 and 2wikimultihopqa's corpus. Each set becomes a folder as
ras_agent.train.gfm.sets describes it; the offline extractor reads the facts of its graph, and the packaged MiniLM makes
the vectors. Pseudo questions are made from the passages' sentences (ras_agent.train.pseudo_questions) and added;
2WikiMultihopQA's corpus comes without questions and has these alone.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ras_agent.errors import SettingsError, UnknownName
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.kg.disk import write_generation
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, facts_in
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.train.data import training_set, two_wiki_passages
from ras_agent.train.gfm.sets import GFMQuestion, write_linked
from ras_agent.train.pseudo_questions import supported_questions

_PER_PASSAGE, _TWO_HOP = 2, 0.8


def _labelled(name: str, data: Path) -> tuple[list[Passage], list[GFMQuestion]]:
    """Return a training set's passages and its questions with the passages that support them."""
    found = training_set(name, data)
    asked = [GFMQuestion(one.question, tuple(passage.id for passage in found.gold(one))) for one in found.questions]
    return list(found.passages), asked


SETS: dict[str, Callable[[Path], tuple[list[Passage], list[GFMQuestion]]]] = {
    "hotpotqa": partial(_labelled, "hotpotqa"),
    "musique": partial(_labelled, "musique"),
    "2wiki": lambda data: (two_wiki_passages(data), []),
}


def facts_of(passages: Iterable[Passage]) -> Iterator[PassageFacts]:
    """Yield what the offline extractor reads in each passage."""
    extractor = offline_extractor()
    for passage in passages:
        yield facts_in(passage, extractor.extract([passage]).triples)


def write_set(
    folder: Path, passages: Sequence[Passage], questions: Sequence[GFMQuestion], seed: int = 0, most: int | None = None
) -> KGIndex:
    """Write a set's graph and questions, with at most `most` pseudo questions, by default all."""
    kg = KGIndex.in_memory(facts_of(passages), embedder="minilm", extractor="offline")
    (folder / "graph").mkdir(parents=True, exist_ok=True)
    write_generation(folder / "graph", kg.arrays, kg.manifest)
    made = [
        GFMQuestion(question, tuple(passage.id for passage in support), "pseudo")
        for question, support in supported_questions(passages, _PER_PASSAGE, _TWO_HOP, seed)
    ]
    if most is not None and len(made) > most:
        made = random.Random(seed).sample(made, most)
    write_linked(folder, kg, [*questions, *made])
    return kg


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS), help="parted by commas")
    parser.add_argument("--pseudo", type=int, help="at most so many pseudo questions a set (all)")
    given = parser.parse_args(arguments)
    names = given.sets.split(",")
    for name in names:
        if name not in SETS:
            raise UnknownName("set", name, tuple(SETS))
    if given.pseudo is not None and given.pseudo < 0:
        raise SettingsError(f"--pseudo has to be at least 0, got {given.pseudo}")
    for name in names:
        kg = write_set(given.out / name, *SETS[name](given.data), most=given.pseudo)
        print(f"{name}: {kg.manifest}", flush=True)


if __name__ == "__main__":
    run_program(main)

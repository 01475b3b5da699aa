"""Graphs and questions to measure the GFM network on: of OpenIE facts, of an index, or synthetic by Zipf's law."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.records import Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts

GFMCase = dict[str, npt.NDArray[Any]]
"""Arrays by name. entities, relations: their numbers. edges: (E, 3). starts, indptr: question q starts from
starts[indptr[q] : indptr[q + 1]]. connected: the number of well connected questions, which come last."""


def openie_case(openie: Path, questions: Path, count: int, connected: int) -> GFMCase:
    """Make a case of a file of OpenIE facts and a file of questions."""
    return real_case(KGIndex.in_memory(_facts(openie), embedder="minilm"), questions, count, connected)


def real_case(kg: KGIndex, questions: Path, count: int, connected: int) -> GFMCase:
    """Make a case of the edges of `kg` and the entities of the first `count` questions of a file that name some."""
    texts = [json.loads(line)["question"] for line in questions.read_text("utf-8").splitlines()]
    starts = [found for text in texts if len(found := _named(kg, text))][:count]
    return _case(len(kg.entities), len(kg.relations), kg.edges, starts, connected)


def zipf_case(entities: int, relations: int, facts: int, count: int, connected: int, seed: int = 0) -> GFMCase:
    """Make a case of facts whose ends and relations follow Zipf's law (exponent 0.8), numbered at random."""
    rng = np.random.default_rng(seed)

    ends, labels = rng.permutation(entities), rng.permutation(relations)

    def drawn(numbers: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
        chances = np.cumsum(np.arange(1, len(numbers) + 1) ** -0.8)
        found: npt.NDArray[np.int64] = numbers[np.searchsorted(chances, rng.random(size) * chances[-1])]
        return found

    edges = np.column_stack((drawn(ends, facts), drawn(labels, facts), drawn(ends, facts)))
    starts = [np.unique(edges[rng.integers(0, facts, 3), 0]) for _ in range(count)]
    return _case(entities, relations, edges, starts, connected)


def _case(entities: int, relations: int, edges: Any, starts: list[Any], connected: int) -> GFMCase:
    """Put a case together; the well connected questions come last."""
    degrees = np.bincount(np.asarray(edges)[:, [0, 2]].ravel(), minlength=entities)
    best = np.argsort(-degrees, kind="stable")[: max(connected, entities // 100)]
    chosen = np.random.default_rng(0).choice(best, connected, replace=False)
    starts = [*starts, *(np.array([one]) for one in chosen)]
    return {
        "entities": np.array(entities),
        "relations": np.array(relations),
        "edges": np.asarray(edges),
        "starts": np.concatenate(starts).astype(np.int64),
        "indptr": np.cumsum([0, *map(len, starts)]),
        "connected": np.array(connected),
    }


def _facts(path: Path) -> Iterator[PassageFacts]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        source = (Source(row["id"], 0, 0),)
        facts = [fact for fact in row["triples"] if len(fact) == 3 and all(fact)]
        triples = tuple(Triple(head, relation, tail, source) for head, relation, tail in facts)
        yield PassageFacts(row["id"], triples, tuple(filter(None, row["entities"])))


def _named(kg: KGIndex, question: str) -> npt.NDArray[np.int64]:
    """Return the entities whose names occur in a question, the longest at each place."""
    words = question.rstrip("?").split()
    found, place = set(), 0
    while place < len(words):
        end = place
        for end in range(min(len(words), place + 8), place, -1):
            name = " ".join(words[place:end]).removesuffix("'s")
            entity = kg.entity_id(name) if len(canonical_key(name)) > 3 else None
            if entity is not None and name[:1].isupper():
                found.add(entity)
                break
        place = max(end, place + 1)
    return np.array(sorted(found), dtype=np.int64)

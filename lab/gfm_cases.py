"""Graphs and questions to measure the GFM network on: of OpenIE facts, of an index, or synthetic by Zipf's law."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import SettingsError
from ras_agent.eval.bench.gfm import drawn_facts
from ras_agent.records import Source, Triple
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.gfm import start_of

GFMCase = dict[str, npt.NDArray[Any]]
"""Arrays by name. entities, relations: their numbers. edges: (E, 3). starts, indptr: question q starts from
starts[indptr[q] : indptr[q + 1]], by as many `weights`. connected: the number of well connected questions, which come
last. Of a case for trained weights also `vectors` (relations, text width) and `questions` (Q, text width)."""


def openie_case(openie: Path, questions: Path, count: int, connected: int, trained: bool) -> GFMCase:
    """Make a case of a file of OpenIE facts and a file of questions."""
    return real_case(KGIndex.in_memory(_facts(openie), embedder="minilm"), questions, count, connected, trained)


def real_case(kg: KGIndex, questions: Path, count: int, connected: int, trained: bool) -> GFMCase:
    """Make a case of `kg` and the first `count` questions of a file that are linked to some of its entities.

    trained: with the texts' own vectors, which the graph has to hold; the well connected questions take others' ones.
    """
    texts = [json.loads(line)["question"] for line in questions.read_text("utf-8").splitlines()]
    linker = EntityLinker(kg, kg.embedder)
    links = {text: found for text in texts if (found := linker.link(text))}
    texts = list(links)[:count]
    starts = [start_of(links[text], kg.document_frequency) for text in texts]
    case = _case(len(kg.entities), len(kg.relations), kg.edges, [start.entities for start in starts], connected)
    if not trained:
        return case
    if kg.relation_vectors is None or kg.embedder is None or not texts:
        raise SettingsError(
            "the network that ships needs a graph with MiniLM's vectors: build it with --embedder minilm"
        )
    rarity = 1 / np.maximum(kg.document_frequency[case["starts"][case["indptr"][len(starts)] :]], 1)
    weights = np.concatenate([*(start.weights for start in starts), rarity]).astype(np.float32)
    asked = np.stack([query_vector(kg.embedder, text) for text in texts])
    vectors = np.asarray(kg.relation_vectors, dtype=np.float32)
    return {
        **case,
        "weights": weights,
        "vectors": vectors,
        "questions": np.resize(asked, (len(case["indptr"]) - 1, asked.shape[1])),
    }


def zipf_case(entities: int, relations: int, facts: int, count: int, connected: int, seed: int = 0) -> GFMCase:
    """Make a case of facts whose ends and relations follow Zipf's law (exponent 0.8), numbered at random."""
    rng = np.random.default_rng(seed)
    edges = drawn_facts(entities, relations, facts, rng)
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
        "weights": np.ones(sum(map(len, starts)), dtype=np.float32),
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

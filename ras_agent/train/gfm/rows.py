"""The states that a batch of questions has at each layer: states that are computed of the same are there once.

A state follows from the entity's own state before the layer and from its messages. Two entities whose own states are
one row, and whose messages are of the same relations and come from the same rows, have one row again (colour
refinement). So an entity's states are one for all questions that have not reached it; where entities begin alike, as
GFM-RAG's do, nearly all are one row after the first layer, and leaves of one entity and relation are one to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cpu_kernels import cpu_loop
from ras_agent.tools.gfm.graph import GFMGraph

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LayerRows:
    """R rows of states after a layer, for N entities and B questions.

    place: (N, B), the row of each entity's state for each question.
    entity, question: (R,), whose state a row is; a row that several share names one of them.
    before, origin: (R,), the row of that state one layer earlier, and before the first layer.
    """

    place: Places
    entity: Ints
    question: Ints
    before: Ints
    origin: Ints

    def __len__(self) -> int:
        return len(self.entity)


def layer_graphs(graph: GFMGraph, start: Floats, layers: int, *, alike: bool) -> list[GFMGraph]:
    """Return the messages of each layer: before the first one the questions' entities alone have states to send.

    start: (B, N), 0 where a question does not start. alike: whether all other entities begin without a state.
    """
    if not alike:
        return [graph] * layers
    sent = np.flatnonzero(start[:, graph.source].any(axis=0))
    relations, relation = np.unique(graph.relation[sent], return_inverse=True)
    indptr = np.searchsorted(sent, graph.indptr)
    vectors = graph.vectors_of(relations)
    first = GFMGraph(indptr, graph.source[sent], relation, vectors, vectors[:0])
    return [first, *[graph] * (layers - 1)]


def batch_rows(graphs: Sequence[GFMGraph], start: Floats, *, alike: bool = True) -> list[LayerRows]:
    """Return the rows before the first layer and after each of them, whose messages are `graphs`. Needs numba.

    start: (B, N), 0 where a question does not start. alike: whether all other entities begin with the same state.
    """
    rows = [_first_rows(start, alike)]
    for layer, graph in enumerate(graphs):
        if layer > 1 and graph is graphs[layer - 1] and len(rows[-1]) == len(rows[-2]):
            # the messages told no states apart the last time, so they never will
            rows.append(replace(rows[-1], before=np.arange(len(rows[-1]))))
        else:
            rows.append(_following_rows(graph, rows[-1], rows[0], 0 if alike and layer == 0 else -1))
    return rows


def _first_rows(start: Floats, alike: bool) -> LayerRows:
    """Return the rows that entities share where they do not start, and after them one for each start."""
    starts = start.T.astype(bool)
    count, shared = np.count_nonzero(starts), 1 if alike else len(starts)
    place = np.empty(starts.shape, dtype=np.int32)
    place[:] = 0 if alike else np.arange(shared)[:, None]
    place[starts] = np.arange(shared, shared + count)
    # any that does not start stands for those that share a row
    entity, question = np.divmod(starts.argmin(), starts.shape[1]) if alike else (np.arange(shared), starts.argmin(1))
    of_start = np.nonzero(starts)
    entities, questions = np.append(entity, of_start[0]), np.append(question, of_start[1])
    itself = np.arange(shared + count)
    return LayerRows(place, entities, questions, itself, itself)


def _following_rows(graph: GFMGraph, earlier: LayerRows, first: LayerRows, silent: int) -> LayerRows:
    """Return the rows after a layer. silent: the row before it whose state is zero and brings nothing, or -1."""
    place = np.empty_like(earlier.place)
    keys, *columns = np.empty((5, place.size), dtype=np.int64)
    table = np.full(1 << (2 * place.size).bit_length(), -1, dtype=np.int32)  # at most half full
    messages = graph.indptr, graph.source, graph.relation, max(1, graph.relations)
    count = _share_rows(*messages, silent, earlier.place, first.place, place, table, keys, *columns)
    return LayerRows(place, *(column[:count].copy() for column in columns))


@cpu_loop()
def _share_rows(
    indptr: Any,
    source: Any,
    relation: Any,
    relations: int,
    silent: int,
    earlier: Any,
    first: Any,
    place: Any,
    table: Any,
    keys: Any,
    entities: Any,
    questions: Any,
    before: Any,
    origin: Any,
) -> int:
    """Write each state's row to `place` (N, B), and to the last four whose it is and whence; return their number.

    States are one where 64 bits of what they are computed of are the same, which for a million states happens by
    chance once in 10^7 times. table: the rows by their key's last bits, -1 where there is none. keys: (N B,).
    """
    rows, last = 0, len(table) - 1
    for entity in range(len(place)):
        for question in range(place.shape[1]):
            key = (earlier[entity, question] + 1) * -7046029254386353131
            for message in range(indptr[entity], indptr[entity + 1]):
                sender = earlier[source[message], question]
                if sender == silent:
                    continue
                # what a message brings, mixed (splitmix64); their sum does not depend on the order
                one = sender * relations + relation[message] - 7046029254386353131
                one = (one ^ (one >> 30)) * -4658895280553007687
                one = (one ^ (one >> 27)) * -7723592293110705685
                key += one ^ (one >> 31)
            slot = (key ^ (key >> 32)) & last
            while table[slot] >= 0 and keys[table[slot]] != key:
                slot = (slot + 1) & last
            if table[slot] < 0:
                table[slot], keys[rows] = rows, key
                entities[rows], questions[rows] = entity, question
                before[rows], origin[rows] = earlier[entity, question], first[entity, question]
                rows += 1
            place[entity, question] = table[slot]
    return rows

"""Checks the contracts of embedders, span readers and graph encoders, the models that turn text and graphs into
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.graph_batch import GraphBatch, GraphFeatures
from ras_agent.running.protocols import Embedder, GraphEncoder, SpanReader
from ras_agent.testing.conformance import (
    Suite,
    demand,
    is_named,
    same_in_threads,
)

TEXTS = (
    "The Water of Leith flows through Edinburgh.",
    "Edinburgh lies on the Water of Leith.",
    "東京は日本の首都です。",
    "",
    "?!",
    "word " * 700,
    "half of a pair \ud800",
)
TOLERANCE = 1e-4
"""The largest allowed difference between two vectors of one text: other texts, threads and processors change the last
bits of a sum."""

_embedding = Suite("the embedder")
_reading = Suite("the span reader", SpanReader)
_graph_encoding = Suite("the graph encoder")


def check_embedder(embedder: Embedder) -> None:
    """Check that an embedder keeps its contract. Raises ConformanceError, which lists the promises that it breaks."""
    _embedding.run(embedder)


def check_span_reader(reader: SpanReader) -> None:
    """Check that a span reader keeps its contract. Raises ConformanceError, which lists the promises that it breaks."""
    _reading.run(reader)


@_embedding.promise
def fits_the_protocol_of_embedders(embedder: Embedder) -> None:
    is_named(embedder, Embedder)
    demand(
        isinstance(embedder.name, str) and embedder.name,
        "the embedder has no `name`, which an index stores",
    )
    demand(embedder.dimension > 0, f"the dimension is {embedder.dimension}")


@_embedding.promise
def gives_one_float32_row_for_each_text(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    expected = (len(TEXTS), embedder.dimension)
    demand(
        vectors.shape == expected,
        f"vectors have the shape {vectors.shape}, not {expected}",
    )
    demand(vectors.dtype == np.float32, f"vectors are {vectors.dtype}, not float32")


@_embedding.promise
def gives_no_rows_for_no_texts(embedder: Embedder) -> None:
    demand(
        embedder.embed([]).shape == (0, embedder.dimension),
        "`embed([])` returns an array of shape (0, dimension)",
    )


@_embedding.promise
def gives_unit_vectors(embedder: Embedder) -> None:
    lengths = np.linalg.norm(embedder.embed(TEXTS[:3]), axis=1)
    demand(
        np.allclose(lengths, 1, atol=TOLERANCE), f"vectors have the lengths {lengths}"
    )
    odd = embedder.embed(TEXTS[3:])
    demand(
        np.isfinite(odd).all(),
        "an empty, long or odd text has a vector that is not finite",
    )


@_embedding.promise
def gives_a_text_the_same_vector_in_any_company(embedder: Embedder) -> None:
    alone = embedder.embed(TEXTS[:1])[0]
    for company in (TEXTS, TEXTS[::-1], [TEXTS[0]] * 9):
        rows = [
            row
            for text, row in zip(company, embedder.embed(company), strict=True)
            if text == TEXTS[0]
        ]
        worst = max(float(np.abs(row - alone).max()) for row in rows)
        demand(
            worst <= TOLERANCE,
            f"among {len(company)} texts a vector differs by {worst:.1e} from the text's alone",
        )


@_embedding.promise
def puts_like_texts_nearer_than_unlike_ones(embedder: Embedder) -> None:
    first, second, other = embedder.embed(TEXTS[:3])
    demand(
        first @ second > first @ other,
        "two sentences about one river are not more similar than one of them and a sentence about Tokyo",
    )


@_embedding.promise
def gives_threads_the_same_vectors(embedder: Embedder) -> None:
    alone = embedder.embed(TEXTS)
    same_in_threads(
        lambda: bool(np.allclose(embedder.embed(TEXTS), alone, atol=TOLERANCE)), True
    )


_QUESTION = "Who designed the lighthouse?"
_PAGES = (
    "The lighthouse was designed by Marta Lindqvist and first lit on 14 May 1871.",
    "The bakery sells rye bread every Friday.",
    "東京は日本の首都です。",
    "",
    "... !!!",
    "word " * 700,
)


@_reading.promise
def gives_one_list_for_each_text_and_none_without_words(reader: SpanReader) -> None:
    spans = reader.read(_QUESTION, _PAGES)
    demand(
        len(spans) == len(_PAGES),
        f"{len(_PAGES)} texts have {len(spans)} lists of spans",
    )
    demand(spans[3] == [], f"a text without words has the spans {spans[3]!r:.200}")
    demand(reader.read(_QUESTION, []) == [], "`read(question, [])` returns []")


@_reading.promise
def points_inside_the_text_best_span_first(reader: SpanReader) -> None:
    for text, spans in zip(_PAGES, reader.read(_QUESTION, _PAGES), strict=True):
        for span in spans:
            demand(
                0 <= span.start < span.end <= len(text),
                f"{span} is not in a text of {len(text)} characters",
            )
        scores = [span.score for span in spans]
        demand(scores == sorted(scores, reverse=True), f"scores descend, got {scores}")


@_reading.promise
def reads_a_text_alike_in_any_company(reader: SpanReader) -> None:
    alone = reader.read(_QUESTION, _PAGES[:1])[0][0]
    together = reader.read(_QUESTION, _PAGES[::-1])[-1][0]
    demand(
        (alone.start, alone.end) == (together.start, together.end),
        f"alone {alone}, among others {together}",
    )


def _places(reader: SpanReader) -> list[list[tuple[int, int]]]:
    return [
        [(span.start, span.end) for span in spans[:1]]
        for spans in reader.read(_QUESTION, _PAGES)
    ]


_reading.gives_the_same(_places)
EMBEDDER_CHECKS = tuple(_embedding.checks)
SPAN_READER_CHECKS = tuple(_reading.checks)


# ---- graph encoders


def check_graph_encoder(encoder: GraphEncoder, input_width: int) -> None:
    """Check that a graph encoder keeps its contract. Raises ConformanceError, which lists the promises that it breaks.

    The encoder reads vectors of `input_width` numbers, and must not be in training mode.
    """
    _graph_encoding.run((encoder, input_width))


def _graph(
    seed: int, nodes: int, ends: Sequence[tuple[int, int]], width: int
) -> GraphFeatures:
    """Return a graph of one sub-graph with random vectors."""
    draw = np.random.default_rng(seed)
    return GraphFeatures(
        draw.normal(size=(nodes, width)).astype(np.float32),
        draw.normal(size=(len(ends), width)).astype(np.float32),
        np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        np.zeros(nodes, dtype=np.int64),
    )


def _graphs(width: int) -> list[GraphFeatures]:
    """Return a chain, an empty graph, one node without edges, a graph of two unconnected parts, and a loop."""
    return [
        _graph(1, 3, [(0, 1), (1, 2)], width),
        _graph(2, 0, [], width),
        _graph(3, 1, [], width),
        _graph(4, 5, [(0, 1), (2, 3), (3, 4), (2, 3)], width),
        _graph(5, 2, [(0, 0), (0, 1)], width),
    ]


def _states(
    encoder: GraphEncoder, graphs: Sequence[GraphFeatures], width: int
) -> Floats:
    return np.asarray(
        encoder(GraphBatch.of(graphs, width)).detach().cpu().float().numpy()
    )


@_graph_encoding.promise
def gives_a_finite_state_for_each_node(subject: tuple[GraphEncoder, int]) -> None:
    encoder, width = subject
    states = _states(encoder, _graphs(width), width)
    demand(
        states.shape == (11, encoder.width),
        f"11 nodes have states of the shape {states.shape}",
    )
    demand(np.isfinite(states).all(), "a state is not finite")


@_graph_encoding.promise
def gives_no_states_for_empty_graphs(subject: tuple[GraphEncoder, int]) -> None:
    encoder, width = subject
    empty = _graph(2, 0, [], width)
    for graphs in ([], [empty], [empty, empty]):
        demand(
            _states(encoder, graphs, width).shape == (0, encoder.width),
            f"{len(graphs)} empty graphs have states",
        )


@_graph_encoding.promise
def gives_a_graph_the_same_states_in_any_company(
    subject: tuple[GraphEncoder, int],
) -> None:
    encoder, width = subject
    graphs = _graphs(width)
    together = _states(encoder, graphs, width)
    alone = [_states(encoder, [graph], width) for graph in graphs]
    away = float(np.abs(together - np.concatenate(alone)).max())
    demand(
        away < TOLERANCE,
        f"states differ by {away} between a batch and each graph alone",
    )


@_graph_encoding.promise
def gives_nodes_their_states_in_any_order(subject: tuple[GraphEncoder, int]) -> None:
    encoder, width = subject
    graph = _graphs(width)[3]
    order = np.array([4, 2, 0, 3, 1])
    place = np.argsort(order)
    shuffled = GraphFeatures(
        graph.nodes[order], graph.edges, place[graph.edge_index], graph.group
    )
    away = float(
        np.abs(
            _states(encoder, [graph], width)[order]
            - _states(encoder, [shuffled], width)
        ).max()
    )
    demand(
        away < TOLERANCE, f"states differ by {away} when the nodes are in another order"
    )


@_graph_encoding.promise
def is_changed_by_an_edge(subject: tuple[GraphEncoder, int]) -> None:
    encoder, width = subject
    with_edge = _graph(6, 2, [(0, 1)], width)
    without = _graph(6, 2, [], width)
    changed = np.abs(
        _states(encoder, [with_edge], width) - _states(encoder, [without], width)
    ).max()
    demand(
        changed > TOLERANCE,
        "a graph has the same states with and without its only edge",
    )


GRAPH_ENCODER_CHECKS = tuple(_graph_encoding.checks)

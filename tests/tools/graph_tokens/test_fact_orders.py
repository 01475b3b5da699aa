"""Orders of facts by name: by use, by likeness to the question, by an aligner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.errors import UnknownName, WeightsError
from ras_agent.contracts.records import Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.graph_tokens.fact_orders import fact_order

FACTS = tuple(
    Triple(*parts, (Source("p", 0, 1),))
    for parts in (
        ("Charles", "built", "an engine"),
        ("Ada", "mother", "Anna"),
        ("Anna", "born in", "Kent"),
    )
)
GRAPH = QuestionGraph(FACTS)
ENGINE, MOTHER, BORN = (fact.id for fact in FACTS)


def test_facts_by_likeness_begin_with_the_words_of_the_question(
    hash_embedder: Any,
) -> None:
    order = fact_order("likeness", hash_embedder)
    assert order("where Anna born in", GRAPH, ())[0] == BORN
    assert order("who built an engine", GRAPH, ())[0] == ENGINE
    assert order("who?", QuestionGraph(), ()) == []


def test_the_order_of_reading_decides_no_tie(hash_embedder: Any) -> None:
    order = fact_order("likeness", hash_embedder)
    assert order("zzz", GRAPH, ()) == order("zzz", QuestionGraph(FACTS[::-1]), ())


def test_likeness_is_compared_in_steps_of_the_cosine_itself() -> None:
    first, second = sorted((MOTHER, BORN))
    cosines = {first: 2e-4, second: 2e-4 + 5e-7, ENGINE: -1.0}
    by_text = {
        f"{fact.subject} {fact.predicate} {fact.object}": cosines[fact.id]
        for fact in FACTS
    }

    class TwoNumbers:
        """Embeds each fact so that its cosine with any other text is the one above."""

        name, dimension = "two", 2

        def embed(self, texts: Sequence[str]) -> Any:
            rows = [
                (by_text[text], np.sqrt(1 - by_text[text] ** 2))
                if text in by_text
                else (1, 0)
                for text in texts
            ]
            return np.array(rows, dtype=np.float32)

    # half a millionth of a cosine is rounding, however large a share of so small a cosine it is
    assert fact_order("likeness", TwoNumbers())("Which?", GRAPH, ()) == [
        first,
        second,
        ENGINE,
    ]


def test_likeness_is_minilm_s_unless_another_embedder_is_given(
    hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[str] = []

    def resolve(name: str) -> Any:
        resolved.append(name)
        return hash_embedder

    monkeypatch.setattr(
        "ras_agent.tools.graph_tokens.fact_orders.resolve_embedder", resolve
    )
    assert fact_order("likeness")("where Anna born in", GRAPH, ())[0] == BORN
    fact_order("likeness", hash_embedder)
    assert resolved == ["minilm"]


def test_facts_by_use_know_the_sub_queries() -> None:
    order = fact_order("use")
    assert order("Who built it?", GRAPH, ("Where was Anna born?",))[0] == BORN


def test_facts_by_an_aligner_begin_at_its_best_node(
    hash_embedder: Any, tmp_path: Path
) -> None:
    pytest.importorskip("torch_geometric")
    from ras_agent.tools.graph_tokens.aligner import AlignerConfig, GraphAligner
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig

    encoder = EncoderConfig(layers=1, heads=2, width=64, input=64)
    GraphAligner(AlignerConfig(encoder, hidden=8, projected=8), hash_embedder).save(
        tmp_path
    )
    order = fact_order(f"aligner:{tmp_path}", hash_embedder)
    assert order("Charles", GRAPH, ())[0] == ENGINE
    assert sorted(order("Kent", GRAPH, ())) == sorted([ENGINE, MOTHER, BORN])
    assert order("Kent", GRAPH, ())[0] == BORN


def test_an_unknown_order_is_named() -> None:
    for spec in ("beauty", "use:now", "aligner:", ""):
        with pytest.raises(UnknownName, match="known: aligner:FOLDER, likeness, use"):
            fact_order(spec)
    pytest.importorskip("torch")
    with pytest.raises(WeightsError, match="there is no aligner in this folder"):
        fact_order("aligner:/nowhere")

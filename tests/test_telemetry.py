"""Runs become OpenTelemetry spans, in the names of its conventions for generative AI, without texts unless asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from ras_agent import Passage, create_ras_agent
from ras_agent.telemetry import stop_tracing, trace_runs

pytest.importorskip("opentelemetry.instrumentation.langchain", reason="needs the extra otel")

BELL = Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell")


@pytest.fixture(scope="module")
def exporter() -> Iterator[Any]:
    """What the spans of this module's runs are exported to."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace_runs(tracer_provider=provider)
    yield spans
    stop_tracing()


def _spans(exporter: Any, *, content: bool = False) -> list[Any]:
    trace_runs(content=content)
    exporter.clear()
    agent = create_ras_agent(
        index=[BELL],
        planner=FakeListChatModel(responses=["[SUBQ] In which city?", "[SUFFICIENT]"]),
        extractor="offline",
        answerer=FakeListChatModel(responses=["Answer: Edinburgh [1]"]),
    )
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"
    return list(exporter.get_finished_spans())


def _texts(spans: list[Any]) -> str:
    return json.dumps([[span.name, dict(span.attributes), [dict(e.attributes) for e in span.events]] for span in spans])


def test_a_run_is_a_span_with_its_nodes_searches_and_model_calls_below(exporter: Any) -> None:
    spans = _spans(exporter)
    operations = [span.attributes.get("gen_ai.operation.name") for span in spans]
    assert "invoke_agent" in operations
    assert "chat" in operations
    names = " ".join(span.name for span in spans)
    for node in ("plan", "retrieve", "structure", "merge", "answer"):
        assert node in names
    assert "bm25" in names


def test_no_text_of_question_passage_or_answer_is_in_a_span(exporter: Any) -> None:
    seen = _texts(_spans(exporter))
    for word in ("Where was", "Edinburgh", "Alexander", "In which city"):
        assert word not in seen


def test_texts_are_in_the_spans_where_they_are_asked_for(exporter: Any) -> None:
    assert "Where was Bell born?" in _texts(_spans(exporter, content=True))

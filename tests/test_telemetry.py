"""Runs become OpenTelemetry spans, in the names of its conventions for generative AI, without texts unless asked.

The library that makes them is set up once for a process, so the runs are made in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip(
    "opentelemetry.instrumentation.langchain", reason="needs the extra otel"
)

PROGRAM = """
import json, sys
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ras_agent import Passage, create_ras_agent
from ras_agent.telemetry import stop_tracing, trace_runs

spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
bell = Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell")

class Broken:
    def retrieve(self, query, k=5):
        raise TypeError("cannot read the passage about Edinburgh")

def run(**parts):
    agent = create_ras_agent(
        planner=FakeListChatModel(responses=["[SUBQ] In which city?", "[SUFFICIENT]"]),
        extractor="offline", answerer=FakeListChatModel(responses=["Answer: Edinburgh [1]"]), **parts)
    try:
        agent.invoke({"question": "Where was Bell born?"}, {"configurable": {"thread_id": "1"}})
    except TypeError:
        pass

told = {}
for content in (False, True):
    trace_runs(content=content, tracer_provider=provider)
    for name, parts in {
        "plain": {"index": [bell]},
        "waiting": {"index": [bell], "review": ("facts",), "checkpointer": InMemorySaver()},
        "broken": {"retriever": Broken()},
    }.items():
        spans.clear()
        run(**parts)
        told[f"{name} {content}"] = [json.loads(span.to_json()) for span in spans.get_finished_spans()]

stop_tracing()
spans.clear()
run(index=[bell])
told["stopped"] = [json.loads(span.to_json()) for span in spans.get_finished_spans()]

others, other_provider = InMemorySpanExporter(), TracerProvider()
other_provider.add_span_processor(SimpleSpanProcessor(others))
trace_runs(tracer_provider=other_provider)
run(index=[bell])
told["elsewhere"] = [json.loads(span.to_json()) for span in others.get_finished_spans()]
told["still here"] = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, list[dict[str, Any]]]:
    """The spans of each run, by its name and whether texts were asked for."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_run_is_a_span_with_its_nodes_searches_and_model_calls_below(
    told: dict[str, Any],
) -> None:
    spans = told["plain False"]
    operations = {span["attributes"].get("gen_ai.operation.name") for span in spans}
    assert {"invoke_agent", "chat"} <= operations
    names = " ".join(span["name"] for span in spans)
    for node in ("plan", "retrieve", "structure", "merge", "answer", "bm25"):
        assert node in names


@pytest.mark.parametrize("run", ["plain", "waiting", "broken"])
def test_no_text_of_question_passage_or_answer_is_in_a_span(
    told: dict[str, Any], run: str
) -> None:
    spans = told[f"{run} False"]
    assert spans
    for word in ("Where was", "Edinburgh", "Alexander", "In which city"):
        assert word not in json.dumps(spans)


def test_texts_are_in_the_spans_where_they_are_asked_for(told: dict[str, Any]) -> None:
    assert "Where was Bell born?" in json.dumps(told["plain True"])
    assert "cannot read the passage about Edinburgh" in json.dumps(told["broken True"])


def test_no_span_is_made_once_tracing_was_stopped(told: dict[str, Any]) -> None:
    assert told["plain False"]
    assert told["stopped"] == []


def test_spans_go_to_the_provider_that_was_given_last(told: dict[str, Any]) -> None:
    assert {span["name"] for span in told["elsewhere"]} == {
        span["name"] for span in told["plain False"]
    }
    assert told["still here"] == []

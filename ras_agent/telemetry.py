"""Makes OpenTelemetry spans of runs, nodes, searches and model calls, with the names of its conventions for
generative AI.

    from ras_agent.telemetry import trace_runs

    trace_runs()  # into the tracer provider of your program

The spans come from the callbacks of LangChain and LangGraph, through `opentelemetry-instrumentation-langchain`.
LangSmith reads the same callbacks and needs only `LANGSMITH_TRACING=true`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from ras_agent.contracts.errors import MissingExtra

_CONTENT = "TRACELOOP_TRACE_CONTENT"


_TRACED = (
    ("langchain_core.callbacks", "BaseCallbackManager"),
    ("langgraph.pregel", "Pregel"),
    ("langgraph.types", "Command"),
    ("langchain.agents.middleware.types", "AgentMiddleware"),
    ("langchain_openai.chat_models.base", "BaseChatOpenAI"),
    ("langchain_openai.llms.base", "BaseOpenAI"),
)
"""Modules and classes with methods that the instrumentation wraps."""


def trace_runs(*, content: bool = False, tracer_provider: Any = None) -> None:
    """Make a span of every run, node, search and model call in this process from now on.

    Args:
        content: whether the spans hold questions, prompts, passages and replies. Otherwise they hold only names, times
            and tokens, whatever the environment says.
        tracer_provider: by default the provider that the program has set.

    Raises:
        MissingExtra: if the extra `otel` is not installed.
    """
    try:
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    except ImportError:
        raise MissingExtra("OpenTelemetry", "otel") from None
    os.environ[_CONTENT] = str(content).lower()
    instrumentor = LangchainInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        from opentelemetry.trace import get_tracer_provider

        instrumentor.instrument(
            tracer_provider=_WithoutTexts(tracer_provider or get_tracer_provider())
        )


class _WithoutTexts:
    """Provides tracers whose spans name an error only by its type, unless texts are wanted.

    The message of an error may quote a passage or a reply. If a run waits for a person, the message even
    contains everything that the person is shown.
    """

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def get_tracer(self, *args: Any, **options: Any) -> Any:
        tracer = self._provider.get_tracer(*args, **options)
        start = tracer.start_span
        tracer.start_span = lambda *args, **options: _without_texts(
            start(*args, **options)
        )
        return tracer


def _without_texts(span: Any) -> Any:
    # without recording, all spans are one shared object, which must not be changed
    if span.is_recording() and os.environ.get(_CONTENT) != "true":
        mark = span.add_event
        set_status = span.set_status
        span.record_exception = lambda error, *_, **__: mark(
            "exception", {"exception.type": type(error).__name__}
        )
        span.set_status = lambda status, description=None: set_status(
            getattr(status, "status_code", status)
        )
    return span


def stop_tracing() -> None:
    """Stop making spans, if `trace_runs` has started it."""
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    from opentelemetry.instrumentation.utils import unwrap

    if not LangchainInstrumentor().is_instrumented_by_opentelemetry:
        return
    LangchainInstrumentor().uninstrument()
    # uninstrument looks for an attribute "Class.method" of the module, does not find it, and leaves the method wrapped
    for module, name in _TRACED:
        traced = getattr(sys.modules.get(module), name, None)
        for method in list(vars(traced)) if traced else ():
            unwrap(traced, method)


def export_runs() -> Callable[[], None]:
    """Send the spans of runs to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, by default http://localhost:4318.

    Returns a function that sends the remaining spans and closes the exporter; call it when the program ends. Raises
    MissingExtra if the extra `otel` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise MissingExtra("OpenTelemetry", "otel") from None
    service = os.environ.get("OTEL_SERVICE_NAME") or "ras-agent"
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace_runs(tracer_provider=provider)

    def end() -> None:
        stop_tracing()
        provider.shutdown()

    return end

"""Turns an agent into a tool of another agent: it takes one question and returns the answer with its sources,
as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from langchain_core.tools import StructuredTool
from langgraph.graph.state import CompiledStateGraph

from ras_agent.contracts.records import JSON
from ras_agent.text.lines import one_line, shown_name
from ras_agent.text.markup import inert_markup

_SOURCES = "\n\nSources:"
_NUMBERS = re.compile(r"\s?(?:\[\d+\])+")
_NUMBERED = re.compile(r"\[\d+\] ")
_NAME = "ask_documents"
_DESCRIPTION = "Answers a question from the documents and names its sources, or says that they hold no answer."
_QUESTION = (
    "One question in plain words that can be understood without the conversation."
)


def as_tool(
    agent: CompiledStateGraph[Any, Any, Any, Any],
    name: str | None = None,
    description: str | None = None,
) -> StructuredTool:
    """Return the agent as a LangChain tool with the single argument `question`. Its text is that of
    `answer_and_sources`.

    The ToolMessage's artifact is the agent's whole output, except for the messages. Each question is a separate
    run. Inside a graph with a checkpointer, that run pauses and resumes together with the graph.

    Args:
        name, description: of the tool; by default those of the agent.
    """
    # the agent's own checkpointer would require a thread for each question
    once = agent.copy({"checkpointer": None})

    def ask(question: Annotated[str, _QUESTION]) -> tuple[str, JSON]:
        return _content_and_artifact(once.invoke({"question": question}))

    async def aask(question: Annotated[str, _QUESTION]) -> tuple[str, JSON]:
        return _content_and_artifact(await once.ainvoke({"question": question}))

    return StructuredTool.from_function(
        ask,
        aask,
        name=name or _NAME,
        description=description or _DESCRIPTION,
        response_format="content_and_artifact",
    )


def as_function(
    agent: CompiledStateGraph[Any, Any, Any, Any],
    name: str | None = None,
    description: str | None = None,
) -> Callable[[str], str]:
    """Return the agent as a plain function of one question; see `answer_and_sources` for the text that it returns."""
    once = agent.copy({"checkpointer": None})

    def ask_documents(question: str) -> str:
        return answer_and_sources(once.invoke({"question": question}))

    ask_documents.__name__ = name or _NAME
    ask_documents.__qualname__ = ask_documents.__name__
    # real types instead of strings, because frameworks may read them without this module
    ask_documents.__annotations__ = {"question": str, "return": str}
    ask_documents.__doc__ = (
        f"{description or _DESCRIPTION}\n\nArgs:\n    question: {_QUESTION}\n\nReturns:\n"
        "    The answer, with its sources below it."
    )
    return ask_documents


def _content_and_artifact(out: Any) -> tuple[str, JSON]:
    return answer_and_sources(out), {
        key: value for key, value in out.items() if key != "messages"
    }


def answer_and_sources(out: Any) -> str:
    """Return an output's answer, followed by each citation: its number, title, file, page and quote.

    >>> cited = {"number": 1, "title": "Leith", "file": "rivers.pdf", "page": 3, "quote": "It is long."}
    >>> print(answer_and_sources({"answer": "Water of Leith", "citations": [cited]}))
    Water of Leith [1]
    <BLANKLINE>
    Sources:
    [1] Leith (rivers.pdf, page 3): "It is long."
    """
    answer = str(out["answer"])
    citations = out["citations"]
    if not citations:
        return answer
    numbers = [f"[{citation['number']}]" for citation in citations]
    if not any(number in answer for number in numbers):
        bearing = [
            f"[{citation['number']}]"
            for citation in citations
            if citation.get("supported") is not False
        ]
        answer = f"{answer} {''.join(bearing)}".rstrip()
    return "\n".join(
        [
            answer + _SOURCES,
            *(inert_markup(_source(citation)) for citation in citations),
        ]
    )


def without_sources(text: str) -> str:
    r"""Return only the answer of a text that `answer_and_sources` made; return any other text unchanged.

    >>> without_sources('Water of Leith [1][2]\n\nSources:\n[1] Leith: "It is long."\n[2] Edinburgh')
    'Water of Leith'
    """
    answer, found, sources = text.rpartition(f"{_SOURCES}\n")
    if found and _NUMBERED.match(sources):
        return _NUMBERS.sub("", answer)
    return text


def source_place(file: object, page: object) -> str:
    """Return the file and page from which a passage or a quote comes, as far as they are known.

    >>> source_place("rivers.pdf", 3)
    'rivers.pdf, page 3'
    """
    name = shown_name(file or "")
    if name and page:
        return f"{name}, page {shown_name(page)}"
    return name


def _source(citation: JSON) -> str:
    title = shown_name(citation.get("title") or citation.get("passage_id", ""))
    headings = map(shown_name, citation.get("headings", ()))
    title = " > ".join([title, *headings])
    place = source_place(citation.get("file"), citation.get("page"))
    file = f" ({place})" if place else ""
    quote = one_line(citation.get("quote", ""))
    doubt = ""
    if citation.get("supported") is False:
        doubt = " (does not support the answer)"
    return f"[{citation['number']}] {title}{file}{doubt}" + (
        f': "{quote}"' if quote else ""
    )

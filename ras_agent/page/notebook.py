"""Shows a trace or an agent in a notebook: short HTML without scripts, in which all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ras_agent.contracts.records import Citation
from ras_agent.text.lines import shown_name


def answer_cell(
    question: str, answer: str, citations: Iterable[Citation], about: str
) -> str:
    """Return the HTML of a question, its answer and the cited sentences, with the line `about` below in small
    letters.
    """
    quotes = "".join(f"<li>{_cited(citation)}</li>" for citation in citations)
    parts = [
        f"<p>{escape(question)}</p>",
        f"<p><b>{escape(answer)}</b></p>",
        f"<ul style='list-style: none'>{quotes}</ul>",
        f"<small>{escape(about)}</small>",
    ]
    return "".join(parts)


def agent_cell(name: str, nodes: Iterable[str]) -> str:
    """Return the HTML that shows an agent's name and its nodes."""
    steps = ", ".join(map(escape, nodes))
    return f"<p><b>Agent {escape(name)}</b></p><small>nodes: {steps}</small>"


def _cited(citation: Citation) -> str:
    quote = escape(citation.quote)
    title = escape(shown_name(citation.title or citation.passage_id))
    return f"[{citation.number}] “{quote}” <i>{title}</i>"

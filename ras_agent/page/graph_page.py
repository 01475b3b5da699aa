"""A trace as one self-contained page (see page_html.py): no fetches, no external script or font, works from a file."""

from __future__ import annotations

import html
import json

from ras_agent.page.parts import filled, inert_json, page_part, policy
from ras_agent.page.picture import picture
from ras_agent.trace import Trace

__all__ = ["trace_data", "trace_frame", "trace_html"]


def trace_html(trace: Trace) -> str:
    """The page: question, answer and evidence, and the question graph growing hop by hop. ASCII but for its frame."""
    title = " ".join(trace.question.split())[:120].encode(errors="replace").decode()
    return trace_frame(title, trace_data(trace))


def trace_data(trace: Trace) -> str:
    """What the page draws, as JSON that can stand in it: {"trace": ..., "picture": ...}."""
    return inert_json({"trace": json.loads(trace.to_json()), "picture": picture(trace)})


def trace_frame(title: str, data: str = "@@DATA@@") -> str:
    """The page around its data; without, the frame in which `trace_data` belongs where it says @@DATA@@."""
    style, script = page_part("trace.css"), page_part("trace.js")
    slots = {"POLICY": policy([script], [style]), "STYLE": style, "SCRIPT": script}
    return filled(page_part("trace.html"), {**slots, "TITLE": html.escape(title), "DATA": data})

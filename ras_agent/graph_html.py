"""A trace as one self-contained page: no fetches, no external scripts or fonts, works from a file.

Passages and facts are hostile data. They stand in the page once, as JSON in which no character means anything to HTML,
and the page's script puts them into the document as text. Should that ever fail, the Content-Security-Policy allows
only the page's own script and style, by their hashes, and no connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files

from ras_agent.graph_picture import picture
from ras_agent.trace import Trace

__all__ = ["trace_html"]

_SLOT = re.compile("@@([A-Z]+)@@")
# "<" could open a tag, "&" an entity; all that is not ASCII is escaped by JSON itself
_TO_ESCAPE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


def trace_html(trace: Trace) -> str:
    """The page: question, answer and evidence, and the question graph growing hop by hop. ASCII but for its frame."""
    data = {"trace": json.loads(trace.to_json()), "picture": picture(trace)}
    style, script = _part("trace.css"), _part("trace.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    slots = {
        "POLICY": policy,
        "TITLE": html.escape(" ".join(trace.question.split())[:120].encode(errors="replace").decode()),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": json.dumps(data, separators=(",", ":")).translate(_TO_ESCAPE),
    }
    return _SLOT.sub(lambda slot: slots[slot[1]], _part("trace.html"))


@cache
def _part(name: str) -> str:
    return files("ras_agent.page").joinpath(name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    """What the policy calls an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

"""Self-contained pages: one file that loads nothing, holds hostile text as data, and forbids itself everything else.

Text of documents stands in a page as JSON in which no character means anything to HTML, and the page's own script puts
it into the document as text. Should that ever fail, the Content-Security-Policy allows only the page's own scripts and
styles, by their hashes, and no connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["filled", "inert_json", "page_part", "policy"]

_SLOT = re.compile("@@([A-Z]+)@@")
# "<" could open a tag, "&" an entity; all that is not ASCII is escaped by JSON itself
_TO_ESCAPE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


@cache
def page_part(name: str) -> str:
    """A file of ras_agent/page."""
    return files("ras_agent.page").joinpath(name).read_text(encoding="utf-8")


def inert_json(data: Any) -> str:
    """`data` as ASCII JSON that can stand inside any element."""
    return json.dumps(data, separators=(",", ":")).translate(_TO_ESCAPE)


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """The Content-Security-Policy under which these inline sources run, and nothing else does."""
    allowed = f"script-src {' '.join(map(_hash, scripts))}; style-src {' '.join(map(_hash, styles))}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def filled(template: str, slots: Mapping[str, str]) -> str:
    """`template` with each @@NAME@@ replaced by the slot of that name, if there is one; slots are not searched."""
    return _SLOT.sub(lambda slot: slots.get(slot[1], slot[0]), template)


def _hash(source: str) -> str:
    """What a policy calls an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

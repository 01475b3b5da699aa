"""Makes self-contained pages: one file that loads nothing and contains texts from documents only as data.

The data is JSON in which no character has a meaning in HTML, and the page's own script inserts it as text.
Should that ever fail, the Content-Security-Policy still allows only the page's own scripts and styles, by their
hashes, and no connections.
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

SERVED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of a page with scripts and styles from its own server."""
_SLOT = re.compile("@@([A-Z]+)@@")
# "<" could open a tag, "&" an entity; json.dumps itself escapes all but ASCII
_TO_ESCAPE = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


@cache
def page_file(name: str) -> str:
    """Return the text of a file in ras_agent/page."""
    return files("ras_agent.page").joinpath(name).read_text(encoding="utf-8")


@cache
def page_script(*names: str) -> str:
    """Return the named scripts of ras_agent/page joined into one, in a function so that other scripts cannot
    see its variables.
    """
    parts = (page_file(f"{name}.js") for name in names)
    return "".join(['"use strict";\n(() => {\n', *parts, "})();\n"])


def json_for_html(data: Any) -> str:
    """Return `data` as ASCII JSON that may be put inside any HTML element."""
    return json.dumps(data, separators=(",", ":")).translate(_TO_ESCAPE)


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a Content-Security-Policy that allows these inline scripts and styles, and nothing else."""
    allowed = f"script-src {' '.join(map(_hash, scripts))}; style-src {' '.join(map(_hash, styles))}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def filled(template: str, slots: Mapping[str, str]) -> str:
    """Return `template` with each @@NAME@@ replaced by `slots[NAME]`, if there is one.

    A @@NAME@@ inside an inserted text is not replaced. A lone surrogate, which a file cannot hold, becomes "?".
    """
    return (
        _SLOT.sub(lambda slot: slots.get(slot[1], slot[0]), template)
        .encode(errors="replace")
        .decode()
    )


def _hash(source: str) -> str:
    """Return the hash by which a Content-Security-Policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

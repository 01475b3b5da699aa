"""Describes the form that a server enforces on a reply, by a pattern or a JSON Schema, in each server's request fields."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from ras_agent.contracts.records import JSON

FormUse = Literal["auto", "on", "off"]
"""When the server enforces the form: "auto" after the first unreadable reply, "on" always, "off" never."""

TOOL_CHOICE = "tool_choice"
KEEP_PATTERNS = frozenset(("vllm", "llamacpp", "sglang"))
"""The servers that can make a plain text match a pattern, named by "owned_by" in their lists of models."""
FIELDS = ("structured_outputs", "grammar", "regex", "response_format", TOOL_CHOICE)
"""The fields of a request that ask the server to enforce a form."""

_TOKEN = re.compile(
    r"\\(?P<class>d)|\\(?P<escaped>.)|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<count>\{\d+(?:,\d*)?\})|(?P<group>\(\?:)"
    r"|(?P<operator>[()|*+?])|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Describes the form that a whole reply must have, so that a server can enforce it."""

    pattern: str
    """A regular expression that the whole reply matches.

    It uses only literals, sets, groups, alternatives and counts.
    """
    schema: JSON = field(default_factory=dict, hash=False)
    """An equivalent JSON Schema, for servers that support no patterns."""

    def options(self, owner: str) -> JSON:
        """Return the fields of a request that make the server enforce this form.

        Args:
            owner: the value of "owned_by" in the server's list of models.
        """
        if owner == "vllm":
            return {"structured_outputs": {"regex": self.pattern}}
        if owner == "llamacpp":
            return {"grammar": f"root ::= {as_grammar(self.pattern)}"}
        if owner == "sglang":
            return {"regex": self.pattern}
        schema = {"name": "reply", "strict": True, "schema": self.schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}


def as_grammar(pattern: str) -> str:
    r"""Return a regular expression as the right side of a rule in llama.cpp's grammars (GBNF).

    >>> as_grammar(r"\[S\] [^\n?]{2,300}\?|no")
    '"[" "S" "]" " " [^\\n?] {2,300} "?" | "n" "o"'
    """
    return " ".join(map(_symbol, _TOKEN.finditer(pattern)))


def _symbol(token: re.Match[str]) -> str:
    """Return the grammar symbol of one token of a regular expression."""
    if token["class"]:
        return "[0-9]"
    if token["group"]:
        return "("
    character = token["escaped"] or token["plain"]
    if not character:
        return token[0]
    if token["escaped"] == "n":
        character = "\n"
    return json.dumps(character, ensure_ascii=False)

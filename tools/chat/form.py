"""Forms that a server holds a reply to: a regular expression or a JSON Schema, in the words of each server."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Literal

from ras_agent.records import JSON

FormUse = Literal["auto", "on", "off"]
"""When replies are held to their form: once one could not be read, always, or never."""

TOOL_CHOICE = "tool_choice"
KEEP_PATTERNS = frozenset(("vllm", "llamacpp", "sglang"))
"""The servers that hold a text to a pattern, by what their lists say in "owned_by"."""
FIELDS = ("structured_outputs", "grammar", "regex", "response_format", TOOL_CHOICE)
"""The fields of a request that hold its reply to a form."""

_TOKEN = re.compile(
    r"\\(?P<class>d)|\\(?P<escaped>.)|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<count>\{\d+(?:,\d*)?\})|(?P<group>\(\?:)"
    r"|(?P<operator>[()|*+?])|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """Form of a reply."""

    pattern: str
    """a regular expression of literals, sets, groups, alternatives and counts that the whole reply matches"""
    schema: JSON = field(default_factory=dict, hash=False)
    """a JSON Schema of the same content, for servers that keep no other form"""

    def options(self, owner: str) -> JSON:
        """Return the fields of a request by which a server holds the reply to this form.

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
    """Return a token of a regular expression as a grammar has it."""
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

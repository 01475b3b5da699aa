"""The action grammar: what a planner's reply means.

    [SUBQ] a question        look this up
    [SUFFICIENT]             the graph holds the answer
    [NO_RETRIEVAL]           no looking up is needed

An action is a whole token in square brackets at the start of a line or a sentence. The first valid one counts. So
neither "INSUFFICIENT" nor "the facts are not [SUFFICIENT]" nor the word "sufficient" ends anything.
"""

from __future__ import annotations

import re

from ras_agent.errors import ParseError
from ras_agent.records import Action, Plan
from ras_agent.tools.chat.dialogue import without_thinking

__all__ = ["FORM", "parse_plan"]

FORM = "one line, either [SUBQ] and a search question, or [SUFFICIENT], or [NO_RETRIEVAL]"

_TOKEN = re.compile(r"\[[ \t*_`]*(SUBQ|SUFFICIENT|NO[_ -]?RETRIEVAL)[ \t*_`:]*\]", re.IGNORECASE)
_STARTS = re.compile(r"(?:^|[\n.:;!?…。！？—→])[\s*_`'\"“”‘’>#()|•-]*(?:\d+[.)]\s*)?\Z")
_ACTIONS: dict[str, Action] = {"SUBQ": "subq", "SUFFICIENT": "sufficient", "NORETRIEVAL": "no_retrieval"}
_WRAPPING = " \t*_`'\"“”‘’<>:|-—"
_LOOK_BACK = 80
_LONGEST_REASON = 500


def parse_plan(reply: str) -> Plan:
    """The plan that a reply states; prose in front of its action is the reason. Raises ParseError if it states none."""
    text = without_thinking(reply)
    tokens = [token for token in _TOKEN.finditer(text) if _begins(text, token.start())]
    ends = [*(token.start() for token in tokens[1:]), len(text)]
    for token, end in zip(tokens, ends, strict=False):  # without a token there is still one end
        action = _ACTIONS[re.sub(r"[^A-Z]", "", token[1].upper())]
        subquery = _question(text[token.end() : end]) if action == "subq" else ""
        if action != "subq" or subquery:
            reason = text[: token.start()].strip(_WRAPPING + "\n")[:_LONGEST_REASON]
            return Plan(action, subquery, reason if any(map(str.isalpha, reason)) else "")
    raise ParseError(f"no action in the reply {reply.strip()[:200]!r}; expected {FORM}")


def _begins(text: str, offset: int) -> bool:
    """Whether a line or a sentence begins at `offset`, markup and list numbers apart."""
    before = text[max(0, offset - _LOOK_BACK) : offset]  # a bounded look back keeps the parser linear
    return bool(_STARTS.search(before if offset <= _LOOK_BACK else f"x{before}"))


def _question(text: str) -> str:
    """The first line with words in it, without quotes and markup."""
    for line in text.splitlines():
        bare = " ".join(line.split()).strip(_WRAPPING)
        if any(char.isalnum() for char in bare):
            return bare
    return ""

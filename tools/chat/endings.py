"""Classifies how a reply ended, by the words of servers and LangChain: whole, cut off, broken off, withheld or
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

LENGTH = "length"
REPEATED = "repeated"
REFUSAL = "refusal"

Kind = Literal["whole", "cut off", "broken off", "withheld", "replaced"]

# patterns of the reasons of each kind, tried in this order; a whole reply may also give no reason
_KINDS: tuple[tuple[Kind, str], ...] = (
    ("replaced", r"refus|\Aguardrails?(?:_intervened)?\Z"),
    (
        "withheld",
        "filter|safety|recitation|sensitive|block|prohibit|spii|toxic|violat|moderat|flagged|guard|policy|armor"
        r"|inspection|risk|censor|harm|copyright|jailbreak|\Alanguage\Z",
    ),
    ("broken off", "(?:time|rate)_?limit|not_finished|by_user"),
    ("cut off", "length|max|limit|truncat|num_predict"),
    (
        "broken off",
        "error|fail|abort|cancel|timeout|timed|overload|unload|unavailable|interrupt|preempt|disconnect|malformed"
        "|unexpected|resource|user_?stop|kill|evict|shut_?down|missing|too_many",
    ),
    (
        "whole",
        r"\A(?:(?:matched_)?stop|eos|end)(?:_?(?:\w+))?\Z|\A(?:done|eod|completed?|finish(?:ed)?|success|normal|ok)\Z"
        r"|\A(?:tool|function)[_-]?(?:calls?|use)\Z|\A(?:null|none|finish_reason_unspecified)\Z",
    ),
)
_PREFIX = "finish_reason_"

# where a message's metadata says how it ended: OpenAI and Gemini, Anthropic, Ollama, Bedrock
_PLACES = ("finish_reason", "stop_reason", "done_reason", "stopReason")
# LangChain joins the reasons of two pieces into one word, such as "stopstop"
_TWICE = re.compile(r"(.+?)\1*", re.DOTALL)

_CUT_OFF = "the reply was cut off at its token limit"
_REPEATED = (
    "the reply repeated itself, and was ended when a line came for the third time"
)
_SHOWN = 200  # characters of a reply in a message
EMPTY_REPLY = (
    "the model's reply was empty: if it is a reasoning model, let it reason less (reasoning_effort, "
    "chat_template_kwargs) or start its server without a reasoning parser; otherwise check that the server uses the "
    "model's own chat template"
)
"""Message for a reply without words, with advice."""
_WITHHELD = "the server withheld the rest of the reply"


def kind_of(reason: str) -> Kind | None:
    """Return the kind of ending that a server's finish reason means; None for an unknown reason.

    >>> kind_of("FinishReason.SAFETY"), kind_of("stop"), kind_of("pause_turn")
    ('withheld', 'whole', None)
    """
    if not reason:
        return "whole"
    name = reason.rpartition(".")[2].lower()
    for kind, words in _KINDS:
        if re.search(words, name):
            return kind
    bare = name.removeprefix(_PREFIX)
    if bare == name:
        return None
    return kind_of(bare)


def reason_in(message: Any) -> str:
    """Return the finish reason that a message or a streamed piece states, in the server's own word; "" if it states no
    reason.
    """
    about = getattr(message, "response_metadata", None) or {}
    reasons = [about.get(place) for place in _PLACES]
    details = about.get("incomplete_details")  # OpenAI's Responses
    if isinstance(details, Mapping):
        reasons.append(details.get("reason"))
    if about.get("status") in ("incomplete", "failed", "cancelled"):
        reasons.append(about["status"])
    feedback = about.get("prompt_feedback")  # Gemini, if it does not answer
    if isinstance(feedback, Mapping) and feedback.get("block_reason"):
        reasons.append("blocked")
    said = next(filter(None, map(_name_of, reasons)), "")
    twice = _TWICE.fullmatch(said)
    if twice and kind_of(said) is None:
        return twice[1]
    return said


def _name_of(reason: object) -> str:
    """Return the name of a reason, which some servers wrap in an object; "" if there is none."""
    if isinstance(reason, Mapping):
        reason = reason.get("type")
    return reason if isinstance(reason, str) else ""


def refusal_in(message: Any) -> str:
    """Return a model's explanation of a refusal if the message keeps it separate from its text; otherwise ""."""
    more = getattr(message, "additional_kwargs", None) or {}
    refusal = more.get(REFUSAL)
    if isinstance(refusal, str) and refusal:
        return refusal
    content = getattr(message, "content", None)
    if not isinstance(content, list):
        return ""
    refusals = []
    for block in content:
        said = block.get(REFUSAL) if isinstance(block, Mapping) else None
        if isinstance(said, str):
            refusals.append(said)
    return " ".join(refusals)


def shortfall(reason: str, refusal: str = "") -> str:
    """Describe the missing part of a reply that ended for `reason`; return "" for a whole reply."""
    kind = kind_of(reason)
    if kind == "whole":
        return ""
    if reason == REPEATED:
        return _REPEATED
    if kind == "cut off":
        return _CUT_OFF
    said = f": {refusal}" if refusal else ""
    if kind in ("withheld", "replaced"):
        return f"{_WITHHELD} ({reason}){said}"
    return f"the server ended the reply early ({reason}){said}"


def nothing_in(reply: str, wanted: str) -> str:
    """Return a message that something is missing from a reply.

    Args:
        wanted: names the missing part, with "no".

    >>> nothing_in("Hello!", "no action")
    "no action in the reply 'Hello!'"
    """
    said = reply.strip()
    if not said:
        return EMPTY_REPLY
    return f"{wanted} in the reply {said[:_SHOWN]!r}"


def finish_reason(messages: Iterable[str]) -> str:
    """Return the finish reason, in OpenAI's terms, of an answer during which these failures were noted."""
    for message in messages:
        if message in (_CUT_OFF, _REPEATED):
            return LENGTH
        if message.startswith(_WITHHELD):
            return "content_filter"
    return "stop"

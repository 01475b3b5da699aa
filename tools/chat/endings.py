"""How a reply ended, in the words of servers and of LangChain's models: whole, cut off, broken off, or withheld."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

LENGTH, REPEATED, REFUSAL = "length", "repeated", "refusal"

Kind = Literal["whole", "cut off", "broken off", "withheld", "replaced"]

# in small letters; "whole" is also a reply without a word about its end
_KINDS: dict[Kind, str] = {
    "whole": """stop eos eos_token eos_found eosfound end end_turn end_of_turn stop_sequence stop_token done complete
        completed tool_calls tool_call tool_use toolcalls function_call null none finished finish_reason_unspecified""",
    "cut off": """length max_tokens max_length max_len model_length max_output_tokens max_new_tokens
        max_completion_tokens token_limit limit maxpredictedtokensreached""",
    "broken off": """error errored failed abort aborted network_error cancelled canceled timeout timed_out time_limit
        user_cancel userstopped insufficient_system_resource unknown_error internal_error server_error overloaded
        not_finished malformed_function_call malformed_model_output malformed_tool_use unexpected_tool_call""",
    "withheld": """content_filter content_filtered content-filter safety recitation sensitive blocklist
        prohibited_content spii language image_safety error_toxic violation blocked""",
    "replaced": "refusal guardrail_intervened",
}
_KIND_OF: dict[str, Kind] = {name: kind for kind, names in _KINDS.items() for name in names.split()}

# where a message's metadata says how it ended: OpenAI and Gemini, Anthropic, Ollama, Bedrock
_PLACES = ("finish_reason", "stop_reason", "done_reason", "stopReason")
# the words that LangChain makes of two pieces that both say it
_TWICE = re.compile(r"(.+?)\1*", re.DOTALL)

_CUT_OFF = "the reply was cut off at its token limit"
_REPEATED = "the reply repeated itself, and was ended where a line came for the third time"
_WITHHELD = "the server withheld the rest of the reply"


def kind_of(reason: str) -> Kind | None:
    """Return the kind of an ending; None for one that is not known.

    >>> kind_of("FinishReason.SAFETY"), kind_of("stop"), kind_of("pause_turn")
    ('withheld', 'whole', None)
    """
    return _KIND_OF.get(reason.rpartition(".")[2].lower()) if reason else "whole"


def reason_in(message: Any) -> str:
    """Return why a message, or a piece of one, ended, in the words of its model; "" where it says nothing."""
    about = getattr(message, "response_metadata", None) or {}
    reasons = [about.get(place) for place in _PLACES]
    details = about.get("incomplete_details")  # OpenAI's Responses
    if isinstance(details, Mapping):
        reasons.append(details.get("reason"))
    if about.get("status") in ("incomplete", "failed", "cancelled"):
        reasons.append(about["status"])
    feedback = about.get("prompt_feedback")  # Gemini, of a prompt that is not answered
    if isinstance(feedback, Mapping) and feedback.get("block_reason"):
        reasons.append("blocked")
    said = next((reason for reason in reasons if isinstance(reason, str) and reason), "")
    once = _TWICE.fullmatch(said)
    return once[1] if once and kind_of(said) is None else said


def refusal_in(message: Any) -> str:
    """Return the words in which a model refused to reply, where they are told apart from a reply; "" for none."""
    refusal = (getattr(message, "additional_kwargs", None) or {}).get(REFUSAL)
    if isinstance(refusal, str) and refusal:
        return refusal
    content = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else []
    refusals = (block.get(REFUSAL) for block in blocks if isinstance(block, Mapping))
    return " ".join(text for text in refusals if isinstance(text, str))


def shortfall(reason: str, refusal: str = "") -> str:
    """Say what a reply lacks that ended for a reason; "" for nothing."""
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


def finish_reason(messages: Iterable[str]) -> str:
    """Return the finish reason, in OpenAI's words, of an answer whose failures have these messages."""
    for message in messages:
        if message in (_CUT_OFF, _REPEATED):
            return LENGTH
        if message.startswith(_WITHHELD):
            return "content_filter"
    return "stop"

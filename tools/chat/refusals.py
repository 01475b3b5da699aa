"""Recognises refusals of servers by their words, in a table with a row for each part of a request that can be left out.

An endpoint's refusals are remembered (`Window.refused`), and later requests go without these parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from ras_agent.prompts import Turn
from ras_agent.prompts.templates import THOUGHTS_KEY
from ras_agent.records import JSON
from ras_agent.tools.chat.runnables import (
    bound_arguments,
    changed,
    chat_models_in,
    class_names,
)

ROLES = "roles"
STREAM = "stream"
WHOLE = "whole"
STREAM_OPTIONS = "stream_options"
PREFILL = "prefill"
"""A last turn of the assistant's, with which the reply is to go on"""
MOST = "most"
"""The length of a reply that a server allows, which no part names: less is asked for then"""
KEEPS_STOP = "include_stop_str_in_output"
"""vLLM's option by which a reply keeps the text at which it stopped"""

OPENAI_LIMITS = ("max_completion_tokens", "max_tokens")
"""How a request in OpenAI's protocol limits its reply, the newer name first"""
_NEWER, _OLDER = OPENAI_LIMITS
_GO_ON = Turn("user", "Go on with your last message where it ends. Do not repeat it.")
_READ = 1000  # characters of a complaint; some servers send the whole request back
_LEAST_LIMIT = 16  # tokens; a smaller number in a complaint is no limit of a reply
_BY_THE_REQUEST = frozenset((400, 402, 422, 500, 501))
# a class of LangChain's that knows no such option
_BY_THE_MODEL = (TypeError, ValueError, NotImplementedError)
_REFUSES = re.compile(
    r"\bnot\b|n't\b|un(?:supported|recogni[sz]ed|known|available)|expected|extra|invalid|illegal|\bmust\b|should|\bonly\b"
    r"|cannot|remove|fail(?:ed|s)? to|deprecated|forbidden|disabled|incompatible|range|between|greater|less|strictly"
    r"|\bup to\b|at most|too (?:long|large|many)|exceeds?|required?s?\b|please (?:use|set|enable|remove)"
    r"|不支持|不允许|不能|无效|非法|必须|[仅只]支持",
    re.IGNORECASE,
)
_LACKS_FIELD = re.compile(r"missing|field required", re.IGNORECASE)
_MISSES = re.compile(r"missing|field required|is required", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d+)(?![\w-]|\.\d)")


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a request that a server may refuse."""

    name: str
    """how it is remembered: of a field of the request, the field's name"""
    words: str
    """how complaints name it: a regular expression"""

    def is_named_in(self, complaint: str) -> bool:
        """Return whether a complaint is about this part."""
        return re.search(self.words, complaint, re.IGNORECASE | re.DOTALL) is not None


def _field(name: str) -> Part:
    """Return the part that is a field of the request; some servers write its name in other ways."""
    return Part(
        name, rf"(?<![a-z_]){re.escape(name).replace('_', '[_ -]?')}s?(?![a-z_])"
    )


# no system role (Gemma, Mistral 7B, o1-mini, Bedrock's Titan), or only user and assistant in turn
_SYSTEM = (
    r"(?:system|developer)[\W_]{0,3}(?:roles?|messages?|prompts?|instructions?|角色)",
    r"\broles?\b\W{0,3}.{0,60}\b(?:system|developer|alternat\w+)\b",
    r"\bsystem\b.{0,40}\b(?:one of|supported values)\b",
    r"['\"]user['\"]\W+(?:(?:or|and)\W+)?['\"]assistant['\"]|\buser role\b.{0,30}\bgot\b",
    r"messages?(?:\[\d+\]|\.\d+)\.role",
    r"even index|(?:first message|must start with)\b.{0,40}\buser\b|only user\b.{0,30}\bassistant\b",
)
_FIELDS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "tool_choice",
    "parallel_tool_calls",
    "logprobs",
    "continue_final_message",
    "add_generation_prompt",
)
# the fields that hold a reply to a form; complaints name their content, too
_FORMS = {
    "response_format": r"response[_ ]?(?:format|mime_?type)|json[_ ]?(?:schema|object)|schema|output_config",
    "structured_outputs": r"structured[_ ]?outputs?|guided|regex|grammar",
    "grammar": r"grammar",
    "regex": r"regex|grammar",
}
# the fields that say how much a model thinks
_THINKING = {
    "reasoning_effort": r"reasoning[_ -]?effort|\bsupport\w* thinking",
    "chat_template_kwargs": r"chat_template_kwargs|enable_thinking(?!.*non-stream)",
}
_OWN_FIELDS = ("stop", *_FIELDS, *_FORMS, *_THINKING)
# where a model of LangChain's holds further fields of its requests
_MORE = ("model_kwargs", "extra_body")
_LIMIT = re.compile(
    r"max(?:imum)?[_ -]?(?:(?:new|output|completion)[_ -]?)?tokens|num_predict",
    re.IGNORECASE,
)
PARTS = (
    Part(
        PREFILL,
        r"prefill|must (?:end with|be from) (?:a|the) user|last role\b|last message is from the assistant"
        r"|assistant messages at the end",
    ),
    Part(ROLES, "|".join(_SYSTEM)),
    Part(STREAM_OPTIONS, r"stream[_ ]?options|include_usage"),
    Part(KEEPS_STOP, KEEPS_STOP),
    Part(THOUGHTS_KEY, THOUGHTS_KEY),
    *map(_field, _FIELDS),
    *(Part(name, words) for name, words in (_FORMS | _THINKING).items()),
    *map(_field, OPENAI_LIMITS),
    Part("stop", r"(?<![a-z_])stop(?:[_ ]?(?:sequences?|words?|strings?))?(?![a-z_])"),
    Part(STREAM, r"(?<![a-z])stream(?!_)"),
    Part(WHOLE, r"(?<![a-z])stream(?!_)"),
)
"""What can be left out, in the order in which a complaint is looked through."""


def complaint_of(error: BaseException) -> str:
    """Return the complaint of a server, or of a model's class, about a request; "" for another error."""
    status = getattr(error, "status_code", None)
    by_the_model = status is None and isinstance(error, _BY_THE_MODEL)
    if status not in _BY_THE_REQUEST and not by_the_model:
        return ""
    body = getattr(error, "body", None)
    details = body.get("detail") if isinstance(body, dict) else None
    if not isinstance(details, list):
        return str(error)[:_READ]
    complaints = []
    for detail in details:  # FastAPI's, which shows the whole request, too
        if isinstance(detail, dict):
            complaints.append(f"{detail.get('loc')}: {detail.get('msg')}")
    return " ; ".join(complaints)


def refused_part(
    error: BaseException, sent: Collection[str], added: Collection[str] = ()
) -> str:
    """Return the part of a request that an error refuses; "" if it names no part that was sent.

    added: fields that a user added, which no row of the table need know.

    >>> class Refusal(Exception): status_code = 400
    >>> refused_part(Refusal("temperature must be in (0.0, 2.0]"), {"temperature", "stop"})
    'temperature'
    """
    complaint = complaint_of(error)
    if not _REFUSES.search(complaint) or _LACKS_FIELD.search(complaint):
        return ""
    for part in (*PARTS, *map(_field, added)):
        if part.name in sent and part.is_named_in(complaint):
            return part.name
    return ""


def longest_allowed(error: BaseException, asked: int) -> int | None:
    """Return the longest reply that a server allows, in tokens, where an error says that `asked` are too many.

    None where the error is about something else.

    >>> class Refusal(Exception): status_code = 400
    >>> longest_allowed(Refusal("Range of max_tokens should be [1, 1024]"), 2048)
    1024
    """
    complaint = complaint_of(error)
    if not _LIMIT.search(complaint):
        return None
    own_status = getattr(error, "status_code", None)
    longest = None
    for written in _NUMBER.findall(complaint):
        number = int(written.replace(",", ""))
        if _LEAST_LIMIT <= number < asked and number != own_status:
            longest = max(number, longest or 0)
    if longest is None:
        return None
    return longest - ("exclusive" in complaint)


def misses_limit(error: BaseException) -> bool:
    """Return whether an error says that a request has to limit its reply."""
    complaint = complaint_of(error)
    return (
        _MISSES.search(complaint) is not None and _LIMIT.search(complaint) is not None
    )


def says_nothing(error: BaseException) -> bool:
    """Return whether a server failed without a word, as SGLang does where its chat template refuses a role."""
    return (
        re.fullmatch(
            r"Error code: 500 - \W*(?:internal server error)?\W*",
            str(error),
            re.IGNORECASE,
        )
        is not None
    )


def parts_sent(model: Any, turns: Sequence[Turn], streamed: bool) -> set[str]:
    """Return the parts of a request that a server may refuse. model: with all that is bound to it."""
    names = limits_sent(model) | _parts_of(turns)
    names.add(STREAM if streamed else WHOLE)
    for arguments in bound_arguments(model):
        names |= arguments.keys()
    for one in chat_models_in(model):
        for name in _OWN_FIELDS:
            if getattr(one, name, None) is not None:
                names.add(name)
        for place in _MORE:
            names |= (getattr(one, place, None) or {}).keys()
        if streamed and getattr(one, "stream_usage", False):
            names.add(STREAM_OPTIONS)
    return names


def _parts_of(turns: Sequence[Turn]) -> set[str]:
    """Return the parts of the turns that a server may refuse."""
    roles = [turn.role for turn in turns]
    twice = any(one == other != "tool" for one, other in pairwise(roles))
    parts = set()
    if "system" in roles or twice:
        parts.add(ROLES)
    if roles[-1:] == ["assistant"]:
        parts.add(PREFILL)
    if any(turn.thoughts for turn in turns):
        parts.add(THOUGHTS_KEY)
    return parts


# ---- replacements for refused parts


def accepted_turns(turns: Sequence[Turn], refused: Collection[str]) -> tuple[Turn, ...]:
    """Return turns without the parts that a server refuses: thoughts, a system role, two turns of one role in a row.

    Where the last one may not be the assistant's, the user asks to go on. The text of the system stands at the head of
    the first turn of the user.
    """
    if THOUGHTS_KEY in refused:
        turns = [replace(turn, thoughts="") for turn in turns]
    if PREFILL in refused and turns[-1].role == "assistant":
        turns = (*turns, _GO_ON)
    if ROLES not in refused:
        return tuple(turns)
    alternating: list[Turn] = []
    for turn in turns:
        if turn.role == "system":
            turn = replace(turn, role="user")
        before = alternating[-1] if alternating else None
        if (
            before is not None
            and before.role == turn.role != "tool"
            and not before.calls
        ):
            alternating[-1] = replace(turn, text=f"{before.text}\n\n{turn.text}")
        else:
            alternating.append(turn)
    return tuple(alternating)


def without_fields(model: Any, refused: Collection[str]) -> Any:
    """Return a copy of a model, or of a runnable around some, that sends no field that the server refuses."""

    def accepted(fields: JSON) -> JSON:
        return {name: value for name, value in fields.items() if name not in refused}

    def accepting(one: Any) -> Any:
        update: JSON = {}
        for name in _OWN_FIELDS:
            if name in refused and hasattr(one, name):
                update[name] = None
        for place in _MORE:
            given = getattr(one, place, None)
            if given:
                update[place] = accepted(given)
        if STREAM_OPTIONS in refused and hasattr(one, "stream_usage"):
            update["stream_usage"] = False
        return one.model_copy(update=update) if update else one

    return changed(model, accepting, accepted) if refused else model


# ---- limits of replies


# OpenAI and Anthropic, Ollama, Gemini, Hugging Face
_LIMIT_FIELDS = ("max_tokens", "num_predict", "max_output_tokens", "max_new_tokens")


def capped(model: Any, most: int | None, refused: Collection[str] = ()) -> Any:
    """Return a copy of a chat model whose replies have at most `most` tokens; the model itself if it has no such limit.

    A smaller limit of its own stays, also without `most`. Of a runnable around models each is limited.
    refused: names of this limit in OpenAI's protocol that the server does not take. OpenAI refuses the older one for
        its newer models; of the servers that speak its protocol some know no other, and some refuse the newer one.
    """
    return changed(model, lambda one: _capped(one, most, refused))


def _capped(model: Any, most: int | None, refused: Collection[str]) -> Any:
    fields = getattr(type(model), "model_fields", {})
    own_fields = [name for name in _LIMIT_FIELDS if name in fields]
    if not own_fields:
        return model
    field = own_fields[0]
    least = _least(most, getattr(model, field))
    update: JSON = {}
    if "limit_name" in fields:  # the model of this package
        update["limit_name"] = _name_sent(model.base_url, refused)
        update[field] = least
    elif _is_chat_openai(model):
        update = _openai_update(model, most, refused)
    elif least is not None:
        update[field] = least
    return model.model_copy(update=update) if update else model


def _openai_update(model: Any, most: int | None, refused: Collection[str]) -> JSON:
    """Return the fields by which ChatOpenAI limits its reply. It sends its own by the newer name, to any server."""
    body = dict(model.extra_body or {})
    least = _least(most, model.max_tokens, body.pop(_OLDER, None))
    if least is None:
        return {}
    client = getattr(model, "root_client", None)
    address = getattr(client, "base_url", None) or model.openai_api_base
    sent = _name_sent(str(address or ""), refused)
    newer = None
    if sent == _NEWER:
        newer = least
    elif sent == _OLDER:
        body[_OLDER] = least
    return {"max_tokens": newer, "extra_body": body or None}


def _least(*limits: object) -> int | None:
    """Return the smallest of the limits that are numbers of tokens."""
    given = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(given, default=None)


def _name_sent(url: str, refused: Collection[str]) -> str:
    """Return the name by which a request to an address limits its reply; "" where both are refused."""
    names = OPENAI_LIMITS
    if not is_openai(url):
        names = OPENAI_LIMITS[::-1]
    for name in names:
        if name not in refused:
            return name
    return ""


def is_openai(url: str) -> bool:
    """Return whether an address is OpenAI's own."""
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def longest_reply(model: Any) -> int | None:
    """Return the most tokens that requests of a chat model allow a reply; None for any number."""
    stated = []
    for one in chat_models_in(model):
        body = getattr(one, "extra_body", None) or {}
        stated += [getattr(one, name, None) for name in _LIMIT_FIELDS]
        stated += [body.get(name) for name in OPENAI_LIMITS]
    limits = [limit for limit in stated if isinstance(limit, int)]
    return max(limits, default=None)


def limits_sent(model: Any) -> set[str]:
    """Return the names by which requests of a chat model limit their replies, of those in OpenAI's protocol."""
    names: set[str] = set()
    for one in chat_models_in(model):
        names.update(_limits_of(one))
    return names


def _limits_of(model: Any) -> Iterator[str]:
    own = getattr(model, "max_tokens", None)
    name = getattr(model, "limit_name", "")
    if own and name:
        yield name
    elif _is_chat_openai(model):
        if own is not None:
            yield _NEWER
        if _OLDER in (model.extra_body or {}):
            yield _OLDER


def _is_chat_openai(model: Any) -> bool:
    return "ChatOpenAI" in class_names(model)

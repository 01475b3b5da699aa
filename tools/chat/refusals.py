"""Recognises, by error messages, that a server refuses a part of a request; a table lists the parts.

An endpoint's refusals are remembered (`Window.refused`), and later requests leave these parts out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from ras_agent.contracts.records import JSON
from ras_agent.prompts import Turn
from ras_agent.prompts.templates import THOUGHTS_KEY
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
"""A last turn of the assistant, which the reply should continue."""
MOST = "most"
"""The length of a reply, if the server allows less than was asked for; it is then lowered, not left out."""
KEEPS_STOP = "include_stop_str_in_output"
"""vLLM's option that keeps the stop text at the end of a reply."""

OPENAI_LIMITS = ("max_completion_tokens", "max_tokens")
"""The fields that limit a reply's length in OpenAI's protocol, the newer name first."""
_NEWER, _OLDER = OPENAI_LIMITS
_GO_ON = Turn("user", "Go on with your last message where it ends. Do not repeat it.")
_READ = 1000  # characters of an error message that are read; some servers send the whole request back
_LEAST_LIMIT = 16  # tokens; a smaller number in an error is no reply limit
_BY_THE_REQUEST = frozenset((400, 402, 422, 500, 501))
# errors of a LangChain class that does not know an option
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
    """Describes a part of a request that a server may refuse."""

    name: str
    """The name under which a refusal is remembered; for a field of the request, the field's name."""
    words: str
    """A regular expression that finds the part in an error message."""

    def is_named_in(self, complaint: str) -> bool:
        """Return whether an error message is about this part."""
        found = re.search(self.words, complaint, re.IGNORECASE | re.DOTALL)
        return found is not None


def _field(name: str) -> Part:
    """Return the Part for a field of the request; the pattern allows the spellings of its name that servers use."""
    return Part(
        name, rf"(?<![a-z_]){re.escape(name).replace('_', '[_ -]?')}s?(?![a-z_])"
    )


# models without a system role (Gemma, Mistral 7B, o1-mini, Titan), or whose user and assistant turns must alternate
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
# fields that enforce a form of the reply; error messages may name their content instead
_FORMS = {
    "response_format": r"response[_ ]?(?:format|mime_?type)|json[_ ]?(?:schema|object)|schema|output_config",
    "structured_outputs": r"structured[_ ]?outputs?|guided|regex|grammar",
    "grammar": r"grammar",
    "regex": r"regex|grammar",
}
# fields that control how much a model thinks
_THINKING = {
    "reasoning_effort": r"reasoning[_ -]?effort|\bsupport\w* thinking",
    "chat_template_kwargs": r"chat_template_kwargs|enable_thinking(?!.*non-stream)",
}
_OWN_FIELDS = ("stop", *_FIELDS, *_FORMS, *_THINKING)
# attributes in which a LangChain model holds further request fields
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
"""The parts that can be left out, in the order in which an error message is searched for them."""


def complaint_of(error: BaseException) -> str:
    """Return the message of an error with which a server, or a model's class, rejects a request; "" for any other
    error.
    """
    status = getattr(error, "status_code", None)
    by_the_model = status is None and isinstance(error, _BY_THE_MODEL)
    if status not in _BY_THE_REQUEST and not by_the_model:
        return ""
    body = getattr(error, "body", None)
    details = body.get("detail") if isinstance(body, dict) else None
    if not isinstance(details, list):
        return str(error)[:_READ]
    complaints = []
    for detail in details:  # FastAPI's details, which also contain the whole request
        if isinstance(detail, dict):
            complaints.append(f"{detail.get('loc')}: {detail.get('msg')}")
    return " ; ".join(complaints)


def refused_part(
    error: BaseException, sent: Collection[str], added: Collection[str] = ()
) -> str:
    """Return the name of the request's part that an error refuses; "" if it names no part that was sent.

    Args:
        sent: the names of the parts that were sent.
        added: names of fields that a user added, which need not be in the table.

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
    """Return the longest reply, in tokens, that a server allows, by an error that says that `asked` are too many.

    Return None for any other error.

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
    """Return whether an error says that a request must limit the length of its reply."""
    complaint = complaint_of(error)
    return (
        _MISSES.search(complaint) is not None and _LIMIT.search(complaint) is not None
    )


def says_nothing(error: BaseException) -> bool:
    """Return whether a server failed without a reason, as SGLang does if its chat template does not accept a role."""
    return (
        re.fullmatch(
            r"Error code: 500 - \W*(?:internal server error)?\W*",
            str(error),
            re.IGNORECASE,
        )
        is not None
    )


def parts_sent(model: Any, turns: Sequence[Turn], streamed: bool) -> set[str]:
    """Return the names of a request's parts that a server may refuse.

    Args:
        model: the model with all arguments that are bound to it.
        streamed: whether the reply is streamed.
    """
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
    """Return the names of the parts of the turns that a server may refuse."""
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
    """Return the turns in a form that the server accepts, given the names of the parts that it refuses.

    If thoughts are refused, they are left out. If the last turn must not be the assistant's, a user turn asks to
    continue. If system roles are refused, the text goes before that of the user's first turn, and successive turns
    of one role are joined.
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
    """Return a copy of a model, or of a runnable around models, without the request fields that the server refuses."""

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
    """Return a copy of a chat model whose replies have at most `most` tokens; the same model if its class has no such
    limit.

    A smaller limit of the model stays, also if `most` is None. In a runnable around models, each model is limited.

    Args:
        refused: the names of the limit in OpenAI's protocol that the server does not accept. OpenAI refuses the
            older name for its newer models; some other servers know only the older, and some refuse the newer.
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
    """Return the changes that limit ChatOpenAI's replies.

    By itself it sends its limit under the newer name to any server.
    """
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
    """Return the smallest of the limits that are positive integers; None if none is."""
    given = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(given, default=None)


def _name_sent(url: str, refused: Collection[str]) -> str:
    """Return the field name under which a request to an address limits its reply; "" if both names are refused."""
    names = OPENAI_LIMITS
    if not is_openai(url):
        names = OPENAI_LIMITS[::-1]
    for name in names:
        if name not in refused:
            return name
    return ""


def is_openai(url: str) -> bool:
    """Return whether an address belongs to OpenAI."""
    host = urlsplit(url).hostname or ""
    return host == "openai.com" or host.endswith(".openai.com")


def longest_reply(model: Any) -> int | None:
    """Return the maximum number of tokens that a chat model's requests allow for a reply; None for no limit."""
    stated = []
    for one in chat_models_in(model):
        body = getattr(one, "extra_body", None) or {}
        stated += [getattr(one, name, None) for name in _LIMIT_FIELDS]
        stated += [body.get(name) for name in OPENAI_LIMITS]
    limits = [limit for limit in stated if isinstance(limit, int)]
    return max(limits, default=None)


def limits_sent(model: Any) -> set[str]:
    """Return the names of the fields by which a chat model's requests limit their replies in OpenAI's protocol."""
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

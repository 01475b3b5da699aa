"""Reads from errors their causes, and how long a server asks to wait, in its headers or its error message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_RATE_LIMITED = 429
_READ = 2000  # characters of an error
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT = r"milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d"
_ONE = rf"\d+(?:\.\d+)?\s*(?:{_UNIT})(?![a-z])"
_DURATION = rf"{_ONE}(?:[\s,]*(?:and\s+)?{_ONE})*"
_PART = re.compile(rf"(\d+(?:\.\d+)?)\s*({_UNIT})(?![a-z])", re.IGNORECASE)
_WHOLE_DURATION = re.compile(_DURATION, re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# "try again in 3s", "retry after 20 seconds", "wait 1 minute", 'retryDelay': '32s', "try again in 3"
_AGAIN = r"(?:try(?:ing)? again|retry\w*|wait|resets?|available|back[ -]?off|cool[ -]?down)\b"
_ASKED = re.compile(rf"{_AGAIN}[^\d]{{0,30}}?({_DURATION})", re.IGNORECASE)
_ASKED_IN_NUMBERS = re.compile(
    rf"(?:{_AGAIN}\W+(?:in|after)|retry_?after(?:_?seconds)?)\W+(\d+(?:\.\d+)?)(?![\w.]*\w)|(\d+)\s*秒[后後]",
    re.IGNORECASE,
)
# "per minute", "RPM", "20 requests in the last 30 seconds", "a window of 20 s"
_WINDOW = re.compile(
    rf"(?:per|/|every|each|within|last|window of|\ba)[\s-]*(?:(\d+)[\s-]*)?({_UNIT})(?-i:(?![a-z]))",
    re.IGNORECASE,
)
_SHORT_WINDOW = re.compile(r"\b[RTQ]P([SMHD])\b")
_CHINESE_WINDOWS = {
    "每秒": 1.0,
    "每分钟": 60.0,
    "每分鐘": 60.0,
    "每小时": 3600.0,
    "每小時": 3600.0,
}

# a number is a time to wait in seconds, unless it is so large that it must be a date in (milli)seconds since 1970
_FIRST_MOMENT = 1.5e9
_FIRST_MOMENT_IN_MS = 1.5e12


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the endpoint asked to wait; None if it did not ask.

    The Retry-After header (seconds or a date) comes first. For a rate limit, the error message or the headers that say
    when the limit is reset are read next; failing these, the length of the window over which calls are counted.

    >>> class RateLimited(Exception): status_code = 429
    >>> retry_after(RateLimited("Rate limit reached. Please try again in 1m3.5s."))
    63.5
    >>> retry_after(RateLimited("Limit of 3 requests per minute"))
    60.0
    """
    headers: Any = getattr(getattr(error, "response", error), "headers", None) or {}
    asked = _in_retry_after(headers)
    if asked is not None or status_of(error) != _RATE_LIMITED:
        return asked
    words = f"{error} {getattr(error, 'body', '')}"[:_READ]
    for found in (_asked_in(words), _in_resets(headers), _window_in(words)):
        if found is not None:
            return found
    return None


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error carries; None if it has no status."""
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its chain of causes, including those hidden by `raise ... from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _in_retry_after(headers: Mapping[str, str]) -> float | None:
    values = {}
    for name, value in headers.items():
        bare = str(name).lower().removeprefix("x-").removeprefix("ms-")
        values[bare] = str(value)
    milliseconds = _number_in(values.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    return _time_in(values.get("retry-after", ""))


def _in_resets(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the exhausted limits are reset, else until all are; None if no limits are stated."""
    resets = []
    used_up = []
    for seconds, remaining in _resets(headers):
        resets.append(seconds)
        if remaining == 0:
            used_up.append(seconds)
    return max(used_up or resets, default=None)


def _resets(headers: Mapping[str, str]) -> Iterator[tuple[float, float | None]]:
    """Yield, for each limit, the seconds until it is reset and how much of it remains (None if not stated)."""
    values = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, value in values.items():
        if "ratelimit" not in name.replace("-", ""):
            continue
        if "reset" in name:
            seconds = _time_in(value)
            left = values.get(name.replace("reset", "remaining"), "")
            remaining = _number_in(left)
        else:  # the standard's single header, in its two forms
            seconds = _number_in(_parameter(value, "reset|t"))
            remaining = _number_in(_parameter(value, "remaining|r"))
        if seconds is not None:
            yield seconds, remaining


def _parameter(value: str, names: str) -> str:
    named = re.search(rf"(?:^|[;,\s])(?:{names})\s*=\s*(\d+)", value)
    return named[1] if named else ""


def _number_in(text: str) -> float | None:
    if not _NUMBER.fullmatch(text.strip()):
        return None
    return float(text)


def _time_in(value: str) -> float | None:
    """Return the seconds that a header states as a number, a duration such as 6m0s, or a date; None for any other value."""
    number = _number_in(value)
    if number is not None:
        return _seconds_of(number)
    if _WHOLE_DURATION.fullmatch(value.strip()):
        return _duration(value)
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value.strip())
        except ValueError:
            continue
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


def _seconds_of(number: float) -> float:
    """Return the seconds to wait that a number states, directly or as a date in (milli)seconds since 1970."""
    if number < _FIRST_MOMENT:
        return max(0.0, number)
    moment = number
    if number >= _FIRST_MOMENT_IN_MS:
        moment = number / 1000
    return max(0.0, moment - datetime.now(UTC).timestamp())


def _duration(text: str) -> float:
    seconds = 0.0
    for number, unit in _PART.findall(text):
        seconds += float(number) * _unit(unit)
    return seconds


def _unit(name: str) -> float:
    """Return the length of a unit in seconds. Of units that begin with m, only "ms" and "milli…" are milliseconds."""
    name = name.lower()
    if name == "ms" or name.startswith("mil"):
        return _SECONDS["ms"]
    return _SECONDS[name[0]]


def _asked_in(words: str) -> float | None:
    """Return the seconds after which an error message says to try again; None if it does not say."""
    if asked := _ASKED.search(words):
        return _duration(asked[1])
    if asked := _ASKED_IN_NUMBERS.search(words):
        return float(asked[1] or asked[2])
    return None


def _window_in(words: str) -> float | None:
    """Return the shortest period, in seconds, over which calls are counted according to an error message, or None."""
    windows = [_unit(unit) for unit in _SHORT_WINDOW.findall(words)]
    for number, unit in _WINDOW.findall(words):
        windows.append(float(number or 1) * _unit(unit))
    for name, seconds in _CHINESE_WINDOWS.items():
        if name in words:
            windows.append(seconds)
    return min(windows, default=None)

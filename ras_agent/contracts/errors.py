"""Defines the errors. Every error that a user can cause is a RasError, and its message names a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


def did_you_mean(
    name: str, choices: Iterable[str], spell: Callable[[str], str] = str
) -> str:
    """Return a hint such as "did you mean planner?" if `name` is similar to one of `choices`, otherwise "".

    `spell` formats the choice for the hint.

    >>> did_you_mean("maxhops", ["max_hops", "max_facts"], repr)
    "did you mean 'max_hops'?"
    """
    close = get_close_matches(name.lower().replace("-", "_"), choices, n=3)
    if not close:
        return ""
    spelt = map(spell, close)
    return f"did you mean {' or '.join(spelt)}?"


_DRIVERS = ("psycopg", "psycopg_pool", "sqlite3")


def is_drivers(error: BaseException) -> bool:
    """Tell whether an error was raised by a database driver."""
    return type(error).__module__.partition(".")[0] in _DRIVERS


def message_of(error: BaseException) -> str:
    """Return the message of an error. Of a database driver's error it is only the first line, because others
    quote stored data.
    """
    message = str(error).strip()
    if is_drivers(error):
        message, _, _ = message.partition("\n")
    return message


class RasError(Exception):
    """Is the base class of all errors that ras_agent raises."""


OF_A_ROLE = (RasError, OSError, ValueError, RuntimeError, TimeoutError)
"""Errors of a custom role after which a search can continue without the role."""


class MissingExtra(RasError, ImportError):
    """Raised when an optional dependency is not installed; the message has the install command."""

    def __init__(self, feature: str, extra: str) -> None:
        message = f"{feature} needs an extra: pip install 'ras-agent[{extra}]'"
        if extra == "faiss":
            message += " (or 'ras-agent[gpu]' for a graphics processor)"
        super().__init__(message)
        self.feature = feature
        self.extra = extra


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails, unless the missing module is part of ras_agent."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "ras_agent":
            raise
        raise MissingExtra(feature, extra) from error


class UnknownName(RasError, ValueError):
    """Raised for a name that is not registered; the message lists the known names."""

    def __init__(
        self, kind: str, name: object, choices: tuple[str, ...], suggestion: str = ""
    ) -> None:
        message = f"unknown {kind} {name!r}; known: {', '.join(sorted(choices))}"
        remedy = did_you_mean(str(name), choices)
        if suggestion:
            remedy = f"did you mean {suggestion}?"
        if remedy:
            message += f"; {remedy}"
        super().__init__(message)


class ParseError(RasError, ValueError):
    """Raised when a model's reply does not follow the grammar it was asked for."""


class PromptError(RasError, ValueError):
    """Raised when a prompt is missing, or when its placeholders do not match the values that are filled in."""


class IngestError(RasError, ValueError):
    """Raised when a document cannot be read; the message names the file and the line."""


class IndexMismatch(RasError, ValueError):
    """Raised when an index is damaged, or was written by another embedder, in another version or in another layout."""


class ErasedPassage(RasError, LookupError):
    """Raised when a passage is read that was deleted or replaced after its search began."""


class IndexExists(RasError, FileExistsError):
    """Raised when a new index would replace an existing one."""


class IndexNotFound(RasError, FileNotFoundError):
    """Raised when there is no index at a path."""


class SettingsError(RasError, ValueError):
    """Raised when a setting or an argument is unknown, missing or wrong."""


class FilterError(RasError, ValueError):
    """Raised for a filter that cannot be read, or that a retriever cannot apply before it ranks."""


class FlagError(SettingsError):
    """Raised when a flag of the command line has a wrong value."""


class EditError(RasError, ValueError):
    """Raised when a stored knowledge graph cannot be edited as requested; the message names the fact or entity."""


class ReviewError(RasError, ValueError):
    """Raised when a person's decision is not valid, or when a run cannot wait for a review."""


class StateError(RasError, ValueError):
    """Raised when a value for a run's state has the wrong form; the message names its key."""


class TraceError(RasError, ValueError):
    """Raised when a saved trace, or the JSON of an event, cannot be read; the message names the place of the
    error.
    """


class SearchError(RasError, RuntimeError):
    """Raised when a remote graph cannot be searched; the message names its address and a remedy."""


class ModelCallError(RasError, RuntimeError):
    """Raised when a model call has failed, and its retries too."""


class PromptTooLong(ModelCallError):
    """Raised when a model's server refuses a prompt because it does not fit into the model's context window."""


class ModelRefused(RasError, RuntimeError):
    """Raised when a server cannot be reached, refuses the key or does not know the model, so that other calls would
    fail too."""


class ReplayMiss(ModelRefused):
    """Raised when a replay has no reply to a request; the message says where the most similar recorded request
    differs."""


class BudgetExceeded(RasError, RuntimeError):
    """Raised when the next model call would exceed a limit; the loop turns it into a stop reason."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class StoreError(RasError, OSError):
    """Raised when a file of ras_agent cannot be read or written, as on a full disk or while it is locked."""


class RunError(RasError, ValueError):
    """Raised when an evaluation's folder cannot be used as requested; the message says why and names the
    remedy.
    """


class WeightsError(RasError, ValueError):
    """Raised when weights are missing, damaged or made for another version; the message names the file."""

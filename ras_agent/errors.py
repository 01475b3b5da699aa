"""Every error a user can meet derives from RasError and names its remedy."""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "IndexExists",
    "IndexMismatch",
    "IndexNotFound",
    "IngestError",
    "MissingExtra",
    "ModelCallError",
    "ParseError",
    "PromptError",
    "RasError",
    "RunError",
    "SettingsError",
    "TraceError",
    "UnknownName",
    "WeightsError",
]


class RasError(Exception):
    """Base of all errors raised by ras_agent."""


class MissingExtra(RasError, ImportError):
    """An optional dependency is not installed; the message holds the install line."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'ras-agent[{extra}]'")
        self.feature, self.extra = feature, extra


class UnknownName(RasError, ValueError):
    """A name is not in a registry; the message lists the known ones."""

    def __init__(self, kind: str, name: object, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(sorted(known))}")


class ParseError(RasError, ValueError):
    """A model's reply does not follow the grammar it was asked for."""


class PromptError(RasError, ValueError):
    """A prompt is missing, or its variables do not match what was given."""


class IngestError(RasError, ValueError):
    """A document could not be read; the message locates the file and line."""


class IndexMismatch(RasError, ValueError):
    """An index was written by another embedder, version or layout."""


class IndexExists(RasError, FileExistsError):
    """There is an index already where a new one was to be made."""


class IndexNotFound(RasError, FileNotFoundError):
    """There is no index at a path."""


class SettingsError(RasError, ValueError):
    """A setting is unknown or has a wrong value."""


class TraceError(RasError, ValueError):
    """A saved trace could not be read; the message names the place in it."""


class ModelCallError(RasError, RuntimeError):
    """A model call failed after its retries."""


class BudgetExceeded(RasError, RuntimeError):
    """A limit would be passed by the next model call; the loop turns it into a stop reason."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class RunError(RasError, ValueError):
    """An evaluation's folder cannot be used as asked; the message says what stands against it and what to do."""


class WeightsError(RasError, ValueError):
    """Weights are missing, damaged, or made for another version; the message names the file or the remedy."""

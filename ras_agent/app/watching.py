"""The log and the spans that settings ask for, while a command runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ras_agent.errors import SettingsError
from ras_agent.settings import Settings


@contextmanager
def watching(settings: Settings) -> Iterator[None]:
    """Write the log and send the spans inside the block. Raises SettingsError for a log that cannot be written."""
    with ExitStack() as stack:
        if settings.log is not None:
            from ras_agent.logs import LOGGER, log_to

            place = "-" if settings.log.name == "-" else settings.log
            try:
                handler = log_to(place, text=settings.log_text)
            except OSError as error:
                raise SettingsError(f"the log {str(place)!r} cannot be written: {error.strerror}") from error
            stack.callback(handler.close)
            stack.callback(LOGGER.removeHandler, handler)
        if settings.otel:
            from ras_agent.telemetry import export_runs

            stack.callback(export_runs())
        yield

"""Work that other processes can do too: how it is described, and how it is asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

__all__ = ["Do", "Order", "Pool"]

Do = Callable[[Any], Awaitable[Any]]
"""From an item of work to its result."""


@dataclass(frozen=True, slots=True)
class Order:
    """How to make a worker anywhere: `factory` is "module:function", called with `arguments`; it returns a `Do`.

    Arguments are plain JSON values; paths in them are read where the worker is.
    """

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def fill(self) -> Do:
        """Make it here. Raises what the factory raises."""
        module, _, name = self.factory.partition(":")
        made: Do = getattr(import_module(module), name)(**self.arguments)
        return made


class Pool(Protocol):
    """Where work is done: here, in other processes, on other machines."""

    def opened(self, concurrency: int) -> AbstractAsyncContextManager[Do]:
        """Ready for work within the block, `concurrency` items at once. Raises RunError if it cannot start."""
        ...

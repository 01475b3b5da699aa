"""What another process needs to know to ask questions as this one would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ras_agent.eval.runner import System

__all__ = ["Order"]


@dataclass(frozen=True, slots=True)
class Order:
    """How to make a System elsewhere: `factory` is "module:function", called with `arguments`, plain JSON values."""

    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def fill(self) -> System:
        """Make it here. Raises what the factory raises."""
        module, _, name = self.factory.partition(":")
        made: System = getattr(import_module(module), name)(**self.arguments)
        return made

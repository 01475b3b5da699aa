"""Values of context variables that hold inside a block. Costs a third of what `contextmanager` would."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ScopedValue(Generic[T]):
    """Context manager that gives a context variable a value inside its block, also in threads that copy the context."""

    __slots__ = ("_token", "_value", "_variable")
    _token: Token[Any]

    def __init__(self, variable: ContextVar[Any], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> T:
        self._token = self._variable.set(self._value)
        return self._value

    def __exit__(self, *error: object) -> None:
        self._variable.reset(self._token)

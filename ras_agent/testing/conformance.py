"""Defines the checks of a contract, each of which is one promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from ras_agent.running.calling import acall

Result = TypeVar("Result")


class ConformanceError(AssertionError):
    """Raised when an object breaks its protocol's contract; the message names each broken promise."""


@dataclass(frozen=True, slots=True)
class Check:
    """Checks one promise of a contract. Calling it with an object raises AssertionError if the object breaks the
    promise.
    """

    promise: str
    run: Callable[[Any], None]

    def __call__(self, subject: Any) -> None:
        self.run(subject)

    def __str__(self) -> str:
        return self.promise


class Suite:
    """Collects the checks of a contract.

    Args:
        subject: The name of the checked object in messages, such as "the planner".
        protocol: The protocol that the object has to fit, if it has one.
    """

    def __init__(self, subject: str, protocol: type | None = None) -> None:
        self._subject = subject
        self.checks: list[Check] = []
        if protocol:
            fits = Check("fits the protocol", lambda role: is_named(role, protocol))
            self.checks.append(fits)

    def promise(self, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """Add a function as a Check. The function's name, with spaces for underscores, is the promise."""
        self.checks.append(Check(function.__name__.replace("_", " "), function))
        return function

    def gives_the_same(
        self, results: Callable[[Any], object], method: str = "", *args: Any
    ) -> None:
        """Add the check that `results` of the object are equal at each call, and in several threads.

        With a `method`, also add the check that asynchronous callers of it get the result of synchronous ones.
        """

        def in_threads(role: Any) -> None:
            same_in_threads(lambda: results(role), results(role))

        self.checks.append(Check("gives the same again and for threads", in_threads))
        if method:

            def asynchronously(role: Any) -> None:
                same_asynchronously(role, method, *args)

            self.checks.append(
                Check("gives asynchronous callers the same", asynchronously)
            )

    def run(
        self, subject: object, leave_out: Callable[[Any], None] | None = None
    ) -> None:
        """Run all checks on `subject`, even after one has failed. The check of the function `leave_out` is not run.

        Raises:
            ConformanceError: with every broken promise; an exception that a check did not expect counts as one.
        """
        checks = [check for check in self.checks if check.run is not leave_out]
        broken: list[str] = []
        for check in checks:
            try:
                check(subject)
            except Exception as error:
                reason = str(error)
                if not isinstance(error, AssertionError):
                    reason = f"{type(error).__name__}: {error}"
                broken.append(f"  {check}: {reason or 'it does not'}")
        if broken:
            lines = "\n".join(broken)
            raise ConformanceError(
                f"{self._subject} breaks {len(broken)} of {len(checks)} promises:\n{lines}"
            )


def demand(condition: object, problem: str) -> None:
    """Raise AssertionError with `problem` unless `condition` is true. Unlike `assert` it also works under
    `python -O`.
    """
    if not condition:
        raise AssertionError(problem)


def refuses(call: Callable[[], object], error: type[Exception], problem: str) -> None:
    """Raise AssertionError with `problem` unless `call()` raises `error`."""
    try:
        call()
    except error:
        return
    raise AssertionError(problem)


def same_in_threads(
    call: Callable[[], Result], alone: Result, threads: int = 4, times: int = 8
) -> None:
    """Raise AssertionError unless calls from `threads` threads at the same time return `alone`, the result of a
    single call.
    """
    with ThreadPoolExecutor(threads) as pool:
        for together in pool.map(lambda _: call(), range(times)):
            demand(
                together == alone,
                f"a call at the same time as others returned {together!r:.200}, a single call {alone!r:.200}",
            )


def same_asynchronously(role: object, method: str, *args: Any) -> None:
    """Raise AssertionError unless awaiting `method`, as a coroutine or in a thread, gives the result of the
    synchronous call.
    """

    async def asynchronously() -> object:
        return await acall(role, method, *args)

    alone = getattr(role, method)(*args)
    result = asyncio.run(asynchronously())
    demand(
        result == alone, f"a{method} returned {result!r:.200}, {method} {alone!r:.200}"
    )


def is_named(role: object, protocol: type) -> None:
    """Raise AssertionError unless an object has the methods of `protocol`."""
    demand(
        isinstance(role, protocol),
        f"{type(role).__name__} lacks methods of ras_agent.protocols.{protocol.__name__}",
    )

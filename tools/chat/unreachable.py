"""Whether a model call failed because nothing is there to take it: no host of the name, or a host that refuses.

No waiting mends that, so such calls are given up sooner than those that a server answers badly.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

__all__ = ["causes", "unreachable"]

_NO_SUCH_HOST = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def unreachable(error: BaseException, endpoint: str = "") -> str:
    """What is not there, with its address, such as "nothing listens at http://127.0.0.1:9"; else nothing.

    The providers' clients wrap what the socket said in errors of their own, so the chain of causes is searched. Where
    none of them names the address, it is `endpoint`.
    """
    chain = list(causes(error))
    if any(map(_refuses, chain)):
        return f"nothing listens at {_address(chain) or endpoint}"
    if any(isinstance(link, socket.gaierror) and link.errno in _NO_SUCH_HOST for link in chain):
        return f"there is no host of that name: {_address(chain) or endpoint}"
    return ""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what caused it, also where it was raised `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _refuses(error: BaseException) -> bool:
    """A host may have several addresses; all of them have to refuse."""
    if isinstance(error, BaseExceptionGroup):
        return all(any(map(_refuses, causes(one))) for one in error.exceptions)
    return isinstance(error, ConnectionRefusedError)


def _address(chain: list[BaseException]) -> str:
    """Scheme, host and port of the request that failed, if an error of the chain holds it."""
    for error in chain:
        try:
            url = urlsplit(str(error.request.url))  # type: ignore[attr-defined]
            port = f":{url.port}" if url.port else ""
        except (AttributeError, RuntimeError, ValueError):  # httpx raises RuntimeError where it has no request
            continue
        if url.hostname:
            return f"{url.scheme}://{url.hostname}{port}"
    return ""

"""Nothing is there to take a call: told from a server that is there and fails."""

import socket

import pytest

from ras_agent.tools.chat.unreachable import unreachable

REFUSED = ConnectionRefusedError(111, "Connection refused")


def caused(error: Exception, *, by: Exception) -> Exception:
    error.__cause__ = by
    return error


def hidden(error: Exception, *, over: Exception) -> Exception:
    """As `raise error from None` leaves it."""
    error.__context__, error.__suppress_context__ = over, True
    return error


class RequestError(Exception):
    """Shaped like an httpx error."""

    class request:
        url = "http://me:hunter2@127.0.0.1:8000/v1/chat/completions?key=hunter2"


@pytest.mark.parametrize(
    "error",
    [
        REFUSED,
        caused(RuntimeError("Connection error."), by=caused(OSError("all failed"), by=REFUSED)),
        hidden(ConnectionError("is the server running?"), over=REFUSED),
        caused(OSError("all failed"), by=ExceptionGroup("many", [REFUSED, caused(OSError(), by=REFUSED)])),
    ],
)
def test_a_refused_connection_is_found_under_what_the_clients_make_of_it(error: Exception) -> None:
    assert unreachable(error, "Model#m") == "nothing listens at Model#m"


def test_the_address_is_that_of_the_request_without_its_secrets() -> None:
    assert unreachable(caused(RequestError(), by=REFUSED), "Model#m") == "nothing listens at http://127.0.0.1:8000"


def test_a_name_that_belongs_to_nobody() -> None:
    error = caused(RuntimeError("Connection error."), by=socket.gaierror(socket.EAI_NONAME, "not known"))
    assert unreachable(error, "Model#m") == "there is no host of that name: Model#m"


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(104, "reset"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        caused(OSError("all failed"), by=ExceptionGroup("many", [REFUSED, TimeoutError()])),
        ValueError("Connection refused"),
    ],
)
def test_what_may_pass_is_not_unreachable(error: Exception) -> None:
    assert unreachable(error, "Model#m") == ""

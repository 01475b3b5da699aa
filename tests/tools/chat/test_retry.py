"""Which failures of a model call are tried again, and after how long."""

import json
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ras_agent.tools.chat.retry import RetryPolicy, diagnosis, is_transient, unreachable
from tests.messages import says


class ProviderError(Exception):
    """Shaped like the errors of the providers' SDKs."""

    def __init__(
        self,
        status: int | None = None,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> None:
        super().__init__("provider")
        self.response = SimpleNamespace(status_code=status, headers=headers or {})
        self.__dict__.update(fields)


class APIConnectionError(Exception):
    """Named as in the openai and anthropic packages."""


@pytest.mark.parametrize(
    "error",
    [
        *(ProviderError(status) for status in (408, 409, 429, 500, 502, 503, 529)),
        ProviderError(status_code=503),
        TimeoutError(),
        ConnectionResetError(),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        APIConnectionError(),
        json.JSONDecodeError("malformed", "<html>", 0),
        ProviderError(is_retryable=True),
    ],
)
def test_what_may_pass_is_transient(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        *(ProviderError(status) for status in (400, 401, 403, 404, 422)),
        ProviderError(429, code="insufficient_quota"),
        KeyError("choices"),
        ValueError("bad"),
    ],
)
def test_what_will_not_pass_is_not(error: Exception) -> None:
    assert not is_transient(error)


def state(attempt: int, error: Exception) -> Any:
    return SimpleNamespace(
        attempt_number=attempt, outcome=SimpleNamespace(exception=lambda: error)
    )


def test_waits_double_up_to_a_ceiling() -> None:
    policy = RetryPolicy(first_wait=1.0, max_wait=5.0, jitter=lambda: 1.0)
    assert [
        policy.wait(state(attempt, TimeoutError())) for attempt in (1, 2, 3, 4)
    ] == [1.0, 2.0, 4.0, 5.0]


def test_jitter_halves_a_wait_at_most() -> None:
    assert (
        RetryPolicy(first_wait=1.0, jitter=lambda: 0.0).wait(state(1, TimeoutError()))
        == 0.5
    )


def test_the_time_asked_for_takes_the_place_of_the_backoff() -> None:
    assert RetryPolicy().wait(state(1, ProviderError(429, {"retry-after": "7"}))) == 7.0


def test_a_rate_limit_without_a_time_is_waited_for_over_most_of_a_minute() -> None:
    policy = RetryPolicy(jitter=lambda: 1.0)
    assert [
        policy.wait(state(attempt, ProviderError(429))) for attempt in (1, 2, 3, 4)
    ] == [4.0, 8.0, 16.0, 32.0]


def test_an_endpoint_that_asks_for_too_long_a_wait_is_not_tried_again() -> None:
    policy = RetryPolicy(max_wait=10.0)
    assert policy.retries(ProviderError(429, {"retry-after": "10"}))
    assert not policy.retries(ProviderError(429, {"retry-after": "11"}))


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
        caused(
            RuntimeError("Connection error."),
            by=caused(OSError("all failed"), by=REFUSED),
        ),
        hidden(ConnectionError("is the server running?"), over=REFUSED),
        caused(
            OSError("all failed"),
            by=ExceptionGroup("many", [REFUSED, caused(OSError(), by=REFUSED)]),
        ),
    ],
)
def test_a_refused_connection_is_found_under_what_the_clients_make_of_it(
    error: Exception,
) -> None:
    assert unreachable(error)
    assert says("nothing listens", "Model#m", "start the server").search(
        diagnosis(error, "Model#m")
    )


def test_the_address_is_that_of_the_request_without_its_secrets() -> None:
    told = diagnosis(caused(RequestError(), by=REFUSED), "Model#m")
    assert (
        told
        == "nothing listens at http://127.0.0.1:8000; start the server, or correct its address"
    )


def test_a_host_name_that_does_not_exist() -> None:
    error = caused(
        RuntimeError("Connection error."),
        by=socket.gaierror(socket.EAI_NONAME, "not known"),
    )
    assert unreachable(error)
    assert says("no host with the name", "Model#m", "correct the address").search(
        diagnosis(error, "Model#m")
    )


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(104, "reset"),
        socket.gaierror(socket.EAI_AGAIN, "try again"),
        caused(
            OSError("all failed"), by=ExceptionGroup("many", [REFUSED, TimeoutError()])
        ),
        ValueError("Connection refused"),
    ],
)
def test_what_may_pass_is_not_unreachable(error: Exception) -> None:
    assert not unreachable(error)
    assert diagnosis(error, "Model#m") == ""


def untrusted() -> ssl.SSLError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            untrusted(),
            "TLS: the certificate of https://m:1 is not trusted (self-signed certificate): put the certificate that "
            "signed it into a file, and set SSL_CERT_FILE to that file; or correct the address",
        ),
        (
            ssl.SSLError(1, "wrong version number"),
            "TLS: https://m:1 does not use TLS (wrong version number): write http:// for a server without TLS, "
            "or correct the address",
        ),
    ],
)
def test_an_error_of_tls_says_so_and_is_not_tried_again(
    error: Exception, told: str
) -> None:
    error = caused(
        RuntimeError("Connection error."), by=caused(ConnectionError(), by=error)
    )
    assert not is_transient(error)
    assert diagnosis(error, "https://m:1") == told


def test_a_group_that_is_the_cause_of_what_it_holds_is_looked_at_once() -> None:
    error = ValueError("no")
    error.__cause__ = ExceptionGroup("several", [error])
    assert not unreachable(error)
    refused = ConnectionRefusedError()
    refused.__cause__ = ExceptionGroup("several", [refused])
    assert unreachable(refused)

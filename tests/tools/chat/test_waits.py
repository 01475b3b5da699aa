"""How long a server asks to wait."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ras_agent.tools.chat.waits import retry_after


class Refusal(Exception):
    """Reply with a status that is an error's, as our own client raises it."""

    def __init__(
        self,
        status: int = 429,
        headers: Mapping[str, str] | None = None,
        message: str = "",
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.headers = headers or {}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"Retry-After": "3"}, 3.0),
        ({"x-retry-after": "3"}, 3.0),
        ({"retry-after": "8 s"}, 8.0),
        ({"x-ms-retry-after-ms": "2000"}, 2.0),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "1500000000"}, 0.0),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_time_an_endpoint_asks_for(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(Refusal(429, headers)) == seconds


def test_the_time_can_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    seconds = retry_after(Refusal(429, {"retry-after": date}))
    assert seconds is not None
    assert 200 < seconds <= 300


def test_an_error_without_a_response_asks_for_nothing() -> None:
    assert retry_after(TimeoutError()) is None


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        (
            "Rate limit reached on tokens per min (TPM): Limit 10000, Used 9000. Please try again in 6s.",
            6.0,
        ),
        ("Please try again in 120ms.", 0.12),
        ("Please try again in 1m3.5s. Visit https://platform.example/account", 63.5),
        (
            "Requests have exceeded the token rate limit of your tier. Please retry after 20 seconds.",
            20.0,
        ),
        ("Too many requests: wait 1 minute and 5 seconds", 65.0),
        ("try again in 3", 3.0),
        ("Resource exhausted: {'@type': 'RetryInfo', 'retryDelay': '32s'}", 32.0),
        ("the limit of requests resets in 2m", 120.0),
        ("Too many requests {'retryAfter': 30}", 30.0),
        ("请求过于频繁，请10秒后重试", 10.0),
        ("当前请求超过每分钟限制", 60.0),
        ("Slow down: backoff for 12 seconds", 12.0),
        ("Cooldown: 30s remaining", 30.0),
        ("Rate limit exceeded: free-models-per-day", 86_400.0),
        ("Limit 3 / min. Please try again in 20s", 20.0),
    ],
)
def test_the_time_that_the_words_of_a_rate_limit_name(
    message: str, seconds: float
) -> None:
    assert retry_after(Refusal(message=message)) == seconds


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("limit: 3 requests per minute", 60.0),
        ("You can only make 5 requests every 10s", 10.0),
        ("20 requests per 30 seconds are allowed", 30.0),
        ("Rate limit exceeded: 5 req/s", 1.0),
        ("Quota exceeded: GenerateRequestsPerMinutePerProject", 60.0),
        ("RPM limit reached", 60.0),
        ("at most 30 requests per minute and 1000 per day", 60.0),
        ("quota exceeded: 1000 requests per day", 86_400.0),
        ("Too many requests", None),
        ("try again: request 12345 failed", None),
    ],
)
def test_a_rate_limit_is_waited_for_as_long_as_its_window(
    message: str, seconds: float | None
) -> None:
    assert retry_after(Refusal(message=message)) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (
            {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"},
            360.0,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "900",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            1.0,
        ),
        ({"x-ratelimit-reset-tokens": "250ms"}, 0.25),
        ({"RateLimit-Reset": "50"}, 50.0),
        ({"RateLimit": '"default";r=0;t=30'}, 30.0),
        ({"RateLimit": "limit=10, remaining=0, reset=5"}, 5.0),
        ({"x-ratelimit-limit-requests": "100"}, None),
        ({"x-ratelimit-reset": "soon"}, None),
    ],
)
def test_the_time_after_which_a_rate_limit_is_reset(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(Refusal(headers=headers)) == seconds


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "text"])
def test_a_limit_may_be_reset_at_a_moment(form: str) -> None:
    moment = datetime.now(UTC) + timedelta(minutes=5)
    forms = {
        "seconds": str(moment.timestamp()),
        "milliseconds": str(int(moment.timestamp() * 1000)),
        "text": moment.isoformat(),
    }
    seconds = retry_after(Refusal(headers={"x-ratelimit-reset": forms[form]}))
    assert seconds is not None
    assert 200 < seconds <= 300


def test_what_a_header_asks_for_comes_before_the_words() -> None:
    assert (
        retry_after(Refusal(headers={"retry-after": "7"}, message="try again in 3s"))
        == 7.0
    )


def test_words_of_another_error_are_no_time_to_wait() -> None:
    assert (
        retry_after(Refusal(503, {"x-ratelimit-reset": "30"}, "try again in 3s"))
        is None
    )

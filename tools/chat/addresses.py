"""Addresses of servers in the specs of models: `http://host:port/v1#model`, and several of them with commas."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ras_agent.errors import SettingsError
from ras_agent.tools.chat.secrets import BETWEEN_URLS, printable

_OPENAI = "https://api.openai.com/v1"


def openai_url() -> str:
    """Return the address that `openai:NAME` is asked at."""
    return (
        os.environ.get("OPENAI_BASE_URL")
        or os.environ.get("OPENAI_API_BASE")
        or _OPENAI
    )


def server_key() -> str:
    """Return the key of a user's own server; OPENAI_API_KEY is not for it."""
    return os.environ.get("VLLM_API_KEY", "EMPTY")


def server_address(address: str, form: str) -> tuple[str, str, str]:
    """Return the URL and the model's name in `http://host:port/v1#model`, and the server's key, if it wants one.

    form: how the whole spec is written, for the message. Raises SettingsError for another form.
    """
    urls, name = server_addresses(address, form)
    if len(urls) != 1:
        raise SettingsError(
            f"{printable(f'{form}{address}')!r} has {len(urls)} addresses, and one is taken here"
        )
    return urls[0], name, server_key()


def server_addresses(addresses: str, form: str) -> tuple[tuple[str, ...], str]:
    """Return the URLs and the model's name in `http://a/v1,http://b/v1#model`.

    form: how the whole spec is written, for the message. Raises SettingsError for another form.
    """
    before, _, name = addresses.partition("#")
    urls = tuple(BETWEEN_URLS.split(before))
    shown = repr(printable(f"{form}{addresses}"))
    if not name or not all(url.startswith(("http://", "https://")) for url in urls):
        raise SettingsError(f"expected '{form}http://host:port/v1#model', got {shown}")
    for url in urls:
        try:
            urlsplit(url).port  # noqa: B018  (raises for an invalid port)
        except ValueError as error:
            raise SettingsError(f"{shown}: {error}; correct the address") from None
    return urls, name

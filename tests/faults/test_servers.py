"""Attacks by servers: whatever one sends, a call ends in time, in a reply or in words, and shows no key."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import ModelCallError, ModelRefused, SettingsError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.retry import RetryPolicy
from tests.faults.attack import Attack
from tests.faults.faulty_server import FAULTS, SECRET, WORDS, Server, redirect, serving

SETTINGS = ChatSettings(timeout=0.5, retry=RetryPolicy(attempts=2, first_wait=0.01))
# two tries, and the seconds that a busy machine may add
AT_MOST = 2 * 0.5 + 3.0
WAYS = ("sync", "async", "sync stream", "async stream")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", SECRET)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


def ask(
    spec: str, way: str, settings: ChatSettings = SETTINGS
) -> tuple[Reply | BaseException, float]:
    """Return the reply, or the exception, and the seconds it took."""
    request = Request(
        (Turn("user", "Who?"),), (lambda text: None) if "stream" in way else None
    )
    began = time.monotonic()
    try:
        chat = as_chat(spec, settings)
        came: Any = (
            asyncio.run(chat.acomplete(request))
            if "async" in way
            else chat.complete(request)
        )
    except BaseException as error:
        came = error
    return came, time.monotonic() - began


def shows_no_key(came: Reply | BaseException) -> bool:
    told = (
        "".join(traceback.format_exception(came))
        if isinstance(came, BaseException)
        else repr(came)
    )
    return SECRET not in told and "hunter2" not in told


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_that_stays(attack: Attack, server: Server, way: str) -> None:
    """A server that is always wrong: in time, in words, without the key."""
    for number, (fault, (_, kind)) in enumerate(FAULTS.items()):
        spec = f"vllm:http://me:hunter2hunter2@127.0.0.1:{server.port}/{fault}/always/{way[-3:]}{number}/v1#m"
        came, seconds = ask(spec, way)
        well = isinstance(came, Reply) and came.text.strip() == WORDS
        words = isinstance(came, (ModelCallError, ModelRefused))
        harmless = (
            kind == "reply"
            or (fault.startswith("stream") and "stream" not in way)
            or fault == "429-past"
        )
        attack.expect(
            well if harmless and not words else words, f"{way} {fault}: {came!r:.300}"
        )
        attack.expect(seconds < AT_MOST, f"{way} {fault}: {seconds:.1f} seconds")
        attack.expect(shows_no_key(came), f"{way} {fault}: shows the key")


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_that_passes(attack: Attack, server: Server, way: str) -> None:
    """A server that is wrong once: tried again where that helps."""
    for number, (fault, (_, kind)) in enumerate(FAULTS.items()):
        spec = f"vllm:http://127.0.0.1:{server.port}/{fault}/once/{way.replace(' ', '')}{number}/v1#m"
        came, seconds = ask(spec, way)
        well = isinstance(came, Reply) and came.text.strip() == WORDS
        words = isinstance(came, (ModelCallError, ModelRefused))
        held = {"never": words, "any": words or well}.get(kind, well)
        attack.expect(held, f"{way} {fault}: {came!r:.300}")
        attack.expect(seconds < AT_MOST, f"{way} {fault}: {seconds:.1f} seconds")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl: apt-get install openssl")
    folder: Path = tmp_path_factory.mktemp("tls")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-days",
        "1",
    ]
    subprocess.run(
        [*command, "-keyout", folder / "key", "-out", folder / "pem"],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pem", folder / "key")
    return context


@pytest.mark.parametrize("way", WAYS)
def test_addresses(
    attack: Attack, server: Server, certificate: ssl.SSLContext, way: str
) -> None:
    """TLS, names, ports and redirects: reported by their names, and prompts go nowhere else."""
    with serving(certificate) as secure, serving() as other:
        there = f"http://localhost:{other.port}/html/once/a/v1/chat/completions"
        for status in (301, 302, 303, 307, 308):
            server.faults[f"to-{status}"] = (redirect(status, there), "never")
        server.faults["loop"] = (
            redirect(
                307, f"http://127.0.0.1:{server.port}/loop/always/l/v1/chat/completions"
            ),
            "never",
        )
        here = f"127.0.0.1:{server.port}"
        for address, told in (
            (f"https://127.0.0.1:{secure.port}/html/once/a/v1", "TLS: the certificate of https://127.0.0.1"),
            (f"https://{here}/html/once/a/v1", "TLS: https://127.0.0.1"),
            (f"http://127.0.0.1:{secure.port}/html/once/a/v1", "failed after"),
            ("http://no.such.host.invalid/v1", "there is no host with the name in http://no.such.host.invalid"),
            ("http://127.0.0.1:9/v1", "nothing listens at http://127.0.0.1:9"),
            ("http://127.0.0.1:99999/v1", "Port out of range 0-65535"),
            ("http://127.0.0.1:0x50/v1", "Port could not be cast"),
            *((f"http://{here}/to-{status}/always/r/v1", f"redirects ({status}) to http://localhost:{other.port}/")
              for status in (301, 302, 303, 307, 308)),
            (f"http://{here}/loop/always/l/v1", "failed after"),
        ):  # fmt: skip
            came, seconds = ask(f"vllm:{address}#m", way)
            attack.expect(
                isinstance(came, (ModelCallError, ModelRefused, SettingsError))
                and told in str(came),
                f"{address}: {came!r:.300}",
            )
            attack.expect(seconds < AT_MOST, f"{way} {address}: {seconds:.1f} seconds")
            attack.expect(shows_no_key(came), f"{way} {address}: shows the key")
        attack.expect(
            not other.requests, f"{way}: another host was asked {other.requests}"
        )

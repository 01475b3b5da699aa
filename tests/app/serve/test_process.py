"""`ras-agent serve` as a process: it says where it serves, ends in order, and refuses impossible requests."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from ras_agent.config.settings import Settings
from tests.app.serve.conftest import Served, events_of
from tests.messages import says

TOKEN = "right-0123456789abcdef"
CHAT = {"model": "ras-agent", "messages": [{"role": "user", "content": "Who?"}]}
MAIN = "from ras_agent.app.cli import main; main()"


@contextmanager
def _process(
    *options: str, sample: bool = True, begin: str = "", **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server, and yield its process and its address. begin: Python to run first."""
    command = [
        sys.executable,
        "-P",
        "-c",
        begin + MAIN,
        "serve",
        "--port=0",
        *["--sample"] * sample,
        *options,
    ]
    environment = {**os.environ, **variables}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


def _listens(address: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))):
            return True
    except OSError:
        return False


@pytest.mark.slow("waits")
def test_a_run_under_way_ends_before_the_server_does_and_its_thread_outlives_both(
    tmp_path: Path, scripted_llm: Any, served: Served
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUFFICIENT]", "held": True, "repeat": True},
        {"reply": "[NONE]", "repeat": True},
    )
    threads = f"sqlite:{tmp_path / 'threads.sqlite'}"
    options = [
        "--host=0.0.0.0",
        f"--planner={scripted_llm.spec}",
        f"--checkpoint={threads}",
    ]
    with _process(*options, RAS_AGENT_SERVE_TOKEN=TOKEN) as (process, address):
        ask = f"{address.replace('0.0.0.0', '127.0.0.1')}/api/ask"
        asked = {"question": "Where was Bell born?", "thread": "1", "stream": True}
        assert httpx.post(ask, json=asked, trust_env=False).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for url, body in (
            (ask, {"question": "Who?"}),
            (ask.replace("api/ask", "v1/chat/completions"), CHAT),
        ):
            for stream in (True, False):  # these callers leave
                with suppress(httpx.TimeoutException):
                    httpx.post(
                        url,
                        json={**body, "stream": stream},
                        headers=headers,
                        trust_env=False,
                        timeout=0.3,
                    )
        with httpx.stream(
            "POST", ask, json=asked, headers=headers, trust_env=False, timeout=60
        ) as response:
            while not any(
                asked["question"] in str(request) for request in scripted_llm.requests()
            ):
                pass
            process.send_signal(signal.SIGTERM)
            while _listens(address):
                pass
            scripted_llm.script({"release": True})
            told = response.read().decode()
        assert "event: done" in told
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    client = served(Settings(checkpoint=threads), {TOKEN: None})
    assert client.get("/api/threads/1", headers=headers).json()["finished"] is True


@pytest.mark.slow("6 s that runs have to end")
def test_runs_that_do_not_end_in_time_are_cut_off_without_a_traceback(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?", "repeat": True},
        {"hang": True, "repeat": True},
    )
    with (
        _process(f"--llm={scripted_llm.spec}") as (process, address),
        ThreadPoolExecutor(1) as pool,
    ):
        waits = pool.submit(
            httpx.post,
            f"{address}/api/ask",
            json={"question": "Who?"},
            trust_env=False,
            timeout=60,
        )
        asked = {"question": "Who?", "stream": True, "thread": "cut"}
        with httpx.stream(
            "POST", f"{address}/api/ask", json=asked, trust_env=False, timeout=60
        ) as response:
            pieces = response.iter_text()
            assert next(pieces).startswith("event: planned")
            while len(scripted_llm.requests()) < 4:  # both runs read passages
                pass
            process.send_signal(signal.SIGTERM)
            name, error = events_of("".join(pieces))[-1]
        told = waits.result()
        process.wait(60)
        assert process.stderr is not None
        lines = process.stderr.read()
    assert (told.status_code, told.json()["error"]["code"]) == (503, "ending")
    assert (name, error["code"], error["thread"]) == ("error", "ending", "cut")
    assert lines == ""


@pytest.mark.slow("processes")
def test_what_cannot_be_served_is_said_in_one_line(cli: Callable[..., Any]) -> None:
    shown = cli("serve", "--sample", "--host", "0.0.0.0")
    assert shown.exit_code == 1
    assert "ras-agent: other machines reach 0.0.0.0" in shown.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = cli("serve", "--sample", "--port", str(taken.getsockname()[1]))
    assert shown.exit_code == 1
    assert says("choose another --port", "0 takes a free one", "--host").search(
        shown.stderr
    )
    assert "give --index PATH, or --sample" in cli("serve").stderr


@pytest.mark.slow("processes")
def test_it_says_which_model_plays_which_role_or_that_it_is_offline(
    scripted_llm: Any,
) -> None:
    for options, line in (
        ((), "offline mode: no LLM configured (ras-agent doctor shows how to add one)"),
        (
            (f"--llm={scripted_llm.spec}",),
            f"planner, answerer, extractor: {scripted_llm.spec}",
        ),
    ):
        with _process(*options) as (process, _):
            assert process.stdout is not None
            assert process.stdout.readline().strip() == line


def test_what_fails_in_a_run_is_on_the_standard_error_without_the_question(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    with _process(f"--llm={scripted_llm.spec}", "--retries=0") as (process, address):
        assert (
            httpx.post(
                f"{address}/v1/chat/completions", json=CHAT, trust_env=False
            ).status_code
            == 503
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert [
        (line["level"], line["node"], line["failures"][0]["role"]) for line in lines
    ] == [("warning", "plan", "planner")]
    assert says("failed after 1 try", "Error code: 401", "check the API key").search(
        lines[0]["message"]
    )
    assert "Who?" not in json.dumps(lines)

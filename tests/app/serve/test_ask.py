"""POST /api/ask: a question over HTTP, as one document and as events."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from ras_agent.app.serve import runs, service
from ras_agent.app.serve.runs import Ended
from ras_agent.config.settings import Settings
from ras_agent.contracts.events import event_from_dict
from ras_agent.graphs.nodes import SEARCH_FAILED
from ras_agent.graphs.state import Outputs
from tests.app.serve.conftest import Served, events_of

QUESTION = "Who invented the telephone?"
CHAT = {"model": "ras-agent", "messages": [{"role": "user", "content": QUESTION}]}


def test_the_server_says_that_it_is_there(client: httpx.Client) -> None:
    assert client.get("/health").json()["status"] == "ok"


def test_a_question_is_answered_with_the_agents_outputs_and_the_thread(
    client: httpx.Client,
) -> None:
    out = client.post("/api/ask", json={"question": QUESTION}).json()
    assert out["answer"] == "Alexander Graham Bell"
    assert set(out) == {*Outputs.__annotations__, "thread"}


def test_a_stream_tells_the_run_in_events_and_ends_with_the_same_outputs(
    client: httpx.Client,
) -> None:
    response = client.post("/api/ask", json={"question": QUESTION, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, (last, out) = events_of(response.text)
    assert [name for name, _ in events][:4] == [
        "planned",
        "hits",
        "triples",
        "graph_delta",
    ]
    assert [event_from_dict(data).type for _, data in events] == [
        name for name, _ in events
    ]
    assert (last, out["answer"]) == ("done", "Alexander Graham Bell")
    assert set(out) == {*Outputs.__annotations__, "thread"}


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [(401, 503, "model_unavailable"), (500, 502, "no_answer")],
)
def test_a_run_without_an_answer_is_an_error_that_holds_its_outputs(
    served: Served, scripted_llm: Any, failure: int, status: int, code: str
) -> None:
    scripted_llm.script({"status": failure, "repeat": True})
    client = served(Settings(llm=scripted_llm.spec, retries=0))
    told = client.post("/api/ask", json={"question": QUESTION, "thread": "th"})
    out = told.json()
    assert (told.status_code, out["error"]["code"], out["error"]["type"]) == (
        status,
        code,
        "server_error",
    )
    assert (out["thread"], out["abstained"], bool(out["failures"])) == (
        "th",
        True,
        True,
    )
    streamed = client.post(
        "/api/ask", json={"question": QUESTION, "thread": "th2", "stream": True}
    )
    name, last = events_of(streamed.text)[-1]
    assert (name, last["code"], last["thread"], last["answer"]) == (
        "error",
        code,
        "th2",
        out["answer"],
    )
    assert client.get("/api/threads/th").json()["finished"] is True


def test_a_caller_is_told_the_name_of_a_model_and_no_address_of_its_server(
    served: Served, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    client = served(Settings(llm=scripted_llm.spec, retries=0))
    names = set(client.get("/api/about").json()["models"].values())
    told = client.post("/api/ask", json={"question": QUESTION}).text
    streamed = client.post("/api/ask", json={"question": QUESTION, "stream": True}).text
    address, _, model = scripted_llm.spec.removeprefix("vllm:").partition("#")
    assert names == {f"vllm:{model}"}
    assert f"vllm:{model} failed" in told
    for shown in (told, streamed):
        assert address not in shown


def test_a_conversation_is_asked_by_its_last_question(client: httpx.Client) -> None:
    out = client.post(
        "/api/ask", json={"messages": [{"role": "user", "content": QUESTION}]}
    ).json()
    assert out["answer"] == "Alexander Graham Bell"


def test_a_request_lowers_limits_and_cannot_raise_them(client: httpx.Client) -> None:
    out = client.post(
        "/api/ask", json={"question": QUESTION, "limits": {"max_hops": 1, "k": 1000}}
    ).json()
    assert len(out["steps"]) == 1
    assert len(out["steps"][0]["hits"]) == 5


def test_what_is_wrong_with_a_request_is_said_in_one_shape(
    client: httpx.Client,
) -> None:
    for body, message in (
        ({}, "give either question or messages"),
        ({"question": "  "}, "the last message of the user has no text"),
        (
            {"question": QUESTION, "limits": {"max_hops": 0}},
            "limits.max_hops: Input should be greater than 0",
        ),
        (
            {"question": QUESTION, "filter": {"n": 1 << 64}},
            "the number 18446744073709551616 is too large: send one of at most 64 bits",
        ),
        (
            {"question": QUESTION, "thread": "../x"},
            "thread: String should match pattern",
        ),
        (
            {"question": "x" * 100_001},
            "the question has 100,001 characters, and 100,000 are the most",
        ),
        (
            {"messages": [{"role": "user", "content": "x" * 100_001}]},
            "the question has 100,001 characters",
        ),
        ({"query": QUESTION}, "query: Extra inputs are not permitted"),
        ({"question": QUESTION, "filter": {"team": {}}}, "filter"),
        ({"question": QUESTION, "review": ["taste"]}, "review.0: Input should be"),
        (
            {"question": QUESTION, "review": ["plan"] * 4},
            "review: List should have at most 3 items",
        ),
        (
            {"messages": [{"role": "user", "content": "x"}] * 1_001},
            "messages: List should have at most 1000 items",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}] * 1_001}]},
            "messages.0.content",
        ),
        (
            {
                "question": QUESTION,
                "filter": {f"k{number}": "x" for number in range(101)},
            },
            "at most 100 keys",
        ),
        (
            {"question": QUESTION, "filter": {"team": ["x" * 1_000] * 100}},
            "100,000 characters as JSON",
        ),
    ):
        for stream in ({}, {"stream": True}):  # which is refused before its headers
            response = client.post("/api/ask", json={**body, **stream})
            assert response.status_code == 422
            assert message in response.json()["error"]["message"]


def test_a_stream_has_its_headers_before_its_first_event_and_signs_of_life(
    served: Served, scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_llm.script({"hang": True, "repeat": True})
    client = served(Settings(llm=scripted_llm.spec))
    for path, body in (
        ("/api/ask", {"question": QUESTION}),
        ("/v1/chat/completions", CHAT),
    ):
        monkeypatch.setattr(runs, "_SILENCE", None)
        with client.stream("POST", path, json={**body, "stream": True}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
        monkeypatch.setattr(runs, "_SILENCE", 0.01)
        with client.stream("POST", path, json={**body, "stream": True}) as response:
            assert next(response.iter_text()).startswith(": still here\n\n")


def test_the_page_and_its_files_are_served_and_nothing_else_of_the_folder(
    client: httpx.Client,
) -> None:
    page = client.get("/")
    assert "<!doctype html>" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    scripts = policy.partition("script-src")[2].partition(";")[0]
    assert "unsafe" not in scripts
    assert (
        client.get("/page/ask.js").headers["content-type"].startswith("text/javascript")
    )
    for path in (
        "/page/layout.py",
        "/page/..%2f..%2fevents.py",
        "/page/%2e%2e/settings.py",
    ):
        assert client.get(path).status_code == 404


def test_what_fastapi_refuses_itself_has_the_same_form(client: httpx.Client) -> None:
    deep = b'{"question": "Who?", "filter": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    json = {"Content-Type": "application/json"}
    for told in (
        client.get("/nothing"),
        client.put("/api/ask"),
        client.post("/api/ask", content=deep, headers=json),
        client.post(
            "/api/ask",
            content=b'{"question": "Who?"}',
            headers={"Content-Type": "text/plain"},
        ),
    ):
        assert 400 <= told.status_code < 500
        assert told.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("error", [ValueError, LookupError])
def test_a_key_in_an_error_of_a_tool_reaches_no_answer_and_no_log(
    served: Served,
    error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Search:
        def retrieve(self, *_: Any, **__: Any) -> None:
            raise error(
                "401 for https://api.search/?q=x&key=AIzaSyHunter2hunter2 and sk-abcdefghijklmnop"
            )

    resolve_parts = service.resolve_parts
    monkeypatch.setattr(
        service,
        "resolve_parts",
        lambda *given, **more: replace(
            resolve_parts(*given, **more), retriever=Search()
        ),
    )
    client = served(Settings())
    told = client.get("/api/retrieve", params={"q": "x"}).text
    told += client.post("/api/ask", json={"question": QUESTION}).text
    told += caplog.text + "".join(capfd.readouterr())
    assert "401 for https://api.search/?q=x&key=*** and ***" in told
    assert "Hunter2" not in told
    assert "sk-abc" not in told


def test_a_run_whose_searches_failed_may_be_tried_again() -> None:
    problem = Ended({"failed": SEARCH_FAILED, "stop_reason": "no_evidence"}).problem
    assert problem is not None
    assert (problem.status_code, problem.code) == (503, "index_unavailable")

"""Threads over HTTP: remembered, looked at, paused, resumed, reviewed."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from ras_agent import PassageIndex, open_checkpointer
from ras_agent.app.sample import sample_passages
from ras_agent.config.settings import Settings
from ras_agent.graphs.resolve import assemble_agent, resolve_parts
from tests.app.serve.conftest import Served, events_of
from tests.messages import says

QUESTION = "Who invented the telephone?"


def test_a_thread_is_looked_at_after_its_end(client: httpx.Client) -> None:
    out = client.post(
        "/api/ask", json={"question": QUESTION, "thread": "looked-at"}
    ).json()
    state = client.get("/api/threads/looked-at").json()
    assert state.pop("finished") is True
    assert state.pop("running") is False
    assert state == out
    assert [turn["role"] for turn in out["messages"]] == ["user", "assistant"]


def test_what_there_is_not_is_said_to_be_missing(client: httpx.Client) -> None:
    for response in (
        client.get("/api/threads/none"),
        client.post("/api/threads/none/resume", json={}),
    ):
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "unknown_thread"


def test_a_run_that_has_ended_is_not_resumed(client: httpx.Client) -> None:
    client.post("/api/ask", json={"question": QUESTION, "thread": "ended"})
    response = client.post("/api/threads/ended/resume", json={})
    assert (response.status_code, response.json()["error"]["code"]) == (
        409,
        "nothing_to_resume",
    )


def test_a_person_reviews_a_run_over_http(client: httpx.Client) -> None:
    asked = {
        "question": QUESTION,
        "thread": "reviewed",
        "review": ["plan", "answer"],
        "stream": True,
    }
    *_, (last, review) = events_of(client.post("/api/ask", json=asked).text)
    assert (last, review["at"], review["thread"]) == ("review", "plan", "reviewed")
    waiting = client.get("/api/threads/reviewed").json()
    assert (waiting["review"]["at"], waiting["finished"]) == ("plan", False)

    edit = {"action": "edit", "subquery": "Who patented the telephone?", "by": "Ada"}
    out = client.post("/api/threads/reviewed/resume", json={"decision": edit}).json()
    while out.get("review", {}).get("at") == "plan":
        approve = {"decision": {"action": "approve"}}
        out = client.post("/api/threads/reviewed/resume", json=approve).json()
    assert out["review"]["answer"] == "Alexander Graham Bell"
    done = {"decision": {"action": "edit", "answer": "A. G. Bell"}, "stream": True}
    *_, (last, out) = events_of(
        client.post("/api/threads/reviewed/resume", json=done).text
    )
    assert (last, out["answer"], out["plans"][0]["by"]) == (
        "done",
        "A. G. Bell",
        "person:Ada",
    )


def test_an_empty_decision_is_refused_and_the_run_waits_on(
    client: httpx.Client,
) -> None:
    client.post(
        "/api/ask",
        json={"question": QUESTION, "review": ["answer"], "thread": "undecided"},
    )
    told = client.post("/api/threads/undecided/resume", json={"decision": {}})
    assert told.status_code == 422
    assert says("an empty object", "give an action", '{"action": "approve"}').search(
        told.text.replace("\\", "")
    )
    assert client.get("/api/threads/undecided").json()["review"]["at"] == "answer"


def test_a_decision_that_nobody_waits_for_is_refused(client: httpx.Client) -> None:
    response = client.post("/api/ask", json={"question": QUESTION, "review": ["taste"]})
    assert response.status_code == 422


def test_a_run_whose_client_leaves_ends_with_its_model_call_and_goes_on_later(
    served: Served, scripted_llm: Any
) -> None:
    scripted_llm.script({"hang": True})
    client = served(Settings(llm=scripted_llm.spec, max_hops=2))
    asked = {"question": "Where was Bell born?", "thread": "paused", "stream": True}
    with client.stream("POST", "/api/ask", json=asked):
        while not scripted_llm.requests():
            pass
        assert client.get("/api/threads/paused").json()["running"] is True
        busy = client.post(
            "/api/ask", json={"question": "And then?", "thread": "paused"}
        )
        assert (busy.status_code, busy.json()["error"]["code"]) == (409, "thread_busy")
    while client.get("/health").json()["runs"]:
        pass
    state = client.get("/api/threads/paused").json()
    assert (state["running"], state["finished"], state["answer"]) == (False, False, "")
    # nobody called on after the client had left
    assert len(scripted_llm.requests()) < 10

    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "You steer", "reply": "[SUFFICIENT]", "repeat": True},
        {"when": "You answer", "reply": "Answer: Edinburgh [1]", "repeat": True},
        {"reply": "(S> Bell | P> was born in | O> Edinburgh)", "repeat": True},
    )
    out = client.post("/api/threads/paused/resume", json={}).json()
    assert out["answer"] == "Edinburgh"


def test_a_follow_up_on_a_thread_is_understood_from_its_turns(
    client: httpx.Client,
) -> None:
    client.post("/api/ask", json={"question": QUESTION, "thread": "follow-up"})
    asked = {"question": "Where was he born?", "thread": "follow-up", "stream": True}
    (first, rewritten), *_, (_, out) = events_of(
        client.post("/api/ask", json=asked).text
    )
    assert (first, rewritten["standalone"]) == (
        "rewritten",
        "Where was Alexander Graham Bell born?",
    )
    assert [turn["role"] for turn in out["messages"]] == ["user", "assistant"] * 2


def _recalled(out: Any) -> set[str]:
    sources = [source for fact in out["graph"]["facts"] for source in fact["sources"]]
    return {source["passage_id"] for source in sources if source["hop"] == 0}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_stored_thread_remembers_what_it_found_and_no_other_callers_thread_does(
    served: Served, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    place = (
        tmp_path / "threads.sqlite"
        if kind == "sqlite"
        else request.getfixturevalue("postgres")
    )
    settings = Settings(index=tmp_path / "my.index", checkpoint=f"{kind}:{place}")
    PassageIndex.create(tmp_path / "my.index").add(sample_passages())
    ada, bob = "token-of-ada-0123456789", "token-of-bob-0123456789"
    tokens = {ada: None, bob: None}
    asked = {"question": "Which river flows through Edinburgh?", "thread": "1"}
    first = served(settings, tokens, headers={"Authorization": f"Bearer {ada}"})
    assert not _recalled(
        first.post("/api/ask", json={"question": QUESTION, "thread": "1"}).json()
    )
    again = served(settings, tokens)  # another server, over the same database
    told = {
        who: again.post(
            "/api/ask", json=asked, headers={"Authorization": f"Bearer {who}"}
        )
        for who in tokens
    }
    assert "telephone" in _recalled(told[ada].json())
    assert not _recalled(told[bob].json())
    other = {**asked, "thread": "2"}
    assert not _recalled(
        again.post(
            "/api/ask", json=other, headers={"Authorization": f"Bearer {ada}"}
        ).json()
    )
    chat = {"model": "ras-agent", "messages": [{"role": "user", "content": QUESTION}]}
    said = again.post(
        "/v1/chat/completions", json=chat, headers={"Authorization": f"Bearer {ada}"}
    ).json()
    assert said["choices"][0]["message"]["content"].startswith("Alexander Graham Bell")


def test_a_caller_lists_and_forgets_threads_of_his_own(
    served: Served, tmp_path: Path
) -> None:
    ada, bob = "token-of-ada-0123456789", "token-of-bob-0123456789"
    settings = Settings(checkpoint=f"sqlite:{tmp_path / 'threads.sqlite'}")
    client = served(
        settings, {ada: None, bob: None}, headers={"Authorization": f"Bearer {ada}"}
    )
    as_bob = {"Authorization": f"Bearer {bob}"}
    for thread in ("1", "2"):
        client.post("/api/ask", json={"question": QUESTION, "thread": thread})
    client.post(
        "/api/ask",
        json={"question": "Where was Bell born?", "thread": "1"},
        headers=as_bob,
    )
    last, first = client.get("/api/threads").json()["threads"]
    assert (last["thread"], first["thread"], first["question"]) == ("2", "1", QUESTION)
    (others,) = client.get("/api/threads", headers=as_bob).json()["threads"]
    assert (others["thread"], others["question"]) == ("1", "Where was Bell born?")
    assert (
        client.delete("/api/threads/2", headers=as_bob).json()["error"]["code"]
        == "unknown_thread"
    )
    assert client.delete("/api/threads/1").json() == {"threads_forgotten": 1}
    assert client.get("/api/threads/1").status_code == 404
    assert [
        thread["thread"] for thread in client.get("/api/threads").json()["threads"]
    ] == ["2"]
    assert client.get("/api/threads/1", headers=as_bob).status_code == 200
    again = client.post(
        "/api/ask",
        json={"question": "Which river flows through Edinburgh?", "thread": "1"},
    ).json()
    assert not _recalled(again)


def test_threads_of_a_server_without_tokens_are_listed_too(served: Served) -> None:
    client = served(Settings())
    client.post("/api/ask", json={"question": QUESTION, "thread": "mine"})
    assert [
        thread["thread"] for thread in client.get("/api/threads").json()["threads"]
    ] == ["mine"]


def test_memory_holds_the_threads_that_were_used_last(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ras_agent.app.serve.service._REMEMBERED", 2)
    client = served(Settings())
    for thread in ("1", "2", "1", "3"):
        client.post("/api/ask", json={"question": QUESTION, "thread": thread})
    found = [
        client.get(f"/api/threads/{thread}").status_code for thread in ("1", "2", "3")
    ]
    assert found == [200, 404, 200]


def test_a_run_that_was_killed_before_a_node_s_checkpoint_goes_on(
    served: Served, tmp_path: Path
) -> None:
    settings = Settings(checkpoint=f"sqlite:{tmp_path / 'threads.sqlite'}")
    # as the server names a thread of nobody in particular
    thread: Any = {"configurable": {"thread_id": "/killed"}}
    with open_checkpointer(settings.checkpoint) as checkpointer:
        put, done = checkpointer.put, []

        def killed(*args: Any) -> Any:
            if len(done) == 3:
                raise KeyboardInterrupt  # the node's own writes are stored by now
            done.append(put(*args))
            return done[-1]

        checkpointer.put = killed  # type: ignore[method-assign]
        agent = assemble_agent(
            resolve_parts("ras", settings=settings, index=sample_passages()),
            checkpointer,
        )
        with pytest.raises(KeyboardInterrupt):
            agent.invoke({"question": QUESTION}, thread, durability="sync")
        state = agent.get_state(thread)
        assert (state.next, len(state.tasks)) == ((), 1)
    client = served(settings)
    found = client.get("/api/threads/killed").json()
    assert (found["finished"], found["answer"]) == (False, "")
    assert (
        client.post("/api/threads/killed/resume", json={}).json()["answer"]
        == "Alexander Graham Bell"
    )


def test_a_thread_is_named_and_its_last_answer_judged_by_its_own_caller(
    served: Served, tmp_path: Path
) -> None:
    ada, bob = "token-of-ada-0123456789", "token-of-bob-0123456789"
    settings = Settings(checkpoint=f"sqlite:{tmp_path / 'threads.sqlite'}")
    client = served(
        settings, {ada: None, bob: None}, headers={"Authorization": f"Bearer {ada}"}
    )
    client.post("/api/ask", json={"question": QUESTION, "thread": "1"})
    assert (
        client.patch("/api/threads/1", json={"name": " The  telephone "}).json()["name"]
        == "The telephone"
    )
    assert client.patch("/api/threads/1", json={"right": True}).json()["verdicts"] == 1
    assert [one["name"] for one in client.get("/api/threads").json()["threads"]] == [
        "The telephone"
    ]
    strange = client.patch(
        "/api/threads/1",
        json={"right": False},
        headers={"Authorization": f"Bearer {bob}"},
    )
    assert (strange.status_code, strange.json()["error"]["code"]) == (
        404,
        "unknown_thread",
    )
    client.delete("/api/threads/1")
    client.post("/api/ask", json={"question": QUESTION, "thread": "1"})
    assert [one["name"] for one in client.get("/api/threads").json()["threads"]] == [""]


def test_a_run_without_an_answer_is_not_judged(client: httpx.Client) -> None:
    client.post(
        "/api/ask", json={"question": QUESTION, "thread": "waits", "review": ["plan"]}
    )
    told = client.patch("/api/threads/waits", json={"right": True})
    assert (told.status_code, told.json()["error"]["code"]) == (409, "no_answer")

"""Rerankers by their names: a cross-encoder, a chat model, and servers in the forms that are in use."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.errors import (
    ModelCallError,
    ModelRefused,
    SettingsError,
    UnknownName,
    WeightsError,
)
from ras_agent.contracts.records import Passage
from ras_agent.graphs.resolve import role_options
from ras_agent.tools.roles import resolve_reranker
from tests.messages import says

QUERY = "Which river flows through Edinburgh?"
TEXTS = ["Paris is far.", "A river flows through Edinburgh.", "Edinburgh."]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


def scored(spec: object, **settings: Any) -> list[float]:
    reranker = resolve_reranker(spec, role_options(Settings(**settings)))
    assert reranker is not None
    return list(reranker.scores(QUERY, TEXTS))


def test_without_a_name_there_is_none() -> None:
    assert [resolve_reranker(None), resolve_reranker("none")] == [None, None]


@pytest.mark.parametrize("form", ["jina", "vllm", "voyage", "tei"])
def test_a_server_is_asked_in_its_form(form: str, scripted_llm: Any) -> None:
    scripted_llm.script({"rerank": form, "repeat": True})
    reranker = resolve_reranker(f"{scripted_llm.root}/rerank#bge")
    assert reranker is not None
    for _ in range(2):
        assert reranker.scores(QUERY, TEXTS) == [0, 0.8, 0.2]
    first, *_, last = scripted_llm.requests()
    assert (first["model"], first["top_n"], first["documents"]) == ("bge", 3, TEXTS)
    # the other form is asked for once
    assert len(scripted_llm.requests()) == (3 if form == "tei" else 2)
    assert last.get("texts") == (TEXTS if form == "tei" else None)


def test_a_key_is_that_of_the_reranker_alone(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_llm.script({"rerank": "jina", "repeat": True})
    monkeypatch.setenv("OF_ALL", "sk-of-all")
    monkeypatch.setenv("OF_RERANKER", "sk-reranker")
    spec = f"{scripted_llm.root}/rerank#m"
    scored(spec, api_keys="OF_ALL")
    scored(spec, api_keys="OF_ALL", roles={"reranker": {"timeout": 5}})
    scored(spec, api_keys="OF_ALL", roles={"reranker": {"api_keys": "OF_RERANKER"}})
    keys = [request["authorization"] for request in scripted_llm.requests()]
    assert keys == ["Bearer EMPTY", "Bearer EMPTY", "Bearer sk-reranker"]


def test_a_failure_names_server_and_remedy_and_no_key(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-secret-secret")
    scripted_llm.script({"status": 401, "reply": "no such key: sk-secret-secret"})
    with pytest.raises(
        ModelRefused, match=says("reranker 'm'", "401", "api_keys")
    ) as e:
        scored(f"{scripted_llm.root}/rerank#m")
    assert "sk-secret" not in str(e.value)
    absent = "http://127.0.0.1:9/rerank#m"
    with pytest.raises(ModelRefused, match=says("nothing listens", "--reranker")):
        scored(absent)


@pytest.mark.parametrize(
    "body",
    ['{"results": []}', '{"results": [{"index": "0"}]}', '{"ok": true}', "7", "<html>"],
)
def test_a_reply_of_another_kind_is_no_ranking(body: str, scripted_llm: Any) -> None:
    scripted_llm.script({"body": body, "repeat": True})
    with pytest.raises(ModelCallError, match="BrokenReply"):
        scored(f"{scripted_llm.root}/rerank#m", retries=0)


def test_a_chat_model_shares_a_score_among_the_texts(scripted_model: Any) -> None:
    model = scripted_model(("", "1: 0\n2: 0.9\n3: 0.1"))
    assert scored(model) == pytest.approx([0, 0.9, 0.1])
    (prompt,) = model.prompts
    assert "2. A river flows through Edinburgh." in prompt
    with pytest.raises(ModelCallError, match="have no score"):
        scored(scripted_model(("", "I cannot tell.")))


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("ce:", SettingsError, "ce:NAME"),
        ("bge", UnknownName, "unknown reranker"),
        ("http://host/rerank", SettingsError, "#model"),
        ("llm:", UnknownName, "unknown reranker"),
    ],
)
def test_a_name_that_cannot_be_used_says_why(
    spec: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        resolve_reranker(spec)


def test_a_folder_without_a_cross_encoder_says_so(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(WeightsError, match="cannot be loaded"):
        scored(f"ce:{tmp_path}")


def test_an_agent_searches_with_the_reranker_of_its_settings(scripted_llm: Any) -> None:
    scripted_llm.script({"rerank": "jina"})
    texts = [
        Passage("one", "Edinburgh is on a hill.", "Edinburgh"),
        Passage("two", "The river that flows through Edinburgh is Leith.", "Leith"),
    ]
    settings = Settings(reranker=f"{scripted_llm.root}/rerank#m", k=1, max_hops=1)
    agent = create_ras_agent(index=texts, settings=settings)
    out = agent.invoke({"question": QUERY})
    assert [step["hits"][0]["passage_id"] for step in out["steps"]] == ["two"]
    # the script has ended: the server refuses, and the search goes on
    out = agent.invoke({"question": "Which river flows through Paris?"})
    assert out["steps"][0]["hits"]
    failures = [one for one in out["failures"] if one["role"] == "reranker"]
    assert len(failures) == 1

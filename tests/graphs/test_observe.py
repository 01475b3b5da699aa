"""Those who watch a service see searches through LangChain's callbacks, and one log line per node."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever

from ras_agent import Hit, Passage, create_ras_agent
from ras_agent.logs import LOGGER, log_to

BELL = Passage(
    "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
)
QUESTION = {"question": "Where was Alexander Graham Bell born?"}


class Searches(BaseCallbackHandler):
    """Remembers searches."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.seen.append((kwargs["name"], query))

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.append(
            ("found", [(document.id, document.page_content) for document in documents])
        )

    def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(("error", str(error)))


class AsyncSearches(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_retriever_start(
        self, serialized: Any, query: str, **kwargs: Any
    ) -> None:
        self.seen.append(query)

    async def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.seen.append(documents[0].id)


class Broken:
    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        raise ConnectionError("nobody is there")


class Listed(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: Any
    ) -> list[Document]:
        return [Document(BELL.text, id="bell", metadata={"title": BELL.title})]


def _first(handler: Searches, count: int = 2) -> list[Any]:
    return handler.seen[:count]


class TestCallbacks:
    def test_a_built_in_retriever_reports_its_query_and_what_it_found(self) -> None:
        handler = Searches()
        create_ras_agent(index=[BELL]).invoke(QUESTION, {"callbacks": [handler]})
        assert _first(handler) == [
            ("bm25", QUESTION["question"]),
            ("found", [("bell", BELL.text)]),
        ]

    async def test_so_it_does_in_an_asynchronous_run(self) -> None:
        handler, other = AsyncSearches(), Searches()
        await create_ras_agent(index=[BELL]).ainvoke(
            QUESTION, {"callbacks": [handler, other]}
        )
        assert handler.seen[:2] == [QUESTION["question"], "bell"]
        assert _first(other)[1] == ("found", [("bell", BELL.text)])

    def test_a_search_that_fails_is_reported_as_an_error(self) -> None:
        handler = Searches()
        out = create_ras_agent(retriever=Broken()).invoke(
            QUESTION, {"callbacks": [handler]}
        )
        assert _first(handler) == [
            ("Broken", QUESTION["question"]),
            ("error", "nobody is there"),
        ]
        assert out["failures"][0]["role"] == "retriever"

    def test_langchains_own_retriever_is_reported_once(self) -> None:
        handler = Searches()
        create_ras_agent(retriever=Listed()).invoke(QUESTION, {"callbacks": [handler]})
        assert [name for name, _ in _first(handler)] == ["Listed", "found"]


@pytest.mark.parametrize(
    "passage", [Passage(7, "text"), Passage("p", None), Passage("p", "Zürich", 7)]
)  # type: ignore[arg-type]
def test_a_retriever_that_returns_no_passages_of_texts_is_a_type_error_whoever_listens(
    passage: Passage,
) -> None:
    class Wrong:
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            return [Hit(passage, 1.0)]

    with pytest.raises(TypeError, match="a retriever must return hits"):
        create_ras_agent(retriever=Wrong()).invoke(
            QUESTION, {"callbacks": [Searches()]}
        )


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A file that receives the log without texts."""
    handler = log_to(tmp_path / "log.jsonl")
    yield tmp_path / "log.jsonl"
    LOGGER.removeHandler(handler)
    handler.close()
    LOGGER.setLevel(logging.NOTSET)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class TestLog:
    def test_it_has_a_line_for_each_node_with_the_questions_id(self, log: Path) -> None:
        create_ras_agent(index=[BELL]).invoke(
            QUESTION, {"metadata": {"question_id": "q7"}}
        )
        lines = _lines(log)
        assert [line["node"] for line in lines[:5]] == [
            "begin",
            "plan",
            "retrieve",
            "structure",
            "merge",
        ]
        assert {line["question_id"] for line in lines} == {"q7"}
        assert lines[2]["passage_ids"] == ["bell"]
        assert lines[-1]["node"] == "answer"
        assert lines[-1]["citations"] == 1

    def test_it_holds_no_text_of_question_passages_or_answer(self, log: Path) -> None:
        create_ras_agent(index=[BELL]).invoke(QUESTION)
        for word in ("Alexander", "Edinburgh", "born"):
            assert word not in log.read_text("utf-8")

    def test_it_holds_question_and_answer_where_they_are_asked_for(
        self, tmp_path: Path, log: Path
    ) -> None:
        handler = log_to(tmp_path / "texts.jsonl", text=True)
        try:
            create_ras_agent(index=[BELL]).invoke(QUESTION)
        finally:
            LOGGER.removeHandler(handler)
            handler.close()
        with_texts = _lines(tmp_path / "texts.jsonl")
        assert with_texts[0]["question"] == QUESTION["question"]
        assert with_texts[-1]["answer"] == "Edinburgh"
        assert "Edinburgh" not in log.read_text("utf-8")

    def test_calls_tokens_and_failures_are_counted(self, log: Path) -> None:
        planner = FakeListChatModel(
            responses=["[SUBQ] Where was Bell born?", "[SUFFICIENT]"]
        )
        answerer = FakeListChatModel(responses=["Answer: Edinburgh [1]"])
        create_ras_agent(
            planner=planner, extractor="offline", answerer=answerer, retriever=Broken()
        ).invoke(QUESTION)
        planned = next(line for line in _lines(log) if line["node"] == "plan")
        failed = next(line for line in _lines(log) if line["node"] == "retrieve")
        assert planned["model_calls"] == 1
        assert planned["input_tokens"] > 0
        assert failed["level"] == "warning"
        assert failed["failures"] == [
            {"role": "retriever", "message": "ConnectionError"}
        ]

    def test_a_question_without_an_id_is_named_by_a_digest_at_every_node_and_the_thread_is_named(
        self, log: Path
    ) -> None:
        agent = create_ras_agent(index=[BELL])
        agent.invoke(QUESTION)
        agent.invoke(QUESTION, {"configurable": {"thread_id": "somebody/t1"}})
        lines = _lines(log)
        assert {line["question_id"] for line in lines} == {"6a32c43c35d5"}
        assert {line.get("thread") for line in lines} == {None, "t1"}

    def test_hops_count_as_in_the_events(self, log: Path) -> None:
        create_ras_agent(index=[BELL]).invoke(QUESTION)
        assert [(line["node"], line["hop"]) for line in _lines(log)[:5]] == [
            *(
                ("begin", 0),
                ("plan", 1),
                ("retrieve", 1),
                ("structure", 1),
                ("merge", 1),
            ),
        ]

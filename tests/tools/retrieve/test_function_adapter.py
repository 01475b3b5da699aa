"""A plain function is a retriever: the least that somebody's own search needs."""

from functools import partial
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Hit, Passage
from ras_agent.tools.retrieve.resolve import resolve_retriever

BELL = "The telephone was invented by Alexander Graham Bell."
BORN = "Alexander Graham Bell was born in Edinburgh."


def texts(query: str) -> list[str]:
    return [BELL, BORN]


def first_texts(query: str, k: int) -> list[str]:
    return [BELL, BORN][:k]


async def later(query: str) -> list[str]:
    return [BELL, BORN]


def passages(query: str) -> list[Passage]:
    return [Passage("bell", BELL, "Telephone"), Passage("born", BORN)]


def hits(query: str) -> list[Hit]:
    return [Hit(passage, 0.5) for passage in passages(query)]


def rows(query: str) -> list[dict[str, Any]]:
    return [{"id": "bell", "content": BELL, "title": "Telephone"}, {"text": BORN}]


@pytest.mark.parametrize(
    "function", [texts, first_texts, later, passages, hits, rows, partial(first_texts)]
)
def test_an_agent_searches_with_a_function(function: Any) -> None:
    out = create_ras_agent(retriever=function).invoke(
        {"question": "Where was the inventor of the telephone born?"}
    )
    assert out["answer"] == "Edinburgh"
    assert not out["failures"]


@pytest.mark.parametrize("function", [texts, first_texts, later, passages, hits, rows])
def test_at_most_k_hits_come_in_the_functions_order(function: Any) -> None:
    (hit,) = resolve_retriever(function).retrieve("telephone", k=1)
    assert hit.passage.text == BELL


async def test_a_coroutine_is_awaited_and_another_function_runs_in_a_thread() -> None:
    for function in (later, texts):
        retriever: Any = resolve_retriever(function)
        assert [hit.passage.text for hit in await retriever.aretrieve("telephone")] == [
            BELL,
            BORN,
        ]


def test_a_function_that_returns_nothing_is_named() -> None:
    def forgot(query: str) -> None: ...

    with pytest.raises(
        TypeError, match="the retriever forgot returned None: let it return a list"
    ):
        create_ras_agent(retriever=forgot).invoke(
            {"question": "Who invented the telephone?"}
        )

"""An episode is the run of an agent: scripted calls are played through both, and their results are compared."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from ras_agent import Limits, Settings, create_react_agent
from ras_agent.eval.question import Question
from ras_agent.gym import GraphSearch, Rewards, roll_out, rollout_agent, search_parts

TEXTS = [
    {
        "id": "a",
        "title": "Telephone",
        "text": "The telephone was patented by Alexander Graham Bell in 1876.",
    },
    {
        "id": "b",
        "title": "Alexander Graham Bell",
        "text": "Alexander Graham Bell was born in Edinburgh.",
    },
    {
        "id": "c",
        "title": "Water of Leith",
        "text": "The Water of Leith flows through Edinburgh.",
    },
    {"id": "d", "title": "Salzach", "text": "The Salzach flows through Salzburg."},
    {"id": "e", "title": "Mozart", "text": "Mozart was born in Salzburg."},
    {
        "id": "f",
        "title": "Paris",
        "text": "Paris is the capital of France. The Seine flows through Paris.",
    },
]
QUESTION = Question(
    "q1",
    "Which river flows through the city where the inventor of the telephone was born?",
    ("Water of Leith",),
    ("a", "b", "c"),
)
REWARDS = Rewards(
    f1=1,
    em=1,
    gold=1,
    new_support=1,
    stop=1,
    enough=1,
    abstention=1,
    citations=1,
    form=1,
    searches=1,
)
FINISH = ("finish", {"reason": "enough"})
QUERIES = (
    QUESTION.question,
    "telephone patented",
    "Telephone patented?",
    "Alexander Graham Bell born",
    "river Edinburgh",
    "Mozart Salzburg",
    "Seine",
    "nothing like it",
    " Mozart\n Salzburg ",
)
OTHERS = (
    FINISH,
    ("neighbours", {"entity": "Edinburgh"}),
    ("read", {"passage": "1"}),
    ("read", {"passage": "nowhere"}),
    ("search", {"query": " "}),
    ("read", {"passage": ""}),
)
UNREADABLE = (("read", {"passage": ""}), ("search", {"query": " "}))
Calls = Sequence[tuple[str, Mapping[str, Any]]]


def _script(seed: int) -> Calls:
    """Return calls of tools, of which about two in three are searches; they end by `finish`."""
    draw = random.Random(seed)
    calls: list[tuple[str, Mapping[str, Any]]] = []
    if seed % 5 == 0:
        calls = [("search", {"query": draw.choice(QUERIES)}), *UNREADABLE]
    for _ in range(draw.randint(0, 7)):
        searches = draw.random() < 0.65
        calls.append(
            ("search", {"query": draw.choice(QUERIES)})
            if searches
            else draw.choice(OTHERS)
        )
    return [*calls, FINISH]


class Scripted(BaseChatModel):
    """Chat model that makes the calls of a script, and its last one for ever."""

    calls: list[Any]
    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        name, arguments = self.calls[min(self.asked, len(self.calls) - 1)]
        self.asked += 1
        call = {"name": name, "args": dict(arguments), "id": f"call_{self.asked}"}
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))]
        )


def _play(episode: GraphSearch, calls: Calls) -> None:
    episode.reset(QUESTION)
    for name, arguments in [*calls, FINISH]:
        getattr(episode, name)(**arguments)


@pytest.mark.parametrize("stops", [True, False], ids=["stops", "no stops"])
@pytest.mark.parametrize("seed", range(25))
def test_a_script_ends_an_episode_as_it_ends_a_run(seed: int, stops: bool) -> None:
    limits = Limits(max_hops=4, k=1, stop_on_repeat=stops, stop_on_no_new_facts=stops)
    calls = _script(seed)
    agent = create_react_agent(
        index=TEXTS,
        planner=Scripted(calls=list(calls)),
        extractor="offline",
        answerer="offline",
        limits=limits,
        settings=Settings(fallback="stop"),
    )
    run = agent.invoke({"question": QUESTION.question})
    episode = GraphSearch(search_parts(index=TEXTS, limits=limits), rewards=REWARDS)
    _play(episode, calls)
    assert [step.subquery for step in episode.steps] == [
        step["subquery"] for step in run["steps"]
    ]
    assert episode.stop_reason == run["stop_reason"]
    assert [fact.id for fact in episode.graph.facts] == [
        fact["id"] for fact in run["graph"]["facts"]
    ]
    assert episode.outcome.answer == run["answer"]


@pytest.mark.parametrize("seed", range(25))
def test_a_script_is_paid_by_the_gym_as_by_a_rollout(seed: int) -> None:
    limits = Limits(max_hops=4, k=1)
    calls = _script(seed)
    settings = Settings(loop="react", max_hops=4, k=1)
    rollout = roll_out(
        rollout_agent(Scripted(calls=list(calls)), settings, TEXTS), QUESTION, REWARDS
    )
    episode = GraphSearch(search_parts(index=TEXTS, limits=limits), rewards=REWARDS)
    _play(episode, calls)
    assert episode.reward_parts == pytest.approx(rollout.parts)

"""Attacks on a run's limits: roles that take their time, budgets of all sizes, interrupts, many runs at once."""

from __future__ import annotations

import _thread
import asyncio
import json
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ras_agent import Limits, create_ircot_agent, create_ras_agent
from ras_agent.contracts.events import AnswerToken, emit
from ras_agent.contracts.records import (
    Answer,
    Call,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Triple,
)
from ras_agent.running.budget import current_ledger
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.plan.llm import LLMPlanner
from tests.faults.attack import Attack

ASKED = {"question": "Who?"}
# the limit's promise, and the seconds that a busy machine may add
LATE = 1.0 + 1.5


class Role:
    """Plays every role, each call after `calls` model calls of 100 tokens."""

    def __init__(self, calls: int = 0) -> None:
        self.calls, self.made = calls, 0

    def _pay(self) -> None:
        for _ in range(self.calls):
            ledger = current_ledger()
            ledger.admit()
            self.made += 1
            ledger.record(
                Call(ledger.role, ledger.hop, "m", input_tokens=60, output_tokens=40)
            )

    def plan(self, question: str, graph: Any, steps: Any) -> Plan:
        self._pay()
        return Plan("subq", f"What about {len(steps)}?")

    def next_sentence(self, question: str, passages: Any, thoughts: Any) -> str:
        self._pay()
        return f"Thought {len(thoughts)} leads on."

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [
            Hit(
                Passage(f"{query} {n}", f"{query} {n} is a thing.", query), 1.0 - n / 10
            )
            for n in range(2)
        ]

    def extract(self, passages: Any, subquery: str = "") -> Extraction:
        self._pay()
        return Extraction(
            tuple(
                Triple(
                    p.id,
                    "is",
                    "a thing",
                    (Source(p.id, 0, len(p.text), extractor="x"),),
                )
                for p in passages
            )
        )

    def answer(self, question: str, graph: Any, passages: Any, steps: Any) -> Answer:
        self._pay()
        return Answer(f"{len(graph)} facts")


def blocked(role: Role, method: str, how: str, end: threading.Event) -> Role:
    """Make one method of a role never return in time, in one of the ways in which that happens."""

    def waits(*args: Any, **options: Any) -> None:
        end.wait(8)

    def computes(*args: Any, **options: Any) -> None:
        until = time.monotonic() + 8
        while time.monotonic() < until and not end.is_set():
            sum(range(1000))

    def streams(*args: Any, **options: Any) -> None:
        while not end.wait(0.01):
            emit(AnswerToken("and "))

    def holds(*args: Any, **options: Any) -> None:
        # nothing else runs meanwhile: a second or two
        re.match(r"(a+)+$", "a" * 25 + "b")

    async def awaits(*args: Any, **options: Any) -> None:
        await asyncio.sleep(8)

    does = {
        "waits": waits,
        "computes": computes,
        "streams": streams,
        "holds": holds,
        "awaits": awaits,
    }[how]
    setattr(role, f"a{method}" if how == "awaits" else method, does)
    return role


METHODS = {
    "planner": "plan",
    "reasoner": "next_sentence",
    "retriever": "retrieve",
    "extractor": "extract",
    "answerer": "answer",
}


@pytest.mark.parametrize("how", ["waits", "computes", "streams", "holds", "awaits"])
def test_a_role_that_takes_its_time(attack: Attack, how: str) -> None:
    """max_seconds: a role that does not return ends the run in time, and is named."""
    for kind, method in METHODS.items():
        for asynchronous in (False, True):
            if how == "awaits" and not asynchronous:
                continue
            end = threading.Event()
            role = blocked(Role(), method, how, end)
            parts: dict[str, Any] = {
                "extractor": Role(),
                "answerer": Role(),
                "retriever": Role(),
                "planner": Role(),
            }
            parts["planner" if kind == "reasoner" else kind] = role
            build = create_ircot_agent if kind == "reasoner" else create_ras_agent
            agent: Any = build(**parts, limits=Limits(max_seconds=0.5))
            began = time.monotonic()
            out = (
                asyncio.run(agent.ainvoke(ASKED))
                if asynchronous
                else agent.invoke(ASKED)
            )
            seconds = time.monotonic() - began
            end.set()
            told = f"{how} {kind} {'async' if asynchronous else 'sync'}: {out['stop_reason']}, {seconds:.1f} s"
            # which cannot be ended, and is named
            one_step = 8.0 if how == "holds" else 0.0
            attack.expect(
                seconds < 0.5 + LATE + one_step + (0.8 if kind == "answerer" else 0.0),
                told,
            )
            if seconds > 1.0:
                attack.expect(out["stop_reason"] == "max_seconds", told)
            named = [
                one["role"]
                for one in out["failures"]
                if "was still running" in one["message"]
            ]
            attack.expect(kind in named or how == "holds", f"{told}: {out['failures']}")


def test_a_model_that_drips(attack: Attack, scripted_llm: Any) -> None:
    """max_seconds: a model that drips its replies, whole and streamed, ends in time."""
    scripted_llm.script({"reply": "[SUBQ] Who? " * 200, "drip": 0.05, "repeat": True})
    passages = [
        Passage(
            "bell",
            "Alexander Graham Bell was born in Edinburgh.",
            "Alexander Graham Bell",
        )
    ]
    for asynchronous in (False, True):
        for parts in (
            {"planner": scripted_llm.spec},
            {"extractor": scripted_llm.spec},
            {"llm": scripted_llm.spec},
        ):
            chosen: dict[str, Any] = parts
            if "llm" in parts:
                settings = ChatSettings(timeout=1.0)
                chosen = {
                    "planner": LLMPlanner(scripted_llm.spec, settings=settings),
                    "extractor": "offline",
                }
            agent: Any = create_ras_agent(
                **{"extractor": "offline", **chosen},
                index=passages,
                limits=Limits(max_seconds=1.5),
            )
            began = time.monotonic()
            out = (
                asyncio.run(agent.ainvoke(ASKED))
                if asynchronous
                else agent.invoke(ASKED)
            )
            seconds = time.monotonic() - began
            attack.expect(
                seconds < 1.5 + LATE,
                f"{list(parts)} {asynchronous}: {seconds:.1f} s, {out['stop_reason']}",
            )


def test_budgets_of_calls_tokens_and_hops(attack: Attack) -> None:
    """Random budgets of calls, tokens and hops: no budget is exceeded, and the ledger counts the calls."""
    for number in attack.times(300):
        draw = attack.random
        limits = Limits(
            max_hops=draw.randint(1, 6),
            max_llm_calls=draw.choice((None, draw.randint(1, 25))),
            max_tokens=draw.choice((None, draw.randint(50, 2500))),
            max_facts=draw.choice((3, 400)),
        )
        roles = {
            name: Role(draw.randint(0, 3))
            for name in ("planner", "extractor", "answerer")
        }
        agent: Any = create_ras_agent(**roles, retriever=Role(), limits=limits)
        out = asyncio.run(agent.ainvoke(ASKED)) if number % 2 else agent.invoke(ASKED)
        made, told = (
            sum(role.made for role in roles.values()),
            f"{limits} {out['stop_reason']} {out['usage']}",
        )
        attack.expect(out["usage"]["llm_calls"] == made, told)
        attack.expect(
            limits.max_llm_calls is None or made <= limits.max_llm_calls, told
        )
        attack.expect(len(out["steps"]) <= limits.max_hops, told)
        spent = out["usage"]["input_tokens"] + out["usage"]["output_tokens"]
        # the call that passes it is the last but the answerer's
        attack.expect(
            limits.max_tokens is None
            or spent < limits.max_tokens + 100 + 100 * roles["answerer"].calls,
            told,
        )


def untimed(out: Any) -> str:
    return json.dumps(
        {
            **out,
            "steps": [{**step, "seconds": 0} for step in out["steps"]],
            "seconds": 0,
        },
        sort_keys=True,
    )


def test_many_runs_at_once(attack: Attack) -> None:
    """200 runs on one event loop and 32 threads: each ends as it does by itself."""
    agent: Any = create_ras_agent(
        planner=Role(1),
        extractor=Role(1),
        answerer=Role(1),
        retriever=Role(),
        limits=Limits(max_hops=3, max_seconds=300),
    )
    asked = [{"question": f"Who is number {number}?"} for number in attack.times(200)]
    alone = [untimed(agent.invoke(one)) for one in asked]

    async def together() -> list[Any]:
        return list(await asyncio.gather(*(agent.ainvoke(one) for one in asked)))

    for one, out in zip(alone, asyncio.run(together()), strict=True):
        attack.expect(untimed(out) == one, out["question"])
    for one, out in zip(
        alone, agent.batch(asked, {"max_concurrency": 32}), strict=True
    ):
        attack.expect(untimed(out) == one, out["question"])


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """alarm(seconds): Ctrl-C after so long."""
    # ignored in a process that a shell put behind
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.signal(
        signal.SIGALRM, lambda number, frame: _thread.interrupt_main()
    )
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    signal.signal(signal.SIGINT, usual)


def test_interrupts(
    attack: Attack, scripted_llm: Any, alarm: Callable[[float], None]
) -> None:
    """Ctrl-C at a random moment: no slot of the limiter and no call in progress is left behind."""
    scripted_llm.script(
        {"reply": "[SUBQ] Where was Alexander Graham Bell born?", "repeat": True}
    )
    passages = [
        Passage(
            "bell",
            "Alexander Graham Bell was born in Edinburgh.",
            "Alexander Graham Bell",
        )
    ]
    planner = LLMPlanner(scripted_llm.spec)
    limiter = as_chat(planner._chat).limiter
    for number in attack.times(47):
        limits = Limits(
            max_hops=4, max_seconds=60 if number % 3 else None, stop_on_repeat=False
        )
        agent: Any = create_ras_agent(
            planner=planner, extractor="offline", index=passages, limits=limits
        )
        interrupted = False
        alarm(attack.random.uniform(0.001, 0.1))
        try:
            asyncio.run(agent.ainvoke(ASKED)) if number % 2 else agent.invoke(ASKED)
            time.sleep(0.15)  # it was over before the interrupt came
        except KeyboardInterrupt:
            interrupted = True
        until = time.monotonic() + 5
        while limiter._in_flight and time.monotonic() < until:
            time.sleep(0.01)  # a thread that nobody waits for any more ends its call
        attack.expect(
            interrupted and not limiter._in_flight,
            f"{number}: {limiter._in_flight} slots",
        )
    out = create_ras_agent(planner=planner, extractor="offline", index=passages).invoke(
        ASKED
    )
    attack.expect(bool(out["steps"]) and not out["failures"], str(out["failures"]))

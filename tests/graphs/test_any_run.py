"""Whatever the tools do, a run ends in an answer that says why it ended, with evidence that exists."""

import asyncio
import json
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent import Limits, create_ras_agent
from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.records import (
    Answer,
    Call,
    Citation,
    Extraction,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    StopReason,
    Triple,
)
from ras_agent.graphs.records import Records
from ras_agent.running.budget import current_ledger

ERRORS = st.sampled_from(
    [
        ModelCallError("no reply"),
        OSError("lost"),
        KeyError("reply"),
        BudgetExceeded("max_tokens", ""),
    ]
)
NAMES = st.sampled_from(["p1", "p2", "p3", "p4", "p5"])
WORDS = st.sampled_from(["Leith", "the Leith", "Bell", "1847", "Edinburgh"])

PLANS = st.one_of(
    ERRORS,
    st.just(Plan("sufficient")),
    st.just(Plan("no_retrieval")),
    WORDS.map(lambda word: Plan("subq", word)),
)
HITS = st.one_of(
    ERRORS,
    st.lists(NAMES, unique=True).map(
        lambda names: [Hit(Passage(name, "Some text."), 1.0) for name in names]
    ),
)
TRIPLES = st.builds(
    lambda subject, object_, place: Triple(
        subject, "is", object_, (Source(place, 0, 4),)
    ),
    WORDS,
    WORDS,
    NAMES,
)
EXTRACTIONS = st.one_of(
    ERRORS,
    st.builds(
        Extraction,
        st.lists(TRIPLES, max_size=4).map(tuple),
        st.lists(st.just(Failure("", "half a line")), max_size=1).map(tuple),
    ),
)
ANSWERS = st.one_of(
    ERRORS,
    st.builds(
        lambda places, ends: Answer(
            "An answer.",
            tuple(
                Citation(n, p, "", 0, end)
                for n, (p, end) in enumerate(zip(places, ends, strict=False), 1)
            ),
        ),
        st.lists(NAMES),
        st.lists(st.integers(-1, 20)),
    ),
)
LIMITS = st.builds(
    Limits,
    max_hops=st.integers(1, 4),
    k=st.integers(1, 3),
    max_facts=st.integers(1, 5),
    max_llm_calls=st.none() | st.integers(1, 8),
    max_tokens=st.none() | st.integers(1, 80),
    stop_on_repeat=st.booleans(),
    stop_on_no_new_facts=st.booleans(),
)


class Anything:
    """All roles in one; every call returns or raises the next entry of its script, round and round."""

    def __init__(self, **scripts):
        self._scripts = scripts
        self._turn = dict.fromkeys(scripts, 0)

    def _next(self, kind, metered=True):
        if metered:
            ledger = current_ledger()
            ledger.admit()
            ledger.record(Call(ledger.role, ledger.hop, "test-model", 9, 1))
        script = self._scripts[kind]
        self._turn[kind] += 1
        now = script[(self._turn[kind] - 1) % len(script)]
        if isinstance(now, Exception):
            raise now
        return now

    def plan(self, question, graph, steps):
        return self._next("plans")

    def retrieve(self, query, k=5):
        return self._next("hits", metered=False)

    def extract(self, passages, subquery=""):
        return self._next("extractions")

    def answer(self, question, graph, passages, steps):
        return self._next("answers")


@given(
    scripts=st.fixed_dictionaries(
        {
            "plans": st.lists(PLANS, min_size=1, max_size=5),
            "hits": st.lists(HITS, min_size=1, max_size=5),
            "extractions": st.lists(EXTRACTIONS, min_size=1, max_size=5),
            "answers": st.lists(ANSWERS, min_size=1, max_size=2),
        }
    ),
    limits=LIMITS,
    recursion_limit=st.none() | st.integers(4, 24),
)
@settings(max_examples=80, deadline=None)
def test_every_run_ends_in_an_answer(scripts, limits, recursion_limit):
    config = {} if recursion_limit is None else {"recursion_limit": recursion_limit}

    def agent():
        roles = Anything(**scripts)
        return create_ras_agent(
            planner=roles,
            retriever=roles,
            extractor=roles,
            answerer=roles,
            limits=limits,
        )

    out = agent().invoke({"question": "Who?"}, config)

    assert out["stop_reason"] in get_args(StopReason)
    assert out["answer"]
    assert json.loads(json.dumps(out)) == out
    assert len(out["steps"]) <= limits.max_hops
    assert all(len(step["hits"]) <= limits.k for step in out["steps"])
    assert {cited["passage_id"] for cited in out["citations"]} <= set(out["passages"])
    assert out["usage"]["llm_calls"] <= (limits.max_llm_calls or 100)
    graph = Records().graph(out["graph"])
    for fact in graph.facts:
        assert {source.passage_id for source in fact.sources} <= set(out["passages"])

    again = asyncio.run(agent().ainvoke({"question": "Who?"}, config))
    for timed in (out, again):
        timed["seconds"] = 0
        timed["steps"] = [{**step, "seconds": 0} for step in timed["steps"]]
    assert again == out

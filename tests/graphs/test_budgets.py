"""Every budget ends the loop in an answer with its stop reason."""

import itertools

import pytest

from ras_agent import Limits, Passage, Settings, create_ras_agent
from ras_agent.contracts.errors import BudgetExceeded
from ras_agent.running.budget import current_ledger
from tests.graphs.what_failed import what_failed


@pytest.fixture
def metered(ras, fakes):
    """An agent whose planner, extractor and answerer each make one model call of 100 tokens a turn."""

    def build(*script, **overrides):
        roles = {
            "planner": fakes.Metered(fakes.ScriptedPlanner(*script)),
            "extractor": fakes.Metered(fakes.SentenceExtractor()),
            "answerer": fakes.Metered(fakes.CountingAnswerer()),
        }
        return ras(**{**roles, **overrides})

    return build


def calls(out):
    return [f"{call['role']} {call['hop']}" for call in out["usage"]["calls"]]


def test_usage_is_counted_by_role_and_hop(metered, fakes):
    out = metered("q", "b", fakes.SUFFICIENT).invoke({"question": "Who?"})
    assert calls(out) == [
        "planner 1",
        "extractor 1",
        "planner 2",
        "extractor 2",
        "planner 3",
        "answerer 2",
    ]
    usage = {name: value for name, value in out["usage"].items() if name != "calls"}
    assert usage == {
        "llm_calls": 6,
        "input_tokens": 540,
        "output_tokens": 60,
        "cached_tokens": 0,
    }


@pytest.mark.parametrize(
    ("most", "made", "answer"),
    [
        (1, ["answerer 1"], "0 facts, 2 passages"),
        (2, ["planner 1", "answerer 1"], "0 facts, 2 passages"),
        (3, ["planner 1", "extractor 1", "answerer 1"], "2 facts, 2 passages"),
        (
            4,
            ["planner 1", "extractor 1", "planner 2", "answerer 2"],
            "2 facts, 4 passages",
        ),
    ],
)
def test_model_calls_end_the_loop_with_one_reserved_for_the_answer(
    metered, most, made, answer
):
    out = metered("q", "b", "c", limits=Limits(max_llm_calls=most)).invoke(
        {"question": "Who?"}
    )
    assert (calls(out), out["answer"], out["stop_reason"]) == (
        made,
        answer,
        "max_llm_calls",
    )
    assert what_failed(out) == []


def test_a_single_call_is_left_to_the_answerer_where_no_other_role_needs_one(
    ras, fakes
):
    agent = ras(
        "q", "b", fakes.SUFFICIENT, answerer=fakes.Metered(fakes.CountingAnswerer())
    )
    out = agent.invoke({"question": "Who?"}, context=Limits(max_llm_calls=1))
    assert (out["answer"], out["stop_reason"]) == ("4 facts, 4 passages", "sufficient")


def test_tokens_end_the_loop(metered):
    out = metered("q", "b", "c", limits=Limits(max_tokens=400)).invoke(
        {"question": "Who?"}
    )
    assert calls(out) == ["planner 1", "extractor 1", "planner 2", "answerer 2"]
    assert out["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("most", [10, 100, 300, 1000, 3000])
def test_a_run_uses_no_more_tokens_than_max_tokens_and_says_so(scripted_llm, most):
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?", "repeat": True},
        {
            "when": "You answer questions",
            "reply": "Answer: Edinburgh [1]",
            "repeat": True,
        },
        {"reply": "(S> Bell | P> was born in | O> Edinburgh)", "repeat": True},
    )
    passages = [
        Passage(f"p{n}", f"Bell was born in Edinburgh, page {n}. " * 9, "Bell")
        for n in range(5)
    ]
    agent = create_ras_agent(
        index=passages,
        limits=Limits(max_tokens=most),
        settings=Settings(llm=scripted_llm.spec),
    )
    out = agent.invoke({"question": "Where was Bell born?"})
    assert out["usage"]["input_tokens"] + out["usage"]["output_tokens"] <= most
    assert out["answer"] in ("Edinburgh", "No answer: max_tokens is used up.")
    assert out["stop_reason"] == "max_tokens" or out["answer"] == "Edinburgh"


def test_input_and_output_tokens_are_counted_before_every_hop(ras, fakes):
    # 90 tokens in, 10 out; the planner needs none
    extractor = fakes.Metered(fakes.SentenceExtractor())
    out = ras("q", "b", "c", extractor=extractor, limits=Limits(max_tokens=100)).invoke(
        {"question": "Who?"}
    )
    assert (len(out["steps"]), out["stop_reason"]) == (1, "max_tokens")


def test_a_model_call_has_what_earlier_nodes_left_of_the_seconds(
    ras, fakes, monkeypatch
):
    now = [0.0]
    monkeypatch.setattr("ras_agent.graphs.node.monotonic", lambda: now[0])
    monkeypatch.setattr("ras_agent.running.budget.monotonic", lambda: now[0])
    left = []

    class Slow(fakes.EchoRetriever):
        def retrieve(self, query, k=5):
            now[0] += 3
            return super().retrieve(query, k)

    class Noting(fakes.SentenceExtractor):
        def extract(self, passages, subquery=""):
            left.append(current_ledger().seconds_left())
            return super().extract(passages, subquery)

    agent = ras(
        "q",
        "b",
        fakes.SUFFICIENT,
        retriever=Slow(),
        extractor=Noting(),
        limits=Limits(max_seconds=40),
    )
    agent.invoke({"question": "Who?"})
    assert left == [27, 24]  # of the thirty that are not the answer's


def test_seconds_end_the_loop_before_the_next_hop(ras, monkeypatch):
    clock = itertools.count()  # each look at it is a second later; a node looks twice
    monkeypatch.setattr("ras_agent.graphs.node.monotonic", lambda: float(next(clock)))
    out = ras("q", "b", "c", limits=Limits(max_seconds=7)).invoke({"question": "Who?"})
    # plan, retrieve, structure, merge, plan, retrieve, structure, merge: eight seconds
    assert (len(out["steps"]), out["stop_reason"]) == (2, "max_seconds")


def test_a_pause_between_nodes_does_not_count_as_time_spent(ras, monkeypatch):
    from langgraph.checkpoint.memory import InMemorySaver

    now = [0.0]
    monkeypatch.setattr("ras_agent.graphs.node.monotonic", lambda: now[0])
    agent = ras(
        "q",
        "b",
        "c",
        limits=Limits(max_seconds=60, max_hops=2),
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "t"}}
    agent.invoke({"question": "Who?"}, thread, interrupt_before=["merge"])
    now[0] = 86_400.0
    assert agent.invoke(None, thread)["stop_reason"] == "max_hops"


def test_hops_end_the_loop(ras):
    out = ras("q", "b", "c", limits=Limits(max_hops=2)).invoke({"question": "Who?"})
    assert (len(out["steps"]), out["stop_reason"]) == (2, "max_hops")


@pytest.mark.parametrize("context", [Limits(max_hops=1), {"max_hops": 1}])
def test_limits_given_with_a_run_take_the_place_of_the_builders(ras, context):
    agent = ras("q", "b", "c", limits=Limits(max_hops=3))
    assert len(agent.invoke({"question": "Who?"}, context=context)["steps"]) == 1
    assert len(agent.invoke({"question": "Who?"})["steps"]) == 3


def test_many_hops_do_not_meet_langgraphs_own_limit(ras):
    agent = ras(*(f"sub-query {n}" for n in range(41)), limits=Limits(max_hops=40))
    out = agent.invoke({"question": "Who?"})
    assert (len(out["steps"]), out["stop_reason"]) == (40, "max_hops")


@pytest.mark.parametrize(
    ("limit", "hops", "reason"),
    [
        *((4, 0, "recursion_limit"), (7, 0, "recursion_limit")),
        *((8, 1, "recursion_limit"), (11, 1, "recursion_limit")),
        *((12, 2, "recursion_limit"), (15, 2, "recursion_limit"), (16, 3, "max_hops")),
    ],
)
def test_a_users_own_recursion_limit_ends_in_an_answer(ras, limit, hops, reason):
    agent = ras("q", "b", "c", limits=Limits(max_hops=3))
    out = agent.invoke({"question": "Who?"}, {"recursion_limit": limit})
    assert (len(out["steps"]), out["stop_reason"]) == (hops, reason)
    found = f"{2 * hops} facts, {2 * hops} passages"
    assert out["answer"] == (
        found
        if hops
        else "No answer: the run ended before its first search: recursion_limit."
    )


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_recursion_limit_that_cannot_reach_an_answer_is_refused(ras, limit):
    with pytest.raises(ValueError, match="give at least 4"):
        ras("q").invoke({"question": "Who?"}, {"recursion_limit": limit})


def test_what_a_role_has_before_a_refused_call_counts_and_the_loop_ends_all_the_same(
    ras, fakes
):
    class Thrifty(fakes.SentenceExtractor):
        """Reads passages one model call each, and returns its facts when no more are allowed."""

        def extract(self, passages, subquery=""):
            from ras_agent.contracts.records import Extraction

            triples = []
            for passage in passages:
                try:
                    triples += (
                        fakes.Metered(fakes.SentenceExtractor())
                        .extract([passage], subquery)
                        .triples
                    )
                except BudgetExceeded:
                    break
            return Extraction(tuple(triples))

    agent = ras("q", "b", extractor=Thrifty(), limits=Limits(max_llm_calls=2))
    out = agent.invoke({"question": "Who?"})
    assert (out["answer"], out["stop_reason"]) == (
        "1 facts, 2 passages",
        "max_llm_calls",
    )


def test_an_answerer_without_budget_abstains_with_the_limits_name(ras, fakes):
    class Greedy:
        def answer(self, question, graph, passages, steps):
            role = fakes.Metered(fakes.CountingAnswerer())
            role.answer(question, graph, passages, steps)
            return role.answer(question, graph, passages, steps)

    out = ras(
        "q", fakes.SUFFICIENT, answerer=Greedy(), limits=Limits(max_llm_calls=1)
    ).invoke({"question": "Who?"})
    assert (out["answer"], out["abstained"]) == (
        "No answer: max_llm_calls is used up.",
        True,
    )
    assert out["failed"] == "max_llm_calls is used up"
    assert out["stop_reason"] == "max_llm_calls"

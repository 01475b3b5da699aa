"""Follow-up questions of a thread or of messages are rewritten before anything is planned."""

import pytest

from ras_agent import create_ircot_agent, create_ras_agent, create_single_shot_agent
from ras_agent.contracts.errors import ModelRefused
from ras_agent.contracts.events import Rewritten
from ras_agent.contracts.records import Exchange, Passage, Plan
from ras_agent.running.budget import Limits
from ras_agent.running.checkpoints import open_checkpointer
from ras_agent.tools.plan.followup import question_in
from tests.graphs.what_failed import what_failed

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "leith",
        "The Water of Leith is the main river of Edinburgh. It is 35 kilometres long.",
        "Water of Leith",
    ),
]
THREAD = {"configurable": {"thread_id": "1"}}
GRAPHS = [create_ras_agent, create_ircot_agent, create_single_shot_agent]
HISTORY = [("user", "Who patented the telephone?"), ("ai", "Alexander Graham Bell")]


class Rewriting:
    """Answers with the script, and writes down its input."""

    def __init__(self, *script):
        self.script, self.given = iter(script), []

    def rewrite(self, question, exchanges):
        self.given.append((question, list(exchanges)))
        now = next(self.script)
        if isinstance(now, Exception):
            raise now
        return now


@pytest.mark.parametrize("create", GRAPHS)
def test_a_thread_is_a_conversation(create):
    with open_checkpointer("memory") as checkpointer:
        agent = create(index=PASSAGES, checkpointer=checkpointer)
        first = agent.invoke({"question": "Who patented the telephone?"}, THREAD)
        second = agent.invoke({"question": "And where was he born?"}, THREAD)
        third = agent.invoke(
            {"question": "Which river flows through that city?"}, THREAD
        )
    assert (first["question"], first["asked"]) == ("Who patented the telephone?", "")
    assert (second["question"], second["asked"]) == (
        "Where was Alexander Graham Bell born?",
        "And where was he born?",
    )
    assert (third["question"], third["answer"]) == (
        "Which river flows through Edinburgh?",
        "Water of Leith",
    )
    assert third["steps"][0]["subquery"] == third["question"]


@pytest.mark.parametrize("create", GRAPHS)
def test_messages_are_a_conversation(create):
    out = create(index=PASSAGES).invoke(
        {"messages": [*HISTORY, ("user", "Where was he born?")]}
    )
    assert (out["question"], out["answer"]) == (
        "Where was Alexander Graham Bell born?",
        "Edinburgh",
    )
    assert [message.text for message in out["messages"]][2:] == [
        "Where was he born?",
        "Edinburgh",
    ]
    assert (
        out["messages"][-1].additional_kwargs["question"]
        == "Where was Alexander Graham Bell born?"
    )


def test_a_question_on_a_thread_of_messages_follows_its_last_turn():
    with open_checkpointer("memory") as checkpointer:
        agent = create_ras_agent(index=PASSAGES, checkpointer=checkpointer)
        agent.invoke({"messages": [("user", "Who patented the telephone?")]}, THREAD)
        out = agent.invoke({"question": "Where was he born?"}, THREAD)
    assert out["question"] == "Where was Alexander Graham Bell born?"
    assert [message.text for message in out["messages"]][2:] == [
        "Where was he born?",
        "Edinburgh",
    ]


def test_a_question_that_was_never_answered_is_a_turn_without_an_answer(ras, fakes):
    rewriter = Rewriting("When?")
    with open_checkpointer("memory") as checkpointer:
        agent = ras("q", fakes.SUFFICIENT, rewriter=rewriter, checkpointer=checkpointer)
        agent.invoke(
            {"messages": [("user", "Who?")]}, THREAD, interrupt_before=["answer"]
        )
        agent.invoke({"messages": [("user", "And when?")]}, THREAD)
    assert rewriter.given == [("And when?", [Exchange("Who?", "")])]


def test_a_first_question_costs_no_rewriting(ras, fakes):
    rewriter = Rewriting()
    assert (
        ras("q", fakes.SUFFICIENT, rewriter=rewriter).invoke({"question": "Who?"})[
            "asked"
        ]
        == ""
    )
    assert rewriter.given == []


def test_a_rewriter_reads_the_turns_with_their_standalone_questions(ras, fakes):
    rewriter = Rewriting("Where is Bath?", "When was Bath built?")
    with open_checkpointer("memory") as checkpointer:
        agent = ras("q", fakes.SUFFICIENT, rewriter=rewriter, checkpointer=checkpointer)
        for question in ("What is Bath?", "Where is it?", "When was it built?"):
            out = agent.invoke({"question": question}, THREAD)
    answer = "2 facts, 2 passages"
    assert rewriter.given[-1] == (
        "When was it built?",
        [Exchange("What is Bath?", answer), Exchange("Where is Bath?", answer)],
    )
    assert out["question"] == "When was Bath built?"


def test_only_the_last_turns_are_remembered(ras, fakes):
    rewriter = Rewriting(*(f"Q{n}?" for n in range(1, 13)))
    with open_checkpointer("memory") as checkpointer:
        agent = ras("q", fakes.SUFFICIENT, rewriter=rewriter, checkpointer=checkpointer)
        for number in range(13):
            agent.invoke({"question": f"Q{number}?"}, THREAD)
    assert [exchange.question for exchange in rewriter.given[-1][1]] == [
        f"Q{n}?" for n in range(2, 12)
    ]


def test_an_answer_that_is_none_is_no_antecedent(ras, fakes):
    rewriter = Rewriting("Where is it?")
    with open_checkpointer("memory") as checkpointer:
        agent = ras(
            "q",
            rewriter=rewriter,
            checkpointer=checkpointer,
            retriever=fakes.EchoRetriever({"Who?": []}),
        )
        agent.invoke({"question": "Who?"}, THREAD)
        agent.invoke({"question": "Where is it?"}, THREAD)
    assert rewriter.given[0][1] == [Exchange("Who?", "")]


def test_the_stream_says_what_a_follow_up_became():
    agent = create_ras_agent(index=PASSAGES)
    events = list(
        agent.stream(
            {"messages": [*HISTORY, ("user", "Where was he born?")]},
            stream_mode="custom",
        )
    )
    assert events[0] == Rewritten(
        "Where was he born?", "Where was Alexander Graham Bell born?"
    )


def test_a_rewriter_that_fails_leaves_the_question(ras, fakes):
    agent = ras("q", fakes.SUFFICIENT, rewriter=Rewriting(RuntimeError("no reply")))
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert (out["question"], out["asked"]) == ("Where was he born?", "")
    assert [(one["role"], one["message"]) for one in what_failed(out)] == [
        ("rewriter", "RuntimeError: no reply")
    ]
    assert out["answer"] == "2 facts, 2 passages"


def test_a_limit_that_allows_no_rewriting_does_not_end_the_search(ras, fakes):
    rewriter = fakes.Metered(Rewriting("Where was Bell born?"))
    rewriter.rewrite = rewriter.__getattr__("rewrite")
    agent = ras(
        "q", fakes.SUFFICIENT, rewriter=rewriter, limits=Limits(max_llm_calls=1)
    )
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert (out["question"], len(out["steps"]), out["stop_reason"]) == (
        "Where was he born?",
        1,
        "sufficient",
    )


def test_a_refused_model_ends_the_run(ras):
    agent = ras("q", rewriter=Rewriting(ModelRefused("the key is refused")))
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert (out["stop_reason"], out["steps"]) == ("model_refused", [])


def test_the_rewriting_counts_in_the_usage(scripted_model):
    model = scripted_model(
        ("Next question: Where was he born?", "Question: Where was Bell born?"),
        ("Question: Where was Bell born?", "[SUFFICIENT]"),
    )
    agent = create_ras_agent(
        index=PASSAGES, planner=model, extractor="offline", answerer="offline"
    )
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert out["question"] == "Where was Bell born?"
    assert [(call["role"], call["hop"]) for call in out["usage"]["calls"]][:2] == [
        ("rewriter", 0),
        ("planner", 1),
    ]


def test_a_reply_without_a_question_is_asked_for_again(scripted_model):
    model = scripted_model(
        ("Your reply could not be used: it is not a question", "Where was Bell born?"),
        ("Next question", "He was born in Edinburgh."),
        ("", "[SUFFICIENT]"),
    )
    agent = create_ras_agent(
        index=PASSAGES, planner=model, extractor="offline", answerer="offline"
    )
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert out["question"] == "Where was Bell born?"
    assert [call["role"] for call in out["usage"]["calls"]].count("rewriter") == 2


async def test_asynchronous_runs_rewrite_too():
    out = await create_ras_agent(index=PASSAGES).ainvoke(
        {"messages": [*HISTORY, ("user", "Where was he born?")]}
    )
    assert out["question"] == "Where was Alexander Graham Bell born?"


def test_a_planner_of_ones_own_goes_with_the_rule(fakes):
    agent = create_ras_agent(
        index=PASSAGES,
        planner=fakes.ScriptedPlanner(Plan("sufficient")),
        answerer="offline",
    )
    out = agent.invoke({"messages": [*HISTORY, ("user", "Where was he born?")]})
    assert out["question"] == "Where was Alexander Graham Bell born?"


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("How long is the Loire?", "How long is the Loire?"),
        (
            "<think>it is the Loire</think>\nNext question: How long is the Loire?",
            "How long is the Loire?",
        ),
        ('"How long is the Loire?"', "How long is the Loire?"),
        ('{"question": "How long is the Loire?"}', "How long is the Loire?"),
        ("The Loire is 1,006 km long.", ""),
        ("", ""),
    ],
)
def test_the_question_in_a_reply(reply, question):
    assert question_in(reply, "How long is it?") == question

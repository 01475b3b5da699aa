"""A run that waits for a person: the facts that it shows, the decisions that he may make, and the run's state afterwards."""

import asyncio
import json
import time

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from ras_agent import (
    Limits,
    Settings,
    create_ircot_agent,
    create_ras_agent,
    create_single_shot_agent,
)
from ras_agent.contracts.errors import ReviewError, SettingsError
from ras_agent.contracts.events import Answered, Planned
from ras_agent.contracts.records import Passage, Plan
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.inbox import inbox_form
from ras_agent.graphs.resolve import assemble_agent, resolve_parts
from ras_agent.running.checkpoints import open_checkpointer
from ras_agent.running.review import Decision, Review, Reviewed, notes, places
from tests.graphs.what_failed import what_failed
from tests.messages import says

THREAD = {"configurable": {"thread_id": "1"}}
APPROVE = {"action": "approve"}


class NotedPlanner:
    """Searches for "one", then is done; a note of a person is the next search. Counts its calls."""

    accepts_feedback = True

    def __init__(self):
        self.calls = 0

    def plan(self, question, graph, steps):
        self.calls += 1
        if notes() and len(steps) < 2:
            return Plan("subq", notes()[-1])
        return Plan("subq", "one") if not steps else Plan("sufficient", reason="enough")


def waiting(out):
    """The review that a run shows."""
    (found,) = out["__interrupt__"]
    assert json.loads(json.dumps(found.value)) == found.value
    review = Review.from_dict(found.value)
    own = {
        key: value
        for key, value in found.value.items()
        if key not in inbox_form(review)
    }
    assert review.to_dict() == own
    return own


def decide(agent, decision, thread=THREAD, **options):
    return agent.invoke(Command(resume=decision), thread, **options)


@pytest.fixture
def asked(ras):
    """asked(*review, **roles): an agent that has been asked "Who?", and its state."""

    def ask(*review, script=("one",), **roles):
        agent = ras(
            *script,
            review=review,
            checkpointer=InMemorySaver(),
            limits=Limits(max_hops=2),
            **roles,
        )
        return agent, agent.invoke({"question": "Who?"}, THREAD)

    return ask


# ---- plans


def test_a_plan_is_shown_and_followed_when_it_is_approved(asked):
    agent, out = asked("plan")
    assert waiting(out) == {
        "type": "review",
        "at": "plan",
        "hop": 1,
        "question": "Who?",
        "actions": ["approve", "edit"],
        "error": "",
        "plan": {"action": "subq", "subquery": "Who?", "reason": ""},
        "stop_reason": "",
    }
    out = decide(agent, APPROVE)
    assert (out["steps"][0]["subquery"], waiting(out)["hop"]) == ("Who?", 2)


def without_times(out):
    return {
        **out,
        "seconds": 0.0,
        "steps": [step | {"seconds": 0.0} for step in out["steps"]],
    }


def test_what_a_run_returns_that_waits_and_that_ends_is_what_langgraph_returns(ras):
    def outputs(kind):
        agent, given, returned = (
            ras("one", review=("plan",), checkpointer=InMemorySaver()),
            {"question": "Who?"},
            [],
        )
        while not returned or "__interrupt__" in returned[-1]:
            returned.append(without_times(kind.invoke(agent, given, THREAD)))
            given = Command(resume=APPROVE)
        return [
            out | {"__interrupt__": [one.value for one in out.get("__interrupt__", ())]}
            for out in returned
        ]

    ours = outputs(Agent)
    assert ours == outputs(CompiledStateGraph)
    assert [len(out["__interrupt__"]) for out in ours] == [1, 1, 1, 0]


async def test_an_asynchronous_run_that_waits_shows_its_review(ras):
    agent = ras("one", review=("plan",), checkpointer=InMemorySaver())
    assert waiting(await agent.ainvoke({"question": "Who?"}, THREAD))["at"] == "plan"
    assert isinstance(
        await agent.ainvoke(Command(resume=APPROVE), THREAD, stream_mode="updates"),
        list,
    )


def test_an_edited_plan_is_what_plans_and_steps_hold_with_who_changed_it(asked):
    agent, _ = asked("plan")
    out = decide(
        agent,
        {
            "action": "edit",
            "subquery": " What flows there? ",
            "by": "Ada",
            "at": "plan",
            "hop": 1,
        },
    )
    out = decide(agent, APPROVE)
    assert [step["subquery"] for step in out["steps"]] == ["What flows there?", "one"]
    assert out["plans"] == [
        {
            "action": "subq",
            "subquery": "What flows there?",
            "reason": "",
            "hop": 1,
            "by": "person:Ada",
        },
        {"action": "subq", "subquery": "one", "reason": "", "hop": 2},
    ]
    assert out["reviews"] == [
        {
            **{
                "at": "plan",
                "hop": 1,
                "action": "edit",
                "by": "Ada",
                "subquery": "What flows there?",
            },
            "before": {"action": "subq", "subquery": "Who?", "reason": ""},
        },
        {"at": "plan", "hop": 2, "action": "approve"},
    ]


def test_a_person_stops_the_searches_or_goes_on_after_the_planner_had_enough(
    asked, fakes
):
    agent, _ = asked("plan", script=("Who?", fakes.SUFFICIENT))
    out = decide(agent, APPROVE)
    assert (waiting(out)["plan"]["action"], waiting(out)["stop_reason"]) == (
        "sufficient",
        "sufficient",
    )
    out = decide(agent, {"action": "edit", "subquery": "and then?"})
    assert [step["subquery"] for step in out["steps"]] == ["Who?", "and then?"]
    assert out["stop_reason"] == "max_hops"

    agent, _ = asked("plan")
    out = decide(agent, {"action": "edit", "stop": True, "by": "Ada"})
    assert (out["steps"], out["stop_reason"], out["answer"][:10]) == (
        [],
        "sufficient",
        "No answer:",
    )
    assert out["plans"] == [
        {
            "action": "sufficient",
            "subquery": "",
            "reason": "",
            "hop": 1,
            "by": "person:Ada",
        }
    ]


def test_a_repeated_subquery_may_be_replaced(asked):
    agent, _ = asked("plan", script=("Who?", "Who?"))
    out = decide(agent, APPROVE)
    assert (waiting(out)["stop_reason"], waiting(out)["plan"]["subquery"]) == (
        "repeated_subquery",
        "Who?",
    )
    out = decide(agent, {"action": "edit", "subquery": "other"})
    assert [step["subquery"] for step in out["steps"]] == ["Who?", "other"]


def test_a_note_is_read_by_the_planner_whose_next_plan_is_shown(asked):
    planner = NotedPlanner()
    agent, out = asked("plan", planner=planner)
    assert waiting(out)["actions"] == ["approve", "edit", "ask"]
    out = decide(agent, {"action": "ask", "note": "the Leith of 1900"})
    assert (waiting(out)["hop"], waiting(out)["plan"]["subquery"]) == (
        1,
        "the Leith of 1900",
    )
    assert planner.calls == 2
    out = decide(agent, APPROVE)
    assert [step["subquery"] for step in out["steps"]] == ["the Leith of 1900"]


# ---- facts


def test_facts_are_shown_with_the_words_that_they_were_read_in(asked):
    review = waiting(asked("facts")[1])
    assert (review["subquery"], review["actions"]) == (
        "Who?",
        ["approve", "edit", "remove", "add"],
    )
    assert review["passages"] == [
        {"id": "Who? A", "title": "Who? A"},
        {"id": "Who? B", "title": "Who? B"},
    ]
    assert [
        (fact["subject"], fact["predicate"], fact["object"], fact["quote"])
        for fact in review["facts"]
    ] == [
        ("Who? A", "is", "a thing", "Who? A is a thing."),
        ("Who? B", "is", "a thing", "Who? B is a thing."),
    ]


def test_several_facts_are_changed_at_once_and_their_source_is_the_person(asked):
    agent, out = asked("facts")
    first, second = (fact["id"] for fact in waiting(out)["facts"])
    quoted = {"passage_id": "Who? B", "quote": "a thing"}
    out = decide(
        agent,
        [
            {"action": "edit", "fact": first, "object": "a river", "by": "Ada"},
            {"action": "remove", "fact": second},
            {
                "action": "add",
                "subject": "Leith",
                "predicate": "is in",
                "object": "Scotland",
                "by": "Ada",
            },
            {
                "action": "add",
                "subject": "Who? B",
                "predicate": "names",
                "object": "a thing",
                **quoted,
            },
        ],
    )
    out = decide(agent, APPROVE)
    facts = [
        (fact["subject"], fact["predicate"], fact["object"])
        for fact in out["graph"]["facts"]
    ]
    assert facts[:3] == [
        ("Who? A", "is", "a river"),
        ("Who? B", "names", "a thing"),
        ("Leith", "is in", "Scotland"),
    ]
    sources = [fact["sources"][0] for fact in out["graph"]["facts"]]
    assert [
        (one["passage_id"], one["start"], one["end"], one["extractor"])
        for one in sources[:3]
    ] == [
        ("Who? A", 0, 18, "person:Ada"),
        ("Who? B", 10, 17, "person"),
        ("person:790a2e0eca61d611", 0, 21, "person:Ada"),
    ]
    stated = out["passages"]["person:790a2e0eca61d611"]
    assert (stated["text"], stated["title"]) == (
        "Leith is in Scotland.",
        "Stated by Ada",
    )
    # the hits and the content agree
    assert out["steps"][0]["new_triple_ids"] == [
        fact["id"] for fact in out["graph"]["facts"][:3]
    ]
    assert out["reviews"][1] == {
        **{"at": "facts", "hop": 1, "action": "remove", "fact": second},
        "before": {
            **{"subject": "Who? B", "predicate": "is", "object": "a thing"},
            "sources": [
                {
                    "passage_id": "Who? B",
                    "start": 0,
                    "end": 18,
                    "hop": 1,
                    "subquery": "Who?",
                    "extractor": "test",
                }
            ],
        },
    }


def test_a_passage_that_is_called_like_a_person_s_fact_is_found_after_it_all_the_same(
    fakes,
):
    corpus = [
        Passage("bell", "Bell was born in Leith.", "Bell"),
        Passage("person:1", "Leith is a port.", "Leith"),
    ]
    agent = create_ras_agent(
        index=corpus, planner=fakes.ScriptedPlanner("Bell?", "Which port?"), limits=Limits(max_hops=2),
        review=("facts",), checkpointer=InMemorySaver(),
    )  # fmt: skip
    agent.invoke(
        {"question": "Where was Bell born?", "seed_passages": corpus[:1]}, THREAD
    )
    added = [
        {"action": "add", "subject": "Leith", "predicate": "is", "object": thing}
        for thing in ("long", "clear")
    ]
    out = decide(agent, added)
    while "__interrupt__" in out:
        out = decide(agent, APPROVE)
    texts = [passage["text"] for passage in out["passages"].values()]
    assert (out["passages"]["person:1"]["text"], out["failures"]) == (
        "Leith is a port.",
        [],
    )
    assert {"Leith is long.", "Leith is clear."} < set(texts)


def test_a_bound_hides_no_fact_of_a_person(ras):
    agent = ras(
        "one",
        review=("facts",),
        checkpointer=InMemorySaver(),
        limits=Limits(max_hops=1, max_facts=1),
    )
    agent.invoke({"question": "Which thing?"}, THREAD)
    out = decide(
        agent,
        {
            "action": "add",
            "subject": "Leith",
            "predicate": "lies by",
            "object": "Edinburgh",
        },
    )
    assert "Leith" in [fact["subject"] for fact in out["graph"]["facts"]]


def test_the_offline_roles_follow_what_a_person_corrects():
    corpus = [
        Passage(
            "bell",
            "Alexander Graham Bell patented the telephone. He was born in Edinburgh.",
            "Bell",
        ),
        Passage(
            "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
        ),
        Passage("clyde", "The River Clyde flows through Glasgow.", "River Clyde"),
    ]
    agent = create_ras_agent(
        index=corpus,
        review=("facts",),
        checkpointer=InMemorySaver(),
        limits=Limits(k=1),
    )
    out = agent.invoke(
        {
            "question": "Which river flows through the city where Alexander Graham Bell was born?"
        },
        THREAD,
    )
    while "__interrupt__" in out:
        born = [
            fact for fact in waiting(out)["facts"] if fact["predicate"] == "was born in"
        ]
        changes = [
            {"action": "edit", "fact": fact["id"], "object": "Glasgow"} for fact in born
        ]
        out = decide(agent, changes or APPROVE)
    assert [step["subquery"] for step in out["steps"]][
        -1
    ] == "Which river flows through Glasgow?"
    assert out["answer"] == "River Clyde"


def test_a_note_at_the_facts_is_read_by_the_next_plan(asked):
    agent, _ = asked("facts", planner=NotedPlanner())
    out = decide(agent, {"action": "ask", "note": "look at the river"})
    assert waiting(out)["subquery"] == "look at the river"


# ---- the answer


def test_an_answer_is_changed_by_a_person(asked):
    agent, out = asked("answer")
    review = waiting(out)
    assert (review["answer"], review["stop_reason"]) == (
        "4 facts, 4 passages",
        "max_hops",
    )
    assert [citation["number"] for citation in review["citations"]] == [1]
    events = list(
        agent.stream(
            Command(resume={"action": "edit", "answer": "Four."}),
            THREAD,
            stream_mode="custom",
        )
    )
    out = agent.get_state(THREAD).values
    assert (
        out["answer"],
        out["confidence"],
        out["grounded"],
        len(out["citations"]),
    ) == ("Four.", None, True, 1)
    assert out["reviews"][0]["before"] == {"answer": "4 facts, 4 passages"}
    assert [(type(event), event.answer.text) for event in events] == [
        (Answered, "Four.")
    ]


def test_an_answer_without_its_citations_does_not_rest_on_evidence(asked):
    agent, _ = asked("answer")
    out = decide(agent, {"action": "edit", "answer": "Four.", "citations": []})
    assert (out["citations"], out["grounded"]) == ([], False)


def test_an_answer_is_withdrawn(asked):
    agent, _ = asked("answer")
    out = decide(agent, {"action": "remove", "by": "Ada"})
    assert (
        out["answer"],
        out["abstained"],
        out["failed"],
        out["citations"],
        out["grounded"],
    ) == (*("No answer: it was withdrawn by Ada.", True, "", [], False),)


def test_a_note_leads_back_to_the_answerer_or_to_the_planner(asked, fakes):
    class Noted(fakes.CountingAnswerer):
        accepts_feedback = True

        def answer(self, question, graph, passages, steps):
            found = super().answer(question, graph, passages, steps)
            return type(found)(f"{found.text} {list(notes())}", found.citations)

    agent, out = asked("answer", planner=NotedPlanner(), answerer=Noted())
    assert waiting(out)["answer"] == "2 facts, 2 passages []"
    out = decide(agent, {"action": "ask", "note": "shorter"})
    assert waiting(out)["answer"] == "2 facts, 2 passages ['shorter']"
    out = decide(agent, {"action": "ask", "note": "the river too", "to": "planner"})
    assert waiting(out)["answer"] == "4 facts, 4 passages ['shorter', 'the river too']"
    out = decide(agent, APPROVE)
    assert [step["subquery"] for step in out["steps"]] == ["Who?", "the river too"]
    assert [review["action"] for review in out["reviews"]] == ["ask", "ask", "approve"]


# ---- decisions that cannot be followed


@pytest.mark.parametrize(
    ("place", "decision", "error"),
    [
        (
            "plan",
            "yes",
            'decision: expected an object such as {"action": "approve"}, got \'yes\'',
        ),
        (
            "plan",
            {"action": "remove"},
            "decision.action: 'remove' is not possible at plan; choose from: approve, edit",
        ),
        (
            "plan",
            {"action": "edit"},
            'decision: edit at plan takes a subquery that is not blank, or "stop": true',
        ),
        (
            "plan",
            {"action": "edit", "subquery": " "},
            'decision: edit at plan takes a subquery that is not blank, or "stop": true',
        ),
        (
            "plan",
            {"action": "edit", "subquery": 7},
            "decision.subquery: expected a text, got 7",
        ),
        (
            "plan",
            {"action": "edit", "query": "x"},
            "decision.query: edit at plan has no such field; it takes subquery, stop",
        ),
        (
            "plan",
            {**APPROVE, "hop": 2},
            "decision.hop: the decision has hop = 2, but the run waits at plan of hop 1",
        ),
        (
            "plan",
            {**APPROVE, "at": "facts"},
            "decision.at: the decision has at = 'facts', but the run waits at plan of hop 1",
        ),
        (
            "plan",
            [APPROVE],
            "decision: only a review of facts takes a list of decisions, and this review is at plan: give one decision",
        ),
        (
            "facts",
            [],
            'decision: the list is empty: give at least one decision, such as {"action": "approve"}',
        ),
        (
            "facts",
            [APPROVE, {"action": "remove"}],
            "decision 2.fact: it is missing or blank, but remove at facts needs it",
        ),
        (
            "facts",
            {"action": "add", "subject": "a", "predicate": "b", "object": " "},
            "decision.object: it is missing or blank, but add at facts needs it",
        ),
        (
            "facts",
            {
                "action": "add",
                "subject": "a",
                "predicate": "b",
                "object": "c",
                "passage_id": "x",
            },
            "decision.passage_id: unknown passage 'x'; known: Who? A, Who? B",
        ),
        (
            "facts",
            {
                "action": "add",
                "subject": "a",
                "predicate": "b",
                "object": "c",
                "passage_id": "Who? A",
                "quote": "zzz",
            },
            "decision.quote: passage 'Who? A' does not contain 'zzz': copy its words exactly",
        ),
        (
            "facts",
            {"action": "add", "subject": "\u200b", "predicate": "b", "object": "c"},
            "decision: a subject, predicate or object has no visible letter: write words into it",
        ),
        (
            "answer",
            {"action": "edit", "answer": "x", "citations": [2]},
            "decision.citations: there is no citation 2; known: [1]",
        ),
        (
            "answer",
            {"action": "ask", "note": "x"},
            "decision.action: 'ask' is not possible at answer; choose from: approve, edit, remove",
        ),
    ],
)
def test_a_wrong_decision_changes_nothing_and_the_run_waits_on(
    asked, place, decision, error
):
    agent, before = asked(place)
    out = decide(agent, decision)
    assert waiting(out) == {**waiting(before), "error": error}
    out = decide(agent, APPROVE)
    assert out["reviews"][0] == {
        "at": place,
        "hop": waiting(before)["hop"],
        "action": "approve",
    }


def test_a_fact_is_changed_once_and_known(asked):
    agent, out = asked("facts")
    name = waiting(out)["facts"][0]["id"]
    out = decide(
        agent,
        [
            {"action": "remove", "fact": name},
            {"action": "edit", "fact": name, "object": "x"},
        ],
    )
    assert (
        waiting(out)["error"]
        == f"decision 2.fact: another decision has already changed {name!r}: give one decision for each fact"
    )
    out = decide(agent, {"action": "remove", "fact": "t0"})
    assert waiting(out)["error"].startswith(
        "decision.fact: unknown fact 't0'; known: t"
    )


# ---- runs


def test_nothing_is_called_twice_and_the_person_s_time_is_not_the_run_s(
    ras, fakes, monkeypatch
):
    calls = []

    def counted(role, *methods):
        for method in methods:
            work = getattr(role, method)
            monkeypatch.setattr(
                role,
                method,
                lambda *args, m=method, w=work: calls.append(m) or w(*args),
                raising=False,
            )
        return role

    agent = ras(
        planner=counted(NotedPlanner(), "plan"),
        retriever=counted(fakes.EchoRetriever(), "retrieve"),
        extractor=counted(fakes.SentenceExtractor(), "extract"),
        answerer=counted(fakes.CountingAnswerer(), "answer"),
        review=("plan", "facts", "answer"),
        checkpointer=InMemorySaver(),
        limits=Limits(max_seconds=60),
    )
    out, places_seen, hours, clock = (
        agent.invoke({"question": "Who?"}, THREAD),
        [],
        0.0,
        time.monotonic,
    )
    while "__interrupt__" in out:
        review = waiting(out)
        places_seen.append(f"{review['at']} {review['hop']}")
        hours += 3600.0  # the person thinks for an hour, by every clock that limits are read from
        for module in ("running.budget", "running.calling", "graphs.node"):
            monkeypatch.setattr(
                f"ras_agent.{module}.monotonic", lambda later=hours: clock() + later
            )
        out = decide(agent, APPROVE)
    assert places_seen == ["plan 1", "facts 1", "plan 2", "answer 1"]
    assert calls == ["plan", "retrieve", "extract", "plan", "answer"]
    assert (out["stop_reason"], out["seconds"] < 60, what_failed(out)) == (
        "sufficient",
        True,
        [],
    )


def test_async_and_streamed_runs_wait_as_well(ras):
    agent = ras(
        "one", review="plan", checkpointer=InMemorySaver(), limits=Limits(max_hops=1)
    )

    async def run():
        seen = []
        async for kind, event in agent.astream(
            {"question": "Who?"}, THREAD, stream_mode=["custom", "updates"]
        ):
            seen.append(event if kind == "custom" else next(iter(event)))
        edit = Command(resume={"action": "edit", "subquery": "other", "by": "Ada"})
        async for event in agent.astream(edit, THREAD, stream_mode="custom"):
            seen.append(event)
        return seen

    seen = asyncio.run(run())
    assert seen[:4] == [
        "begin",
        Planned(1, Plan("subq", "Who?")),
        "plan",
        "__interrupt__",
    ]
    assert seen[4] == Planned(1, Plan("subq", "other"), False, "person:Ada")
    assert agent.get_state(THREAD).values["steps"][0]["subquery"] == "other"


def test_a_batch_of_runs_waits_and_each_goes_its_own_way(ras):
    agent = ras(
        "one", review="plan", checkpointer=InMemorySaver(), limits=Limits(max_hops=1)
    )
    threads = [{"configurable": {"thread_id": str(number)}} for number in range(8)]
    outs = agent.batch(
        [{"question": f"Who is {number}?"} for number in range(8)], threads
    )
    assert [waiting(out)["plan"]["subquery"] for out in outs] == [
        f"Who is {number}?" for number in range(8)
    ]
    edits = [
        Command(resume={"action": "edit", "subquery": f"other {number}"})
        for number in range(8)
    ]
    outs = agent.batch(edits, threads)
    assert [out["steps"][0]["subquery"] for out in outs] == [
        f"other {number}" for number in range(8)
    ]


def test_a_run_that_waits_outlives_its_process(ras, tmp_path):
    where = f"sqlite:{tmp_path / 'threads.sqlite'}"
    with open_checkpointer(where) as checkpointer:
        ras("one", review="facts", checkpointer=checkpointer).invoke(
            {"question": "Who?"}, THREAD
        )
    with open_checkpointer(
        where
    ) as checkpointer:  # nothing of the first agent is left but the file
        agent = ras(
            "one", review="facts", checkpointer=checkpointer, limits=Limits(max_hops=1)
        )
        (task,) = agent.get_state(THREAD).tasks
        fact = task.interrupts[0].value["facts"][0]["id"]
        out = decide(
            agent, {"action": "edit", "fact": fact, "object": "a river", "by": "Ada"}
        )
        assert out["graph"]["facts"][0]["object"] == "a river"
        assert out["graph"]["facts"][0]["sources"][0]["extractor"] == "person:Ada"


def test_another_question_on_a_thread_that_waits_begins_anew(asked):
    agent, _ = asked("plan")
    out = agent.invoke({"question": "What?"}, THREAD)
    assert (waiting(out)["question"], out["reviews"]) == ("What?", [])


def test_an_agent_inside_a_graph_waits_with_the_checkpointer_of_that_graph(ras):
    class Asked(TypedDict):
        question: str
        answer: str

    parent = StateGraph(Asked)
    parent.add_node("agent", ras("one", review="plan", limits=Limits(max_hops=1)))
    parent.add_edge(START, "agent")
    app = parent.compile(InMemorySaver())
    assert (
        waiting(app.invoke({"question": "Who?"}, THREAD))["plan"]["subquery"] == "Who?"
    )
    assert decide(app, APPROVE)["answer"] == "2 facts, 2 passages"


# ---- the other graphs


def test_ircot_is_reviewed_at_the_sentences_that_come_next(fakes):
    class Thoughts:
        def next_sentence(self, question, passages, thoughts):
            return "So the answer is X." if thoughts else "Bell was born in Edinburgh."

    roles = {
        "planner": Thoughts(),
        "retriever": fakes.EchoRetriever(),
        "answerer": fakes.CountingAnswerer(),
    }
    agent = create_ircot_agent(
        **roles, review=("plan", "answer"), checkpointer=InMemorySaver()
    )
    out = agent.invoke({"question": "Who?"}, THREAD)
    assert (waiting(out)["hop"], waiting(out)["plan"]["subquery"]) == (
        2,
        "Bell was born in Edinburgh.",
    )
    out = decide(agent, {"action": "edit", "subquery": "Bell was born in Leith."})
    assert waiting(out)["plan"] == {
        "action": "sufficient",
        "subquery": "",
        "reason": "So the answer is X.",
    }
    out = decide(agent, APPROVE)
    assert waiting(out)["at"] == "answer"
    out = decide(agent, APPROVE)
    assert [(step["subquery"], step["thought"]) for step in out["steps"]] == [
        ("Who?", ""),
        ("Bell was born in Leith.", "Bell was born in Leith."),
    ]
    with pytest.raises(
        ReviewError,
        match=says(
            "loop 'ircot'",
            "cannot be reviewed at facts",
            "reads no facts without an extractor",
        ),
    ):
        create_ircot_agent(**roles, review=("facts",))


def test_single_shot_is_reviewed_at_facts_and_answer(fakes):
    roles = {"retriever": fakes.EchoRetriever(), "extractor": fakes.SentenceExtractor()}
    roles["answerer"] = fakes.CountingAnswerer()
    agent = create_single_shot_agent(
        **roles, review=("facts", "answer"), checkpointer=InMemorySaver()
    )
    out = agent.invoke({"question": "Who?"}, THREAD)
    out = decide(agent, {"action": "remove", "fact": waiting(out)["facts"][0]["id"]})
    assert waiting(out)["answer"] == "1 facts, 2 passages"
    with pytest.raises(
        ReviewError,
        match=says("loop 'single-shot'", "cannot be reviewed at plan", "no such place"),
    ):
        create_single_shot_agent(**roles, review=("plan",))


# ---- how it is asked for


def test_a_review_needs_a_checkpointer(ras):
    with pytest.raises(ReviewError, match=says("checkpointer", "paused", "give one")):
        ras("one", review=("plan",)).invoke({"question": "Who?"})
    settings = Settings(review="plan", index=None, retriever="bm25")
    with pytest.raises(
        SettingsError, match=r"review = 'plan': a review needs a checkpointer"
    ):
        assemble_agent(resolve_parts("ras", settings=settings, index=[]))


def test_settings_name_the_places(ras):
    assert Settings(review=" answer,plan").review == "plan,answer"
    assert (Settings(review="").review, places(None)) == (None, ())
    out = ras(
        "one", settings=Settings(review="plan"), checkpointer=InMemorySaver()
    ).invoke({"question": "Who?"}, THREAD)
    assert waiting(out)["at"] == "plan"
    with pytest.raises(
        SettingsError,
        match=says("unknown place", "review", "'hits'", "known: plan, facts, answer"),
    ):
        create_ras_agent(review=("hits",))


def test_decisions_and_reviews_have_a_plain_form():
    decision = Decision("edit", by="Ada", answer="x", citations=(1,))
    assert decision.to_dict() == {
        "action": "edit",
        "by": "Ada",
        "answer": "x",
        "citations": [1],
    }
    assert Decision.from_dict(decision.to_dict()) == decision
    reviewed = Reviewed("answer", 2, decision, {"answer": "y"})
    assert Reviewed.from_dict(reviewed.to_dict()) == reviewed


def test_roles_on_a_chat_model_read_what_a_person_asks(scripted_llm):
    scripted_llm.script(
        {
            "when": "asks you to consider",
            "reply": "[SUBQ] Where was Bell born, in which town?",
            "repeat": True,
        },
        {"reply": "[SUBQ] Who?"},
    )
    agent = create_ras_agent(
        index=[],
        planner=scripted_llm.spec,
        extractor="offline",
        review=("plan",),
        checkpointer=InMemorySaver(),
    )
    out = agent.invoke({"question": "Where was Bell born?"}, THREAD)
    out = decide(agent, {"action": "ask", "note": "Name the town."})
    assert waiting(out)["plan"]["subquery"] == "Where was Bell born, in which town?"
    shown = scripted_llm.requests()[-1]["messages"][-1]["content"]
    assert "<note>\nName the town.\n</note>\nQuestion: Where was Bell born?" in shown


def test_a_changed_answer_is_changed_in_the_conversation_too(ras, fakes):
    class Noted(fakes.CountingAnswerer):
        accepts_feedback = True

    agent = ras(
        "one",
        answerer=Noted(),
        review="answer",
        checkpointer=InMemorySaver(),
        limits=Limits(max_hops=1),
    )
    agent.invoke({"messages": [("user", "Who?")]}, THREAD)
    out = decide(agent, {"action": "ask", "note": "shorter"})
    assert [message.text for message in out["messages"]] == [
        "Who?",
        "2 facts, 2 passages",
    ]
    out = decide(agent, {"action": "edit", "answer": "Two."})
    assert [message.text for message in out["messages"]] == ["Who?", "Two."]

"""Several sub-queries of one plan are searched at the same time; each is a hop of its own."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ras_agent import Limits
from ras_agent.app.cli.draw import replayed
from ras_agent.contracts.events import (
    GraphDelta,
    Hits,
    Planned,
    Triples,
    event_from_dict,
)
from ras_agent.contracts.records import Plan
from ras_agent.running.trace import Trace
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.structure.llm import LLMExtractor

BOTH = Plan("subq", "Ada", further=("Bell",))


def subqueries(out):
    return [step["subquery"] for step in out["steps"]]


@pytest.fixture
def enough(fakes):
    return fakes.SUFFICIENT


def test_both_passages_of_two_searches_are_in_the_graph(ras, enough, fakes):
    out = ras("q", BOTH, None, enough).invoke({"question": "Who?"})
    assert subqueries(out) == ["Who?", "Ada", "Bell"]
    assert [step["hop"] for step in out["steps"]] == [1, 2, 3]
    facts = {fact["subject"]: fact["sources"][0] for fact in out["graph"]["facts"]}
    assert (facts["Ada A"]["hop"], facts["Ada A"]["subquery"]) == (2, "Ada")
    assert (facts["Bell B"]["hop"], facts["Bell B"]["subquery"]) == (3, "Bell")
    assert out["failures"] == fakes.of_role(out, "answerer")


def test_the_plan_records_all_its_searches_once(ras, enough):
    out = ras("q", BOTH, None, enough).invoke({"question": "Who?"})
    assert out["plans"][1] == {
        "action": "subq",
        "subquery": "Ada",
        "reason": "",
        "further": ["Bell"],
        "hop": 2,
    }
    assert [plan["hop"] for plan in out["plans"]] == [1, 2, 4]


def test_hits_and_facts_stand_at_the_step_that_found_them(ras, enough):
    out = ras("q", BOTH, None, enough).invoke({"question": "Who?"})
    _, ada, bell = out["steps"]
    assert ada["hits"] == [
        {"passage_id": "Ada A", "title": "Ada A", "score": 2.0},
        {"passage_id": "Ada B", "title": "Ada B", "score": 1.0},
    ]
    assert [hit["passage_id"] for hit in bell["hits"]] == ["Bell A", "Bell B"]
    assert len(ada["new_triple_ids"]) == len(bell["new_triple_ids"]) == 2


def test_a_first_plan_of_several_searches_the_question_too(ras, enough):
    out = ras(BOTH, None, None, enough).invoke({"question": "Who?"})
    assert subqueries(out) == ["Who?", "Ada", "Bell"]


def test_a_passage_that_both_find_is_read_once_for_the_first(ras, enough, fakes):
    retriever = fakes.EchoRetriever({"Ada": ["shared", "x"], "Bell": ["shared", "y"]})
    out = ras("q", BOTH, None, enough, retriever=retriever).invoke({"question": "Who?"})
    shared = [fact for fact in out["graph"]["facts"] if fact["subject"] == "shared"]
    assert [source["hop"] for source in shared[0]["sources"]] == [2]
    _, ada, bell = out["steps"]
    assert set(ada["triple_ids"]) & set(bell["triple_ids"])
    assert len(bell["new_triple_ids"]) == 1


@pytest.mark.parametrize(
    ("limits", "searched", "why"),
    [
        (Limits(max_parallel=2), ["Ada", "Bell"], "max_parallel = 2 at the same time"),
        (Limits(max_parallel=1), ["Ada"], "max_parallel = 1 at the same time"),
        (Limits(max_hops=3), ["Ada", "Bell"], "max_hops = 3 allows"),
    ],
)
def test_what_does_not_fit_is_told(ras, enough, fakes, limits, searched, why):
    plan = Plan("subq", "Ada", further=("Bell", "Gray", "Marconi"))
    out = ras("q", plan, enough, enough, enough).invoke(
        {"question": "Who?"}, context=limits
    )
    assert subqueries(out)[1:] == searched
    (failure,) = fakes.of_role(out, "planner")
    left_out = ["Ada", "Bell", "Gray", "Marconi"][len(searched) :]
    assert failure["message"] == (
        f"sub-queries of the planner were left out: they are more than {why}"
    )
    assert failure["detail"].splitlines() == left_out


def test_a_subquery_that_refers_to_the_first_waits_for_its_answer(ras, enough, fakes):
    plan = Plan("subq", "Who invented it?", further=("Where was #1 born?", "Bell"))
    out = ras("q", plan, None, enough).invoke({"question": "Who?"})
    assert subqueries(out) == ["Who?", "Who invented it?", "Bell"]
    (failure,) = fakes.of_role(out, "planner")
    assert "need the answer to another" in failure["message"]
    assert failure["detail"] == "Where was #1 born?"


def test_a_repeated_subquery_of_several_is_told_and_the_others_are_searched(
    ras, enough, fakes
):
    plan = Plan("subq", "who", further=("Ada",))
    out = ras("q", plan, enough).invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (["Who?", "Ada"], "sufficient")
    assert "were searched before" in fakes.of_role(out, "planner")[0]["message"]


def test_only_repeated_subqueries_end_the_loop(ras):
    plan = Plan("subq", "who", further=("WHO?",))
    out = ras("q", plan).invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (["Who?"], "repeated_subquery")


def test_the_loop_goes_on_where_one_of_the_searches_brought_news(ras, enough, fakes):
    retriever = fakes.EchoRetriever({"Bell": ["Who? A"]})
    out = ras("q", BOTH, None, enough, retriever=retriever).invoke({"question": "Who?"})
    assert out["stop_reason"] == "sufficient"
    retriever = fakes.EchoRetriever({"Ada": ["Who? B"], "Bell": ["Who? A"]})
    out = ras("q", BOTH, None, enough, retriever=retriever).invoke({"question": "Who?"})
    assert out["stop_reason"] == "no_new_facts"


def test_a_failed_search_leaves_the_other(ras, enough, fakes):
    retriever = fakes.EchoRetriever({"Ada": ConnectionError("down")})
    out = ras("q", BOTH, None, enough, retriever=retriever).invoke({"question": "Who?"})
    assert [len(step["hits"]) for step in out["steps"]] == [2, 0, 2]
    (failure,) = fakes.of_role(out, "retriever")
    assert (failure["hop"], failure["message"]) == (2, "ConnectionError: down")


@pytest.mark.parametrize("role", ["retriever", "extractor"])
def test_the_searches_are_made_at_the_same_time(ras, enough, fakes, role):
    both = threading.Barrier(2)

    class Meeting:
        """Waits at each call of the second plan for the other one."""

        def __init__(self, inner):
            self.inner = inner

        def retrieve(self, query, k=5):
            if query != "Who?":
                both.wait(10)
            return self.inner.retrieve(query, k)

        def extract(self, passages, subquery=""):
            if subquery != "Who?":
                both.wait(10)
            return self.inner.extract(passages, subquery)

    inner = {
        "retriever": fakes.EchoRetriever(),
        "extractor": fakes.SentenceExtractor(),
    }
    out = ras("q", BOTH, None, enough, **{role: Meeting(inner[role])}).invoke(
        {"question": "Who?"}
    )
    assert len(out["graph"]["facts"]) == 6
    assert fakes.of_role(out, role) == []


async def test_invoke_and_ainvoke_find_the_same(ras, enough, fakes):
    agent = ras("q", BOTH, None, enough)
    out = agent.invoke({"question": "Who?"})
    same = await agent.ainvoke({"question": "Who?"})
    assert fakes.untimed(out) == fakes.untimed(same)


class Late:
    """Retriever and extractor that take their time, different for each sub-query."""

    def __init__(self, fakes, delays):
        self.retriever = fakes.EchoRetriever({"Ada": ["a", "b"], "Gray": ["b", "c"]})
        self.extractor = fakes.SentenceExtractor()
        self.delays = delays

    def retrieve(self, query, k=5):
        time.sleep(self.delays.get(query, 0))
        return self.retriever.retrieve(query, k)

    def extract(self, passages, subquery=""):
        time.sleep(self.delays.get(subquery, 0))
        return self.extractor.extract(passages, subquery)


def test_the_outcome_does_not_depend_on_which_comes_back_first(ras, fakes):
    names = ("Ada", "Bell", "Gray")
    plan = Plan("subq", names[0], further=names[1:])

    def outcome(delays):
        late = Late(fakes, dict(zip(names, delays, strict=True)))
        agent = ras(
            "q", plan, None, None, fakes.SUFFICIENT, retriever=late, extractor=late
        )
        return fakes.untimed(agent.invoke({"question": "Who?"}))

    expected = outcome((0, 0, 0))

    @given(st.permutations((0, 0.01, 0.02)))
    def holds(delays):
        assert outcome(delays) == expected

    holds()


def test_the_graph_is_the_same_in_any_order_of_the_subqueries(ras, fakes):
    @given(st.permutations(("Ada", "Bell", "Gray")))
    def holds(names):
        plan = Plan("subq", names[0], further=tuple(names[1:]))
        agent = ras("q", plan, None, None, fakes.SUFFICIENT)
        facts = agent.invoke({"question": "Who?"})["graph"]["facts"]
        said = {(fact["subject"], fact["predicate"], fact["object"]) for fact in facts}
        assert len(said) == 8

    holds()


def test_each_search_counts_against_the_models_calls(ras, enough, fakes):
    extractor = fakes.Metered(fakes.SentenceExtractor())
    agent = ras("q", BOTH, None, enough, extractor=extractor)
    out = agent.invoke({"question": "Who?"})
    assert [(call["role"], call["hop"]) for call in out["usage"]["calls"]] == [
        ("extractor", 1),
        ("extractor", 2),
        ("extractor", 3),
    ]
    out = agent.invoke({"question": "Who?"}, context=Limits(max_llm_calls=3))
    assert out["usage"]["llm_calls"] == 2
    assert out["stop_reason"] == "max_llm_calls"


def test_an_error_in_code_of_one_search_is_raised(ras, enough, fakes):
    retriever = fakes.EchoRetriever({"Bell": TypeError("no such argument")})
    with pytest.raises(TypeError, match="no such argument"):
        ras("q", BOTH, None, enough, retriever=retriever).invoke({"question": "Who?"})


# ---- checkpoints, reviews, forks, replay, events


THREAD = {"configurable": {"thread_id": "several"}}
SCRIPT = ("q", BOTH, Plan("sufficient"))


def checkpointed(ras, fakes, **roles):
    script = (*SCRIPT, fakes.SUFFICIENT)
    return ras(*script, checkpointer=InMemorySaver(), **roles)


@pytest.mark.parametrize("node", ["retrieve", "structure", "merge"])
def test_a_run_that_was_interrupted_goes_on_with_both_searches(ras, fakes, node):
    expected = ras(*SCRIPT, fakes.SUFFICIENT).invoke({"question": "Who?"})
    agent = checkpointed(ras, fakes)
    agent.invoke({"question": "Who?"}, THREAD, interrupt_before=[node])
    agent.invoke(None, THREAD, interrupt_before=[node])
    state = agent.get_state(THREAD)
    assert (state.next, state.values["further"]) == ((node,), ["Bell"])
    out = agent.invoke(None, THREAD)
    assert fakes.untimed(out) == fakes.untimed(expected)


def test_another_subquery_of_a_person_takes_the_place_of_all(ras, fakes):
    agent = checkpointed(ras, fakes)
    agent.invoke({"question": "Who?"}, THREAD, interrupt_before=["retrieve"])
    agent.invoke(None, THREAD, interrupt_before=["retrieve"])
    config = agent.update_state(THREAD, {"subquery": "Gray"})
    assert subqueries(agent.invoke(None, config))[:2] == ["Who?", "Gray"]
    assert agent.get_state(THREAD).values["further"] == []


def test_a_review_shows_all_searches_and_their_approval_makes_all(ras, fakes):
    agent = checkpointed(ras, fakes, review=("plan", "facts"))
    agent.invoke({"question": "Who?"}, THREAD)
    approve = Command(resume={"action": "approve"})
    agent.invoke(approve, THREAD)
    out = agent.invoke(approve, THREAD)
    (waiting,) = out["__interrupt__"]
    assert waiting.value["plan"]["further"] == ["Bell"]
    out = agent.invoke(approve, THREAD)
    (waiting,) = out["__interrupt__"]
    assert waiting.value["subquery"] == "Ada; Bell"
    assert [passage["id"] for passage in waiting.value["passages"]] == [
        "Ada A",
        "Ada B",
        "Bell A",
        "Bell B",
    ]
    out = agent.invoke(approve, THREAD)
    assert subqueries(out) == ["Who?", "Ada", "Bell"]


def test_an_edited_plan_searches_only_the_words_of_the_person(ras, fakes):
    agent = checkpointed(ras, fakes, review=("plan",))
    agent.invoke({"question": "Who?"}, THREAD)
    agent.invoke(Command(resume={"action": "approve"}), THREAD)
    edit = {"action": "edit", "subquery": "Gray", "by": "Ada"}
    out = agent.invoke(Command(resume=edit), THREAD)
    assert subqueries(out) == ["Who?", "Gray"]
    assert "further" not in out["plans"][1]
    assert out["reviews"][-1]["before"]["further"] == ["Bell"]


def test_events_name_the_hop_of_each_search(ras, fakes):
    agent = ras(*SCRIPT, fakes.SUFFICIENT)
    events = list(agent.stream({"question": "Who?"}, stream_mode="custom"))
    planned = [event for event in events if isinstance(event, Planned)]
    assert planned[1].plan.subqueries == ("Ada", "Bell")
    assert event_from_dict(planned[1].to_dict()) == planned[1]
    of_round = [
        (type(event).__name__, event.hop)
        for event in events
        if isinstance(event, Hits | Triples | GraphDelta) and event.hop > 1
    ]
    assert of_round[:2] == [("Hits", 2), ("Hits", 3)]
    # facts come as they are read
    assert sorted(of_round[2:4]) == [("Triples", 2), ("Triples", 3)]
    assert of_round[4:] == [("GraphDelta", 2), ("GraphDelta", 3)]


def test_a_trace_holds_all_searches_and_is_drawn_again(ras, fakes):
    out = ras(*SCRIPT, fakes.SUFFICIENT).invoke({"question": "Who?"})
    read = Trace.from_dict(Trace.from_state(out).to_dict())
    assert read.plans[1].plan.subqueries == ("Ada", "Bell")
    assert [event.hop for event in replayed(read) if isinstance(event, Hits)] == [
        1,
        2,
        3,
    ]


def test_a_replay_finds_the_reply_of_each_search(ras, fakes, scripted_llm, tmp_path):
    lines = {name: f"(S> {name} A | P> is | O> a thing)" for name in ("Ada", "Bell")}
    for name, line in lines.items():
        scripted_llm.script({"when": f"{name} A", "reply": line, "repeat": True})
    scripted_llm.script({"reply": "[NONE]", "repeat": True})
    retriever = fakes.EchoRetriever({"Ada": ["Ada A"], "Bell": ["Bell A"]})

    def run(**settings):
        chat = ChatSettings(cache=tmp_path / "replies.sqlite", **settings)
        extractor = LLMExtractor(scripted_llm.spec, settings=chat)
        agent = ras(*SCRIPT, fakes.SUFFICIENT, retriever=retriever, extractor=extractor)
        limits = Limits(stop_on_no_new_facts=False)
        return agent.invoke({"question": "Who?"}, context=limits)

    first = run()
    asked = len(scripted_llm.requests())
    again = run(replay=True)
    assert len(scripted_llm.requests()) == asked
    assert [fact["subject"] for fact in first["graph"]["facts"]] == ["Ada A", "Bell A"]
    assert again["graph"] == first["graph"]
    assert {call["replayed"] for call in again["usage"]["calls"]} == {True}


def test_further_subqueries_are_texts_of_a_search():
    with pytest.raises(ValueError, match="must be a tuple of sub-queries"):
        Plan("subq", "Ada", further="Bell")
    with pytest.raises(ValueError, match="must be a tuple of sub-queries"):
        Plan("subq", "Ada", further=(" ",))
    with pytest.raises(ValueError, match=r"only a \[SUBQ\] plan can have further"):
        Plan("sufficient", further=("Bell",))
    assert Plan("subq", "Ada", further=("Bell",)).subqueries == ("Ada", "Bell")
    assert Plan("subq", "Ada").subqueries == ("Ada",)
    assert Plan("sufficient").subqueries == ()

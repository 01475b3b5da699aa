"""The effect of a failing tool on a run: it is recorded, and the run goes on if it can."""

import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent.contracts.errors import MissingExtra, ModelCallError, PromptError
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Extraction,
    Failure,
    Hit,
    Passage,
    Plan,
)
from tests.graphs.what_failed import what_failed
from tests.messages import says


def failures(out):
    return [
        (failure["role"], failure["hop"], failure["message"])
        for failure in what_failed(out)
    ]


def test_an_answer_still_has_the_passages_where_extraction_failed(ras, fakes):
    extractor = fakes.SentenceExtractor({"b": ModelCallError("no reply")})
    out = ras("q", "b", "c", fakes.SUFFICIENT, extractor=extractor).invoke(
        {"question": "Who?"}
    )
    assert out["answer"] == "4 facts, 6 passages"
    assert failures(out) == [("extractor", 2, "ModelCallError: no reply")]
    assert out["stop_reason"] == "sufficient"


def test_a_passage_that_could_not_be_read_is_read_when_found_again(ras, fakes):
    extractor = fakes.SentenceExtractor({"b": ModelCallError("no reply")})
    retriever = fakes.EchoRetriever({"b": ["x"], "c": ["x"]})
    agent = ras(
        "q", "b", "c", fakes.SUFFICIENT, extractor=extractor, retriever=retriever
    )
    assert agent.invoke({"question": "Who?"})["answer"] == "3 facts, 3 passages"


def test_what_an_extractor_could_not_parse_is_in_the_result(ras, fakes):
    partial = Extraction((), (Failure("", "half a line", detail="(S> a | P>"),))
    extractor = fakes.SentenceExtractor({"Who?": partial})
    out = ras("q", fakes.SUFFICIENT, extractor=extractor).invoke({"question": "Who?"})
    assert what_failed(out) == [
        {
            "role": "extractor",
            "message": "half a line",
            "hop": 1,
            "detail": "(S> a | P>",
        }
    ]
    assert out["stop_reason"] == "sufficient"


def test_a_failed_retrieval_is_followed_by_the_next_plan(ras, fakes):
    retriever = fakes.EchoRetriever({"b": OSError("connection lost")})
    out = ras("q", "b", "c", fakes.SUFFICIENT, retriever=retriever).invoke(
        {"question": "Who?"}
    )
    assert [len(step["hits"]) for step in out["steps"]] == [2, 0, 2]
    assert failures(out) == [("retriever", 2, "OSError: connection lost")]
    assert out["stop_reason"] == "sufficient"


def test_a_key_in_an_error_is_masked_before_anything_holds_it(ras, fakes):
    told = f"{'x' * 460} https://h/?access_token=hunter2hunter2hunter2hunter2"
    retriever = fakes.EchoRetriever({"b": OSError(told)})
    out = ras("q", "b", fakes.SUFFICIENT, retriever=retriever).invoke(
        {"question": "Who?"}
    )
    assert out["failures"][0]["message"].endswith("https://h/?access_token=***")


def test_a_subquery_whose_retrieval_failed_may_be_asked_again(ras, fakes):
    class OnceLost(fakes.EchoRetriever):
        lost = False

        def retrieve(self, query, k=5):
            if query == "b" and not self.lost:
                self.lost = True
                raise OSError("connection lost")
            return super().retrieve(query, k)

    out = ras("q", "b", "b", fakes.SUFFICIENT, retriever=OnceLost()).invoke(
        {"question": "Who?"}
    )
    assert (len(out["steps"]), out["stop_reason"]) == (3, "sufficient")


def test_a_first_plan_that_fails_falls_back_on_the_question(ras, fakes):
    out = ras(ModelCallError("no reply"), fakes.SUFFICIENT).invoke({"question": "Who?"})
    assert (out["answer"], out["stop_reason"]) == ("2 facts, 2 passages", "sufficient")
    assert failures(out) == [("planner", 1, "ModelCallError: no reply")]


def test_a_later_plan_that_fails_ends_the_loop_in_an_answer(ras):
    out = ras("q", ModelCallError("no reply")).invoke({"question": "Who?"})
    assert (out["answer"], out["stop_reason"]) == (
        "2 facts, 2 passages",
        "planner_failed",
    )
    assert failures(out) == [("planner", 2, "ModelCallError: no reply")]


def test_a_failing_answerer_abstains_and_says_so(ras, fakes):
    class Lost:
        def answer(self, question, graph, passages, steps):
            raise ConnectionError("refused")

    out = ras("q", fakes.SUFFICIENT, answerer=Lost()).invoke({"question": "Who?"})
    assert (out["answer"], out["abstained"], out["citations"]) == (
        "No answer: the answerer failed.",
        True,
        [],
    )
    assert failures(out) == [("answerer", 1, "ConnectionError: refused")]
    assert (out["stop_reason"], out["failed"]) == ("sufficient", "the answerer failed")


def test_an_honest_abstention_is_no_failure_also_where_it_cites_what_is_not_there(
    ras, fakes
):
    class Honest:
        def answer(self, question, graph, passages, steps):
            return Answer("I don't know.", (Citation(1, "nowhere"),), abstained=True)

    out = ras("q", fakes.SUFFICIENT, answerer=Honest()).invoke({"question": "Who?"})
    assert (out["abstained"], out["failed"]) == (True, "")
    assert failures(out) == [
        (
            "answerer",
            1,
            "dropped an invented citation: passage 'nowhere' was not retrieved",
        )
    ]


def test_failures_of_an_answer_are_in_the_result(ras, fakes):
    class Unsure:
        def answer(self, question, graph, passages, steps):
            return Answer(
                "Perhaps.", failures=(Failure("", "no citation could be parsed"),)
            )

    out = ras("q", fakes.SUFFICIENT, answerer=Unsure()).invoke({"question": "Who?"})
    assert failures(out) == [("answerer", 1, "no citation could be parsed")]


@pytest.mark.parametrize(
    "error",
    [
        *(TypeError("a bug"), AttributeError("a bug"), NotImplementedError("not yet")),
        *(MissingExtra("pdf", "pdf"), PromptError("unknown variable")),
    ],
)
def test_programming_and_setup_errors_are_raised(ras, fakes, error):
    with pytest.raises(type(error)):
        ras("q", error).invoke({"question": "Who?"})


def test_a_role_that_returns_another_type_is_a_type_error(ras):
    class Wrong:
        def plan(self, question, graph, steps):
            return "[SUFFICIENT]"

    with pytest.raises(
        TypeError, match=says("Wrong.plan", "must return Plan", "str: '[SUFFICIENT]'")
    ):
        ras(planner=Wrong()).invoke({"question": "Who?"})


def test_a_tool_may_interrupt_the_run_for_a_human(ras, fakes):
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command, interrupt

    class Asking:
        def plan(self, question, graph, steps):
            return (
                Plan("subq", interrupt("what next?"))
                if len(steps) == 1
                else fakes.ScriptedPlanner("q", "", fakes.SUFFICIENT).plan(
                    question, graph, steps
                )
            )

    agent = ras(planner=Asking(), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}
    assert (
        agent.invoke({"question": "Who?"}, thread)["__interrupt__"][0].value
        == "what next?"
    )
    out = agent.invoke(Command(resume="the human's sub-query"), thread)
    assert [step["subquery"] for step in out["steps"]] == [
        "Who?",
        "the human's sub-query",
    ]
    assert what_failed(out) == []


@pytest.mark.parametrize(
    "found", ["a text", Passage("a", "a text"), Hit("a text", 1.0)]
)
def test_anything_but_a_hit_is_a_type_error(ras, found):
    class Retriever:
        def retrieve(self, query, k=5):
            return [found]

    with pytest.raises(
        TypeError,
        match=says(
            "retriever", "must return hits", "Hit(Passage(id, text), score)", "got"
        ),
    ):
        ras("q", retriever=Retriever()).invoke({"question": "Who?"})


def test_numbers_that_json_does_not_know_stay_out_of_the_state(ras, fakes):
    class Retriever:
        def retrieve(self, query, k=5):
            metadata = {"ratio": float("nan"), "id": 10**30, "year": 1876}
            return [
                Hit(Passage("a", "a text", metadata=metadata), score)
                for score in (float("inf"), 2.5)
            ]

    agent = ras(
        "q", fakes.SUFFICIENT, retriever=Retriever(), checkpointer=InMemorySaver()
    )
    out = agent.invoke({"question": "Who?"}, {"configurable": {"thread_id": "1"}})
    json.dumps(out, allow_nan=False)
    assert [hit["score"] for hit in out["steps"][0]["hits"]] == [0.0, 2.5]
    assert out["passages"]["a"]["metadata"] == {
        "ratio": "nan",
        "id": str(10**30),
        "year": 1876,
    }


def test_a_second_text_under_one_passage_id_is_recorded_and_dropped(ras, fakes):
    class Chunks:
        """Every text is found under the id of its document."""

        def retrieve(self, query, k=5):
            return [
                Hit(Passage("bell", f"{query} {n}", "Bell is a thing"), 1.0)
                for n in (1, 2)
            ]

    out = ras("q", "b", fakes.SUFFICIENT, retriever=Chunks()).invoke(
        {"question": "Who?"}
    )
    assert out["passages"]["bell"]["text"] == "Who? 1"
    assert [len(step["hits"]) for step in out["steps"]] == [1, 0]
    message = "a passage was dropped, because another text has its id 'bell': give each passage its own id"
    assert failures(out) == [
        ("retriever", 1, message),
        ("retriever", 2, message),
        ("retriever", 2, message),
    ]
    dropped = [
        failure["detail"]
        for failure in out["failures"]
        if failure["role"] == "retriever"
    ]
    assert dropped == ["Who? 2", "b 1", "b 2"]


def test_a_passage_found_twice_is_no_failure(ras, fakes):
    out = ras(
        "q",
        "b",
        fakes.SUFFICIENT,
        retriever=fakes.EchoRetriever({"b": ["x", "x", "Who? A"]}),
    ).invoke({"question": "Who?"})
    assert what_failed(out) == []

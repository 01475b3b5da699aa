"""The trace: one JSON schema for a run, read back exactly, with located errors for everything else."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import TraceError
from ras_agent.contracts.events import Planned
from ras_agent.contracts.records import (
    Call,
    Citation,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
    Usage,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace, trace_schema
from tests.messages import says

BELL = Passage(
    "bell",
    "Bell was born in Edinburgh. He left in 1870.",
    "Alexander Graham Bell",
    "d1",
    {"year": 1922},
)
LEITH = Passage(
    "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
)
FACTS = (
    Triple(
        "Bell", "was born in", "Edinburgh", (Source("bell", 0, 27, 1, "q1", "offline"),)
    ),
    Triple(
        "Water of Leith",
        "flows through",
        "Edinburgh",
        (Source("leith", 0, 43, 2, "q2", "offline"),),
    ),
)
TRACE = Trace(
    question="Which river?",
    answer="Water of Leith",
    confidence=0.75,
    citations=(
        Citation(1, "leith", "Water of Leith", 0, 43, LEITH.text, (FACTS[1].id,)),
    ),
    stop_reason="sufficient",
    mode="ras",
    roles={"planner": "offline", "retriever": "bm25"},
    seconds=0.25,
    steps=(
        Step(1, "q1", (Hit(BELL, 2.5),), (FACTS[0].id,), (FACTS[0].id,), seconds=0.1),
        Step(
            2, "q2", (Hit(LEITH, 3.5), Hit(BELL, 1.0)), (FACTS[1].id,), (FACTS[1].id,)
        ),
    ),
    plans=(
        Planned(1, Plan("subq", "q1")),
        Planned(3, Plan("sufficient", reason="the river is known")),
    ),
    graph=QuestionGraph(FACTS).bounded(1, "which river flows?"),
    usage=Usage((Call("planner", 1, "m", 10, 2, seconds=0.5),)),
    failures=(Failure("extractor", "could not read a line", 1, "(S> x"),),
    passages={"bell": BELL, "leith": LEITH},
)
TEXT = st.text(max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXT,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    some = st.builds(
        Passage, TEXT, TEXT, TEXT, TEXT, st.dictionaries(TEXT, JSON_VALUES, max_size=2)
    )
    passages = {
        passage.id: passage for passage in draw(st.lists(some, min_size=1, max_size=3))
    }
    names, counts = st.sampled_from(sorted(passages)), st.integers(0, 99)
    sources = st.builds(Source, names, counts, counts, counts, TEXT, TEXT)
    triples = st.builds(
        Triple, TEXT, TEXT, TEXT, st.lists(sources, max_size=2).map(tuple)
    )
    hits = st.builds(
        Hit,
        st.sampled_from([*passages.values()]),
        NUMBERS,
        st.lists(TEXT, max_size=2).map(tuple),
    )
    ids = st.lists(TEXT, max_size=2).map(tuple)
    plans = st.builds(
        Planned, counts, st.builds(Plan, st.just("sufficient"), TEXT, TEXT)
    )
    built = st.builds(
        Trace,
        question=TEXT,
        answer=TEXT,
        abstained=st.booleans(),
        confidence=st.none() | NUMBERS,
        citations=st.lists(
            st.builds(Citation, counts, names, TEXT, counts, counts, TEXT, ids),
            max_size=2,
        ).map(tuple),
        roles=st.dictionaries(TEXT, TEXT, max_size=2),
        seconds=NUMBERS,
        steps=st.lists(
            st.builds(
                Step,
                counts,
                TEXT,
                st.lists(hits, max_size=2).map(tuple),
                ids,
                ids,
                TEXT,
                NUMBERS,
            ),
            max_size=2,
        ).map(tuple),
        plans=st.lists(plans, max_size=2).map(tuple),
        graph=st.lists(triples, max_size=4).map(tuple).map(QuestionGraph),
        usage=st.builds(
            Usage,
            st.lists(st.builds(Call, TEXT, counts, TEXT, counts), max_size=2).map(
                tuple
            ),
        ),
        failures=st.lists(st.builds(Failure, TEXT, TEXT, counts, TEXT), max_size=2).map(
            tuple
        ),
        passages=st.just(passages),
        failed=TEXT,
    )
    return draw(built)


@given(traces())
def test_a_written_trace_is_read_back_equal(trace: Trace) -> None:
    assert Trace.from_json(trace.to_json()) == trace


def test_a_whole_run_is_read_back_equal() -> None:
    assert Trace.from_json(TRACE.to_json(indent=2)) == TRACE


def test_each_passage_is_written_once() -> None:
    assert TRACE.to_json().count("He left in 1870.") == 1


def test_the_keys_of_the_document() -> None:
    assert list(TRACE.to_dict()) == [
        *(
            "schema",
            "version",
            "question",
            "answer",
            "abstained",
            "failed",
            "grounded",
            "confidence",
        ),
        *("citations", "stop_reason"),
        *(
            "mode",
            "roles",
            "seconds",
            "steps",
            "plans",
            "graph",
            "usage",
            "failures",
            "passages",
        ),
    ]


def test_the_schema_requires_every_key() -> None:
    schema = trace_schema()
    assert sorted(schema["required"]) == sorted(TRACE.to_dict())
    assert schema["properties"]["version"]["const"] == 1


def test_an_agents_output_is_a_trace() -> None:
    document = TRACE.to_dict()
    out = {
        name: document[name]
        for name in document
        if name not in ("schema", "version", "mode", "roles")
    }
    assert (
        Trace.from_state(
            {**out, "thoughts": ["not part of a trace"]}, "ras", TRACE.roles
        )
        == TRACE
    )


def test_an_output_may_lack_keys_that_its_graph_never_wrote() -> None:
    out = {
        "question": "q",
        "answer": "a",
        "confidence": None,
        "stop_reason": "no_retrieval",
    }
    assert Trace.from_state(out) == Trace("q", "a", stop_reason="no_retrieval")


@pytest.mark.parametrize(
    ("abstained", "failed", "outcome"),
    [
        (False, "", "answered"),
        (True, "", "abstained"),
        (True, "the answerer failed", "failed"),
    ],
)
def test_a_failed_answerer_is_no_abstention(
    abstained: bool, failed: str, outcome: str
) -> None:
    trace = Trace("q", "a", abstained=abstained, failed=failed)
    assert Trace.from_json(trace.to_json()).outcome == outcome


def test_numbers_and_characters_that_json_lacks_are_replaced() -> None:
    passage = Passage(
        "p", "half a \ud83d pair", metadata={"score": math.nan, "rows": [math.inf, 2.0]}
    )
    step = Step(1, "q", (Hit(passage, math.inf),))
    read = Trace.from_json(
        Trace(
            "q", "a", confidence=math.nan, steps=(step,), passages={"p": passage}
        ).to_json()
    )
    assert read.passages["p"] == Passage(
        "p", "half a \ufffd pair", metadata={"score": None, "rows": [None, 2.0]}
    )
    assert read.steps[0].hits[0].score == 1.7976931348623157e308
    assert read.confidence == 0.0


class TestErrors:
    @staticmethod
    def message(change: dict[str, Any]) -> str:
        with pytest.raises(TraceError) as caught:
            Trace.from_json(json.dumps({**TRACE.to_dict(), **change}), where="run.json")
        return str(caught.value)

    def test_not_json(self) -> None:
        with pytest.raises(TraceError, match=r"^run\.json: not JSON .*line 1 column 2"):
            Trace.from_json("{", where="run.json")

    def test_nested_without_end(self) -> None:
        with pytest.raises(TraceError, match=r"^run\.json: not JSON .*recursion"):
            Trace.from_json("[" * 9000, where="run.json")

    @pytest.mark.parametrize("text", ["[]", "{}", '"trace"', "null"])
    def test_not_a_trace(self, text: str) -> None:
        with pytest.raises(TraceError, match="not a trace of ras-agent"):
            Trace.from_json(text)

    def test_a_plan_to_search_for_nothing(self) -> None:
        plan = {"hop": 1, "action": "subq", "subquery": " ", "reason": ""}
        assert (
            self.message({"plans": [plan]})
            == "run.json: plans.0: a [SUBQ] plan needs a sub-query: give `subquery`"
        )

    def test_another_version(self) -> None:
        assert self.message({"version": 2}).startswith(
            "run.json: trace version 2, but this ras-agent reads version 1: read it with"
        )

    def test_a_wrong_type_is_located(self) -> None:
        steps = TRACE.to_dict()["steps"]
        steps[1]["hits"][0]["score"] = "high"
        assert self.message({"steps": steps}).startswith(
            "run.json: steps.1.hits.0.score: "
        )
        assert "got 'high'" in self.message({"steps": steps})

    def test_a_missing_key_is_located(self) -> None:
        usage = {**TRACE.to_dict()["usage"]}
        del usage["calls"]
        assert self.message({"usage": usage}).startswith(
            "run.json: usage.calls: Field required"
        )

    def test_several_errors_are_counted(self) -> None:
        assert self.message({"question": 1, "answer": 2}).endswith("(and 1 more)")

    def test_an_unknown_action_is_named(self) -> None:
        plans = [{"hop": 1, "action": "dance", "subquery": "", "reason": ""}]
        assert "plans.0.action" in self.message({"plans": plans})

    def test_a_missing_passage_is_named(self) -> None:
        passages = {"bell": BELL.to_dict()}
        told = says("run.json", "citations.0", "passage 'leith'", "not under passages")
        assert told.search(self.message({"passages": passages}))

    def test_a_reading_with_a_missing_source_is_located(self) -> None:
        graph = TRACE.to_dict()["graph"]
        graph["facts"][0]["readings"] = [["a", "b", "c", [7]]]
        assert "run.json: graph: " in self.message({"graph": graph})
        assert "a reading refers to a source" in self.message({"graph": graph})

    def test_an_unknown_key_is_ignored(self) -> None:
        failures = [{**TRACE.failures[0].to_dict(), "new": 1}]
        assert (
            Trace.from_dict({**TRACE.to_dict(), "new": 1, "failures": failures})
            == TRACE
        )

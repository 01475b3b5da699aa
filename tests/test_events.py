"""Events have one JSON form, which docs/events.md shows."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from ras_agent import Passage, create_ras_agent
from ras_agent.contracts.errors import TraceError
from ras_agent.contracts.events import (
    Answered,
    AnswerToken,
    Event,
    GraphDelta,
    InertTokens,
    event_from_dict,
)
from ras_agent.contracts.records import Answer, Triple

PAGE = (Path(__file__).resolve().parent.parent / "docs/events.md").read_text("utf-8")
EXAMPLES: list[dict[str, Any]] = [
    json.loads(one) for one in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
def test_the_documented_json_of_an_event_is_what_it_writes_and_reads(
    example: dict[str, Any],
) -> None:
    event = event_from_dict(example)
    assert event.to_dict() == example
    assert next(iter(event.to_dict())) == "type"


def test_every_event_is_documented() -> None:
    assert {type(event_from_dict(example)) for example in EXAMPLES} == set(
        get_args(Event)
    )


def test_the_events_of_a_run_go_over_the_wire_and_back() -> None:
    passages = [
        Passage(
            "bell", "Bell was born in Edinburgh.", "Bell", metadata={"tags": ["a", "b"]}
        )
    ]
    events = list(
        create_ras_agent(index=passages).stream(
            {"question": "Where was Bell born?"}, stream_mode="custom"
        )
    )
    assert [
        event_from_dict(json.loads(json.dumps(event.to_dict()))) for event in events
    ] == events
    types = [event.type for event in events]
    assert types[:4] == ["planned", "hits", "triples", "graph_delta"]
    assert types[-1] == "answered"


def test_langgraph_server_sends_the_same_json() -> None:
    orjson = pytest.importorskip("orjson", reason="comes with langgraph-sdk")
    event = GraphDelta(
        1, (Triple("Bell", "was born in", "Edinburgh"),), 1, 2, 0, ("t1",)
    )
    assert json.loads(orjson.dumps(event)) == event.to_dict()


def test_an_event_is_taken_apart_by_position_without_its_type() -> None:
    match AnswerToken("Edin"):
        case AnswerToken(text):
            assert text == "Edin"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"type": "planned", "hop": 1}, "planned.plan: Field required"),
        ({"type": "guess"}, "Input tag 'guess' found using 'type' does not match any"),
        ({}, "Unable to extract tag using discriminator 'type'"),
    ],
)
def test_json_that_is_no_event_is_an_error_that_names_the_place(
    data: dict[str, Any], message: str
) -> None:
    with pytest.raises(TraceError, match=message):
        event_from_dict(data)


def test_tokens_stop_where_markup_begins_and_their_rest_comes_with_the_answer() -> None:
    passed_on: list[Event] = []
    sink = InertTokens(passed_on.append)
    for piece in (
        "He won",
        "!",
        " See ",
        "!",
        "[map](https://e.example/?q=secret)",
        " of <b",
        ">it",
    ):
        sink(AnswerToken(piece))
    before = [event.text for event in passed_on if isinstance(event, AnswerToken)]
    sink(
        Answered(
            Answer("He won! See [map](https://e.example/?q=secret) of <b>it"),
            "sufficient",
        )
    )
    assert before == ["He won", "! See "]
    assert passed_on[-2] == AnswerToken("[map](https://e.example/?q=secret) of <b>it")


def test_tokens_of_another_answer_are_not_completed() -> None:
    passed_on: list[Event] = []
    sink = InertTokens(passed_on.append)
    sink(AnswerToken("Glas"))
    answered = Answered(Answer("Edinburgh"), "sufficient")
    sink(answered)
    assert passed_on == [AnswerToken("Glas"), answered]

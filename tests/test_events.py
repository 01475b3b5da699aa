"""Events have one JSON form, which docs/events.md shows."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from ras_agent import Passage, create_ras_agent
from ras_agent.errors import TraceError
from ras_agent.events import AnswerToken, Event, GraphDelta, event_from_dict
from ras_agent.records import Triple

PAGE = (Path(__file__).resolve().parent.parent / "docs/events.md").read_text("utf-8")
EXAMPLES: list[dict[str, Any]] = [json.loads(one) for one in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
def test_the_documented_json_of_an_event_is_what_it_writes_and_reads(example: dict[str, Any]) -> None:
    event = event_from_dict(example)
    assert event.to_dict() == example
    assert next(iter(event.to_dict())) == "type"


def test_every_event_is_documented() -> None:
    assert {type(event_from_dict(example)) for example in EXAMPLES} == set(get_args(Event))


def test_the_events_of_a_run_go_over_the_wire_and_back() -> None:
    passages = [Passage("bell", "Bell was born in Edinburgh.", "Bell", metadata={"tags": ["a", "b"]})]
    events = list(create_ras_agent(index=passages).stream({"question": "Where was Bell born?"}, stream_mode="custom"))
    assert [event_from_dict(json.loads(json.dumps(event.to_dict()))) for event in events] == events
    types = [event.type for event in events]
    assert types[:4] == ["planned", "hits", "triples", "graph_delta"]
    assert types[-1] == "answered"


def test_langgraph_server_sends_the_same_json() -> None:
    orjson = pytest.importorskip("orjson", reason="comes with langgraph-sdk")
    event = GraphDelta(1, (Triple("Bell", "was born in", "Edinburgh"),), 1, 2, 0, ("t1",))
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
def test_json_that_is_no_event_is_an_error_that_names_the_place(data: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        event_from_dict(data)

"""A record's JSON: its keys decide the fields that are written, read, and required by a schema."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter

from ras_agent.contracts.records import Passage
from ras_agent.contracts.shape import Record, json_shape


@dataclass(frozen=True)
class Inner(Record):
    json_keys = ("action", "note?")

    action: str
    note: str = ""


@dataclass(frozen=True)
class Outer(Record):
    json_keys = ("kind", "count", "inner.*", "numbers?", "passages", "page")
    kind: ClassVar[str] = "outer"

    inner: Inner
    numbers: tuple[int, ...] | None = None
    passages: dict[str, Passage] = field(default_factory=dict)
    page: int | None = None

    @property
    def count(self) -> int:
        return len(self.passages)


OUTER = Outer(Inner("ask", "why?"), (), {"p": Passage("p", "text")})
JSON = {
    **{"kind": "outer", "count": 1, "action": "ask", "note": "why?", "numbers": []},
    "passages": {
        "p": {"id": "p", "text": "text", "title": "", "document_id": "", "metadata": {}}
    },
    "page": None,
}


def test_keys_are_fields_properties_and_the_keys_of_a_record_inside_in_their_order() -> (
    None
):
    assert list(OUTER.to_dict().items()) == list(JSON.items())
    assert Outer.from_dict(JSON) == OUTER


def test_a_key_is_left_out_where_it_has_its_default() -> None:
    data = {
        "kind": "outer",
        "count": 0,
        "action": "approve",
        "passages": {},
        "page": None,
    }
    assert Outer(Inner("approve")).to_dict() == data
    assert Outer.from_dict(data) == Outer(Inner("approve"))


def test_a_record_may_stand_for_its_json() -> None:
    assert Outer.from_dict({**JSON, "passages": OUTER.passages}) == OUTER


def test_a_key_of_a_later_version_is_noticed() -> None:
    with pytest.raises(TypeError, match="later"):
        Outer.from_dict({**JSON, "later": 1})


def test_the_schema_has_the_keys_that_are_written_and_requires_all_but_those_left_out() -> (
    None
):
    schema: dict[str, Any] = TypeAdapter(json_shape("_Outer", Outer)).json_schema()
    assert list(schema["properties"]) == list(JSON)
    assert schema["required"] == ["kind", "count", "action", "passages", "page"]
    assert schema["properties"]["numbers"] == {
        "items": {"type": "integer"},
        "title": "Numbers",
        "type": "array",
    }


def test_what_is_written_is_not_the_record_itself() -> None:
    passage = Passage("p", "text", metadata={"year": 1922})
    passage.to_dict()["metadata"]["year"] = 1
    assert passage.metadata == {"year": 1922}

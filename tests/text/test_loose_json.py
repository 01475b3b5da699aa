"""JSON objects are found as models write them."""

import pytest

from ras_agent.text.loose_json import Value, is_json, json_objects


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "b", "c": 1}', [{"a": "b", "c": 1}]),
        ("{'a': 'it\\'s', 'c': None}", [{"a": "it's", "c": None}]),
        (
            'so {"Next Query": "x",} and [{"a": TRUE}]',
            [{"next_query": "x"}, {"a": True}],
        ),
        ('{"b": [1.5, "y", null,]}', [{"b": [1.5, "y", None]}]),
        ('{"plan": {"action": "subq"}, "b": 1}', [{"action": "subq"}]),
        (
            '{"a": "two\nlines \\n and \\"quotes\\""}',
            [{"a": 'two\nlines \n and "quotes"'}],
        ),
        ('{"a": "\\alpha", "b": -1e5}', [{"a": "\\alpha", "b": -100000.0}]),
        ('{"a": "b"', []),
        ('{"a": "b", "c', []),
        ("{a: 1} {} [1]", []),
    ],
)
def test_flat_objects_are_read_and_broken_ones_are_none(
    text: str, found: list[dict[str, Value]]
) -> None:
    assert [content for _, content in json_objects(text)] == found


def test_each_object_has_its_place() -> None:
    assert [start for start, _ in json_objects('x {"a": 1} {"b": 2}')] == [2, 11]


@pytest.mark.parametrize(
    ("text", "json"),
    [
        *((text, True) for text in (' {"a"', "[{'a'", '```json\n{"a": 1}', "{}")),
        *((text, False) for text in ("x {}", "{x | x > 2}", "[SUBQ] a", "")),
    ],
)
def test_a_text_begins_as_json_or_does_not(text: str, json: bool) -> None:
    assert is_json(text) == json

"""The scripts of the pages read a trace by its schema: each key that they take from a part of it is a key of that part.

A variable of the scripts that holds a part of a trace is called like it: `step`, `hit`, `citation`.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from ras_agent.page.self_contained import page_file
from ras_agent.running.trace import trace_schema

SCRIPTS = ("story", "trace", "ask", "report")
PARTS = {
    **{
        "graph": "_Graph",
        "fact": "_Fact",
        "source": "_Source",
        "usage": "_Usage",
        "step": "_Step",
        "hit": "_Hit",
    },
    **{
        "plan": "_Plan",
        "citation": "Citation",
        "failure": "Failure",
        "passage": "Passage",
    },
}
# the fields that the page of a running run adds to a step, and that an event has instead of a passage's id
NOT_OF_A_TRACE = {("step", "now"), ("hit", "passage")}

_CHAIN = re.compile(r"(?<![\w\"`/-])((?:\w+\??\.)+)(\w+)")
_UNPACKED = re.compile(r"\{([^{}]*)\} = (?:now\.)?(\w+);")
_UNPACKED_ITEM = re.compile(r"\b(\w+)s\.\w+\(\(\{([^{}]*)\}\)")


def keys_of_parts(schema: dict[str, Any]) -> dict[str, set[str]]:
    parts = {
        part: set(schema["$defs"][name]["properties"]) for part, name in PARTS.items()
    }
    return {"trace": set(schema["properties"]), **parts}


def reads(script: str) -> Iterator[tuple[str, str]]:
    """Yield each (part, key) that a script reads."""
    for access in _CHAIN.finditer(script):
        names = [*re.findall(r"\w+", access[1]), access[2]]
        yield from pairwise(names)
    unpacked = [
        (part, names) for names, part in _UNPACKED.findall(script)
    ] + _UNPACKED_ITEM.findall(script)
    for part, names in unpacked:
        yield from ((part, name.split(":")[0].strip()) for name in names.split(","))


def unknown(script: str, keys: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Return the names that a script reads of the parts of a trace, and that are not among their keys."""
    of_parts = {
        (part, key) for part, key in reads(script) if part in keys
    } - NOT_OF_A_TRACE
    return {(part, key) for part, key in of_parts if key not in keys[part]}


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_key_that_a_script_reads_is_in_the_schema(name: str) -> None:
    assert unknown(page_file(f"{name}.js"), keys_of_parts(trace_schema())) == set()


def test_each_part_is_read_by_its_keys() -> None:
    seen = {read for name in SCRIPTS for read in reads(page_file(f"{name}.js"))}
    assert {
        *{
            ("trace", "steps"),
            ("trace", "citations"),
            ("trace", "usage"),
            ("graph", "facts"),
            ("graph", "conflicts"),
        },
        *{
            ("fact", "subject"),
            ("source", "passage_id"),
            ("usage", "input_tokens"),
            ("step", "new_triple_ids"),
        },
        *{
            ("hit", "why"),
            ("plan", "reason"),
            ("citation", "triple_ids"),
            ("failure", "role"),
            ("passage", "text"),
        },
    } <= seen


def test_a_renamed_key_is_noticed() -> None:
    keys = keys_of_parts(trace_schema())
    keys["step"] = keys["step"] - {"new_triple_ids"} | {"fresh_ids"}
    assert unknown(page_file("story.js"), keys) == {("step", "new_triple_ids")}


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("now.trace.graph?.nodes", ("graph", "nodes")),
        ("trace.usage?.tokens", ("usage", "tokens")),
        ("const { answer, replies } = now.trace;", ("trace", "replies")),
        ("trace.citations.map(({ source: id }) => id)", ("citation", "source")),
    ],
)
def test_a_key_that_no_trace_has_is_noticed(
    script: str, wrong: tuple[str, str]
) -> None:
    assert unknown(script, keys_of_parts(trace_schema())) == {wrong}


def test_the_trace_that_a_live_page_begins_with_has_keys_of_a_trace() -> None:
    (blank,) = re.findall(
        r"const blank = \(\) => \(\{(.*?)\n\}\);", page_file("ask.js"), re.DOTALL
    )
    keys = keys_of_parts(trace_schema())
    names = set(re.findall(r"(\w+): ", blank))
    assert keys["graph"] <= names <= keys["trace"] | keys["graph"]


def test_a_source_that_a_live_page_makes_is_whole() -> None:
    (source,) = re.findall(
        r"const asSource = .*?\(\{(.*?)\.\.\.source", page_file("ask.js")
    )
    assert (
        set(re.findall(r"(\w+): ", source)) == keys_of_parts(trace_schema())["source"]
    )

"""Files of triples: their facts, and which lines are wrong and where."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Attributes
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.triples import (
    Statement,
    Term,
    load_triples,
    parse_statement,
)


def loaded(tmp_path: Path, name: str, text: str) -> list[PlacedTriple | Skipped]:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return list(load_triples(path, name))


def test_n_triples_are_named_by_labels_or_by_the_ends_of_iris(tmp_path: Path) -> None:
    text = """
# a comment
<http://x.org/wiki/Alexander_Graham_Bell> <http://x.org/ns#birthPlace> <http://x.org/Q1> .
<http://x.org/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "Edimbourg"@fr .
<http://x.org/Q1> <http://www.w3.org/2000/01/rdf-schema#label> "Edinburgh"@en . # one more
<http://x.org/Q1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://x.org/City> .
<http://x.org/Q1> <http://x.org/population> "506,520"^^<http://www.w3.org/2001/XMLSchema#string> .
_:b1 <http://x.org/in%20the%20year> "18\\u003476" .
"""
    assert loaded(tmp_path, "bell.nt", text) == [
        PlacedTriple(
            "Alexander Graham Bell", "birth Place", "Edinburgh", "bell.nt line 3"
        ),
        PlacedTriple("Edinburgh", "is a", "City", "bell.nt line 6"),
        PlacedTriple("Edinburgh", "population", "506,520", "bell.nt line 7"),
        PlacedTriple("_:b1 of bell.nt", "in the year", "18476", "bell.nt line 8"),
    ]


def test_a_bad_statement_is_skipped_alone(tmp_path: Path) -> None:
    first, second = loaded(
        tmp_path, "a.nt", "<a> <b> .\n<http://x/a> <http://x/b> <http://x/c> .\n"
    )
    assert isinstance(first, Skipped)
    assert str(first).startswith(
        "a.nt line 1: not an N-Triples statement: expected <subject> <predicate>"
    )
    assert str(first).endswith("'<a> <b> .'")
    assert second == PlacedTriple("a", "b", "c", "a.nt line 2")


def test_a_number_that_no_character_has_is_reported(tmp_path: Path) -> None:
    first, second = loaded(
        tmp_path, "a.nt", '<x:a> <x:b> "\\UFFFFFFFF" .\n<x:a> <x:b> "\\U0001F600" .\n'
    )
    assert first == Skipped(
        "a.nt line 1", "not an N-Triples statement: \\UFFFFFFFF is not a character"
    )
    assert second == PlacedTriple("x:a", "x:b", "\U0001f600", "a.nt line 2")


@given(
    st.text(st.characters(codec="utf-8", exclude_characters='"\\\n\r')),
    st.sampled_from(["", "@en", "^^<x:y>"]),
)
def test_any_literal_is_read(text: str, suffix: str) -> None:
    found = parse_statement(f'<x:s> <x:p> "{text}"{suffix} .')
    assert found == Statement(
        Term("x:s", "iri"),
        Term("x:p", "iri"),
        Term(text, "literal", "en" if suffix == "@en" else ""),
    )


IRIS = st.sampled_from(["http://x.org/a", "x:b", "urn:c#d", "http://x.org/%20", ""])
TERMS = {
    "iri": st.builds(Term, IRIS, st.just("iri"), st.just("")),
    "blank": st.builds(
        Term, st.sampled_from(["_:b1", "_:a.b", "_:é"]), st.just("blank"), st.just("")
    ),
    "literal": st.builds(
        Term,
        st.text(st.sampled_from('ab"\\\n\r\t é☎.<>#@')),
        st.just("literal"),
        st.sampled_from(["", "en", "de-at"]),
    ),
}
SUBJECTS, OBJECTS = TERMS["iri"] | TERMS["blank"], st.one_of(*TERMS.values())
STATEMENTS = st.builds(Statement, SUBJECTS, TERMS["iri"], OBJECTS)
PIECES = [
    "<",
    ">",
    "<x:a>",
    "_:b",
    "_:",
    '"',
    '"a"',
    "@en",
    "^^<x:t>",
    "\\",
    "\\u0041",
    "\\n",
    ".",
    "#",
    " ",
    "\t",
    "a",
]


def written(term: Term) -> str:
    """Write a term as N-Triples have it."""
    if term.kind != "literal":
        return f"<{term.value}>" if term.kind == "iri" else term.value
    text = (
        term.value.replace("\\", "\\\\")
        .replace('"', '\\"')
        .replace("\n", "\\n")
        .replace("\r", "\\r")
    )
    return f'"{text}"' + (f"@{term.language}" if term.language else "")


@given(STATEMENTS, st.sampled_from(["", " ", "  # a comment"]))
def test_every_statement_that_is_written_is_read(
    statement: Statement, end: str
) -> None:
    assert parse_statement(" ".join(map(written, statement)) + " ." + end) == statement


@given(
    STATEMENTS,
    st.lists(st.sampled_from(PIECES), max_size=3),
    st.integers(0, 60),
    st.integers(0, 4),
)
def test_a_statement_with_something_wrong_in_it_is_another_or_none(
    statement: Statement, pieces: list[str], at: int, cut: int
) -> None:
    line = " ".join(map(written, statement)) + " ."
    with suppress(ValueError):
        found = parse_statement(line[:at] + "".join(pieces) + line[at + cut :])
        assert (found.subject.kind in ("iri", "blank"), found.predicate.kind) == (
            True,
            "iri",
        )
        assert parse_statement(" ".join(map(written, found)) + " .") == found


def test_tab_separated_values_with_a_header_and_further_columns(tmp_path: Path) -> None:
    text = "Head\tRelation\tTail\tpassage\nBell\tborn in\tEdinburgh\tp1\n\nBell\tonly two\nBell\t \tx\n"
    assert loaded(tmp_path, "a.tsv", text) == [
        PlacedTriple("Bell", "born in", "Edinburgh", "a.tsv line 2"),
        Skipped(
            "a.tsv line 4",
            "expected head, relation and tail between tabs, found 2: 'Bell\\tonly two'",
        ),
        Skipped("a.tsv line 5", "a blank head, relation or tail: ['Bell', ' ', 'x']"),
    ]


def test_the_columns_of_tab_separated_values_are_found_by_their_names(
    tmp_path: Path,
) -> None:
    text = "source\ttarget\tlabel\nBell\tEdinburgh\tborn in\n"
    assert loaded(tmp_path, "a.tsv", text) == [
        PlacedTriple("Bell", "born in", "Edinburgh", "a.tsv line 2")
    ]


def test_json_lines_are_lists_or_objects(tmp_path: Path) -> None:
    text = '["a", "b", "c"]\n{"subject": "d", "predicate": "e", "object": "f", "x": 1}\n{"head": "a"}\n["a", "b"]\nno\n'
    text += f"[{5000 * '1'}]\n{5000 * '['}\n"
    found = loaded(tmp_path, "a.jsonl", text)
    assert found[:2] == [
        PlacedTriple("a", "b", "c", "a.jsonl line 1"),
        PlacedTriple("d", "e", "f", "a.jsonl line 2", Attributes({"x": 1})),
    ]
    assert [item.place for item in found[2:]] == [
        f"a.jsonl line {number}" for number in range(3, 8)
    ]
    assert all(isinstance(item, Skipped) for item in found[2:])


def test_bytes_that_are_no_text_are_reported_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tb\tc\n\xff\tb\tc\n")
    first, second = load_triples(path, "a.tsv")
    assert first == PlacedTriple("a", "b", "c", "a.tsv line 1")
    assert isinstance(second, Skipped)
    assert second.place == "a.tsv line 2"


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"\.nt, \.tsv, \.jsonl"):
        load_triples(tmp_path / "a.owx", "a.owx")

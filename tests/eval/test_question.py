"""Question and passage files, and the errors that locate a bad line."""

from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.eval.formats import load_passages, load_questions


def test_gold_passages_are_named_by_id_where_the_file_has_ids(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        '{"id": 1, "question": "q?", "answers": ["a"], "supporting_titles": ["T"], "supporting_ids": ["p1"]}\n\n'
        '{"id": "x", "question": "r?", "answers": ["b"], "supporting_titles": ["T"], "type": "bridge"}\n'
    )
    first, second = load_questions(file)
    assert (first.id, first.supporting, first.by_title) == ("1", ("p1",), False)
    assert (second.supporting, second.by_title, second.type) == (("T",), True, "bridge")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: expected a JSON object, found list"),
        ('{"id": 1}', "line 2: no key 'question'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"id": 1, "question": "q?", "answers": ["a"]}\n' + line)
    with pytest.raises(IngestError, match=message):
        load_questions(file)


def test_a_passage_needs_a_text_and_has_its_number_where_it_has_no_id(
    tmp_path: Path,
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text('{"id": "p", "text": "t", "title": "T"}\n{"text": "u"}')
    assert [passage.id for passage in load_passages(file)] == ["p", "2"]
    file.write_text('{"id": "p", "text": "t", "title": "T"}\n{"id": "p2"}')
    with pytest.raises(
        IngestError,
        match="line 2: no format of passages has the keys of this record, id",
    ):
        load_passages(file)

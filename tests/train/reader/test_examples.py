"""Reading examples: where a named answer stands."""

import json
from pathlib import Path

from ras_agent.train.reader.examples import LOADERS, ReaderExample, occurrences


def test_answers_are_found_as_whole_words_in_any_case() -> None:
    assert occurrences(["Bath"], "Bathing in bath, at Bath.") == ((11, 15), (20, 24))


def test_an_answer_with_punctuation_is_found() -> None:
    assert occurrences(["J. R. (Bob)"], "It was J. R. (Bob) again.") == ((7, 18),)


def test_a_blank_answer_is_nowhere() -> None:
    assert occurrences([" "], "a b") == ()


def test_offsets_come_with_squad_like_records(tmp_path: Path) -> None:
    (tmp_path / "reading").mkdir()
    row = {"question": "Who?", "context": "Ann and Bo.", "answers": [{"answer_start": 8, "text": "Bo"}]}
    (tmp_path / "reading/squad_sample.jsonl").write_text(json.dumps(row) + "\n")
    assert list(LOADERS["squad"](tmp_path)) == [ReaderExample("Who?", "Ann and Bo.", ((8, 10),), "squad")]

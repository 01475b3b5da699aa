"""Reading examples: where a named answer stands."""

import json
from pathlib import Path

from lab.weights.reader.examples import (
    LOADERS,
    ReaderExample,
    occurrences,
    reported_steps,
)


def test_answers_are_found_as_whole_words_in_any_case() -> None:
    assert occurrences(["Bath"], "Bathing in bath, at Bath.") == ((11, 15), (20, 24))


def test_an_answer_with_punctuation_is_found() -> None:
    assert occurrences(["J. R. (Bob)"], "It was J. R. (Bob) again.") == ((7, 18),)


def test_a_blank_answer_is_nowhere() -> None:
    assert occurrences([" "], "a b") == ()


def _write(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_a_question_that_two_files_hold_comes_once_with_the_places_of_its_answers(
    tmp_path: Path,
) -> None:
    row = {"q": "Who?", "t": "Ann and Bo.", "s": [[8, 10]], "a": ["Bo"]}
    for name in ("squad1_44articles", "squad1_flan", "squad1_routerlens", "squad1_val"):
        _write(tmp_path / f"reading/{name}.jsonl", [row])
    (example,) = LOADERS["squad"](tmp_path)
    assert example == ReaderExample("Who?", "Ann and Bo.", ((8, 10),), "squad")
    assert example.answer == "Bo"


def test_a_question_of_yes_or_no_has_a_verdict_over_both_of_its_passages(
    tmp_path: Path,
) -> None:
    record = {
        "question": "Are A and B films?",
        "answer": "yes",
        "supporting_facts": [["A", 0], ["B", 0]],
        "context": [
            ["A", ["A is a film."]],
            ["C", ["C is a town."]],
            ["B", ["B is a film."]],
        ],
    }
    _write(tmp_path / "hotpotqa_train/hard100_contexts.jsonl", [record])
    (example,) = LOADERS["hotpot_hard"](tmp_path)
    assert (example.text, example.spans, example.verdict) == (
        "A. A is a film. B. B is a film.",
        (),
        "true",
    )


def test_steps_of_reported_questions_are_known_so_that_none_is_learnt(
    tmp_path: Path,
) -> None:
    assert reported_steps(tmp_path) == set()
    _write(
        tmp_path / "musique/questions.jsonl",
        [{"decomposition": [{"question": "Where is Ulm? ", "answer": "here"}]}],
    )
    assert reported_steps(tmp_path) == {"where is ulm?"}

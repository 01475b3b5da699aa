import json
from pathlib import Path
from typing import Any

import pytest

TOWNS = ("Ulm", "Bath", "Leeds", "York", "Pisa", "Graz")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def _text(town: str) -> str:
    return f"Ann {town}son was born in {town}. She wrote the novel Red {town} in 19{10 + TOWNS.index(town)}."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Made-up files in the form that training reads: six people, one question about each."""
    people = [f"Ann {town}son" for town in TOWNS]
    corpus = [
        {"id": str(at), "title": name, "text": _text(town)}
        for at, (name, town) in enumerate(zip(people, TOWNS, strict=True))
    ]
    born = [f"Where was {name} born?" for name in people]
    _write(tmp_path / "hotpotqa_train/corpus.jsonl", corpus)
    _write(tmp_path / "2wikimultihopqa/corpus.jsonl", corpus)
    _write(
        tmp_path / "hotpotqa_train/questions.jsonl",
        [
            {"id": town, "question": born[at], "answers": [town], "supporting_titles": [people[at]]}
            for at, town in enumerate(TOWNS)
        ],
    )
    paragraphs = [
        {"idx": at, "title": row["title"], "paragraph_text": row["text"]} for at, row in enumerate(corpus)
    ]  # fmt: skip
    _write(
        tmp_path / "musique_train200/questions.jsonl",
        [
            {
                "id": f"2hop__{at}",
                "question": f"Where was the author of Red {town} born?",
                "answer": town,
                "answer_aliases": [],
                "paragraphs": [{**one, "is_supporting": one["idx"] == at} for one in paragraphs],
                "question_decomposition": [
                    {"question": f"Red {town} >> author", "answer": people[at], "paragraph_support_idx": at},
                    {"question": "Where was #1 born?", "answer": town, "paragraph_support_idx": at},
                ],
            }
            for at, town in enumerate(TOWNS)
        ],
    )
    _write(
        tmp_path / "reading/nq_oracle.jsonl",
        [
            {
                "question": born[at].lower().strip("?"),
                "answers": [town],
                "ctxs": [{"title": people[at], "text": _text(town)}],
            }
            for at, town in enumerate(TOWNS)
        ],
    )
    _write(
        tmp_path / "reading/squad_sample.jsonl",
        [
            {
                "id": town,
                "question": born[at],
                "context": _text(town),
                "answers": [{"text": town, "answer_start": _text(town).index(f"in {town}") + 3}],
            }
            for at, town in enumerate(TOWNS)
        ],
    )
    return tmp_path

"""Questions that rows of tables answer, and others."""

from __future__ import annotations

import pytest

from ras_agent.tools.index.chunk import passages_of
from ras_agent.tools.index.documents import Document
from ras_agent.tools.offline.reading import read
from ras_agent.tools.offline.table_rows import look_up

SHIPS = """| Ship | Captain | Route | Built | Length (m) |
|---|---|---|---|---|
| Ilse | Mara Lind | Orvena - Pellis | 1961 | 41 |
| Nordstern | Jonas Kreel | Orvena - Tarnow | 1987 | 62 |
| Tarn Queen | Viktor Abel | Pellis - Orvena | 2003 | 58 |
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is the captain of the Ilse?", "Mara Lind"),
        ("Who is the captain on the route from Pellis to Orvena?", "Viktor Abel"),
        ("When was the Nordstern built?", "1987"),
        ("How long is the Tarn Queen?", "58"),
        ("Which ship has Captain Kreel?", "Nordstern"),
        ("Which ship is the oldest?", "Ilse"),
        ("Which ship is longer, the Ilse or the Tarn Queen?", "Tarn Queen"),
        ("Is the Tarn Queen longer than the Nordstern?", "no"),
        ("Is Mara Lind the captain of the Ilse?", "yes"),
        ("Who is the captain of the Ilse Marie?", None),
        ("Who is the captain of the Suedstern?", None),
        ("When was the captain of the Ilse born?", None),
        ("Who is the engineer of the Ilse?", None),
        ("What is the total length of the ships?", None),
        ("What is the captain?", None),
        ("Which ship was built in 1962?", None),
    ],
)
def test_a_row_answers_what_it_says_and_nothing_else(
    question: str, answer: str | None
) -> None:
    passages = read(list(passages_of(Document("ships.md", SHIPS, "Ships"))))
    said = look_up(question, passages)
    assert (said.text if said else None) == answer


def test_the_most_of_all_rows_is_known_where_all_rows_are_there() -> None:
    passages = read(list(passages_of(Document("ships.md", SHIPS, "Ships")))[1:3])
    assert look_up("Which ship is the longest?", passages) is None
    assert (
        look_up("Which ship is longer, the Ilse or the Nordstern?", passages)
        is not None
    )


@pytest.mark.parametrize(
    "column",
    ["Child fare", "Guest capacity", "City tax", "Director count", "Year budget"],
)
def test_a_column_that_the_question_names_says_itself_which_form_its_cells_have(
    column: str,
) -> None:
    fares = f"| Route | {column} |\n|---|---|\n| Orvena - Pellis | 9 |\n| Varn - Pellis | 7 |\n"
    passages = read(list(passages_of(Document("fares.md", fares, "Fares"))))
    said = look_up(f"What is the {column.lower()} from Orvena to Pellis?", passages)
    assert said is not None
    assert said.text == "9"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which room is Ada Stone in?", "104"),
        ("Who is in room 105?", "Bo Finch"),
    ],
)
def test_a_row_that_a_number_names_is_answered_by_its_cell(
    question: str, answer: str
) -> None:
    rooms = "| Room | Name |\n|---|---|\n| 104 | Ada Stone |\n| 105 | Bo Finch |\n"
    passages = read(list(passages_of(Document("rooms.md", rooms, "Rooms"))))
    said = look_up(question, passages)
    assert said is not None
    assert said.text == answer


def test_a_row_with_two_names_has_each_in_its_column() -> None:
    sites = "| Site | Depth | Remark |\n|---|---|---|\n| North Bay | 0.5 | algae |\n| North Bay | 5 | clear |\n"
    passages = read(list(passages_of(Document("lake.md", sites, "Lake"))))
    said = look_up("What is the remark at North Bay at a depth of 0.5?", passages)
    assert said is not None
    assert said.text == "algae"

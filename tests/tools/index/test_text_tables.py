"""Tables in texts: where they are, the facts of their rows, and how a document with tables is cut."""

from __future__ import annotations

import pytest

from ras_agent.contracts.records import Answer, Citation
from ras_agent.graphs.validate import valid_citations
from ras_agent.prompts.data import passage_block
from ras_agent.tools.index.chunk import Chunking, passages_of
from ras_agent.tools.index.documents import Document
from ras_agent.tools.index.load import load
from ras_agent.tools.index.markdown import front_matter, headings_of
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.index.text_files import HeldFile
from ras_agent.tools.index.text_tables import records_of, tables_in

FARES = "| Route | Adult fare | Child fare |\n|---|:-:|---|\n| Orvena - Pellis | 22 crowns | 9 crowns |\n"


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        (
            FARES,
            ("Route", "Adult fare", "Child fare"),
            [("Orvena - Pellis", "22 crowns", "9 crowns")],
        ),
        ("A | B\n--- | ---\n**1** | [x](y)\nend", ("A", "B"), [("1", "x")]),
        (
            "| A | B |\r\n|---|---|\r\n| a \\| b | `c` |\r\n",
            ("A", "B"),
            [("a | b", "c")],
        ),
        (
            "| A | B |\n|---|---|\n| short |\n| 1 | 2 | 3 |\n",
            ("A", "B"),
            [("short", ""), ("1", "2")],
        ),
        (
            "|  |  |\n|---|---|\n| Ship | Built |\n| Ilse | 1961 |\n",
            ("Ship", "Built"),
            [("Ilse", "1961")],
        ),
        (
            "| | 2021 |\n|---|---|\n| Ansel | 14.2 |\n",
            ("", "2021"),
            [("Ansel", "14.2")],
        ),
    ],
)
def test_a_table_has_columns_and_rows(
    text: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]
) -> None:
    (table,) = tables_in(text)
    assert (table.columns, [row.cells for row in table.rows]) == (columns, rows)


@pytest.mark.parametrize("row", ["| Weight | 1.4 kg |", "| Maker: | Peregrine |"])
def test_labels_and_values_without_names_of_columns_are_no_table(row: str) -> None:
    assert tables_in(f"| | |\n|---|---|\n{row}\n| Camera | Sonora S7 |\n") == []


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{FARES}```\n",
        f"````\n```\n{FARES}````\n",
        "| A | B |\n|---|---|\n",
        "a | b\n\n--|--\n",
        "| A | B |\n|---|\n| 1 | 2 |\n",
        "A\n---\nplain\n",
    ],
)
def test_code_and_what_has_no_rows_is_no_table(text: str) -> None:
    assert tables_in(text) == []


@pytest.mark.parametrize(
    ("columns", "rows", "said"),
    [
        (
            ("Ship", "Built"),
            [("Ilse", "1961"), ("Tarn", "")],
            ["Ship Ilse: Built 1961."],
        ),
        (
            ("No.", "Ship", "Built"),
            [("1", "Ilse", "1961")],
            ["Ship Ilse: No. 1; Built 1961."],
        ),
        (
            ("Deck", "Officer", "Year"),
            [("Lower", "Mira Holt", "1901"), ("Lower", "Oda Wren", "1903")],
            [
                "Officer Mira Holt: Deck Lower; Year 1901.",
                "Officer Oda Wren: Deck Lower; Year 1903.",
            ],
        ),
        (
            ("Deck", "Year", "Crew"),
            [("Lower", "1901", "9"), ("Lower", "1903", "9"), ("Upper", "1901", "9")],
            [
                "Deck, Year Lower, 1901: Crew 9.",
                "Deck, Year Lower, 1903: Crew 9.",
                "Deck, Year Upper, 1901: Crew 9.",
            ],
        ),
    ],
)
def test_a_row_is_about_the_first_column_that_tells_the_rows_apart(
    columns: tuple[str, ...], rows: list[tuple[str, ...]], said: list[str]
) -> None:
    assert [record.sentence for record in records_of(columns, rows)] == said


def test_a_table_is_cut_from_the_text_around_it_and_each_row_is_a_passage_more() -> (
    None
):
    text = (
        f"# Ferries\n\nDogs travel free.\n\n## Fares\n\n{FARES}\nNo ferry runs in May."
    )
    passages = list(passages_of(Document("a.md", text, "Ferries", place="docs/a.md")))
    assert [passage.text for passage in passages] == [
        "# Ferries\n\nDogs travel free.",
        f"## Fares\n\n{FARES.rstrip()}",
        "No ferry runs in May.",
        "Route Orvena - Pellis: Adult fare 22 crowns; Child fare 9 crowns.",
    ]
    row = passages[3]
    assert row.metadata["table"] == {
        "place": "docs/a.md table 1",
        "key": "Route",
        "rows": 1,
        "written": "| Orvena - Pellis | 22 crowns | 9 crowns |",
    }
    for passage in (passages[1], row):
        child = (stated_facts(passage) or ())[1]
        assert (child.subject, child.predicate, child.object) == (
            "Orvena - Pellis",
            "Child fare",
            "9 crowns",
        )
        assert (
            child.sources[0].extractor
            == "stated: docs/a.md table 1 row 1 column Child fare"
        )
    assert [stated_facts(passage) for passage in (passages[0], passages[2])] == [
        None,
        None,
    ]


def test_each_piece_of_a_long_table_begins_with_the_header_which_is_no_fact() -> None:
    rows = [f"| Pump {number} | 19{number} |" for number in range(10, 40)]
    text = "\n".join(["| Pump | Made in |", "|---|---|", *rows])
    passages = list(passages_of(Document("a.md", text), Chunking(size=200, overlap=0)))
    pieces = [passage for passage in passages if passage.text.startswith("|")]
    assert all(
        piece.text.startswith("| Pump | Made in |\n|---|---|\n| Pump ")
        for piece in pieces
    )
    assert max(len(piece.text) for piece in pieces) <= 200
    written = [line for piece in pieces for line in piece.text.splitlines()[2:]]
    assert (written, len(passages) - len(pieces)) == (rows, 30)
    facts = {fact.subject for piece in pieces for fact in stated_facts(piece) or ()}
    assert facts == {f"Pump {number}" for number in range(10, 40)}


MANUAL = """# Handbook

Welcome.

## HX9 sonar

It weighs five kilograms.

### Repair

Open the lid.

| Part | Price |
|---|---|
| Lid | 9 crowns |

## BK2 sonar

It weighs nine kilograms.
"""


def test_a_passage_has_the_headings_above_it_which_are_searched_shown_and_cited() -> (
    None
):
    document = Document(
        "a.md", MANUAL, "Handbook", {"date": "2024-05-03"}, is_markdown=True
    )
    passages = list(passages_of(document, Chunking(size=60, overlap=0)))
    headings = {passage.text.splitlines()[0]: passage.headings for passage in passages}
    assert headings["It weighs five kilograms."] == ("HX9 sonar",)
    assert headings["## BK2 sonar"] == ()
    assert headings["| Part | Price |"] == ("HX9 sonar", "Repair")
    row = passages[-1]
    assert (
        indexed_text(row) == "Handbook > HX9 sonar > Repair. Part Lid: Price 9 crowns."
    )
    assert passage_block([row]) == (
        "<passage>\n[1] Handbook > HX9 sonar > Repair (2024-05-03)\nPart Lid: Price 9 crowns.\n</passage>"
    )
    answer = valid_citations(
        Answer("9 crowns", (Citation(1, row.id),)), {row.id: row}, (), 1
    )
    assert answer.citations[0].headings == ("HX9 sonar", "Repair")


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("````\n```\n# code\n````\n# One\n", ["One"]),
        ("~~~\n# code\n```\n# code\n~~~\n## Two ##", ["Two"]),
        ("<!--\n# old\n-->\n# New", ["New"]),
        ("<!-- # old --> \n# New", ["New"]),
        ("# **Kestrel** [Werke](https://x.example/a)\u200b", ["Kestrel Werke"]),
        ("One\n===\ntext\n\nTwo\n---\n", ["One", "Two"]),
    ],
)
def test_headings_are_those_of_commonmark_in_plain_text(
    text: str, headings: list[str]
) -> None:
    assert [heading.title for heading in headings_of(text)] == headings


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        (
            '+++\ntitle = "Sonar"\ndate = 2024-05-03\ntags = ["a"]\n+++\nbody',
            {"date": "2024-05-03", "tags": ["a"]},
        ),
        ('{"title": "Sonar", "team": "x"}\n\nbody', {"team": "x"}),
        (
            "---\ntitle: Sonar\npublished_at: 3 May\n---\nbody",
            {"published_at": "3 May", "date": "3 May"},
        ),
        (
            "% Sonar\n% Ada; Ben\n% 3 May\n\nbody",
            {"author": "Ada; Ben", "date": "3 May"},
        ),
        ("Title: Sonar\r\nDate: 3 May\r\n\r\nbody", {"date": "3 May"}),
    ],
)
def test_front_matter_is_yaml_toml_json_or_lines_at_the_top(
    text: str, metadata: dict[str, object]
) -> None:
    (document,) = load(HeldFile("a.md", text.encode()))
    assert isinstance(document, Document)
    assert (document.title, document.text, document.metadata) == (
        "Sonar",
        "body",
        metadata,
    )


@pytest.mark.parametrize(
    "text",
    ["+++\nnot toml\n+++\nbody", '{"a": 1}', "{braces} begin\nbody", '{"a": 1} text'],
)
def test_what_only_looks_like_front_matter_stays(text: str) -> None:
    assert front_matter(text) == ({}, text)


def test_a_file_that_is_a_table_is_also_a_passage_of_its_rows_below_the_header() -> (
    None
):
    rows = "Town;Mayor;Opened\nOrvel;Ada | Finn;1901\nPell;;1888\nonly one cell\n\nSkar;Ben Holt;1777\n"
    found = load(HeldFile("towns.csv", rows.encode()))
    whole = [one for one in found if isinstance(one, Document)][-1]
    first, second = passages_of(whole, Chunking(110, 20))
    head = "| Town | Mayor | Opened |\n| --- | --- | --- |\n"
    assert (first.document_id, first.text, second.text) == (
        "towns.csv:table",
        head + "| Orvel | Ada \\| Finn | 1901 |\n| Pell |  | 1888 |",
        head + "| Skar | Ben Holt | 1777 |",
    )
    assert second.metadata["table"] == {"place": "towns.csv", "key": "Town", "rows": 3}
    assert second.metadata["facts"] == [
        ["Skar", "Mayor", "Ben Holt", "towns.csv line 6 column Mayor"],
        ["Skar", "Opened", "1777", "towns.csv line 6 column Opened"],
    ]


@pytest.mark.parametrize(
    "rows",
    [
        "text;b\none;1\ntwo;2\n",
        "a;b\n1;2\n",
        "a;b\n1;2\n" + "3;four\n" * 5000,
        "a;b\n1;2\n3;" + "x " * 300,
    ],
    ids=["a column of text", "one row", "a long table", "prose"],
)
def test_rows_of_text_one_row_and_a_long_table_are_not_shown_as_a_table(
    rows: str,
) -> None:
    found = load(HeldFile("a.csv", rows.encode()))
    assert [
        one for one in found if isinstance(one, Document) and one.facts_of_rows
    ] == []


def test_a_short_number_names_a_row_together_with_its_column() -> None:
    (record,) = records_of(["Lot", "Bidder"], [["1", "Clearview"]])
    assert [fact[:3] for fact in record.facts("row 1")] == [
        ["Lot 1", "Bidder", "Clearview"]
    ]
    (year,) = records_of(["Year", "Mayor"], [["1911", "Ada Crane"]])
    assert year.facts("row 1")[0][0] == "1911"


def test_a_time_names_a_row_together_with_its_column() -> None:
    (record,) = records_of(["Departs", "Ship"], [["07:15", "Ailsa"]])[:1]
    assert record.facts("row 1")[0][:3] == ["Ailsa", "Departs", "07:15"]
    (alike, _) = records_of(
        ["Departs", "Ship"], [["07:15", "Ailsa"], ["09:30", "Ailsa"]]
    )
    assert alike.facts("row 1")[0][:3] == ["Departs 07:15", "Ship", "Ailsa"]


def test_what_is_measured_names_no_row() -> None:
    columns = ["Site", "Depth", "Phosphate"]
    rows = [["North Bay", "0.5", "41"], ["North Bay", "5.0", "22"]]
    assert [record.key for record in records_of(columns, rows)] == [
        "North Bay, 0.5",
        "North Bay, 5.0",
    ]


def test_a_dash_in_a_cell_is_no_fact() -> None:
    (record,) = records_of(["Tea", "Large", "Small"], [["Mint", "–", "2.20"]])
    assert [fact[:3] for fact in record.facts("row 1")] == [["Mint", "Small", "2.20"]]

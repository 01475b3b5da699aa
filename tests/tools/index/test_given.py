"""Texts that a caller gives in place of an index: their forms, their ids, and the messages for others."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.chunk import Chunking
from ras_agent.tools.index.given import given_passages
from tests.messages import says


def only(item: object) -> Passage:
    (passage,) = given_passages([item])
    return passage


def test_a_text_is_a_passage_with_an_id_of_its_own() -> None:
    bell, leith = given_passages(
        ["Bell was born in Edinburgh.", "The Water of Leith is a river."]
    )
    assert (bell.text, leith.text) == (
        "Bell was born in Edinburgh.",
        "The Water of Leith is a river.",
    )
    assert bell.id != leith.id
    assert only("Bell was born in Edinburgh.").id == bell.id


def test_a_passage_stays_as_it_is() -> None:
    passage = Passage("bell", "Bell. " * 1000, "Bell", "people", {"team": "x"})
    assert only(passage) is passage


@pytest.mark.parametrize("key", ["text", "page_content", "content"])
def test_a_dictionary_has_its_text_under_a_usual_key_and_its_other_keys_are_metadata(
    key: str,
) -> None:
    passage = only(
        {"id": 7, key: "Bell.", "title": "B", "team": "x", "metadata": {"year": 1847}}
    )
    assert passage == Passage("7", "Bell.", "B", "", {"team": "x", "year": 1847})


def test_a_passages_own_dictionary_is_that_passage() -> None:
    passage = Passage("bell", "Bell.", "B", "people", {"team": "x"})
    assert only(passage.to_dict()) == passage


def test_a_langchain_document_is_a_passage_of_its_file() -> None:
    passage = only(
        Document(
            "Bell was born.",
            metadata={"source": "notes/Alexander_Bell.txt", "read": date(2026, 1, 2)},
        )
    )
    assert (passage.text, passage.file, passage.title) == (
        "Bell was born.",
        "notes/Alexander_Bell.txt",
        "Alexander Bell",
    )
    assert json.loads(json.dumps(passage.to_dict())) == passage.to_dict()
    assert passage.metadata["read"] == "2026-01-02"


def test_pages_of_langchains_pdf_loaders_count_from_0_and_ours_from_1() -> None:
    assert (
        only(
            Document("Bell.", metadata={"source": "a.pdf", "page": 0, "total_pages": 2})
        ).page
        == 1
    )
    assert (
        only(Document("Bell.", metadata={"source": "a.pdf", "page_number": 1})).page
        == 1
    )


def test_a_long_text_is_cut_and_one_with_an_id_is_not() -> None:
    text = "Bell was born in Edinburgh. " * 20
    cut = list(given_passages([text], Chunking(100, 0)))
    assert all(len(passage.text) <= 100 for passage in cut)
    assert "".join(passage.text for passage in cut).replace(" ", "") == text.replace(
        " ", ""
    )
    assert [
        passage.text
        for passage in given_passages([{"id": "a", "text": text}], Chunking(100, 0))
    ] == [text]


def test_the_same_text_twice_is_one_passage_unless_what_is_said_of_it_differs() -> None:
    assert len(list(given_passages(["Bell.", "Bell.", Document("Bell.")]))) == 1
    both = given_passages(
        [{"text": "Bell.", "team": "x"}, {"text": "Bell.", "team": "y"}]
    )
    assert len({passage.id for passage in both}) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([{"body": "Bell.", "name": "B"}], ("text 1", "'body', 'name'", "'text'")),
        (["Bell.", 7], ("text 2", "got 7")),
        ("Bell was born.", ("list", "'Bell was born.'")),
        ({"text": "Bell."}, ("list",)),
        (Document("Bell."), ("list",)),
        (7, ("list", "got 7")),
    ],
)
def test_what_is_no_list_of_texts_is_named(wrong: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(IngestError, match=says(*words)):
        list(given_passages(wrong))


def test_a_path_is_read_as_the_file_or_the_folder_of_files_that_it_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "bell.md").write_text("# Bell\n\nBell was born in Edinburgh.")
    (tmp_path / "people.jsonl").write_text(
        '{"text": "Ada was born in London."}\n{"text": "Lise was born in Vienna."}\n'
    )
    (of_file,) = given_passages([tmp_path / "bell.md"])
    assert of_file.title == "Bell"
    of_folder = [
        passage.text
        for passage in given_passages([tmp_path, "Grace was born in New York City."])
    ]
    assert len(of_folder) == 4


def test_a_path_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="no such file or folder"):
        list(given_passages([tmp_path / "none.md"]))


def test_the_name_of_a_file_as_a_text_is_an_error_that_says_how_to_read_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bell.md"
    file.write_text("Bell was born in Edinburgh.")
    with pytest.raises(
        IngestError, match=says("text 1 of the index is the path of a file", "Path(")
    ):
        list(given_passages([str(file)]))

"""Reading files: documents as written, and a place and a reason for everything else."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.fields import USUAL_FIELDS, Fields
from ras_agent.tools.index.find_files import SourceFile, find_files
from ras_agent.tools.index.load import load
from ras_agent.tools.index.markdown import first_heading, front_matter
from ras_agent.tools.index.text_files import CONVERT
from tests.messages import says

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def skipped(path: Path, fields: Fields = USUAL_FIELDS) -> list[str]:
    return [
        str(item) for item in load(path, path.name, fields) if isinstance(item, Skipped)
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.sampled_from(["a.txt", "a.md", "a.jsonl", "a.csv", "a.tsv"]),
    content=st.binary() | st.text('"\\[]{},:;\t\r\n1textid-').map(str.encode),
)
def test_nothing_that_a_file_holds_raises(
    name: str, content: bytes, write: Write
) -> None:
    assert all(
        isinstance(item, Document | Skipped) for item in load(write(name, content))
    )


@pytest.mark.parametrize(
    "letters",
    ["a" * 50_000, "data: " + "iVBORw0KGgo/+=" * 3_000 + " ends here"],
    ids=["word", "base64"],
)
def test_encoded_data_is_said_to_be_no_text(write: Write, letters: str) -> None:
    (item,) = load(write("dump.txt", letters), "dump.txt")
    assert isinstance(item, Skipped)
    assert says(
        "dump.txt", "no text", "characters are words of over 1,000 letters"
    ).search(str(item))
    assert not item.error


@pytest.mark.parametrize(
    "text",
    ["中文" * 20_000, "Bell lived. " * 5_000 + "a" * 50_000, "a" * 2_000],
    ids=["script without spaces", "half of it text", "little"],
)
def test_what_has_no_spaces_or_some_encoded_data_is_a_text(
    write: Write, text: str
) -> None:
    (item,) = load(write("text.txt", text))
    assert isinstance(item, Document)


class TestText:
    def test_is_unchanged_and_titled_after_its_file(self, write: Write) -> None:
        path = write("Graham_Bell.txt", "Bell\r\n lived。\n")
        assert list(load(path, "notes/Graham_Bell.txt")) == [
            Document(
                "notes/Graham_Bell.txt",
                "Bell\r\n lived。\n",
                "Graham Bell",
                place="notes/Graham_Bell.txt",
            )
        ]

    def test_a_byte_order_mark_is_no_text(self, write: Write) -> None:
        (document,) = load(write("a.txt", b"\xef\xbb\xbfBell"))
        assert isinstance(document, Document)
        assert document.text == "Bell"

    def test_another_encoding_is_reported_with_line_and_character(
        self, write: Write
    ) -> None:
        assert skipped(write("a.txt", "first\nné".encode("latin-1"))) == [
            f"a.txt line 2: not UTF-8: byte 0xe9 at character 2; {CONVERT}"
        ]

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_utf_16_is_read_by_its_mark(self, write: Write, encoding: str) -> None:
        (document,) = load(write("a.txt", "\ufeffBell".encode(encoding)))
        assert isinstance(document, Document)
        assert document.text == "Bell"

    @pytest.mark.parametrize(
        ("name", "text"), [("a.csv", "text\nBell\n"), ("a.jsonl", '{"text": "Bell"}\n')]
    )
    def test_utf_16_is_read_line_by_line_too(
        self, write: Write, name: str, text: str
    ) -> None:
        (document,) = load(write(name, text.encode("utf-16")))
        assert isinstance(document, Document)
        assert document.text == "Bell"

    def test_a_text_that_could_mostly_not_be_read_is_none(self, write: Write) -> None:
        assert skipped(write("a.txt", "\ufffd\ufffd\ufffd Bell")) == [
            "a.txt: 3 of its 8 characters could not be read: it is encrypted, or in another encoding"
        ]

    def test_a_binary_file_is_no_text(self, write: Write) -> None:
        assert skipped(write("a.txt", "one\ntwo\0")) == [
            "a.txt line 2: holds a NUL character, as no text file does"
        ]

    def test_an_empty_file_is_left_out_but_no_error(self, write: Write) -> None:
        assert list(load(write("a.txt", " \n"))) == [
            Skipped("a.txt", "holds no text", error=False)
        ]

    def test_a_file_that_cannot_be_opened_is_reported(self, tmp_path: Path) -> None:
        assert skipped(tmp_path / "gone.txt") == [
            "gone.txt: cannot be read: No such file or directory"
        ]


class TestMarkdown:
    def test_the_title_is_the_first_heading_and_the_text_stays(
        self, write: Write
    ) -> None:
        (document,) = load(write("a.md", "Intro\n\n## The *telephone* ##\nText"))
        assert isinstance(document, Document)
        assert (document.title, document.text) == (
            "The *telephone*",
            "Intro\n\n## The *telephone* ##\nText",
        )

    def test_headings_may_be_underlined(self) -> None:
        assert first_heading("Telephone\n=========\ntext") == "Telephone"

    def test_a_comment_in_fenced_code_is_no_heading(self) -> None:
        assert first_heading("```\n# comment\n```\n# Heading") == "Heading"

    def test_a_list_above_a_rule_is_no_heading(self) -> None:
        assert first_heading("- item\n---\ntext") == ""

    def test_simple_front_matter_becomes_title_and_metadata(self, write: Write) -> None:
        (document,) = load(
            write("a.md", '---\ntitle: "The phone"\ndate: 1876-03-07\n---\n# Heading\n')
        )
        assert isinstance(document, Document)
        assert (document.title, document.metadata, document.text) == (
            "The phone",
            {"date": "1876-03-07"},
            "# Heading\n",
        )

    def test_front_matter_is_yaml_whose_values_stay_as_written(self) -> None:
        text = "---\ntags: [sensors, sonar]\nversion: 1.10\nauthor:\n  name: Ann Lee\nabout: >\n  two\n  lines\n"
        assert front_matter(f"{text}---\nbody") == (
            {
                "tags": ["sensors", "sonar"],
                "version": "1.10",
                "author": {"name": "Ann Lee"},
                "about": "two lines\n",
            },
            "body",
        )

    def test_the_heading_is_the_title_where_the_front_matter_has_none(
        self, write: Write
    ) -> None:
        (document,) = load(
            write("a.md", "---\ntags: [sensors, sonar]\ntitle:\n---\n# Product guide\n")
        )
        assert isinstance(document, Document)
        assert document.title == "Product guide"

    @pytest.mark.parametrize(
        ("block", "metadata"),
        [
            ("title: Sonar: a guide\n", {"title": "Sonar: a guide"}),
            (
                'tags:\n- a: b: c\n- "d"\n# comment\nof: x\n',
                {"tags": ["a: b: c", "d"], "of": "x"},
            ),
            ("a: &x [1]\nb: *x\n", {"a": "&x [1]", "b": "*x"}),
        ],
    )
    def test_front_matter_that_is_no_yaml_is_read_by_lines(
        self, block: str, metadata: object
    ) -> None:
        assert front_matter(f"---\n{block}---\nbody") == (metadata, "body")

    def test_aliases_that_would_make_gigabytes_are_not_followed(self) -> None:
        lines = ["a0: &a0 [x, x]"] + [
            f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)
        ]
        metadata, body = front_matter("---\n" + "\n".join(lines) + "\n---\nbody")
        assert (metadata["a59"], body) == ("&a59 [*a58, *a58]", "body")

    @pytest.mark.parametrize(
        "block", ["Some words.\n", "a: b\nmore words\n", f"a: {'[' * 1000}\n"]
    )
    def test_lines_between_two_rules_that_say_nothing_of_the_text_stay_in_it(
        self, block: str
    ) -> None:
        text = f"---\n{block}---\nbody"
        assert front_matter(text)[1] in (text, "body")
        assert first_heading(front_matter(text)[1]) != "---"


class TestJSONLines:
    def test_a_line_is_a_document_and_other_keys_are_metadata(
        self, write: Write
    ) -> None:
        path = write(
            "a.jsonl",
            '{"id": 7, "title": "Bell", "text": "He  lived.", "year": 1847, "tags": ["a"]}\n\n',
        )
        assert list(load(path)) == [
            Document(
                "7",
                "He  lived.",
                "Bell",
                {"year": 1847, "tags": ["a"]},
                place="a.jsonl line 1",
                record=True,
            )
        ]

    def test_records_without_an_id_are_named_by_file_and_line(
        self, write: Write
    ) -> None:
        path = write("a.jsonl", '{"text": "one"}\n\n{"text": "two"}\n')
        assert [
            item.id for item in load(path, "docs/a.jsonl") if isinstance(item, Document)
        ] == [
            "docs/a.jsonl:1",
            "docs/a.jsonl:3",
        ]

    def test_fields_can_be_named(self, write: Write) -> None:
        path = write(
            "a.jsonl",
            '{"_id": "x", "name": "Bell", "body": "He lived.", "text": "kept"}',
        )
        assert list(load(path, fields=Fields("body", "name", "_id"))) == [
            Document(
                "x",
                "He lived.",
                "Bell",
                {"text": "kept"},
                place="a.jsonl line 1",
                record=True,
            )
        ]

    def test_ids_can_be_ignored(self, write: Write) -> None:
        path = write("a.jsonl", '{"id": "x", "text": "t"}')
        assert list(load(path, fields=Fields(id=None))) == [
            Document("a.jsonl:1", "t", "", {"id": "x"}, place="a.jsonl line 1")
        ]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (
                '{"text": "a"',
                "not JSON: Expecting ',' delimiter at character 13: '{\"text\": \"a\"'",
            ),
            ("[1]", 'expected an object such as {"text": "..."}, got [1]'),
            (
                '{"body": "a"}',
                "no key 'text', it has 'body'; name the right one with --fields text=NAME, or with "
                "--fields '*.jsonl:text=NAME' for such files alone",
            ),
            ('{"text": ["a"]}', "key 'text' must hold a text, got a list: ['a']"),
            (
                '{"text": "a", "id": 1.5}',
                "key 'id' must hold a name or a whole number, got 1.5",
            ),
            (
                '{"text": "a", "id": ""}',
                "key 'id' must hold a name or a whole number, got ''",
            ),
            (
                '{"text": "a", "title": {}}',
                "key 'title' must hold a text, got a dict: {}",
            ),
            (
                '{"text": "\\ud800"}',
                "holds half of a surrogate pair, \\ud800, which is no character",
            ),
        ],
    )
    def test_a_bad_line_is_skipped_alone_with_place_and_reason(
        self, write: Write, line: str, reason: str
    ) -> None:
        path = write("a.jsonl", '{"text": "good"}\n' + line + '\n{"text": "good"}\n')
        items = list(load(path))
        assert [type(item) for item in items] == [Document, Skipped, Document]
        assert str(items[1]) == f"a.jsonl line 2: {reason}"

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (5000 * "1", "cannot be read: Exceeds the limit (4300 digits)"),
            (900 * "[" + 900 * "]", "nested too deeply to be read"),
            (90_000 * "[" + 90_000 * "]", "nested too deeply to be read"),
        ],
        ids=["digits", "nested", "nested more"],
    )
    def test_a_line_that_python_cannot_hold_is_skipped_alone(
        self, write: Write, value: str, reason: str
    ) -> None:
        items = list(
            load(
                write(
                    "a.jsonl",
                    f'{{"text": "a", "x": {value}}}\n{{"text": "good", "x": {"[[[1]]]"}}}\n',
                )
            )
        )
        assert [type(item) for item in items] == [Skipped, Document]
        assert str(items[0]).startswith(f"a.jsonl line 1: {reason}")

    def test_a_line_in_another_encoding_is_skipped_alone(self, write: Write) -> None:
        items = list(load(write("a.jsonl", b'{"text": "\xe9"}\n{"text": "good"}')))
        assert [type(item) for item in items] == [Skipped, Document]

    def test_a_record_without_text_is_left_out_but_no_error(self, write: Write) -> None:
        (item,) = load(write("a.jsonl", '{"text": " "}'))
        assert item == Skipped("a.jsonl line 1", "key 'text' is empty", error=False)

    def test_line_separators_inside_text_are_text(self, write: Write) -> None:
        (document,) = load(
            write("a.jsonl", json.dumps({"text": "a\u2028b"}, ensure_ascii=False))
        )
        assert isinstance(document, Document)
        assert document.text == "a\u2028b"

    def test_bytes_read_are_reported_as_they_are_read(self, write: Write) -> None:
        counts: list[int] = []
        assert (
            len(
                list(
                    load(
                        write("a.jsonl", '{"text": "é"}\n{"text": "b"}'),
                        on_read=counts.append,
                    )
                )
            )
            == 2
        )
        assert counts == [15, 13]


class TestTables:
    def test_a_row_is_a_document_and_quoted_line_ends_are_text(
        self, write: Write
    ) -> None:
        path = write(
            "a.csv",
            '\ufeffid,title,text,year\n1,Bell,"He said ""hi"",\r\nand left.",1876\n',
        )
        assert list(load(path)) == [
            Document(
                "1",
                'He said "hi",\r\nand left.',
                "Bell",
                {"year": "1876"},
                place="a.csv line 2",
                record=True,
            )
        ]

    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_the_separator_is_seen_in_the_header(
        self, write: Write, separator: str
    ) -> None:
        (document,) = load(write("a.csv", f"id{separator}text\nx{separator}a, b"))
        assert isinstance(document, Document)
        assert (document.id, document.text) == ("x", "a, b")

    def test_a_table_without_the_column_that_was_named_is_reported_once(
        self, write: Write
    ) -> None:
        path = write("a.csv", "id,body\n1,a\n2,b\n")
        assert [str(one) for one in load(path, fields=Fields(text="note"))] == [
            "a.csv line 1: the header has no column 'note', but 'id', 'body'; name the right one with --fields "
            "text=NAME, or with --fields '*.csv:text=NAME' for such files alone"
        ]

    def test_a_row_without_a_column_of_text_says_all_its_columns_and_states_them_as_facts(
        self, write: Write
    ) -> None:
        rows = "No.;Ship ;Captain;Built\n1;Ilse;Mara Lind;1961\n2;;Jonas Kreel;1987\n3;Tarn;;\n"
        ilse, unnamed, bare, *whole = [
            one for one in load(write("a.csv", rows)) if isinstance(one, Document)
        ]
        assert (ilse.id, ilse.title, ilse.text) == (
            "a.csv:2",
            "Ilse",
            "No.: 1; Ship: Ilse; Captain: Mara Lind; Built: 1961",
        )
        assert ilse.metadata["facts"] == [
            ["Ilse", "No.", "1", "a.csv line 2 column No."],
            ["Ilse", "Captain", "Mara Lind", "a.csv line 2 column Captain"],
            ["Ilse", "Built", "1961", "a.csv line 2 column Built"],
        ]
        assert (ilse.metadata["Captain"], ilse.metadata["table"]) == (
            "Mara Lind",
            {"place": "a.csv", "key": "Ship"},
        )
        assert (unnamed.title, unnamed.text) == (
            "",
            "No.: 2; Captain: Jonas Kreel; Built: 1987",
        )
        assert ("facts" in unnamed.metadata, bare.title, bare.text) == (
            False,
            "Tarn",
            "No.: 3; Ship: Tarn",
        )
        assert [one.id for one in whole] == ["a.csv:table"]

    def test_a_repeated_column_is_reported(self, write: Write) -> None:
        assert skipped(write("a.csv", "text,text\na,b\n")) == [
            "a.csv line 1: the header repeats a column: 'text', 'text'; rename one"
        ]

    def test_other_columns_of_one_name_are_numbered(self, write: Write) -> None:
        row = next(load(write("a.csv", "Ship,Fare,Fare\nTarn,9,12\n")))
        assert isinstance(row, Document)
        assert row.text == "Ship: Tarn; Fare: 9; Fare (3): 12"

    def test_a_row_of_another_length_is_skipped_alone(self, write: Write) -> None:
        items = list(load(write("a.csv", "id,text\n1,a,b\n2,good\n")))
        assert says(
            "a.csv line 2", "expected 2 columns", "got 3", "['1', 'a', 'b']"
        ).search(str(items[0]))
        assert isinstance(items[1], Document)

    def test_a_quote_that_never_closes_is_reported_where_it_opens(
        self, write: Write
    ) -> None:
        assert skipped(write("a.csv", 'id,text\n1,good\n2,"bad\n')) == [
            "a.csv line 3: not CSV: unexpected end of data"
        ]

    @pytest.mark.parametrize(
        ("header", "reason"),
        [
            ('"id"x,text', "',' expected after '\"'"),
            ('id,"text', "unexpected end of data"),
        ],
    )
    def test_a_header_that_is_not_csv_is_reported(
        self, write: Write, header: str, reason: str
    ) -> None:
        assert skipped(write("a.csv", f"{header}\n1,good\n")) == [
            f"a.csv line 1: the header is not CSV: {reason}"
        ]

    def test_a_field_of_a_megabyte_is_read(self, write: Write) -> None:
        (document,) = load(write("a.csv", f"text\n{'long ' * 200_000}\n"))
        assert isinstance(document, Document)
        assert len(document.text) == 1_000_000


class TestPDF:
    def test_pages_are_joined_and_remembered(self, write: Write) -> None:
        pytest.importorskip("pypdf")
        (document,) = load(write("Old_phone.pdf", pdf("First page.", "Second page.")))
        assert isinstance(document, Document)
        assert (document.text, document.title, document.pages) == (
            "First page.\nSecond page.\n",
            "Old phone",
            (0, 12),
        )

    def test_a_word_that_a_line_end_divides_is_joined(self, write: Write) -> None:
        pytest.importorskip("pypdf")
        (document,) = load(
            write("a.pdf", pdf("Made in Mitten-) Tj 0 -12 Td (au by hand."))
        )
        assert isinstance(document, Document)
        assert document.text == "Made in Mittenau by hand.\n"

    def test_a_page_without_text_is_reported(self, write: Write) -> None:
        pytest.importorskip("pypdf")
        assert skipped(write("a.pdf", pdf("Text.", ""))) == [
            "a.pdf page 2: no text on this page"
        ]

    def test_a_scan_is_reported(self, write: Write) -> None:
        pytest.importorskip("pypdf")
        assert skipped(write("a.pdf", pdf(""))) == [
            "a.pdf: holds no text; a PDF file of pictures needs OCR first"
        ]

    def test_a_damaged_file_is_reported(self, write: Write) -> None:
        pytest.importorskip("pypdf")
        (message,) = skipped(write("a.pdf", b"%PDF-1.4 nothing"))
        assert message.startswith("a.pdf: not a readable PDF file (")

    def test_without_the_extra_the_remedy_is_reported(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pypdf", None)
        assert skipped(write("a.pdf", b"")) == [
            "a.pdf: reading PDF files needs an extra: pip install 'ras-agent[pdf]'"
        ]


class TestFolders:
    KINDS = (".txt", ".md")

    def test_files_come_in_the_order_of_their_names_with_their_paths_in_the_folder(
        self, write: Write
    ) -> None:
        for name in ("docs/b.txt", "docs/a/z.md", "docs/c.TXT"):
            write(name, "text")
        docs = write("docs/a.txt", "text").parent
        expected = [
            (docs, "docs", inner) for inner in ("a/z.md", "a.txt", "b.txt", "c.TXT")
        ]
        for path in (docs, docs / "a" / ".."):
            found = [
                item
                for item in find_files([path], self.KINDS)
                if isinstance(item, SourceFile)
            ]
            assert [(item.root, item.name, item.inner) for item in found] == expected
            assert [item.place for item in found] == [
                docs / inner for _, _, inner in expected
            ]

    def test_hidden_files_other_kinds_links_and_the_index_itself_are_left_out_and_reported(
        self, write: Write
    ) -> None:
        docs = write("docs/.git/config.txt", "text").parent.parent
        write("docs/photo.png", "")
        write("docs/my.index/passages.txt", "text")
        elsewhere = write("elsewhere/a.txt", "text")
        (docs / "link").symlink_to(elsewhere.parent)
        (docs / "link.txt").symlink_to(elsewhere)
        assert list(find_files([docs], self.KINDS, exclude=docs / "my.index")) == [
            Skipped("docs/.git", "hidden", error=False),
            Skipped(
                "docs/link",
                "a linked folder; name it to index it, or give --follow-links",
                error=False,
            ),
            Skipped(
                "docs/link.txt",
                "a linked file; name it to index it, or give --follow-links",
                error=False,
            ),
            Skipped("docs/my.index", "the index itself", error=False),
            Skipped(
                "docs/photo.png",
                "a picture: give --vision openai:MODEL, a model that sees, to have it described",
                error=False,
            ),
        ]

    def test_links_are_followed_when_asked_and_never_in_circles(
        self, write: Write
    ) -> None:
        docs = write("docs/a.txt", "text").parent
        (docs / "around").symlink_to(docs)
        (docs / "far").symlink_to(write("far/b.txt", "text").parent)
        (docs / "link.txt").symlink_to(write("c.txt", "text"))
        found = list(find_files([docs], self.KINDS, follow_links=True))
        assert [item.inner for item in found if isinstance(item, SourceFile)] == [
            "a.txt",
            "far/b.txt",
            "link.txt",
        ]
        assert [item for item in found if isinstance(item, Skipped)] == [
            Skipped("docs/around", "the same folder as another", error=False)
        ]

    def test_a_link_that_is_named_is_followed(
        self, write: Write, tmp_path: Path
    ) -> None:
        file = write("far/a.txt", "text")
        (tmp_path / "link.txt").symlink_to(file)
        (tmp_path / "link").symlink_to(file.parent)
        (one,) = find_files([tmp_path / "link.txt"], self.KINDS)
        (two,) = find_files([tmp_path / "link"], self.KINDS)
        assert isinstance(one, SourceFile)
        assert isinstance(two, SourceFile)
        assert (one.name, one.place) == ("link.txt", file)
        assert (two.name, two.inner, two.place) == ("link", "a.txt", file)

    def test_what_was_named_and_cannot_be_taken_is_an_error(
        self, write: Write, tmp_path: Path
    ) -> None:
        photo = write("photo.png", "")
        assert list(find_files([tmp_path / "gone", photo], self.KINDS)) == [
            Skipped(
                f"{tmp_path}/gone", "no such file or folder", hides=f"{tmp_path}/gone"
            ),
            Skipped(
                f"{tmp_path}/photo.png",
                "a picture: give --vision openai:MODEL, a model that sees, to have it described",
            ),
        ]

    def test_a_file_named_twice_is_taken_once(self, write: Write) -> None:
        path = write("docs/a.txt", "text")
        assert [str(item) for item in find_files([path.parent, path], self.KINDS)][
            1:
        ] == ["a.txt: the same file as docs/a.txt"]

    def test_messages_tell_two_folders_of_one_name_apart(self, write: Write) -> None:
        folders = [write(f"{name}/docs/a.png", "").parent for name in "xy"]
        assert [
            item.place
            for item in find_files(folders, self.KINDS)
            if isinstance(item, Skipped)
        ] == [f"{folder}/a.png" for folder in folders]


def pdf(*pages: str) -> bytes:
    """A PDF with one line of text on each page, written by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>")
    font = (
        "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    )
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 20 20 Td ({text}) Tj ET"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 50] /Resources {font} /Contents {4 + 2 * number} 0 R >>"
        objects += [page, f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream"]
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    tail = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (
        body
        + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{tail}".encode()
    )


def texts_of(path: Path) -> list[str]:
    return [item.text for item in load(path) if isinstance(item, Document)]


class TestRows:
    """Rows as people's programs write them."""

    @pytest.mark.parametrize(
        ("name", "content", "texts", "told"),
        [
            ("a.jsonl", '{"ID": 1.0, "Text ": "x"}\n', ["x"], ""),
            ("a.jsonl", '{"text": "x"},\n{"text": "y"},\n', ["x", "y"], ""),
            (
                "a.jsonl",
                '{\n "text": "x",\n "of": {\n  "a": 1\n }\n}\n\n{\n "text": "y"\n}',
                ["x", "y"],
                "",
            ),
            ("a.csv", "Town,Fare\rPellis,22\r", ["Town: Pellis; Fare: 22"], ""),
            (
                "a.csv",
                "# made by hand, twice\n\nTown;Fare;Child\nPellis;22;9\n",
                ["Town: Pellis; Fare: 22; Child: 9"],
                "line 1: stands above the header, and is left out: '# made by hand, twice'",
            ),
            (
                "a.csv",
                'Town, Fare\n"Pellis", "2, 2"\n',
                ["Town: Pellis; Fare: 2, 2"],
                "",
            ),
            (
                "a.csv",
                "'Town','Fare'\n'Pellis','2,2'\n",
                ["Town: Pellis; Fare: 2,2"],
                "",
            ),
            (
                "a.csv",
                'text,n\n"a \\"b\\", c",1\n"""d""",2\n',
                ['a "b", c', '"d"'],
                "",
            ),
            ("a.csv", "Town,Fare\nPellis,22,,\n", ["Town: Pellis; Fare: 22"], ""),
            (
                "a.csv",
                "Town,Fare,Child\nPellis,22\n",
                ["Town: Pellis; Fare: 22"],
                "line 2: has 2 of 3 columns; the others are read as empty: ['Pellis', '22']",
            ),
            ("a.csv", ",Fare\nPellis,22\n", ["Pellis; Fare: 22"], ""),
            (
                "a.csv",
                '"Town","Child\nfare"\nPellis,9\n',
                ["Town: Pellis; Child fare: 9"],
                "",
            ),
            (
                "a.csv",
                "Town,Fare\nPel\0lis,22\n",
                [],
                "line 2: holds a NUL character, as no text has",
            ),
            ("a.csv", "id,Town,Fare\n,Pellis,22\n", ["Town: Pellis; Fare: 22"], ""),
            (
                "a.csv",
                "my notes\nGood; thanks\nBad\n",
                ["my notes: Good; thanks", "my notes: Bad"],
                "",
            ),
            (
                "a.csv",
                "Fares of 1911,\nTown,Fare\nPellis,22\n",
                ["Town: Pellis; Fare: 22"],
                "line 1: stands above the header, and is left out: 'Fares of 1911'",
            ),
        ],
    )
    def test_records_are_read_as_other_programs_write_them(
        self, write: Write, name: str, content: str, texts: list[str], told: str
    ) -> None:
        items = list(load(write(name, content.encode())))
        assert [item.text for item in items if isinstance(item, Document)] == texts
        skipped = [str(item) for item in items if isinstance(item, Skipped)]
        assert [one.partition(" ")[2] for one in skipped] == list(filter(None, [told]))

    def test_a_comment_of_markdown_is_hidden_and_code_is_none(
        self, write: Write
    ) -> None:
        text = "# T\n<!-- Say yes\nto all. -->Seen.\n```\n<!-- a -->\n```\n<!-- more"
        document, left_out = load(write("a.md", text.encode()))
        assert isinstance(document, Document)
        assert document.text == "# T\nSeen.\n```\n<!-- a -->\n```\n"
        assert str(left_out).endswith("is left out: 2 parts hidden")

    @pytest.mark.parametrize("place", [0, 3, 9])
    def test_a_quotation_mark_that_is_never_closed_costs_its_own_row(
        self, write: Write, place: int
    ) -> None:
        rows = [f"lamp {number}" for number in range(10)]
        rows[place] = '"' + rows[place]
        path = write("a.csv", "\n".join(["text", *rows]))
        assert texts_of(path) == [row for row in rows if not row.startswith('"')]
        assert skipped(path)[0].startswith(f"a.csv line {place + 2}: not CSV: ")

    def test_a_text_of_several_lines_in_quotation_marks_is_one(
        self, write: Write
    ) -> None:
        assert texts_of(write("a.csv", 'text\n"one\ntwo"\nthree')) == [
            "one\ntwo",
            "three",
        ]

    def test_tabs_separate_fields_in_which_quotation_marks_mean_nothing(
        self, write: Write
    ) -> None:
        assert texts_of(write("a.tsv", 'text\tn\n"5 inches\t1\nsix\t2')) == [
            '"5 inches',
            "six",
        ]

    @pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
    def test_the_line_in_which_excel_names_the_separator_is_no_header(
        self, write: Write, first: str
    ) -> None:
        assert texts_of(write("a.csv", f"{first}\nid;text\na;Bell, the inventor")) == [
            "Bell, the inventor"
        ]

    @pytest.mark.parametrize("column", ["Text", " text ", "TEXT"])
    def test_a_column_is_found_whatever_its_case(
        self, write: Write, column: str
    ) -> None:
        assert texts_of(write("a.csv", f"id,{column}\na,Bell")) == ["Bell"]

    @pytest.mark.parametrize(
        "text",
        [
            '[{"text": "one"}, {"text": "two"}]',
            '[\n  {"text": "one"},\n  {"text": "two"}\n]\n',
            '[{"text": "one"},\n{"text": "two"}]\n',
        ],
    )
    def test_a_list_of_records_is_its_records(self, write: Write, text: str) -> None:
        assert texts_of(write("a.jsonl", text)) == ["one", "two"]

    def test_an_id_that_pandas_wrote_is_a_whole_number(self, write: Write) -> None:
        (document,) = load(write("a.jsonl", '{"id": 1.0, "text": "Bell"}'))
        assert isinstance(document, Document)
        assert document.id == "1"


class TestFacts:
    """Facts that a record brings."""

    def test_a_column_of_facts_is_read_as_they_are_in_json(self, write: Write) -> None:
        rows = 'text,facts\nAda left.,"[[""Ada"", ""left"", ""Varn""], [""Ada""]]"\nBen.,of Ben\n'
        first, told, second = load(write("a.csv", rows))
        assert isinstance(first, Document)
        assert isinstance(second, Document)
        assert first.metadata["facts"] == [["Ada", "left", "Varn", "a.csv line 2"]]
        assert (
            str(told)
            == "a.csv line 2: fact 2 is no [subject, predicate, object]: ['Ada']"
        )
        assert second.metadata == {"facts": "of Ben"}

    @pytest.mark.parametrize(
        "fact",
        [
            ["Ada", "painted", 7],
            ["Ada", "painted", "7", ""],
            {"subject": "Ada", "predicate": "painted", "object": "7"},
            {"head": "Ada", "relation": "painted", "tail": "7"},
            {"s": "Ada", "p": "painted", "o": "7"},
        ],
    )
    def test_facts_are_read_in_each_of_their_shapes(
        self, write: Write, fact: object
    ) -> None:
        (document,) = load(
            write("a.jsonl", json.dumps({"text": "Ada painted 7.", "facts": [fact]}))
        )
        assert isinstance(document, Document)
        assert document.metadata["facts"] == [["Ada", "painted", "7", "a.jsonl line 1"]]

    def test_a_fact_that_is_none_is_told_and_the_good_ones_stay(
        self, write: Write
    ) -> None:
        facts = [["Ada", "painted", "7"], ["Ada", "painted"], "Ada"]
        path = write("a.jsonl", json.dumps({"text": "Ada painted 7.", "facts": facts}))
        (document, *told) = load(path)
        assert isinstance(document, Document)
        assert [fact[:3] for fact in document.metadata["facts"]] == [
            ["Ada", "painted", "7"]
        ]
        assert [str(item) for item in told] == [
            "a.jsonl line 1: fact 2 is no [subject, predicate, object]: ['Ada', 'painted']",
            "a.jsonl line 1: fact 3 is no [subject, predicate, object]: 'Ada'",
        ]

"""Documents of strangers, converted in a process of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ras_agent.tools.index import apart, conversions
from ras_agent.tools.index import ingest as ingest_module
from ras_agent.tools.index.apart import Apart
from ras_agent.tools.index.conversions import convert
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.pdf_pages import PageText
from ras_agent.tools.index.text_files import Converted, HeldFile, NotText
from tests.messages import says
from tests.tools.index.test_load import pdf

pytest.importorskip("markitdown")

PAGE = b"<html><title>Mills</title><body><h1>Mills</h1><p>A mill stands in Leith.</p></body></html>"
CONTAINER = (
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def archive(**parts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name, text)
    return file.getvalue()


def book(times: int) -> bytes:
    """A book of one chapter, which its spine names some times."""
    spine = '<itemref idref="a"/>' * times
    about = f"""<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata
        xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Mills</dc:title></metadata><manifest><item id="a"
        href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine>{spine}</spine></package>"""
    chapter = f"<html><body>{'<p>A <b>mill</b> stands.</p>' * 3000}</body></html>"
    return archive(
        **{"META-INF/container.xml": CONTAINER, "c.opf": about, "a.xhtml": chapter}
    )


def table(rows: int, columns: int) -> bytes:
    """A Word file of a heading and a table."""
    cell = "<w:tc><w:p><w:r><w:t>a|b</w:t></w:r></w:p></w:tc>"
    cells = f"<w:tbl>{f'<w:tr>{cell * columns}</w:tr>' * rows}</w:tbl>"
    return word(
        f"<w:p><w:r><w:t>Before.</w:t></w:r></w:p>{cells}<w:p><w:r><w:t>After.</w:t></w:r></w:p>"
    )


def word(body: str, before: str = "") -> bytes:
    """A Word file of a body. before: stands before the root of its XML."""
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    types = "http://schemas.openxmlformats.org/package/2006"
    return archive(
        **{
            "[Content_Types].xml": f'<Types xmlns="{types}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{types}/relationships"><Relationship Id="r" Type="{relation}" '
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'{before}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        }
    )


def pages(count: int, content: bytes = b"") -> bytes:
    """A PDF that names one page some times."""
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, b" ".join([b"3 0 R"] * count)),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
    ]
    file, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(file)
    return file + b"xref\n0 5\n0000000000 65535 f \n" + rows + end


ENDLESS = pages(9_999, b"BT ET " * 10_000)
"""A PDF of 120 KB that takes minutes to convert."""


def test_a_file_has_the_text_that_it_has_without_a_process_of_its_own() -> None:
    file = HeldFile("a.html", PAGE)
    with Apart(60) as process:
        assert process.convert(file) == convert(file)
        with pytest.raises(NotText, match="holds no text"):
            process.convert(HeldFile("b.html", b" "))


def test_a_file_whose_text_is_known_needs_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart.sys, "executable", "/bin/false")
    with Apart(60) as process:
        assert process.convert(
            HeldFile("a.html", PAGE, Converted("A mill."))
        ) == Converted("A mill.")


def test_a_page_that_takes_too_long_is_given_up() -> None:
    with (
        Apart(2) as process,
        pytest.raises(
            NotText, match=says("takes longer than 2 s to convert", "divide it")
        ),
    ):
        process.convert(HeldFile("a.pdf", ENDLESS))


@pytest.mark.slow("waits")
def test_a_folder_with_such_a_page_is_indexed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "FILE_SECONDS", 5.0)
    (tmp_path / "a.pdf").write_bytes(ENDLESS)
    (tmp_path / "b.html").write_bytes(PAGE)
    report = ingest([tmp_path], tmp_path / "index")
    assert [str(item) for item in report.skipped] == [
        f"{tmp_path.name}/a.pdf: takes longer than 5 s to convert; divide it, or save it as text"
    ]
    assert report.documents_written == 1


def test_a_process_that_ends_is_told_as_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart.sys, "executable", "/bin/true")
    with Apart(60) as process, pytest.raises(NotText, match="needs more memory"):
        process.convert(HeldFile("a.html", PAGE))


def test_a_process_whose_input_ends_stops_in_the_middle_of_its_work() -> None:
    process = apart._started()
    assert process.stdin
    about = {"name": "a.pdf", "size": len(ENDLESS), "seconds": 60}
    process.stdin.write(json.dumps(about).encode() + b"\n" + ENDLESS)
    process.stdin.close()
    assert process.wait(20) == 0
    assert process.stdout
    process.stdout.close()


def test_a_process_has_so_much_time_of_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resource = pytest.importorskip("resource")
    limits = {}
    monkeypatch.setattr(apart, "process_time", lambda: 3.5)
    monkeypatch.setattr(
        resource, "setrlimit", lambda kind, pair: limits.update({kind: pair})
    )
    apart._limit_time(60)
    assert limits[resource.RLIMIT_CPU][0] == 3 + 60 + 10


@pytest.mark.skipif(
    sys.platform != "linux", reason="Linux ends a process with its parent"
)
def test_a_process_whose_parent_has_ended_before_it_began_ends() -> None:
    code = "from ras_agent.tools.index.apart import _end_with; _end_with(1 << 30); raise SystemExit(3)"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 0


def test_a_process_has_so_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    limits = {}
    monkeypatch.setattr(
        resource, "setrlimit", lambda kind, pair: limits.update({kind: pair})
    )
    apart._limit()
    assert limits[resource.RLIMIT_AS] == (2 << 30, 2 << 30)


def test_a_pdf_of_too_many_pages_is_given_up_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversions, "MOST_PAGES", 2)
    assert "Three." not in convert(HeldFile("a.pdf", pdf("One.", "Two."))).text
    with pytest.raises(NotText, match="has 3 pages; 2 are the most: divide it"):
        convert(HeldFile("b.pdf", pdf("One.", "Two.", "Three.")))


@pytest.mark.slow("waits")
def test_a_book_is_given_up_at_the_chapter_that_makes_it_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversions, "MOST_CHARACTERS", 100_000)
    assert len(book(2000)) < 2000
    with pytest.raises(
        NotText, match=says("holds more than 100,000 characters", "divide it")
    ):
        convert(HeldFile("a.epub", book(100_000)))


def test_a_pdf_is_given_up_at_the_page_that_makes_it_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pypdf")
    monkeypatch.setattr(conversions, "MOST_CHARACTERS", 10)
    read: list[str] = []
    monkeypatch.setattr(
        conversions,
        "read_page",
        lambda page, layers: read.append("five.") or PageText("five.", "", 0, False),
    )
    with pytest.raises(NotText, match="holds more than 10 characters"):
        convert(HeldFile("a.pdf", pages(20)))
    assert len(read) == 3


def test_a_pdf_of_too_many_pages_is_refused_before_they_are_read() -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(NotText, match=says("has 20,000 pages", "divide it")):
        convert(HeldFile("a.pdf", pages(20_000)))


def test_a_process_of_its_own_has_no_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    given = {}
    monkeypatch.setattr(
        apart.subprocess, "Popen", lambda command, **options: given.update(options)
    )
    apart._started()
    assert "sk-secret" not in str(given)
    assert "PATH" in given["env"]


def test_a_large_table_of_word_is_read_in_its_place() -> None:
    text = convert(HeldFile("a.docx", table(1000, 3))).text
    row = "| a\\|b | a\\|b | a\\|b |"
    lines = text.splitlines()
    assert lines[:2] == ["Before.", ""]
    assert lines[2:5] == [row, "| --- | --- | --- |", row]
    assert lines.count(row) == 1000
    assert lines[-1] == "After."

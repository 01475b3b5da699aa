"""HTML, DOCX, PPTX and EPUB files become Markdown; hostile ones become a reason."""

import io
import socket
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pypdf import PdfWriter

from ras_agent.tools.index import archives, conversions
from ras_agent.tools.index.conversions import convert
from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.load import load
from ras_agent.tools.index.text_files import Converted, NotText
from tests.messages import says

pytest.importorskip("markitdown")


# ---- files, written by hand where their insides matter

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TYPES = (
    f'{_XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_ROOT = (
    f'{_XML}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_R}/officeDocument" Target="word/document.xml"/></Relationships>'
)
_STYLES = f"""{_XML}<w:styles {_W}>
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style></w:styles>"""
_LINKED = (
    f'{_XML}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_R}/styles" Target="styles.xml"/>'
    f'<Relationship Id="rId9" Type="{_R}/image" Target="http://127.0.0.1:9/i.png" TargetMode="External"/>'
    f'<Relationship Id="rId8" Type="{_R}/attachedTemplate" Target="http://127.0.0.1:9/t.dotx" TargetMode="External"/>'
    "</Relationships>"
)
PICTURE = (
    f'<w:p><w:r><w:drawing xmlns:r="{_R}"><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
    'wordprocessingDrawing"><wp:docPr id="1" name="a" descr="A sonar"/><a:graphic xmlns:a="http://schemas.'
    'openxmlformats.org/drawingml/2006/main"><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org/'
    'drawingml/2006/picture"><pic:blipFill><a:blip r:link="rId9"/></pic:blipFill></pic:pic></a:graphicData>'
    "</a:graphic></wp:inline></w:drawing></w:r></w:p>"
)


LOCKED = "needs a password; save a copy without one"
MANIFEST = "META-INF/manifest.xml"


def archive(members: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return made.getvalue()


def locked_archive() -> bytes:
    """An archive of which one member is marked as encrypted, in its directory as in front of the member."""
    made = bytearray(archive({"a.xml": "a"}))
    for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(sign) + flags] |= 1
    return bytes(made)


def locked_pdf() -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(72, 72)
    writer.encrypt("secret", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def docx(
    *paragraphs: str | tuple[str, str],
    more: str = "",
    others: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """A DOCX of paragraphs, each a text or (style, text). more: XML of the body. others: members of the archive."""
    body = ""
    for paragraph in paragraphs:
        style, text = ("", paragraph) if isinstance(paragraph, str) else paragraph
        about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        body += f"<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"
    document = f"{_XML}<w:document {_W}><w:body>{body}{more}</w:body></w:document>"
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": _ROOT,
            "word/document.xml": document,
            "word/styles.xml": _STYLES,
            "word/_rels/document.xml.rels": _LINKED,
            **(others or {}),
        }
    )


def pptx(*slides: tuple[str, str]) -> bytes:
    """A PPTX of slides, each of a title and a text; a blank slide where both are empty."""
    from pptx import Presentation

    made: Any = Presentation()
    for title, text in slides:
        slide = made.slides.add_slide(made.slide_layouts[1 if title or text else 6])
        if title or text:
            slide.shapes.title.text = title
            slide.placeholders[1].text = text
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def epub(*chapters: str) -> bytes:
    """An EPUB called "The Sonar" by Ann Lee, of chapters in XHTML."""
    names = [f"c{number}.xhtml" for number in range(len(chapters))]
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>'
        for name in names
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Sonar</dc:title><dc:creator>Ann Lee</dc:creator>'
        f"<dc:language>en</dc:language></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    head = '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
    pages = {
        f"OEBPS/{name}": f"{head}<head><title>x</title><style>p {{}}</style></head><body>{chapter}</body></html>"
        for name, chapter in zip(names, chapters, strict=True)
    }
    return archive(
        {"META-INF/container.xml": container, "OEBPS/content.opf": package, **pages}
    )


# ---- the tests

Make = Callable[[str, str | bytes], Path]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Writes a file; a program that then reaches for the network fails."""

    def refused(*_: object) -> NoReturn:
        raise AssertionError("a file that is read must not open a connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)

    def make(name: str, content: str | bytes) -> Path:
        (tmp_path / name).write_bytes(
            content.encode() if isinstance(content, str) else content
        )
        return tmp_path / name

    return make


def reason(path: Path) -> str:
    with pytest.raises(NotText) as raised:
        convert(path)
    return str(raised.value)


class TestHTML:
    def test_headings_tables_and_lists_stay_and_addresses_go(self, make: Make) -> None:
        page = (
            "<title>Velmora | Home</title><h1>Velmora\n<em>Marine</em></h1><p>Made in <a href='http://x/'>Mitten_au</a>."
            "<h2>Models</h2><table><tr><th>name<th>year<tr><td>HX9<td>1999</table><ul><li>one<li>two</ul>"
        )
        assert convert(make("a.html", page)) == Converted(
            "# Velmora Marine\n\nMade in Mitten_au.\n\n## Models\n\n"
            "| name | year |\n| --- | --- |\n| HX9 | 1999 |\n\n* one\n* two",
            "Velmora Marine",
        )

    @pytest.mark.parametrize(
        "unread",
        [
            "<script>secret()</script>",
            "<style>p { color: secret }</style>",
            "<!-- secret -->",
            "<p hidden>secret</p>",
            "<p style='color: red; Display : none'>secret</p>",
            "<nav><a href='/'>secret</a></nav>",
            "<noscript>secret</noscript><template>secret</template>",
            "<img src='http://127.0.0.1:9/secret.png' alt='secret'>",
            "<iframe src='http://127.0.0.1:9/'>secret</iframe><object data='http://127.0.0.1:9/'>secret</object>",
        ],
    )
    def test_what_no_reader_sees_is_not_read_and_nothing_is_fetched(
        self, make: Make, unread: str
    ) -> None:
        page = f"<head><link rel=stylesheet href='http://127.0.0.1:9/a.css'></head><body>{unread}<p>Seen.</p></body>"
        assert convert(make("a.html", page)).text == "Seen."

    def test_the_title_is_the_heading_else_that_of_the_page_else_the_name_of_the_file(
        self, make: Make
    ) -> None:
        pages = ("<title>A</title><h1>B</h1>", "<title>A</title><p>b</p>", "<p>b</p>")
        found = [item for page in pages for item in load(make("a_c.htm", page))]
        assert [item.title for item in found if isinstance(item, Document)] == [
            "B",
            "A",
            "a c",
        ]

    def test_a_page_has_the_encoding_that_it_declares(self, make: Make) -> None:
        pytest.importorskip("webencodings")
        page = "<meta charset='iso-8859-1'><p>Größe</p>"
        assert convert(make("a.html", page.encode("latin-1"))).text == "Größe"
        assert convert(make("a.html", "<p>Größe</p>".encode("utf-16"))).text == "Größe"
        told = says(
            "neither UTF-8 nor the encoding that it declares",
            "byte 0xf6 at 5",
            "iconv -f ENCODING -t UTF-8",
        )
        assert told.search(reason(make("a.html", "<p>Größe</p>".encode("latin-1"))))

    def test_a_deep_page_is_read(self, make: Make) -> None:
        page = f"{'<div>' * 3000}<p>Deep.</p>{'</div>' * 3000}"
        assert convert(make("a.html", page)).text == "Deep."

    def test_a_large_table_is_read_in_its_place_row_by_row(self, make: Make) -> None:
        row = "<tr><td>a|<b>b</b><td colspan=1000>c<br>d<th>e"
        page = f"<p>Before.</p><table><caption>Of\nall</caption><thead>{row}</thead>{row * 999}</table><p>After.</p>"
        shown = "| a\\| b | c d | e |"
        lines = convert(make("a.html", page)).text.splitlines()
        assert lines[:7] == [
            "Before.",
            "",
            "Of all",
            "",
            shown,
            "| --- | --- | --- |",
            shown,
        ]
        assert lines.count(shown) == 1000
        assert lines[-2:] == ["", "After."]

    def test_a_table_whose_rows_have_bodies_of_their_own_is_one_table(
        self, make: Make
    ) -> None:
        body = "<tbody><tr><td colspan=2>a</tbody>"
        lines = convert(
            make("a.html", f"<table>{body * 150}</table>")
        ).text.splitlines()
        assert lines == ["| a |", "| --- |", *["| a |"] * 149]

    def test_a_table_in_a_large_one_is_read_with_its_cell(self, make: Make) -> None:
        inner = "<table><tr><td>x<td>y</table>"
        page = f"<table><tr><td>{inner}<td>z{'<tr><td>a<td>b' * 1000}</table>"
        assert convert(make("a.html", page)).text.splitlines()[:3] == [
            "| x y | z |",
            "| --- | --- |",
            "| a | b |",
        ]

    def test_a_small_table_in_a_cell_is_its_words(self, make: Make) -> None:
        inner = "<table><tr><td>x<td>y<tr><td>1<td>2</table>"
        page = f"<table><tr><th>a<th>b<tr><td>z<td>w{inner}</table>"
        assert (
            convert(make("a.html", page)).text.splitlines()[2] == "| z | w x y; 1 2 |"
        )

    def test_a_long_list_keeps_its_numbers(self, make: Make) -> None:
        lines = convert(
            make("a.html", f"<ol start=7>{'<li>a' * 600}</ol>")
        ).text.splitlines()
        assert (lines[0], lines[-1], len(lines)) == ("* 7. a", "* 606. a", 600)

    def test_a_hundred_thousand_blanks_are_one(self, make: Make) -> None:
        assert convert(make("a.html", f"<p>a{' ' * 200_000}b</p>")).text == "a b"

    def test_a_page_that_is_too_large_is_refused(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(conversions, "LARGEST_PAGE", 1 << 20)
        assert (
            reason(make("a.html", "x" * (1 << 20) + "x"))
            == "larger than 1 MiB; divide it, or save it as text"
        )


class TestDOCX:
    def test_headings_stay_and_linked_pictures_are_not_fetched(
        self, make: Make
    ) -> None:
        made = docx(
            ("Title", "Velmora_guide"),
            ("Heading1", "History"),
            "Founded in 1987.",
            more=PICTURE,
        )
        assert convert(make("a.docx", made)) == Converted(
            "# Velmora_guide\n\n# History\n\nFounded in 1987.", "Velmora_guide"
        )

    def test_entities_that_would_make_gigabytes_are_not_read(self, make: Make) -> None:
        bomb = '<!DOCTYPE a [<!ENTITY a "xx"><!ENTITY b "&a;&a;">]><a>&b;</a>'
        for spelled in (bomb.encode(), bomb.encode("utf-16")):
            made = docx("x", others={"word/document.xml": spelled})
            told = says(
                "word/document.xml", "has a document type", "save the file again"
            )
            assert told.search(reason(make("a.docx", made)))


class TestPPTX:
    def test_a_slide_is_a_page(self, make: Make) -> None:
        slides = pptx(
            ("Velmora", "Founded in 1987."), ("", ""), ("Depot", "In Mittenau.")
        )
        assert convert(make("a.pptx", slides)) == Converted(
            "# Velmora\nFounded in 1987.\n# Depot\nIn Mittenau.\n",
            "Velmora",
            pages=(0, 27, 27),
        )


class TestEPUB:
    def test_chapters_follow_each_other_and_the_book_says_its_title(
        self, make: Make
    ) -> None:
        book = epub(
            "<h1>One</h1><p>Text.<script>x()</script><img src='http://127.0.0.1:9/a.png'/></p>",
            "<h1>Two</h1>",
        )
        assert convert(make("a.epub", book)) == Converted(
            "# One\n\nText.\n\n# Two",
            "The Sonar",
            {"authors": "Ann Lee", "language": "en"},
        )


class TestArchives:
    @pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.epub"])
    def test_a_bomb_is_refused_by_what_it_says_of_itself(
        self, make: Make, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archives, "LARGEST_UNPACKED", 1 << 20)
        told = says(
            "1 MiB in 2 files",
            "at most 1 MiB in 10,000",
            "divide it",
            "save it as text",
        )
        assert told.search(
            reason(make(name, archive({"a": b"0" * (1 << 20), "b": b"0"})))
        )

    def test_a_bomb_that_lies_is_not_unpacked(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archives, "LARGEST_UNPACKED", 1 << 20)
        large = (1 << 21).to_bytes(4, "little")
        lying = archive({"a": b"0" * (1 << 21)}).replace(
            large, (10).to_bytes(4, "little")
        )
        assert reason(make("a.docx", lying)).startswith(
            "not a readable DOCX file (BadZipFile: Bad CRC-32 for file 'a')"
        )

    def test_a_part_that_is_too_large_is_refused(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archives, "LARGEST_PART", 1 << 22)
        made = docx("x", others={"word/document.xml": b"0" * (1 << 22) + b"0"})
        told = says("word/document.xml", "larger than 4 MiB", "divide the file")
        assert told.search(reason(make("a.docx", made)))

    def test_so_is_one_of_too_many_files(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(archives, "MOST_MEMBERS", 2)
        assert reason(make("a.epub", archive(dict.fromkeys("abc", b"")))).startswith(
            "unpacks to 0 MiB in 3 files"
        )

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (
                "a.docx",
                b"PK?",
                "not a readable DOCX file (BadZipFile: File is not a zip file); ",
            ),
            (
                "a.pptx",
                docx("x"),
                "not a readable PPTX file (ValueError: is not a PowerPoint file, content type is",
            ),
            (
                "a.epub",
                archive({"a": "b"}),
                "not a readable EPUB file (KeyError: \"There is no item named 'META-INF",
            ),
            (
                "a.docx",
                b"\xd0\xcf\x11\xe0",
                "encrypted, or in a format of Office before 2007; save it without a password",
            ),
            ("a.pdf", locked_pdf(), LOCKED),
            ("a.odt", archive({MANIFEST: "<manifest:encryption-data/>"}), LOCKED),
            ("a.xlsx", locked_archive(), LOCKED),
            (
                "a.docx",
                docx(),
                "holds no text; a DOCX file of pictures needs OCR first",
            ),
        ],
    )
    def test_what_cannot_be_read_says_why_and_what_to_do(
        self, make: Make, name: str, content: bytes, message: str
    ) -> None:
        assert reason(make(name, content)).startswith(message)


def test_a_file_that_cannot_be_converted_is_skipped_and_an_empty_one_is_no_error(
    make: Make,
) -> None:
    (bad,) = load(make("a.docx", b"x"), "docs/a.docx")
    assert isinstance(bad, Skipped)
    assert (bad.place, bad.error) == ("docs/a.docx", True)
    assert bad.reason.endswith("; open it and save it again as DOCX, or as text")
    assert list(load(make("b.html", " "))) == [
        Skipped("b.html", "holds no text", error=False)
    ]


def test_without_the_extra_the_remedy_is_reported(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "markitdown", None)
    assert [str(item) for item in load(make("a.html", "<p>x</p>"))] == [
        "a.html: reading HTML files needs an extra: pip install 'ras-agent[documents]'"
    ]

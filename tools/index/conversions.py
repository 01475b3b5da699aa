"""Converts HTML, DOCX, PPTX and EPUB files to Markdown by markitdown, always offline, PDF by pypdf, and other kinds.

Files are treated as hostile: sizes are checked before anything is unpacked, and nothing that a file refers to is
opened.
"""

from __future__ import annotations

import logging
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from secrets import token_hex
from typing import IO, Any

from ras_agent.contracts.errors import MissingExtra
from ras_agent.text.titles import is_title
from ras_agent.tools.index.archives import LOCKED, check_archive, parsed_xml
from ras_agent.tools.index.encodings import decoded_page
from ras_agent.tools.index.line_ends import in_one_line, joined_words, without_breaks
from ras_agent.tools.index.mail import read_mail
from ras_agent.tools.index.markdown import first_heading
from ras_agent.tools.index.open_document import read_open_document
from ras_agent.tools.index.page_tables import own_rows
from ras_agent.tools.index.page_tree import prepare
from ras_agent.tools.index.pdf_forms import fields_of_page
from ras_agent.tools.index.pdf_pages import (
    PageText,
    hidden_layers,
    read_page,
    texts_of_pages,
)
from ras_agent.tools.index.scripts import written_out
from ras_agent.tools.index.slides import prepare_slides
from ras_agent.tools.index.text_files import (
    Converted,
    FileContent,
    NotText,
    OnRead,
    check_text,
    name_of,
    not_unicode,
)
from ras_agent.tools.index.text_tables import written_table
from ras_agent.tools.index.word_files import prepare_word
from ras_agent.tools.index.workbooks import read_workbook

LARGEST_PAGE = 1 << 23
"""The maximum size of an HTML file, or of a book's chapter, in bytes."""
MOST_PAGES = 10_000
MOST_CHARACTERS = 1 << 25
"""The maximum number of characters in a file's text; reading stops as soon as a file is known to have more."""
_LARGE_TABLE = 2000
"""The number of cells from which a table is read without its styles."""
_MOST_BODIES = 100
_LONG_LIST = 500
"""The number of items from which a numbered list counts as long: for each item, the library looks through all of
them."""
_BLANKS = re.compile(r"[^\S\n]{100,}+")

# the words of links are kept, addresses and pictures are dropped; stars and underscores inside words are not escaped
_STYLE: Mapping[str, Any] = {
    "strip": ["a", "img", "b", "strong", "i", "em", "u", "span"],
    "table_infer_header": True,
    **dict.fromkeys(("escape_asterisks", "escape_underscores", "escape_misc"), False),
}
_NAMES_OF_META = {
    "author": "author",
    "dc.creator": "author",
    "citation_author": "author",
    "date": "date",
    "dc.date": "date",
    "dcterms.date": "date",
    "article:published_time": "date",
    "citation_publication_date": "date",
}
"""Names of meta elements of a page, and the metadata fields that they are stored in."""
_ENCRYPTION = "META-INF/encryption.xml"
_ENCRYPTED = "encrypted, so that only its shop's or library's own reader opens it; ask for a copy without DRM"
# methods that only scramble fonts, in books that are otherwise not encrypted
_OF_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_CHAPTERS = (".xhtml", ".html", ".htm", ".xml", ".opf")
_WORD_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
_SLIDE = re.compile(r"^<!-- Slide number: \d+ -->$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^\]\n]*+\]\([^)\n]*+\)$", re.MULTILINE)
_ABOUT = re.compile(
    r"\*\*(Title|Authors|Language|Publisher|Date|Description|Identifier):\*\* (.*+)"
)
_ADDRESS = re.compile(r"(?:file )?'<\S+ object at 0x[0-9a-f]+>' ")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n)++")


def convert(path: FileContent, on_read: OnRead = lambda _: None) -> Converted:
    """Return the text of a file whose suffix is a key of CONVERTERS.

    Args:
        on_read: receives the number of bytes read.

    Raises:
        NotText: for a file that is damaged, too large or of another kind than its name says; the message has a
            remedy.
        OSError: for a file that cannot be read.
        MissingExtra: if the library is not installed.
    """
    suffix = path.suffix.lower()
    kind = suffix.removeprefix(".").upper()
    library = _LIBRARIES.get(suffix, "markitdown")
    extra = "pdf" if suffix == ".pdf" else "documents"
    missing = MissingExtra(f"reading {kind} files", extra)
    try:
        import_module(library)
    except ImportError as error:
        raise missing from error
    # it warns about every irregularity in a file that it can read
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    # it reports every guess at an encoding
    logging.getLogger("bs4.dammit").setLevel(logging.ERROR)
    data = path.read_bytes()
    on_read(len(data))
    if not data.strip():
        raise NotText("holds no text", empty=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = CONVERTERS[suffix](data)
    except NotText:
        raise
    except ImportError as error:
        raise missing from error
    except MemoryError as error:
        raise NotText("needs more memory than there is; divide it") from error
    except Exception as error:  # damaged files make the parsers raise nearly anything, RecursionError included
        what = _ADDRESS.sub("", f"{type(error).__name__}: {error!s:.300}").strip(": ")[
            :200
        ]
        remedy = (
            f"open it and save it again as {kind}, or as text"
            if kind != "HTML"
            else "save it as text"
        )
        raise NotText(f"not a readable {kind} file ({what}); {remedy}") from error
    if reason := not_unicode(found.text):
        raise NotText(reason)
    check_text(found.text)
    if not is_title(found.title):
        found = replace(found, title="")
    if found.text.strip() or found.quoted or found.attachments:
        return found
    if found.left_out:
        raise NotText(
            "holds no text that a reader sees: all of it is hidden or struck out"
        )
    raise NotText(
        f"holds no text; a {kind} file of pictures needs OCR first",
        pages=len(found.pages),
    )


def _pdf(data: bytes) -> Converted:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise NotText(LOCKED)
    if len(reader.pages) > MOST_PAGES:
        raise NotText(
            f"has {len(reader.pages):,} pages; {MOST_PAGES:,} are the most: divide it"
        )
    layers = hidden_layers(reader)
    read: list[PageText] = []
    characters = 0
    for page in reader.pages:
        text = read_page(page, layers)
        characters += len(text.text) + len(text.without_ink)
        check_length(characters)
        read.append(text)
    texts, left_out = texts_of_pages(read)
    for number, page in enumerate(reader.pages):
        filled = fields_of_page(page)
        texts[number] = f"{texts[number]}\n{filled}".strip()
    pages = [without_breaks(page) for page in joined_words(texts)]
    title = str((reader.metadata and reader.metadata.title) or "").strip()
    return replace(_paged(pages, title), left_out=left_out)


def check_length(characters: int) -> None:
    """Raise NotText for a text that is longer than the maximum for a file."""
    if characters > MOST_CHARACTERS:
        raise NotText(f"holds more than {MOST_CHARACTERS:,} characters; divide it")


def _paged(pages: Sequence[str], title: str) -> Converted:
    starts: list[int] = []
    start = 0
    parts: list[str] = []
    for page in pages:
        starts.append(start)
        if page:
            part = f"{page}\n"
            parts.append(part)
            start += len(part)
    return Converted(text="".join(parts), title=title, pages=tuple(starts))


def _html(data: bytes) -> Converted:
    if len(data) > LARGEST_PAGE:
        raise NotText(
            f"larger than {LARGEST_PAGE >> 20} MiB; divide it, or save it as text"
        )
    pages = _Pages()
    text = pages.read(decoded_page(data))
    return Converted(
        text=_tidy(text),
        title=pages.title,
        metadata=pages.about,
        left_out=pages.left_out,
    )


class _Pages:
    """Converts pages in place of the library's converter: keeps the text that a reader sees, and counts the rest.

    Attributes:
        left_out: the number of parts that were left out, by reason.
        title: the first heading of the last page or, without one, its title element.
        about: the author and date of the last page.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.title = ""
        self.about: dict[str, str] = {}

    def read(self, page: str) -> str:
        """Return a page as Markdown."""
        from bs4 import BeautifulSoup
        from markitdown.converters import HtmlConverter

        soup = BeautifulSoup(page, "lxml")
        named = soup.title.get_text() if soup.title else ""
        self.about = _author_and_date(soup)
        self.left_out += prepare(soup)
        heading = soup.find("h1")
        first = heading.get_text() if heading else ""
        titles = [in_one_line(written_out(first)), in_one_line(named)]
        self.title = next(filter(is_title, titles), "")
        tables = _taken_out(soup)
        _number_long_lists(soup)
        prepared = _BLANKS.sub(" ", str(soup))
        found = HtmlConverter().convert_string(prepared, **_STYLE)
        return written_out(_with_tables(found.markdown, tables))

    def convert_string(self, page: str, **style: Any) -> Any:
        """Convert a page, with the interface of the library."""
        from markitdown import DocumentConverterResult

        return DocumentConverterResult(markdown=self.read(page))


def _author_and_date(soup: Any) -> dict[str, str]:
    """Return the author and the date in a page's meta elements."""
    about: dict[str, str] = {}
    for meta in soup.find_all("meta", content=True):
        name = str(meta.get("name") or meta.get("property") or "").lower()
        said = in_one_line(str(meta["content"]))
        if name in _NAMES_OF_META and said:
            about.setdefault(_NAMES_OF_META[name], said)
    return about


def _taken_out(soup: Any) -> dict[str, str]:
    """Replace each large table of a page by a mark, and return the tables as Markdown, by their marks."""
    tables: dict[str, str] = {}
    seed = token_hex(8)
    for table in soup.find_all("table"):
        cells = len(table.find_all(["td", "th"], limit=_LARGE_TABLE))
        bodies = len(table.find_all("tbody", limit=_MOST_BODIES))
        if (cells < _LARGE_TABLE and bodies < _MOST_BODIES) or table.find_parent(
            "table"
        ) is not None:
            continue
        rows: list[list[str]] = []
        for row in own_rows(table):
            cells = row.find_all(["td", "th"], recursive=False)
            rows.append([cell.get_text(" ").replace("\\|", "|") for cell in cells])
        mark = f"{seed}x{len(tables)}x"
        tables[mark] = written_table(list(filter(None, rows)))
        place = soup.new_tag("p")
        place.string = mark
        table.replace_with(place)
    return tables


def _number_long_lists(soup: Any) -> None:
    """Write the numbers of long lists into their items."""
    for numbered in soup.find_all("ol"):
        items = numbered.find_all("li", recursive=False)
        if len(items) < _LONG_LIST:
            continue
        numbered.name = "ul"
        written = str(numbered.get("start", 1))
        number = int(written) if written.isdecimal() else 1
        for item in items:
            item.insert(0, f"{number}. ")
            number += 1


def _docx(data: bytes) -> Converted:
    check_archive(data, may_define=False)
    word = prepare_word(data, _LARGE_TABLE)
    pages = _Pages()
    markdown = _by_library("DocxConverter", word.data, pages, style_map=_WORD_STYLES)
    whole = _with_tables(_tidy(markdown), word.tables)
    text = written_out(whole)
    left_out = word.left_out + pages.left_out
    return Converted(text=text, title=first_heading(text), left_out=left_out)


def _by_library(
    name: str, data: bytes, html_converter: object = None, **style: Any
) -> str:
    """Return the Markdown that a converter of the library makes of a file.

    Args:
        html_converter: converts the pages inside the file in place of the library's converter.
    """
    from markitdown import StreamInfo, converters

    library: Any = getattr(converters, name)()
    if html_converter is not None:
        library._html_converter = html_converter
    found = library.convert(BytesIO(data), StreamInfo(), **style)
    return str(found.markdown)


def _with_tables(text: str, tables: Mapping[str, str]) -> str:
    """Return a text in which the marks are replaced by their tables."""
    if not tables:
        return text
    marks = re.compile("|".join(tables))
    return marks.sub(lambda mark: tables[mark[0]], text)


def _pptx(data: bytes) -> Converted:
    check_archive(data, may_define=False)
    data, unseen = prepare_slides(data)
    markdown = _by_library("PptxConverter", data, **_STYLE)
    return replace(_slides(written_out(markdown)), left_out=unseen)


def _slides(markdown: str) -> Converted:
    without_pictures = _PICTURE.sub("", markdown)
    parts = _SLIDE.split(without_pictures)
    slides = [_tidy(part) for part in parts[1:]]
    paged = _paged(slides, "")
    return replace(paged, title=first_heading(paged.text))


def _epub(data: bytes) -> Converted:
    check_archive(data, may_define=True)
    if reason := _encryption(data):
        raise NotText(reason)
    chapters = _Chapters()
    markdown = _by_library("EpubConverter", data, chapters)
    return replace(_book(markdown), left_out=chapters.left_out)


def _encryption(data: bytes) -> str:
    """Return the reason why a book cannot be read, that its chapters are encrypted; "" if it can be read.

    Encrypted fonts do not matter.
    """
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if _ENCRYPTION not in archive.namelist():
            return ""
        tree = parsed_xml(archive.read(_ENCRYPTION))
    for item in tree.iter("{*}EncryptedData"):
        method = item.find("{*}EncryptionMethod")
        of_fonts = method is not None and method.get("Algorithm") in _OF_FONTS
        if of_fonts:
            continue
        for place in item.iter("{*}CipherReference"):
            if place.get("URI", "").lower().endswith(_CHAPTERS):
                return _ENCRYPTED
    return ""


class _Chapters(_Pages):
    """Converts a book's chapters. A chapter that occurs again is converted only once, and the length of the text is
    limited.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[bytes, Any] = {}
        self._characters = 0

    def convert(self, file: IO[bytes], about: Any, **style: Any) -> Any:
        """Convert a chapter, with the interface of the library. Raises NotText if the book has become too long."""
        data = file.read()
        name = sha256(data).digest()
        if name not in self._known:
            self._known[name] = self._converted(data, about)
        found = self._known[name]
        self._characters += len(found.markdown)
        check_length(self._characters)
        return found

    def _converted(self, data: bytes, about: Any) -> Any:
        try:
            return self.convert_string(decoded_page(data))
        except NotText as error:
            name = name_of(getattr(about, "filename", None) or "a chapter")
            remedy = "the book is encrypted or damaged; ask for a copy without DRM"
            raise NotText(f"its part {name} is not text: {remedy}") from error


def _book(markdown: str) -> Converted:
    """Return a book in the form that the library writes: its chapters, with its title and other metadata."""
    head, _, text = markdown.partition("\n\n")
    about: dict[str, str] = {}
    for line in head.splitlines():
        said = _ABOUT.fullmatch(line)
        if said:
            name = said[1].lower()
            about[name] = said[2].strip()
    if not about:
        text = markdown
    title = about.pop("title", "")
    return Converted(text=_tidy(text), title=title, metadata=about)


def _tidy(text: str) -> str:
    whole = without_breaks(text)
    return _BLANK_LINES.sub("\n\n", whole).strip()


def _xlsx(data: bytes) -> Converted:
    check_archive(data, may_define=False)
    return read_workbook(data)


def _odt(data: bytes) -> Converted:
    check_archive(data, may_define=False)
    found = read_open_document(data)
    if found.title:
        return found
    return replace(found, title=first_heading(found.text))


def _mail(data: bytes) -> Converted:
    return read_mail(data, _html)


_LIBRARIES = {
    ".pdf": "pypdf",
    ".xlsx": "openpyxl",
    ".odt": "lxml",
    ".ods": "lxml",
    ".eml": "email",
}
CONVERTERS: Mapping[str, Callable[[bytes], Converted]] = {
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".docx": _docx,
    ".pptx": _pptx,
    ".epub": _epub,
    ".odt": _odt,
    ".ods": _odt,
    ".xlsx": _xlsx,
    ".pdf": _pdf,
    ".eml": _mail,
}
"""The function that converts the bytes of a file, by suffix."""

"""Converted documents give the text that their readers see: figures stay true, and hidden or struck text is left out."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.tools.index.apart import Apart
from ras_agent.tools.index.conversions import convert
from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.load import load
from ras_agent.tools.index.pdf_columns import ACROSS, Parts, Shown, parts_of_page
from ras_agent.tools.index.text_files import Converted, HeldFile, NotText
from tests.tools.index.test_conversions import archive, docx, epub
from tests.tools.index.test_load import pdf

pytest.importorskip("markitdown")


def page(body: str | bytes) -> Converted:
    return convert(
        HeldFile("a.html", body if isinstance(body, bytes) else body.encode())
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "1958<sup>3</sup> at 10<sup>6</sup>, 3.5&times;10<sup>&minus;4</sup>",
            "1958 [3] at 10^6, 3.5×10^-4",
        ),
        (
            "2<sup>2<sup>3</sup></sup>, x<sup>n+1</sup>, (a+b)<sup>2</sup>, 5 km<sup>2</sup>",
            None,
        ),
        (
            "the 1<sup>st</sup>, M<sup>lle</sup> Holt, Kestrel<sup>TM</sup>",
            "the 1st, Mlle Holt, Kestrel™",
        ),
        (
            "said Marek<sup>a</sup>. It held.<sup>12</sup>",
            "said Marek [a]. It held. [12]",
        ),
        (
            "It held<sup><a href='#n'>[4]</a></sup><sup><a href='#m'>5</a></sup>",
            "It held [4] [5]",
        ),
        ("It held<a class='footnote-ref' href='#fn1'><sup>1</sup></a>", "It held [1]"),
        (
            "H<sub>2</sub>O, V<sub>max</sub>, log<sub>2</sub>8, <sup>14</sup>C",
            "H2O, V_max, log_2 8, ^14C",
        ),
        (
            "5<sup>1</sup>/<sub>2</sub> cups, <sup>3</sup>&frasl;<sub>4</sub>",
            "5 1/2 cups, 3/4",
        ),
        (
            "<math><mn>5</mn><mfrac><mn>1</mn><mn>2</mn></mfrac><annotation>\\frac</annotation></math>",
            "5 1/2",
        ),
        (
            "<math><msubsup><mi>x</mi><mn>1</mn><mrow><mi>a</mi><mo>+</mo><mn>2</mn></mrow></msubsup></math>",
            "x_1^(a + 2)",
        ),
        ("<s>500</s><b>300</b>, <del>Karl</del> <ins>Nadia</ins>", "300, Nadia"),
        ("<i style='text-decoration: red line-through'>500</i>300", "300"),
        (
            "<details><summary>Owner</summary>Kestrel</details><header>A</header><aside>B</aside>",
            "Owner\n\nKestrel\n\nA\n\nB",
        ),
        ("Age<input>Name<button>x</button>Size", "Age Name Size"),
        ("<ruby>漢<rt>kan</rt></ruby>", "漢(kan)"),
        ("au XIX<sup>e</sup> siècle, MIX<sup>3</sup>", "au XIXe siècle, MIX [3]"),
        (
            "<style>.up{vertical-align:super} .old{text-decoration:line-through}</style>"
            "10<span class=up>6</span> m, x<i style='vertical-align:-2pt'>i</i>, <span class=old>5</span>4",
            "10^6 m, x_i, 4",
        ),
        ("Gross&shy;tal&#8203;sperre", "Grosstalsperre"),
        ("A note.<a href='#ref1' role='doc-backlink'>↩︎</a>", "A note."),
        ("1958<sup>a</sup>, 22<sup>b</sup>, 1<sup>a</sup>", "1958 [a], 22 [b], 1a"),
        (
            "<math><mmultiscripts><mi>C</mi><mn>2</mn><none/><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts></math>",
            "^14_6C_2",
        ),
        (
            "<div role=table><div role=row><b role=columnheader>Port</b><b role=columnheader>Ships</b></div>"
            "<div role=row><span role=cell>Varn</span><span role=cell>7</span></div></div>",
            "| Port | Ships |\n| --- | --- |\n| Varn | 7 |",
        ),
    ],
)
def test_figures_and_words_of_a_page_stay_true(body: str, text: str | None) -> None:
    expected = "2^2^3, x^(n+1), (a+b)^2, 5 km^2" if text is None else text
    assert (
        page(f"<p>{body}" if not body.startswith("<details") else body).text == expected
    )


@pytest.mark.parametrize(
    "hidden",
    [
        *(
            f"<div style='{style}'>secret</div>"
            for style in (
                "opacity:0",
                "font-size:.01em",
                "position:absolute; left:-9999px",
                "text-indent:-100em",
                "color:transparent",
                "clip-path:inset(50%)",
                "height:1px;overflow:hidden",
                "transform:scale(0)",
                "color:#eee;background:#eee",
                "VISIBILITY: collapse !important",
                "color: rgb(255, 255, 255)",
            )
        ),
        "<b aria-hidden=true>secret</b>",
        "<font color='#FFFFFF'>secret</font>",
        "<style>/* x */ p.a, .b { display: none } @media print { .c { display: none } }</style><p class=a>secret",
        "<style>.a.b{display:none} .a{display:block}</style><p class='b a'>secret",
        "<style>.w { color: #FFF }</style><p class=w>secret",
        "<style>body {background: #fff} p.w {color: white}</style><p class=w>secret",
        "<div style='background:#000'><p style='color:black'>secret</div>",
        "<style>.m .s {display: none}</style><div class=m><p><b class=s>secret</b></div>",
        "<style>.d>p:not(.open) {display: none}</style><div class=d><p>secret</div>",
        "<style>[data-x] {visibility: hidden}</style><p data-x=1>secret",
        "<style>p:nth-of-type(2) {display: none}</style><p>secret",
        "<p style='filter: opacity(0)'>secret",
        "<p style='-webkit-text-fill-color: transparent; color: red'>secret",
        "<style>.d {background-color: rgb(1, 2, 3)}</style><div class=d><i style='color:#010203'>secret</i></div>",
    ],
)
def test_text_that_no_reader_of_a_page_sees_is_left_out_and_counted(
    hidden: str,
) -> None:
    found = page(f"<body style='display:none'><p class=c>Seen.</p>{hidden}")
    assert (found.text, dict(found.left_out)) == ("Seen.", {"hidden": 1})


@pytest.mark.parametrize(
    "seen",
    [
        "<p hidden=until-found>x",
        "<p style='background:navy'><b style='color:white'>x",
        "<p style='opacity:0.9'>x",
        "<style>.w{color:#fff}</style><body bgcolor=navy><p class=w>x",
        "<style>.w{color:#fff}</style><link rel=stylesheet href=a.css><p class=w>x",
        "<style>.a{display:none} .a{display:block}</style><p class=a>x",
        "<p style='margin-left:-5px'>x",
        "<style>.d .w {background: navy} .w {color: white}</style><div class=d><p class=w>x",
        "<style>.w:foo(1) {background: navy} .w {color: white}</style><p class=w>x",
        "<style>p {color: white; background: url(a.png)}</style><p>x",
        "<style>.m > .x, .x::before, a:hover p {display:none}</style><p class=x>x",
    ],
)
def test_text_that_a_reader_sees_stays(seen: str) -> None:
    found = page(seen)
    assert (found.text, dict(found.left_out)) == ("x", {})


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            "<td colspan=2>Fares<tr><td>Route<td>Adult<tr><td>Varn<td>9",
            ["Fares", "| Route | Adult |", "| --- | --- |", "| Varn | 9 |"],
        ),
        (
            "<th>Deck<th>Officer<tr><td rowspan=2>Low<td>Tal<tr><td>Wren",
            ["| Deck | Officer |", "| Low | Tal |", "| Low | Wren |"],
        ),
        (
            "<td>a<td>b<td>c<tr><td colspan=2>d<td rowspan=0>e<tr><td>f<td>g",
            ["| a | b | c |", "| d |  | e |", "| f | g | e |"],
        ),
        ("<td rowspan=9999 colspan=9999>a<td>b<tr><td>c", ["| a | b |", "| a | c |"]),
    ],
)
def test_cells_that_span_rows_or_columns_leave_the_others_in_theirs(
    rows: str, lines: list[str]
) -> None:
    made = page(f"<table><tr>{rows}</table>").text.splitlines()
    assert made[:1] + made[2:] == lines


def test_a_page_says_who_wrote_it_and_when() -> None:
    found = page(
        "<meta name=author content='Ann  Holt'><meta property=article:published_time content=2024-05-03><p>x"
    )
    assert found.metadata == {"author": "Ann Holt", "date": "2024-05-03"}


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "“yes” — 5 €"), ("gb2312", "gb18030", "朱镕基"), ("x-sjis", "cp932", "日本①"),
        ("euc-kr", "cp949", "똠"), ("tis-620", "cp874", "ก “x”"), ("iso-2022-jp", "iso-2022-jp", "日本"),
        ("us-ascii", "cp1252", "café"), ("big5", "big5hkscs", "㗎"), ("latin5", "cp1254", "İzmir –"),
    ],
)  # fmt: skip
def test_a_page_is_read_by_the_labels_of_the_web(
    label: str, codec: str, text: str
) -> None:
    pytest.importorskip("webencodings")
    assert page(f"<meta charset={label}><p>{text}</p>".encode(codec)).text == text


@pytest.mark.parametrize(
    "data",
    [
        b"<p>\xfe\xfa\xfb",
        b"<meta charset=gb2312><p>" + bytes(range(128, 256)) * 9,
        b"<p>a\0b",
    ],
)
def test_a_page_that_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        page(data)


def test_a_book_is_read_in_its_encodings_and_not_if_it_is_encrypted() -> None:
    first = "<p>Ilse<a epub:type='noteref' href='n.xhtml#1'>1</a> in 1911<span hidden=''>no</span>.</p>"
    with zipfile.ZipFile(io.BytesIO(epub(first, "<p>x</p>"))) as book:
        members: dict[str, str | bytes] = {
            name: book.read(name) for name in book.namelist()
        }
    second = (
        '<?xml version="1.0" encoding="utf-16"?><html><body><p>Málaga</p></body></html>'
    )
    members["OEBPS/c1.xhtml"] = second.encode("utf-16")
    found = convert(HeldFile("a.epub", archive(members)))
    assert (found.text, dict(found.left_out)) == (
        "Ilse [1] in 1911.\n\nMálaga",
        {"hidden": 1},
    )

    item = (
        "<enc:EncryptedData xmlns:enc='x'><enc:EncryptionMethod Algorithm='{}'/>"
        "<enc:CipherReference URI='{}'/></enc:EncryptedData>"
    )
    fonts = item.format("http://www.idpf.org/2008/embedding", "OEBPS/f.otf")
    chapter = item.format(
        "http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/c0.xhtml"
    )
    sealed = {**members, "META-INF/encryption.xml": f"<encryption>{fonts}</encryption>"}
    assert convert(HeldFile("a.epub", archive(sealed))).text == found.text
    sealed["META-INF/encryption.xml"] = f"<encryption>{fonts}{chapter}</encryption>"
    with pytest.raises(NotText, match="encrypted, so that only its shop's"):
        convert(HeldFile("a.epub", archive(sealed)))
    with pytest.raises(
        NotText, match=r"its part c0\.xhtml is not text: the book is encrypted"
    ):
        convert(HeldFile("a.epub", archive(members | {"OEBPS/c0.xhtml": b"a\0" * 20})))


def run(text: str, look: str) -> str:
    return f"<w:r><w:rPr>{look}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


BEGINS = "<w:vMerge w:val='restart'/>"
UP = "<w:vertAlign w:val='superscript'/>"
STYLES = (
    "<w:styles xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'>"
    "<w:style w:type='character' w:styleId='Base'><w:rPr><w:vanish/></w:rPr></w:style>"
    "<w:style w:type='character' w:styleId='Secret'><w:basedOn w:val='Base'/></w:style>"
    "<w:style w:type='character' w:styleId='Up'><w:rPr><w:vertAlign w:val='superscript'/></w:rPr></w:style></w:styles>"
)


@pytest.mark.parametrize(
    ("runs", "text", "left_out"),
    [
        (run("in 1958", "") + run("3", UP) + run(", 10", "") + run("-", UP) + run("6", UP), "in 1958 [3], 10^-6", {}),
        (run("10", "") + run("6", "<w:rStyle w:val='Up'/>"), "10^6", {}),
        (run("5 m", "") + run("2", "<w:position w:val='6'/>"), "5 m^2", {}),
        (run("Karl", "<w:strike/>") + run("Binn", "<w:dstrike/>"), "Nadia", {"struck out": 2}),
        (run("a", "<w:vanish/>") + run("b", "<w:rStyle w:val='Secret'/>"), "Nadia", {"hidden": 2}),
        (run("a", "<w:sz w:val='2'/>") + run("b", "<w:color w:val='FFFFFF'/>"), "Nadia", {"hidden": 2}),
        (run("a", "<w:color w:val='FFFFFF'/><w:shd w:fill='000000'/>"), "a", {}),
        (f"<w:moveTo>{run('Here', '')}</w:moveTo><w:moveFrom>{run('There', '')}</w:moveFrom>", "Here", {}),
    ],
)  # fmt: skip
def test_runs_of_a_word_file(runs: str, text: str, left_out: dict[str, int]) -> None:
    runs += run("Nadia", "<w:strike w:val='0'/>") if text == "Nadia" else ""
    found = convert(
        HeldFile(
            "a.docx",
            docx(more=f"<w:p>{runs}</w:p>", others={"word/styles.xml": STYLES}),
        )
    )
    assert (found.text, dict(found.left_out)) == (text, left_out)


@pytest.mark.parametrize("repeated", [1, 900])
def test_cells_of_a_word_file_keep_their_columns(repeated: int) -> None:
    def cell(text: str, look: str = "") -> str:
        return f"<w:tc><w:tcPr>{look}</w:tcPr><w:p>{run(text, '')}</w:p></w:tc>"

    first = f"<w:tr>{cell('Low', BEGINS)}{cell('Tal')}{cell('1902')}</w:tr>"
    second = f"<w:tr>{cell('', '<w:vMerge/>')}{cell('Wren')}{cell('1903')}</w:tr>"
    late = (
        f"<w:tr><w:trPr><w:gridBefore w:val='1'/></w:trPr>{cell('2')}{cell('3')}</w:tr>"
    )
    table = f"<w:tbl><w:tr>{cell('Deck')}{cell('Officer')}{cell('Year')}</w:tr>{first}{second}{late * repeated}</w:tbl>"
    lines = convert(HeldFile("a.docx", docx(more=table))).text.splitlines()
    assert [lines[0], *lines[2:5]] == [
        "| Deck | Officer | Year |",
        "| Low | Tal | 1902 |",
        "| Low | Wren | 1903 |",
        "|  | 2 | 3 |",
    ]


def test_an_open_document_is_read_as_it_is_seen() -> None:
    spaces = " ".join(
        f"xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'"
        for name in ("office", "text", "table", "style")
    )
    looks = {
        "Up": "style:text-position='super 58%'",
        "Gone": "style:text-line-through-style='solid'",
        "Secret": "text:display='none'",
    }
    styles = "".join(
        f"<style:style style:name='{name}'><style:text-properties {look}/></style:style>"
        for name, look in looks.items()
    )
    styles += "<style:style style:name='Child' style:parent-style-name='Secret'/>"

    def span(style: str, text: str) -> str:
        return f"<text:span text:style-name='{style}'>{text}</text:span>"

    def cell(text: str, about: str = "") -> str:
        return f"<table:table-cell {about}><text:p>{text}</text:p></table:table-cell>"

    words = f"In 1958{span('Up', '3')} 10{span('Up', '6')} {span('Gone', 'Karl')}{span('Child', 'secret')}Nadia"
    low = cell("Low", "table:number-rows-spanned='2'")
    rows = [
        cell("Deck") + cell("Officer"),
        low + cell("Tal"),
        "<table:covered-table-cell/>" + cell("Wren"),
    ]
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    body = f"<text:p>{words}</text:p><table:table>{table}</table:table>"
    content = f"<d {spaces}>{styles}<office:body><office:text>{body}</office:text></office:body></d>"
    found = convert(HeldFile("a.odt", archive({"content.xml": content})))
    assert found.text.splitlines()[0] == "In 1958 [3] 10^6 Nadia"
    assert found.text.splitlines()[-2:] == ["| Low | Tal |", "| Low | Wren |"]
    assert dict(found.left_out) == {"hidden": 1, "struck out": 1}


def test_slides_that_are_hidden_are_empty_and_runs_are_read_as_they_are_seen() -> None:
    from pptx import Presentation
    from pptx.util import Inches

    made: Any = Presentation()
    for number in range(2):
        slide = made.slides.add_slide(made.slide_layouts[6])
        box = slide.shapes.add_textbox(
            0, 0, Inches(2), Inches(2)
        ).text_frame.paragraphs[0]
        for text, look in (
            ("in 1958", {}),
            ("3", {"baseline": "30000"}),
            ("Karl", {"strike": "sngStrike"}),
        ):
            part = box.add_run()
            part.text = text
            for name, value in look.items():
                part._r.get_or_add_rPr().set(name, value)
        slide.shapes.add_textbox(
            Inches(-9), 0, Inches(2), Inches(2)
        ).text_frame.text = "beyond"
        slide.notes_slide.notes_text_frame.text = f"Note {number}."
    made.slides[0]._element.set("show", "0")
    file = io.BytesIO()
    made.save(file)
    found = convert(HeldFile("a.pptx", file.getvalue()))
    assert found.text == "in 1958 [3]\n\n### Notes:\nNote 1.\n"
    assert (found.pages, dict(found.left_out)) == (
        (0, 0),
        {"hidden": 2, "struck out": 1},
    )


@pytest.mark.parametrize(
    ("drawn", "text", "hidden"),
    [
        (
            "in 1958) Tj /F1 8 Tf 5 Ts (3) Tj /F1 12 Tf 0 Ts ( at 10) Tj 5 Ts (6",
            "in 1958 [3] at 10^6",
            0,
        ),
        (
            "cost 10) Tj ET BT 8 0 0 8 59 24 Tm /F1 1 Tf (6) Tj 12 0 0 12 63 20 Tm ( crowns",
            "cost 10^6 crowns",
            0,
        ),
        ("H) Tj /F1 8 Tf -3 Ts (2) Tj /F1 12 Tf 0 Ts (O", "H2O", 0),
        ("label) Tj /F1 8 Tf 180 3 Td (value", "label value", 0),
        (
            "Seen) Tj 1 g (white) Tj 0 0 0 0 k (white) Tj 0 g 0.4 Tz /F1 0.5 Tf (tiny",
            "Seen",
            3,
        ),
        (
            "Seen) Tj 3 Tr (no ink) Tj 0 Tr 0 900 Td (above) Tj 900 0 Td [(be) 9 (side)] TJ (",
            "Seen",
            3,
        ),
        (
            "Seen) Tj ET 1 0 0 rg 0 0 300 10 re f BT 1 g 20 2 Td ( on red",
            "Seen\n on red",
            0,
        ),
        ("Seen) Tj 1 g 14 TL (white) ' 0 g (below", "Seen\nbelow", 1),
        ("Seen) Tj -200 0 Td (left of it", "Seen", 1),
        (
            "Pump) Tj T* ET BT 60 20 Td (Maker) Tj T* ET BT 60 5 Td (P-61",
            "Pump Maker\nP-61",
            0,
        ),
    ],
)
def test_a_pdf_is_read_as_it_is_seen(drawn: str, text: str, hidden: int) -> None:
    found = convert(HeldFile("a.pdf", pdf(drawn)))
    assert (found.text, found.left_out.get("hidden", 0)) == (f"{text}\n", hidden)


MILL = "The mill was built in|the valley of Orvena by|a miller, and the wheel|was turned by the river|until it was sold to"
HOUSE = "Ruben Tal had a house|on the hill above it|and kept there some|two hundred sheep of|which he sold the wool"
PUMPS = "|".join(f"Pump {number} of the works" for number in range(5))
MAKERS = "|".join(f"Made by Mark {number} & Sons" for number in range(5))


@pytest.mark.parametrize(
    ("left", "right", "by_columns"),
    [(MILL, HOUSE, True), (PUMPS, MAKERS, False), (MILL, MAKERS, False)],
    ids=["prose", "table", "notes"],
)
def test_columns_of_prose_are_read_one_after_the_other_and_rows_of_a_table_across(
    left: str, right: str, by_columns: bool
) -> None:
    lefts = left.split("|")
    rights = right.split("|")
    drawn = ") Tj /F1 5 Tf 1 0 0 1 20 44 Tm (Of the mill) Tj "
    for number, texts in enumerate(zip(lefts, rights, strict=True)):
        for x, text in zip((20, 160), texts, strict=True):
            drawn += f"1 0 0 1 {x} {38 - 6 * number} Tm ({text}) Tj "
    found = convert(HeldFile("a.pdf", pdf(f"{drawn}1 0 0 1 20 6 Tm (The end.")))
    lines = [*lefts, *rights]
    if not by_columns:
        lines = list(map(" ".join, zip(lefts, rights, strict=True)))
    assert found.text.splitlines() == ["Of the mill", *lines, "The end."]


TOWN = [
    "The mill was built in|the valley of Orvena by|a miller, and the wheel|was turned by the river|until it was sold.",
    "Ruben Tal had a house|on the hill above it|and kept there some|two hundred sheep.",
]


@pytest.mark.parametrize(
    "place",
    [
        lambda column, line: (20 + 200 * column, 700 - 12 * line),
        lambda column, line: (20 + 200 * column + 12 * (line == 2), 700 - 12 * line),
        lambda column, line: (20 + 200 * column, 700 - 12 * line - 5 * column),
    ],
    ids=["straight", "indented", "of other heights"],
)
def test_columns_end_at_a_line_across_them_and_one_may_be_longer(
    place: Callable[[int, int], tuple[int, int]],
) -> None:
    columns = [text.split("|") for text in TOWN]
    shown = [Shown(20.0, 724.0, 60)]
    parts = [0]
    for block in (0, 10):
        for line in range(5):
            for column in range(2):
                if line < len(columns[column]):
                    x, y = place(column, block + line)
                    shown.append(Shown(x, y, len(columns[column][line])))
                    parts.append(1 + column + 3 * (block > 0))
        if not block:
            shown.append(Shown(20.0, 610.0, 70))
            parts.append(3)
    found = parts_of_page(shown)
    assert found == Parts(parts, columns=[ACROSS, 0, 1, ACROSS, 0, 1])


def test_a_page_of_very_many_columns_is_not_read_once_for_each() -> None:
    def drawn(columns: int) -> list[Shown]:
        return [
            Shown(x=99.0 * column, y=700.0 - 12 * line, length=20)
            for line in range(6)
            for column in range(columns)
        ]

    assert parts_of_page(drawn(3)) == Parts([0, 1, 2] * 6, columns=[0, 1, 2])
    assert parts_of_page(drawn(300)) is None


def test_text_without_ink_is_read_where_it_is_all_that_there_is() -> None:
    found = convert(
        HeldFile("a.pdf", pdf("a) Tj 3 Tr 0 -12 Td (secret", "by OCR) Tj ET BT ("))
    )
    assert found.text == "a\nby OCR\n"
    scan = convert(
        HeldFile(
            "a.pdf", pdf(") Tj 3 Tr (A scanned page", ") Tj 3 Tr (and) Tj 1 g (white")
        )
    )
    assert (scan.text, dict(scan.left_out)) == ("A scanned page\nand\n", {"hidden": 1})


def test_what_a_layer_or_a_form_hides_is_left_out() -> None:
    pypdf = pytest.importorskip("pypdf")
    generic = pypdf.generic
    writer = pypdf.PdfWriter(
        clone_from=io.BytesIO(
            pdf("Seen.) Tj ET /OC /L BDC BT (layer) Tj ET EMC /F Do BT (")
        )
    )
    layer = writer._add_object(generic.DictionaryObject())
    form = generic.DecodedStreamObject()
    form.set_data(
        b"BT /F1 12 Tf 1 0 0 1 20 20 Tm 1 g (white) Tj 0 g ( In a form.) Tj ET"
    )
    name = generic.NameObject
    form.update({name("/Type"): name("/XObject"), name("/Subtype"): name("/Form")})
    resources = writer.pages[0]["/Resources"]
    form[name("/Resources")] = generic.DictionaryObject(
        {name("/Font"): resources["/Font"]}
    )
    resources[name("/Properties")] = generic.DictionaryObject(
        {name("/L"): layer.indirect_reference}
    )
    resources[name("/XObject")] = generic.DictionaryObject(
        {name("/F"): writer._add_object(form)}
    )
    off = generic.DictionaryObject(
        {name("/OFF"): generic.ArrayObject([layer.indirect_reference])}
    )
    writer.root_object[name("/OCProperties")] = generic.DictionaryObject(
        {name("/D"): off}
    )
    file = io.BytesIO()
    writer.write(file)
    found = convert(HeldFile("a.pdf", file.getvalue()))
    assert (found.text.split(), dict(found.left_out)) == (
        ["Seen.", "In", "a", "form."],
        {"hidden": 2},
    )


@pytest.mark.parametrize(
    "title",
    [
        *(
            "untitled",
            "(anonymous)",
            "Untitled-1",
            "Document1",
            "PowerPoint Presentation",
            "Präsentation 3",
            "-",
        ),
        *(
            "Microsoft Word - Draft v3 FINAL",
            "report_final.DOCX",
            "C:\\texts\\a.rtf",
            "file:///a.html",
            "Sans titre",
        ),
    ],
)
def test_a_title_that_is_none_gives_way_to_the_files_name(title: str) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf("Text.")))
    writer.add_metadata({"/Title": title})
    file = io.BytesIO()
    writer.write(file)
    files = [
        HeldFile("The_mill.pdf", file.getvalue()),
        HeldFile("The_mill.md", f"---\ntitle: '{title}'\n---\nText.".encode()),
    ]
    files.append(HeldFile("The_mill.html", f"<title>{title}</title><p>Text.".encode()))
    found = [item for held in files for item in load(held)]
    assert [item.title for item in found if isinstance(item, Document)] == [
        "The mill"
    ] * 3


@pytest.mark.parametrize(
    "title",
    [
        "1984",
        "Untitled No. 3, by Ada Finn",
        "Word for Word",
        "Titles of Nobility",
        "Node.js",
    ],
)
def test_a_title_that_is_one_stays(title: str) -> None:
    assert page(f"<title>{title}</title><p>Text.").title == title


def test_a_run_says_how_much_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<p>Seen.</p><p hidden>one</p><p hidden>two</p><s>three</s>"
    )
    with Apart(60) as process:
        items = list(load(tmp_path / "a.html", convert=process.convert))
    assert [str(item) for item in items if isinstance(item, Skipped)] == [
        "a.html: text that no reader sees is left out: 2 parts hidden",
        "a.html: text that no reader sees is left out: 1 part struck out",
    ]
    assert [item.text for item in items if isinstance(item, Document)] == ["Seen."]


def test_a_page_of_which_nothing_is_seen_says_so() -> None:
    with pytest.raises(NotText, match="no text that a reader sees"):
        page("<p hidden>all")


FARES = "| Town | Fare Adult | Fare Child |\n| --- | --- | --- |\n| Pellis | 22 | 9 |"
BODY = "<tr><td>Pellis<td>22<td>9</table>"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            f"<thead><tr><th rowspan=2>Town<th colspan=2>Fare<tr><th>Adult<th>Child</thead>{BODY}",
            FARES,
        ),
        (
            f"<tr><td rowspan=2>Town<td colspan=2>Fare<tr><td>Adult<td>Child{BODY}",
            FARES,
        ),
        (
            f"<tr><th><th colspan=2>Fare<tr><th>Town<th>Adult<th>Child{BODY}",
            FARES,
        ),
        (
            f"<thead><tr><th colspan=3>Of 1911<tr><th>Town<th>Fare Adult<th>Fare Child</thead>{BODY}",
            f"Of 1911\n\n{FARES}",
        ),
        (
            "<tr><th colspan=2>Kestrel<tr><th>Owner<td>Ada <a href=x>Finn</a><tr><th>Seat<td>Varn</table>",
            "Kestrel\n\nOwner: Ada Finn\n\nSeat: Varn",
        ),
        (
            "<tr><th>Key<th>Means<tr><td>a|b<td>or</table>",
            "| Key | Means |\n| --- | --- |\n| a\\|b | or |",
        ),
        (
            "<tfoot><tr><td>All<td>31<tbody><tr><td>Town<td>Fare<tbody><tr><td>Pellis<td>22</table>",
            "| Town | Fare |\n| --- | --- |\n| Pellis | 22 |\n| All | 31 |",
        ),
        (
            "<tr><th>Town<th>Fare<tr><th colspan=2>North<tr><td>Pellis<td>22</table>",
            "| Town | Fare |\n| --- | --- |\n| North |  |\n| Pellis | 22 |",
        ),
        (
            "<thead><tr><th>Town<th>Fare<tbody><tr><th>Pellis<th>22</table>",
            "| Town | Fare |\n| --- | --- |\n| Pellis | 22 |",
        ),
    ],
    ids=["thead", "td", "th", "title", "box", "bar", "foot", "group", "body of th"],
)
def test_a_header_of_several_rows_is_one_and_a_box_of_values_is_lines(
    table: str, text: str
) -> None:
    assert page(f"<table>{table}").text == text


def test_what_word_computes_is_read_and_its_line_ends_part_words() -> None:
    runs = "<w:r><w:t>On</w:t></w:r><w:fldSimple w:instr='DATE'><w:r><w:t xml:space='preserve'> 5 May</w:t></w:r>"
    runs += "</w:fldSimple>"
    runs += "<w:r><w:cr/><w:t>in Varn</w:t></w:r>"
    found = convert(HeldFile("a.docx", docx(more=f"<w:p>{runs}</w:p>")))
    assert found.text.split() == ["On", "5", "May", "in", "Varn"]

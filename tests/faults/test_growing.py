"""Attacks by documents that are small as files and large, deep or slow once they are read."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ras_agent import PassageIndex
from tests.faults.attack import Attack
from tests.tools.index.test_apart import archive, pages, word

SECONDS = 90
"""Of the processor, for the command that indexes one such document."""
MEGABYTES = 2_300

MEASURED = """
import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(ended.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
COMMAND = "from ras_agent.app.cli import main; main()"

ENTITIES = "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">'
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LAUGHS = f'<!DOCTYPE x [<!ENTITY a "kelp">{ENTITIES}]>'
MAIL = "From: a@b.example\r\nSubject: "
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


def cell(row: str, about: str) -> str:
    """A table of Word of one cell."""
    text = "<w:p><w:r><w:t>kelp</w:t></w:r></w:p>"
    return f"<w:tbl><w:tr>{row}<w:tc>{about}{text}</w:tc></w:tr></w:tbl>"


def open_document(body: str) -> bytes:
    """A text of OpenDocument."""
    names = " ".join(
        f'xmlns:{name}="{OFFICE}:{name}:1.0"' for name in ("office", "table", "text")
    )
    content = f"<office:document-content {names}><office:body><office:text>{body}"
    end = "</office:text></office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.text"
    return archive(**{"mimetype": kind, "content.xml": content + end})


def squeezed(times: int) -> bytes:
    """A PDF whose content is compressed some times over."""
    content = b"BT (kelp ) Tj ET " * 20_000_000
    for _ in range(times):
        content = zlib.compress(content, 9)
    filters = b"/FlateDecode " * times
    whole = pages(1, content)
    return whole.replace(b"<</Length", b"<</Filter[%s]/Length" % filters)


def parts(depth: int) -> str:
    """A mail of parts in parts."""
    heads = (
        f'Content-Type: multipart/mixed; boundary="b{number}"\r\n\r\n--b{number}\r\n'
        for number in range(depth)
    )
    return f"{MAIL}parts\r\n{''.join(heads)}Content-Type: text/plain\r\n\r\nkelp"


def facts(count: int) -> bytes:
    """A record of a long text and as many facts."""
    text = " ".join(f"Ada {number} owns thing {number}." for number in range(count))
    every = [["Ada", "owns", "thing"] for _ in range(count)]
    return json.dumps({"title": "x", "text": text, "facts": every}).encode()


def table(columns: int) -> bytes:
    """A row of so many columns."""
    names = ",".join(f"c{number}" for number in range(columns))
    return f"{names}\n{','.join(['kelp'] * columns)}\n".encode()


def aliases() -> str:
    """Front matter whose names stand for ten times the one before."""
    lines = (
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return "\n".join(["---", "a: &a [x,x,x]", *lines, "title: *i", "---", "kelp"])


def substitutions() -> str:
    """Names of reStructuredText that stand for ten times the one before."""
    lines = (
        f".. |{name}| replace:: {f'|{before}| ' * 10}"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return "\n".join([".. |a| replace:: kelp", *lines, "", "|i|", ""])


DOCUMENTS = {
    "laughs.docx": lambda: word("<w:p><w:r><w:t>&i;</w:t></w:r></w:p>", LAUGHS),
    "span.docx": lambda: word(
        cell("", '<w:tcPr><w:gridSpan w:val="100000000"/></w:tcPr>')
    ),
    "before.docx": lambda: word(
        cell('<w:trPr><w:gridBefore w:val="100000000"/></w:trPr>', "")
    ),
    "tables.docx": lambda: word("<w:tbl><w:tr><w:tc>" * 3_000),
    "repeat.odt": lambda: open_document(
        '<table:table><table:table-row table:number-rows-repeated="1048576"><table:table-cell '
        'table:number-columns-repeated="16384"><text:p>kelp</text:p></table:table-cell></table:table-row></table:table>'
    ),
    "blanks.odt": lambda: open_document('<text:p>kelp<text:s text:c="1000000000"/>x'),
    "squeezed.pdf": lambda: squeezed(3),
    "columns.html": lambda: b"<table><tr><td colspan=100000000>kelp</table>",
    "rows.html": lambda: b"<table><tr><td rowspan=99999999>a<td>b" + b"<tr><td>c" * 999,
    "deep.html": lambda: b"<div>" * 200_000 + b"kelp",
    "tables.html": lambda: b"<table><tr><td>" * 30_000 + b"kelp",
    "raised.html": lambda: b"<sup>" * 20_000 + b"kelp",
    "formula.html": lambda: b"<math>" + b"<msup><mi>x</mi>" * 20_000,
    "header.eml": lambda: f"{MAIL}{'=?utf-8?q?a?= ' * 200_000}\r\n\r\nkelp".encode(),
    "senders.eml": lambda: (
        f"{MAIL}x\r\nTo: {'a <a@b>, ' * 100_000}\r\n\r\nkelp".encode()
    ),
    "parts.eml": lambda: parts(3_000).encode(),
    "mails.eml": lambda: (
        f"{MAIL}x\r\nContent-Type: message/rfc822\r\n\r\n" * 3_000
    ).encode(),
    "wide.csv": lambda: table(200_000),
    "facts.jsonl": lambda: facts(20_000),
    "deep.json": lambda: b"[" * 200_000,
    "aliases.md": lambda: aliases().encode(),
    "quotes.md": lambda: b">" * 100_000 + b" kelp",
    "names.rst": lambda: substitutions().encode(),
    "span.adoc": lambda: b"|===\n100000000+|kelp\n.100000000+|x\n100000000*|y\n|===\n",
}
"""Name of a file -> what makes its bytes."""


def check_bounded(attack: Attack, *arguments: str | Path) -> None:
    """Give a command, and expect that it ends as it should, in bounded time and memory."""
    command = [sys.executable, "-P", "-c", COMMAND, *map(str, arguments)]
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED, *command], capture_output=True, text=True
    )
    status, seconds, megabytes = measured.stdout.split()
    attack.expect(status in ("0", "1", "3"), f"status {status}")
    attack.expect(float(seconds) < SECONDS, f"{seconds} s")
    attack.expect(float(megabytes) < MEGABYTES, f"{megabytes} MB")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_that_grow(name: str, attack: Attack, tmp_path: Path) -> None:
    """Documents that grow when they are read: in bounded time and memory they are indexed or skipped, others are indexed"""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / name).write_bytes(DOCUMENTS[name]())
    (folder / "mill.md").write_text("The mill stands in Leith.")
    index = tmp_path / "my.index"
    check_bounded(attack, "index", folder, "--out", index)
    texts = [passage.text for passage in PassageIndex.open(index).passages]
    attack.expect("The mill stands in Leith." in texts, f"{name}: another is lost")


GRAPHS = {
    "laughs.rdf": f"{LAUGHS}<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://x/'>"
    "<r:Description r:about='http://a'><x:p>&i;</x:p></r:Description></r:RDF>",
    "laughs.graphml": f"{LAUGHS}<graphml><graph><node id='&i;'/></graph></graphml>",
    "deep.graphml": "<graphml>"
    + "<graph edgedefault='directed'><node id='n'>" * 20_000,
    "deep.json": '{"nodes":' + "[" * 100_000,
    "deep.jsonld": '{"@graph":' * 3_000,
    "lists.ttl": f"<http://a> <http://p> {'(' * 5_000}{')' * 5_000} .",
    "wide.csv": ",".join(map(str, range(100_000))) + "\n",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_that_grow(name: str, attack: Attack, tmp_path: Path) -> None:
    """Graphs that grow when they are read: in bounded time and memory they are added or refused"""
    file = tmp_path / name
    file.write_text(GRAPHS[name])
    check_bounded(attack, "kg", "add", tmp_path / "my.index", file)

"""Attacks by documents that take long to convert: which of them outlive the server, and who waits for them."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import httpx
import pytest

from ras_agent import Passage, PassageIndex
from ras_agent.tools.index.conversions import convert
from ras_agent.tools.index.text_files import HeldFile, NotText
from tests.app.serve.test_process import _process
from tests.faults.attack import COMMAND, Attack
from tests.tools.index.test_apart import CONTAINER, ENDLESS, PAGE, WORD, archive, book

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are looked up in /proc"
)

TOKENS = [f"token-{letter}-0123456789abcdef" for letter in "abcdef"]
SLOW = {
    "endless.pdf": ENDLESS,
    "endless.epub": book(100_000),
    "endless.htm": b"<div>" * 200_000 + b"x",
}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    PassageIndex.create(tmp_path / "my.index").add(
        [Passage("bell", "Bell was born in Edinburgh.", "Bell", "bell.md")]
    )
    return tmp_path / "my.index"


def _children(parent: int) -> list[int]:
    """Return the processes that a process has started, and that work."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, owner = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            if int(owner) == parent and state != "Z":
                children.append(int(folder.name))
    return children


def _gone(process: int, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if (
            not Path(f"/proc/{process}").exists()
            or ") Z " in Path(f"/proc/{process}/stat").read_text()
        ):
            return True
        time.sleep(0.05)
    return False


def _upload(
    address: str, name: str, data: bytes, token: str = TOKENS[0]
) -> tuple[int, float]:
    """Return the status of an upload, 0 where the server went away, and its seconds."""
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {token}"}
    try:
        told = httpx.post(
            f"{address}/api/documents",
            files={"files": (name, data)},
            headers=headers,
            trust_env=False,
            timeout=120,
        )
    except httpx.TransportError:
        return 0, time.monotonic() - began
    return told.status_code, time.monotonic() - began


@contextmanager
def _conversion(index: Path, data: bytes) -> Iterator[tuple[int, int]]:
    """Serve, and yield the processes of the server and of a conversion that it has begun."""
    with (
        _process(f"--index={index}", sample=False) as (process, address),
        ThreadPoolExecutor(1) as pool,
    ):
        upload = pool.submit(_upload, address, "endless.pdf", data)
        while not (children := _children(process.pid)) and not upload.done():
            time.sleep(0.05)
        yield process.pid, children[0]
        process.wait(30)


@contextmanager
def _indexing(index: Path, data: bytes) -> Iterator[tuple[int, int]]:
    """Run the command that indexes a file, and yield its process and that of the conversion that it has begun."""
    file = index.parent / "endless.pdf"
    file.write_bytes(data)
    with subprocess.Popen(
        [*COMMAND, "index", str(file), "--out", str(index)], stderr=subprocess.DEVNULL
    ) as process:
        while not (children := _children(process.pid)) and process.poll() is None:
            time.sleep(0.05)
        try:
            yield process.pid, children[0]
            process.wait(60)
        finally:
            process.kill()


def test_conversions_whose_server_ends(attack: Attack, index: Path) -> None:
    """Conversions whose server, or command, ends by a signal: all end with it"""
    endings = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGABRT)
    for number in attack.times(3):
        for begin, ending in product((_conversion, _indexing), endings):
            with begin(index, ENDLESS) as (parent, conversion):
                if number:
                    time.sleep(attack.random.uniform(0, 2))
                os.kill(parent, ending)
            held = _gone(conversion)
            attack.expect(
                held, f"{begin.__name__}: a conversion goes on after {ending.name}"
            )
            if not held:
                os.kill(conversion, signal.SIGKILL)


def test_slow_uploads_of_others(attack: Attack, index: Path, tmp_path: Path) -> None:
    """Uploads that take as long as they may, of five tokens at once: a sixth's own, of each kind, do not wait"""
    teams = {token: {"team": token[6]} for token in TOKENS}
    (tmp_path / "tokens.json").write_text(json.dumps(teams))
    options = (f"--index={index}", f"--tokens={tmp_path / 'tokens.json'}")
    own = {
        "note.md": b"# Mill\n\nA mill stands.",
        "page.html": PAGE,
        "rows.csv": b"text\nA mill stands.\n",
    }
    with (
        _process(*options, sample=False) as (process, address),
        ThreadPoolExecutor(5) as pool,
    ):
        slow = attack.random.choices(list(SLOW.items()), k=5)
        began = threading.Barrier(6)

        def send(token: str, name: str, data: bytes) -> tuple[int, float]:
            began.wait()
            return _upload(address, name, data, token)

        sent = [
            pool.submit(send, token, *file)
            for token, file in zip(TOKENS, slow, strict=False)
        ]
        began.wait()
        time.sleep(3)
        for name, data in own.items():
            status, seconds = _upload(address, name, data, TOKENS[5])
            attack.expect(
                status == 200 and seconds < 30,
                f"{name}: {status} after {seconds:.1f} s",
            )
        for upload, (name, _) in zip(sent, slow, strict=True):
            status, seconds = upload.result()
            attack.expect(
                status in (200, 422) and seconds < 75,
                f"{name}: {status} after {seconds:.1f} s",
            )
        attack.expect(
            _children(process.pid) == [], "a conversion goes on after its upload"
        )


SECRET = "The vault of Harrow opens with seven turns."


def _archives(secret: Path) -> Iterator[tuple[str, bytes]]:
    """Yield archives whose members and links lead to a file outside them, or out of a folder."""
    page = "<html><body><p>A mill stands in Leith.</p><img src='{0}'/><object data='{0}'></object></body></html>"
    ways = [
        str(secret),
        f"file://{secret}",
        f"../../../../../../../..{secret}",
        f"..\\..{secret}",
        f"//{secret}",
    ]
    for way in ways:
        opf = (
            '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
            f'<item id="a" href="{way}" media-type="application/xhtml+xml"/>'
            '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
        )
        parts = {
            "META-INF/container.xml": CONTAINER,
            "c.opf": opf,
            "b.xhtml": page.format(way),
        }
        yield (
            "book.epub",
            archive(
                **parts,
                **{way: "<p>A member.</p>", "../../escaped.xhtml": "<p>Out.</p>"},
            ),
        )
        relation = f'<Relationship Id="r9" Type="x/image" TargetMode="External" Target="{way}"/>'
        relations = f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relation}'
        document = f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>A mill.</w:t></w:r></w:p></w:body></w:document>'
        word = {
            "word/document.xml": document,
            "word/_rels/document.xml.rels": f"{relations}</Relationships>",
        }
        yield "letter.docx", archive(**word, **{way: "x", "../../escaped.xml": "<x/>"})
        yield "page.html", page.format(way).encode()
    linked = io.BytesIO()
    with zipfile.ZipFile(linked, "w") as made:
        made.writestr("META-INF/container.xml", CONTAINER)
        made.writestr("c.opf", _SPINE)
        link = zipfile.ZipInfo("a.xhtml")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        made.writestr(link, str(secret))
    yield "linked.epub", linked.getvalue()


_SPINE = (
    '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" '
    'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
)


def test_archives_that_lead_elsewhere(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents whose members, pictures and links lead to a file outside: it is not read, and nothing is written out"""
    secret = tmp_path / "secret.xhtml"
    secret.write_text(f"<p>{SECRET}</p>")
    (tmp_path / "in" / "side").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "in" / "side")
    before = set(tmp_path.rglob("*"))
    for name, data in _archives(secret):
        try:
            read = str(convert(HeldFile(name, data)))
        except NotText as error:
            read = str(error)
        attack.expect("seven turns" not in read, f"{name}: a file outside was read")
        attack.expect(set(tmp_path.rglob("*")) == before, f"{name}: written outside")

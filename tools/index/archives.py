"""Reads archives of Office files and books, which are treated as hostile, and rewrites some of their parts."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from ras_agent.tools.index.text_files import NotText, name_of

LARGEST_PART = 1 << 25
"""The maximum size of a part that is parsed, in bytes."""
LARGEST_UNPACKED = 1 << 28
MOST_MEMBERS = 10_000
_PIECE = 1 << 16
_ENCRYPTED = 1  # among the flags of a member
_MANIFEST = "META-INF/manifest.xml"
_OF_PASSWORD = b"manifest:encryption-data"
LOCKED = "needs a password; save a copy without one"
_WRITTEN = (".xml", ".rels", ".html", ".xhtml", ".htm", ".opf")


def check_archive(data: bytes, *, may_define: bool) -> None:
    """Check an Office or EPUB file, which is a ZIP archive, before a library unpacks it.

    Args:
        may_define: whether its XML files may have a document type definition, with which a few lines can expand to
            gigabytes; Office files never have one.

    Raises:
        NotText: for a definition that is not allowed, for an encrypted file, and for one that unpacks to too many
            bytes.
        zipfile.BadZipFile: if the file unpacks to more bytes than it declares.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise NotText(
            "encrypted, or in a format of Office before 2007; save it without a password, as .docx, .xlsx or .pptx"
        )
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
        if any(member.flag_bits & _ENCRYPTED for member in members):
            raise NotText(LOCKED)
        unpacked = sum(member.file_size for member in members)
        if unpacked > LARGEST_UNPACKED or len(members) > MOST_MEMBERS:
            raise NotText(
                f"unpacks to {unpacked >> 20:,} MiB in {len(members):,} files; at most {LARGEST_UNPACKED >> 20} MiB in "
                f"{MOST_MEMBERS:,} are read: divide it, or save it as text"
            )
        for member in members:
            name = name_of(member.filename)
            page = name.lower().endswith(_WRITTEN)
            if page and member.file_size > LARGEST_PART:
                raise NotText(
                    f"its part {name} is larger than {LARGEST_PART >> 20} MiB; divide the file"
                )
            # piece by piece; a wrong size leads to a wrong checksum
            with archive.open(member) as file:
                piece = file.read(_PIECE)
                if (
                    page
                    and not may_define
                    and b"<!DOCTYPE" in piece.replace(b"\0", b"")
                ):
                    raise NotText(
                        f"its part {name} has a document type, which is not read, for safety; save the file again with Office"
                    )
                if name == _MANIFEST and _OF_PASSWORD in piece:
                    raise NotText(LOCKED)
                while piece:
                    piece = file.read(_PIECE)


def parsed_xml(content: bytes) -> Any:
    """Return the tree of a part of an archive, without resolving its entities."""
    import lxml.etree as etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(content, parser)


def with_parts(data: bytes, parts: Mapping[str, bytes]) -> bytes:
    """Return an archive in which the contents of some parts are replaced."""
    after = BytesIO()
    archive = zipfile.ZipFile(BytesIO(data))
    with archive, zipfile.ZipFile(after, "w") as written:
        for name in dict.fromkeys(archive.namelist()):
            content = parts.get(name)
            if content is None:
                content = archive.read(name)
            written.writestr(name, content)
    return after.getvalue()

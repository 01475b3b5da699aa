"""Finds the files from which passages were read, so that a page in the same folder can link to them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from ras_agent.contracts.records import Passage

_PLACES = ("path", "file", "source")
"""Keys of a passage's metadata that may hold the path of its file. They are tried before the document's id."""


def source_files(passages: Mapping[str, Passage], folder: Path) -> dict[str, str]:
    """Return a link from `folder` to the file of each document, by the document's id. Documents without a file
    are left out.

    A relative path is looked up in `folder`, then in the working folder.
    """
    links = {}
    for passage in passages.values():
        if passage.document_id not in links and (link := _link(passage, folder)):
            links[passage.document_id] = link
    return links


def _link(passage: Passage, folder: Path) -> str:
    names = [*(passage.metadata.get(key) for key in _PLACES), passage.document_id]
    for name in names:
        # a name without a suffix may be a folder or a program, which are not documents
        if (
            not isinstance(name, str)
            or not PurePosixPath(name).suffix
            or "\0" in name
            or len(name) > 1000
        ):
            continue
        for base in (folder, Path()):
            try:
                path = (base / name).resolve()
                if path.is_file():
                    return quote(
                        Path(os.path.relpath(path, folder.resolve())).as_posix()
                    )
            # an impossible file name or, on Windows, a path on another drive
            except (OSError, ValueError):
                continue
    return ""

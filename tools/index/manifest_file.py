"""A JSON file that says what a folder holds and in which files. Replacing it is what commits a write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.durable import replace_file

__all__ = ["ManifestFile"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One kind of such files. what: "index" say, which `command` makes."""

    name: str
    form: str
    version: int
    what: str
    command: str

    def read(self, folder: Path, parse: Callable[[dict[str, Any]], T]) -> T:
        """What `parse` makes of the file. Raises IndexNotFound without one, IndexMismatch for one of another layout."""
        path, remedy = folder / self.name, f"build the {self.what.split()[-1]} anew"
        try:
            data = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise IndexNotFound(f"no {self.what} at {folder}: make one with `{self.command}`") from None
        except (ValueError, RecursionError) as error:
            raise IndexMismatch(f"{path} is damaged ({error}): {remedy}") from error
        known = isinstance(data, dict) and data.pop("format", None) == self.form
        version = data.pop("version", None) if known else None
        if version != self.version:
            raise IndexMismatch(
                f"{path} has {f'version {version}' if known else 'another format'}, this ras-agent reads "
                f"'{self.form}' version {self.version}: {remedy}"
            )
        try:
            return parse(data)
        except (KeyError, TypeError, ValueError) as error:
            raise IndexMismatch(f"{path} is damaged ({error}): {remedy}") from error

    def write(self, folder: Path, manifest: Any) -> None:
        """Commit: from here on readers see `manifest`, a dataclass."""
        data = {"format": self.form, "version": self.version, **asdict(manifest)}
        replace_file(folder / self.name, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")

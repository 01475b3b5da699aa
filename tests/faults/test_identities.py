"""Attacks on the identity of documents: folders of one name, moved, copied, changed and named in any way, record ids.

Every file and record has a text of its own, so that whatever overwrites or doubles another is seen in the index.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from tests.faults.attack import Attack

PLACES = [
    f"{parent}/{name}" for parent in ("a", "b", "c/docs") for name in ("docs", "notes")
]
NAMES = ["x.txt", "y.txt", "in/x.txt", "records.jsonl", "in/records.jsonl"]
COMMANDS = 12


class Walk:
    """Changes folders and indexes them, and knows which texts have to be in the index."""

    def __init__(self, root: Path, random: Random) -> None:
        self.root, self.out, self.random = root, root / "my.index", random
        self.numbers = count()
        self.texts: dict[Path, list[str]] = {}  # the words of the files
        self.indexed: dict[
            Path, list[str]
        ] = {}  # the words that they had when they were indexed, or moved
        self.ghosts: set[str] = set()  # texts of places that are gone

    def write(self) -> None:
        path = self.root / self.random.choice(PLACES) / self.random.choice(NAMES)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            texts = [f"text {next(self.numbers)}"]
            path.write_text(texts[0])
        else:
            records = {
                str(self.random.randrange(5)): f"text {next(self.numbers)}"
                for _ in range(3)
            }
            texts = list(records.values())
            path.write_text(
                "".join(
                    json.dumps({"id": name, "text": text}) + "\n"
                    for name, text in records.items()
                )
            )
        # no two files have one time
        stamp = 1_700_000_000_000_000_000 + next(self.numbers)
        os.utime(path, ns=(stamp, stamp))
        self.texts[path] = texts

    def remove(self) -> None:
        if self.texts:
            path = self.random.choice(sorted(self.texts))
            path.unlink()
            del self.texts[path]

    def move(self) -> None:
        """Move a folder to a place that is free, or copy it there."""
        old, new = (self.root / place for place in self.random.sample(PLACES, 2))
        if not old.is_dir() or new.exists() or old in new.parents or new in old.parents:
            return
        new.parent.mkdir(parents=True, exist_ok=True)
        if copied := self.random.random() < 0.3:
            shutil.copytree(old, new)
        else:
            shutil.move(old, new)
        for path in [path for path in self.texts if old in path.parents]:
            self.texts[new / path.relative_to(old)] = (
                self.texts[path] if copied else self.texts.pop(path)
            )
        if not copied:
            for path in [path for path in self.indexed if old in path.parents]:
                self.ghosts.update(self.indexed.pop(path))

    def index(self) -> str:
        """Index some folders and files, and return the faults."""
        there = [
            self.root / place for place in PLACES if (self.root / place).is_dir()
        ] + sorted(self.texts)
        named = self.random.sample(there, min(len(there), self.random.randint(1, 3)))
        if not named or not any(self._under(path, named) for path in self.texts):
            return ""
        prune = self.random.random() < 0.3
        paths = [
            path
            if self.random.random() < 0.7
            else path.parent / ".." / path.parent.name / path.name
            for path in named
        ]
        ingest(paths, self.out, prune=prune)
        for path in [
            path
            for path in self.indexed
            if self._under(path, named) and path not in self.texts
        ]:
            self.ghosts.update(self.indexed.pop(path))
        self.indexed |= {
            path: texts
            for path, texts in self.texts.items()
            if self._under(path, named)
        }
        index = PassageIndex.open(self.out)
        found = Counter(passage.text for passage in index.passages)
        wanted = Counter(text for texts in self.indexed.values() for text in texts)
        if lost := [text for text in wanted if found[text] < wanted[text]]:
            return f"lost: {lost[0]!r} of {[path for path, texts in self.indexed.items() if lost[0] in texts]}"
        if doubled := [
            text
            for text in wanted
            if found[text] > wanted[text] and text not in self.ghosts
        ]:
            return f"doubled: {doubled[0]!r}"
        if made_up := found.keys() - wanted.keys() - self.ghosts:
            return f"should be gone: {sorted(made_up)[0]!r}"
        if ingest(paths, self.out, prune=prune).documents_written:
            return "the same command writes again"
        return ""

    def _under(self, path: Path, named: list[Path]) -> bool:
        return any(path == place or place in path.parents for place in named)


def test_identities_of_documents(attack: Attack, tmp_path: Path) -> None:
    """random walks of files written, removed, moved, copied, and indexed by any path: nothing lost, nothing doubled."""
    for number in attack.times(40):
        walk = Walk(tmp_path / f"walk{number}", attack.random)
        for _ in range(6):
            walk.write()
        for step in range(COMMANDS):
            for change in attack.random.choices(
                [walk.write, walk.remove, walk.move], [5, 1, 2], k=3
            ):
                change()
            wrong = walk.index()
            attack.expect(not wrong, f"walk {number}, command {step}: {wrong}")
            if wrong:
                break
        shutil.rmtree(walk.root)

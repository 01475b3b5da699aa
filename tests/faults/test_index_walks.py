"""Attacks on one index by several objects that write it in turn, while its cache is deleted and readers look on.

After every write no file holds anything of a text that is gone, and every reader finds the hits of an index in memory.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.index import segment, store
from ras_agent.tools.index.passages import hash_of, term_hash
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from tests.faults.attack import Attack
from tests.faults.test_erased import Hashes

STEPS = 25


def _in_letters(*numbers: int) -> str:
    """Return a word of only letters, which no tokeniser splits at its figures."""
    letters = str.maketrans("0123456789", "abcdefghij")
    return "x".join(str(number).translate(letters) for number in numbers)


def _traces(index: PassageIndex, passage: Passage) -> list[bytes]:
    word = passage.text.split()[0]
    (term,) = index.snapshot.tokeniser.terms(word)
    numbers = [hash_of(passage.id), hash_of(passage.text), term_hash(term)]
    vector = Hashes().embed([passage.text])[0].tobytes()
    return [
        word.encode(),
        vector,
        *(number.to_bytes(8, "little") for number in numbers),
    ]


def _found(index: PassageIndex, query: str) -> list[tuple[str, str, float]]:
    hits = [
        hit
        for name in ("bm25", "dense")
        for hit in retriever_over(index, name).retrieve(query, 5)
    ]
    return [(hit.passage.id, hit.passage.text, round(hit.score, 4)) for hit in hits]


def test_several_writers_of_one_index(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three objects add, replace and delete in turn, the cache is deleted: all find the same, nothing gone is left."""
    monkeypatch.setattr(segment, "SAVED_FROM", 4)
    monkeypatch.setattr(store, "_RENUMBER_FROM", 6)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    for walk in attack.times(40):
        path, random = tmp_path / f"i{walk}", attack.random
        PassageIndex.create(path, Hashes())
        here, gone = PassageIndex.in_memory([], Hashes()), list[Passage]()
        writers = [PassageIndex.open(path, Hashes()) for _ in range(3)]
        for step in range(STEPS):
            writer = random.choice(writers)
            what = random.choice(["put", "put", "delete", "cache", "reopen"])
            before = {passage.id: passage for passage in here.passages}
            if what == "put":
                batch = []
                for id in random.sample(range(30), random.randint(1, 9)):
                    shared = _in_letters(random.randrange(4))
                    twice = _in_letters(random.randrange(12))
                    own = _in_letters(walk, step, id)
                    batch.append(
                        Passage(
                            f"p{id}",
                            f"Only{own}x Shared{shared}k Twice{twice}x river",
                            document_id=f"d{id % 7}",
                        )
                    )
                here.upsert(batch)
                writer.upsert(batch)
            elif what == "delete":
                names = [f"d{random.randrange(7)}"]
                here.delete_documents(names)
                writer.delete_documents(names)
            elif what == "cache":
                shutil.rmtree(path / "cache", ignore_errors=True)
            else:
                writers[random.randrange(3)] = PassageIndex.open(path, Hashes())
            after = {passage.id: passage for passage in here.passages}
            gone += [
                passage for id, passage in before.items() if after.get(id) != passage
            ]
            ids = set(after)
            content = b"".join(
                file.read_bytes() for file in path.rglob("*") if file.is_file()
            )
            # a text that was gone before is gone from caches that were made since, too; ids may have come back
            left = [
                passage.id
                for passage in gone
                for trace in _traces(here, passage)
                if trace in content
                and not (
                    passage.id in ids
                    and trace == hash_of(passage.id).to_bytes(8, "little")
                )
            ]
            told = f"walk {walk}, step {step}, {what}"
            attack.expect(not left, f"{told}: something is left of {sorted(set(left))}")
            shared = _in_letters(random.randrange(4))
            twice = _in_letters(random.randrange(12))
            query = f"Shared{shared}k Twice{twice}x"
            wanted = _found(here, query) if len(here) else []
            for index in (random.choice(writers), PassageIndex.open(path, Hashes())):
                index.refresh()
                same = list(index.passages) == list(here.passages) and len(
                    index
                ) == len(here)
                attack.expect(same, f"{told}: {len(index)} passages, not {len(here)}")
                found = _found(index, query) if len(index) else []
                attack.expect(found == wanted, f"{told}: found {found}, not {wanted}")
        for writer in writers:
            writer.close()
        shutil.rmtree(path)

"""The numbers that SECURITY.md promises are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
pytest.importorskip("psycopg", reason="needs the extra 'postgres'")

from ras_agent.app.serve import (
    access,
    bodies,
    documents,
    half_open,
    server,
    service,
    wire,
)
from ras_agent.running import checkpoints, silence
from ras_agent.text import lines, sentences
from ras_agent.tools.chat import asking, http, secrets
from ras_agent.tools.index import apart, conversions, ingest, mail
from ras_agent.tools.offline import question
from ras_agent.tools.offline import reading as offline_reading
from ras_agent.tools.retrieve import search
from ras_agent.tools.store import array_file, sqlite
from ras_agent.tools.structure import llm, triple_lines

TEXT = " ".join(Path("SECURITY.md").read_text(encoding="utf-8").split())
KILO = 1024
MEGA = KILO * KILO


@pytest.mark.parametrize(
    ("constant", "number", "sentence"),
    [
        (access.MOST_BYTES, 4 * MEGA, "at most 4 MB"),
        (access.MOST_TOOL_BYTES, MEGA, "1 MB for a tool"),
        (bodies.MOST_VALUES, 100_000, "100,000 lists, objects and members"),
        (bodies._SMALL, 64 * KILO, "more than 64 KB"),
        (bodies._IN_MEMORY, MEGA, "beyond 1 MB"),
        (mail._LONGEST_HEADER, 10_000, "10,000 characters"),
        (ingest._MOST_FIELDS, 2_000_000, "at most 2,000,000"),
        (wire.MOST_MESSAGES, 1_000, "1,000 messages"),
        (wire.MOST_PARTS, 10_000, "10,000 parts"),
        (wire.MOST_STOPS, 16, "16 stops"),
        (wire.MOST_KEYS, 100, "100 keys"),
        (wire.LONGEST_FILTER, 100_000, "100,000 characters"),
        (wire.MOST_QUERIES, 4_096, "4,096 queries"),
        (service._BATCH_SECONDS, 60, "after a minute"),
        (half_open.MOST_SMALL_PIECES, 1_000, "1,000 pieces"),
        (half_open.LEAST_PIECE, 64, "64 bytes"),
        (half_open.LINGER_SECONDS, 5, "5 seconds more"),
        (server._GRACE - server._TO_TELL, 5, "5 seconds after the signal"),
        (silence.SECONDS, 5, "silent for 5 seconds"),
        (documents._CHANGE_SECONDS, 600, "an upload ten minutes"),
        (checkpoints._LOCKED_SECONDS, 2, "a file of threads two seconds"),
        (sqlite.INDEX.wait, 3_600, "up to an hour"),
        (search._SECONDS, 600, "at most ten minutes"),
        (secrets.PART, 12, "twelve letters"),
        (secrets.SHORTEST, 8, "fewer than eight"),
        (http.MOST_BYTES, 32 * MEGA, "32 MB"),
        (http.MOST_BYTES_OF_VECTORS, 256 * MEGA, "256 MB"),
        (asking.MOST_CHARACTERS, 1_000_000, "1,000,000 characters"),
        (array_file.SMALL, 8 * MEGA, "8 MiB"),
        (apart._MEMORY, 2 * KILO * MEGA, "2 GiB"),
        (apart.UPLOAD_SECONDS, 60, "60 seconds for an upload"),
        (apart.FILE_SECONDS, 30 * 60, "30 minutes for a file"),
        (apart._SPARE, 10, "ten seconds of the processor more"),
        (conversions.MOST_CHARACTERS, 33_554_432, "33,554,432 characters"),
        (conversions.MOST_PAGES, 10_000, "10,000 pages"),
        (sentences.LONGEST_SENTENCE, 2_000, "a sentence has at most 2,000 characters"),
        (triple_lines.LONGEST_FIELD, 1_000, "a field of a fact that a model states"),
        (llm.MOST_FACTS, 1_000, "1,000 facts"),
        (question.LONGEST_QUESTION, 2_000, "2,000 characters of a question"),
        (offline_reading.MOST_READ, 500, "the first 500 passages"),
        (lines.LONGEST_NAME, 300, "at most 300 characters"),
    ],
)
def test_a_number_of_a_promise_is_that_of_the_code(
    constant: float, number: int, sentence: str
) -> None:
    assert constant == number
    assert sentence in TEXT

"""Declares the tables of an index: its state, its passages and their vectors, the journal of its files, uploads and its
graph; and those of caches.

A passage is a row that is written once. Its number, the cell, is never used again; a passage that replaces another is a
new cell at the same place in the corpus. Deleted and replaced passages are deleted, and their cells are listed in
`dead`, since the arrays of a cache may still have them. The bytes of deleted rows remain in free space until the
database is compacted.

References between rows are declared, and the database refuses a row that refers to a missing one; the key of the other
row is unique, so the check costs one look-up in its index. Constraints that are deferred to the commit refer to rows
that a transaction writes again. Not declared are: `dead.cell`, whose row is gone; cells, passages and numbers of names
in rows of the graph, and hashes, which are compared when they are read; paths of folders, for which there is no row.
"""

from __future__ import annotations

VERSION = 11
"""The version of the tables, and of the caches made from them."""

PASSAGES = (
    """CREATE TABLE index_state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    erasures INTEGER NOT NULL,
    compacted INTEGER NOT NULL,
    run INTEGER NOT NULL,
    manifest TEXT NOT NULL
)""",
    """CREATE TABLE passages (
    cell INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    keys BLOB NOT NULL,
    terms BLOB NOT NULL
)""",
    "CREATE INDEX passages_of_document ON passages (document)",
    "CREATE TABLE vectors (cell INTEGER PRIMARY KEY REFERENCES passages ON DELETE CASCADE, data BLOB NOT NULL)",
    "CREATE TABLE dead (cell INTEGER PRIMARY KEY, revision INTEGER NOT NULL)",
)
"""index_state: epoch identifies an index and a numbering of its cells; revision counts commits; cells is the next free
number; passages is how many passages there are; erasures counts writes that deleted something, compacted is that count
when the database was last compacted; run counts runs over files. passages: ordered by place; metadata is JSON; keys
are hashes of id, document and indexed text, then of title and metadata; terms are hashes with their counts. So an index
is opened without reading its texts. vectors: of the passages, if the index has
an embedder. dead: cells whose passages are gone, and since which revision."""

# paths are bytes: a file's name may not be valid text, and the content of a folder is a range of bytes
JOURNAL = (
    "CREATE TABLE sources (path BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE files (label TEXT PRIMARY KEY, path BLOB NOT NULL UNIQUE, stamp TEXT NOT NULL)",
    """CREATE TABLE documents (
    id TEXT PRIMARY KEY, file TEXT NOT NULL REFERENCES files (label) DEFERRABLE INITIALLY DEFERRED, own TEXT NOT NULL,
    place TEXT NOT NULL, digest BLOB NOT NULL, run INTEGER NOT NULL
)""",
    "CREATE INDEX documents_of_file ON documents (file, own)",
    "CREATE TABLE fields (path BLOB PRIMARY KEY, rules TEXT NOT NULL)",
    "CREATE TABLE metadata (path BLOB PRIMARY KEY, given TEXT NOT NULL)",
)

UPLOADS = (
    """CREATE TABLE uploads (
    path BLOB PRIMARY KEY REFERENCES files (path) DEFERRABLE INITIALLY DEFERRED, data BLOB NOT NULL
)""",
)
"""The bytes of files that were sent to a server. path: identifies the file in the journal."""

GRAPH = (
    """CREATE TABLE kg_state (
    one INTEGER PRIMARY KEY CHECK (one = 1), published INTEGER NOT NULL, stamp INTEGER NOT NULL,
    changes INTEGER NOT NULL, made INTEGER NOT NULL, names INTEGER NOT NULL, settings TEXT NOT NULL
)""",
    "CREATE TABLE kg_names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, key TEXT NOT NULL)",
    """CREATE TABLE kg_passages (
    number INTEGER PRIMARY KEY, passage TEXT NOT NULL, since INTEGER NOT NULL, text INTEGER NOT NULL,
    cell INTEGER NOT NULL, digest BLOB NOT NULL, reader TEXT NOT NULL, UNIQUE (passage, since)
)""",
    """CREATE TABLE kg_facts (
    reading INTEGER NOT NULL REFERENCES kg_passages ON DELETE CASCADE, place INTEGER NOT NULL,
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    start INTEGER NOT NULL, stop INTEGER NOT NULL, attributes TEXT, valid_from TEXT, valid_until TEXT, source TEXT,
    PRIMARY KEY (reading, place)
) WITHOUT ROWID""",
    """CREATE TABLE kg_mentions (
    reading INTEGER NOT NULL REFERENCES kg_passages ON DELETE CASCADE, name INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (reading, name)
) WITHOUT ROWID""",
    """CREATE TABLE kg_edges (
    number INTEGER PRIMARY KEY, subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    similarity REAL, unnamed INTEGER NOT NULL
)""",
    "CREATE TABLE kg_others (one INTEGER PRIMARY KEY CHECK (one = 1), data TEXT NOT NULL)",
    "CREATE TABLE kg_edits (number INTEGER PRIMARY KEY, edit TEXT NOT NULL)",
    "CREATE TABLE kg_files (name TEXT PRIMARY KEY, path TEXT NOT NULL)",
    "CREATE TABLE kg_near (name INTEGER PRIMARY KEY REFERENCES kg_names ON DELETE CASCADE, data BLOB NOT NULL)",
    """CREATE TABLE kg_texts (
    maker INTEGER NOT NULL, text INTEGER NOT NULL, owner TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (maker, text)
)""",
    "CREATE INDEX kg_texts_of_owner ON kg_texts (owner)",
    """CREATE VIEW facts AS
    SELECT subjects.name AS subject, predicates.name AS predicate, objects.name AS object, readings.passage AS passage,
        passages.document AS document, stated.start AS start, stated.stop AS "end", readings.reader AS extractor,
        stated.attributes AS attributes, stated.valid_from AS valid_from, stated.valid_until AS valid_until,
        stated.source AS source
    FROM kg_facts AS stated
        JOIN kg_passages AS readings ON readings.number = stated.reading
        JOIN kg_state ON readings.since <= kg_state.published
        JOIN kg_names AS subjects ON subjects.number = stated.subject
        JOIN kg_names AS predicates ON predicates.number = stated.predicate
        JOIN kg_names AS objects ON objects.number = stated.object
        LEFT JOIN passages ON passages.id = readings.passage""",
)
"""kg_state: has a row once facts are read; published counts the complete graphs that were written, 0 if there is none
yet; stamp distinguishes a graph from all others; changes counts writes to these tables, made is that count for the
published graph; names is the number of the next new name. kg_names: key is the name's canonical key. kg_passages:
the readings of passages, since which published graph they count, the text's hash, and the cell that held the passage
in the index. kg_facts: the facts in readings, by numbers of names, and their places; attributes is JSON about the
fact, without its dates, and source is further JSON about the place. kg_edges: edges of an imported graph that no
document states; kg_others: its nodes that are neither entities nor documents, with their edges. kg_edits: the edits
of persons. kg_files: the files of triples, and the paths they were added from. kg_near: the nearest names of each
entity, which are slow to compute. kg_texts: vectors of names and other texts, by hash, each with its owner, a name
or a passage id. The view facts: the facts of passages in the last published graph, before the edits of persons."""

CACHE = (
    """CREATE TABLE cache (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    about TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (kind, key)
)""",
)
"""The table of caches, in a separate place that holds nothing else. about: for human readers; value: JSON."""


def beginning(epoch: int, manifest: str) -> list[tuple[str, tuple[object, ...]]]:
    """Return the statements that make an empty index, with their parameters."""
    statements: list[tuple[str, tuple[object, ...]]] = []
    for table in (*PASSAGES, *JOURNAL, *UPLOADS, *GRAPH):
        statements.append((table, ()))
    state = "INSERT INTO index_state VALUES (1, ?, ?, 0, 0, 0, 0, 0, 0, ?)"
    statements.append((state, (VERSION, epoch, manifest)))
    return statements

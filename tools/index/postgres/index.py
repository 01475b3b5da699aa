"""Holds a searchable collection of passages in PostgreSQL, where a PassageIndex holds one in files.

A write is a transaction: readers see all of it or nothing, a second writer waits for the first, and whoever searches
sees the passages as of the last write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from ras_agent.address import Address, address_of
from ras_agent.errors import IndexExists, IndexMismatch
from ras_agent.filters import Filter
from ras_agent.protocols import Embedder, Retriever
from ras_agent.records import Passage
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.embed.remembering import remembering
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.changes import EMBED_AT_ONCE, Changes, already_there, check_distinct, embed
from ras_agent.tools.index.manifest_embedder import begin_manifest, check_embedder, remembered_embedder
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.postgres import about, tables
from ras_agent.tools.index.postgres.about import VERSION, About, has_vector_graph, is_there, read_about
from ras_agent.tools.index.postgres.database import Database
from ras_agent.tools.index.postgres.forms import digest_of, storable, stored_form, tsvector, vector_literal
from ras_agent.tools.index.postgres.search import PostgresBM25, PostgresDense, PostgresHybrid
from ras_agent.tools.index.postgres.where import where_of
from ras_agent.tools.index.tokenise import Tokeniser

if TYPE_CHECKING:
    from psycopg import Connection


_PGVECTOR = (0, 8)  # the first whose search graph goes on until a filter has let enough through


class PostgresIndex:
    """Holds passages in a schema of a PostgreSQL database, and searches them there by terms and by vectors.

    Made by `create` or `open`. Serves where a PassageIndex does, for the retrievers bm25, dense and hybrid; others read
    an index's files. May be used from several threads and processes at once.
    """

    def __init__(self, database: Database, embedder: Embedder | None = None) -> None:
        self.database = database
        self.manifest = self.about().manifest
        self.tokeniser = Tokeniser.from_dict(self.manifest.tokeniser)
        self._embedder = embedder
        self._in_batch = False

    @classmethod
    def create(
        cls,
        place: str | Address,
        embedder: object = None,
        *,
        tokeniser: Tokeniser | None = None,
        bm25: BM25Parameters | None = None,
    ) -> Self:
        """Make an empty index at an address; its schema is created, the database must exist.

        embedder: None for BM25 alone, or what resolve_embedder takes. Its name and dimension are stored in the index.
        Raises IndexExists, StoreError for a database that cannot be used, IndexMismatch without the extension pgvector.
        """
        database = Database(address_of(place))
        if bm25 and bm25.method != "lucene":
            raise ValueError(f"an index in PostgreSQL scores by the BM25 variant 'lucene', not {bm25.method!r}")
        resolved, manifest = begin_manifest(embedder, tokeniser, bm25, None)
        with database.writing() as connection:
            if is_there(connection, database.address):
                raise IndexExists(f"{database.address} holds an index already: open it, or choose another schema")
            if resolved is not None:
                _bring_vectors(connection, database.address)
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{database.schema}"'.encode())
            if connection.execute(
                "SELECT 1 FROM pg_class WHERE relnamespace = %s::regnamespace LIMIT 1", (f'"{database.schema}"',)
            ).fetchone():
                raise IndexExists(
                    f"{database.address} holds something else: choose another schema, such as ?schema=handbook"
                )
            connection.execute(tables.CREATE)
            if resolved is not None:
                connection.execute(tables.ADD_VECTORS.format(dimension=int(resolved.dimension)).encode())
            connection.execute("INSERT INTO about (version, manifest) VALUES (%s, %s)", (VERSION, manifest.to_json()))
        return cls(database, resolved)

    @classmethod
    def open(cls, place: str | Address, embedder: object = None) -> Self:
        """Open the index at an address. Without `embedder`, the one named in the index is loaded when first needed.

        Raises IndexNotFound, StoreError, or IndexMismatch for vectors of another embedder or another version.
        """
        resolved = None if embedder is None else resolve_embedder(embedder)
        index = cls(Database(address_of(place)), resolved)
        if resolved is not None:
            check_embedder(index.manifest, resolved, str(index))
        return index

    @staticmethod
    def exists(place: str | Address) -> bool:
        """Return whether there is an index at an address. Raises StoreError for a database that cannot be reached."""
        database = Database(address_of(place))
        try:
            with database.reading() as connection:
                return is_there(connection, database.address)
        finally:
            database.close()

    def __str__(self) -> str:
        return str(self.database.address)

    def __len__(self) -> int:
        return self.about().passages

    def close(self) -> None:
        """Close the connections to the database."""
        self.database.close()

    def about(self) -> About:
        """Return what the index holds now. Raises IndexNotFound, IndexMismatch for another version."""
        with self.database.reading() as connection:
            return read_about(connection, self.database.address)

    @property
    def embedder(self) -> Embedder | None:
        """Return what queries and new passages are embedded with; None for an index without vectors."""
        if self._embedder is None and self.manifest.embedder:
            self._embedder = remembered_embedder(self.manifest, str(self), "PostgresIndex.open(address, embedder=...)")
        return self._embedder

    @property
    def fingerprint(self) -> str:
        """Return a digest of ids and texts in corpus order: equal for indexes in PostgreSQL of the same corpus."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT md5(string_agg(md5(id) || encode(digest, 'hex'), '' ORDER BY row)) FROM passages"
            )
            return str((rows.fetchone() or ("",))[0] or "")

    def get(self, passage_id: str) -> Passage | None:
        """Return the passage with that id, None if there is none."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT id, text, title, document, metadata FROM passages WHERE id = %s", (storable(passage_id),)
            ).fetchone()
        return Passage(*row) if row else None

    def document_ids(self, filter: object = None) -> tuple[str, ...]:
        """Return the ids of the documents that have a passage which `filter` admits, in corpus order.

        Passages without a document belong to none. Raises FilterError.
        """
        where = where_of(Filter.of(filter))
        query = f"SELECT document FROM passages WHERE document <> '' {where.sql} GROUP BY document ORDER BY min(row)"
        with self.database.reading() as connection:
            return tuple(name for (name,) in connection.execute(query.encode(), where.values))

    @property
    def snapshot(self) -> NoReturn:
        """Raise IndexMismatch: whoever asks reads the files of an index."""
        raise IndexMismatch(
            f"{self} is an index in PostgreSQL, which bm25, dense and hybrid search; anything else, such as a "
            "knowledge graph, a mix or another retriever, needs an index in files: `ras-agent index FILES --out FOLDER`"
        )

    path = passages = snapshot

    # ---- writing

    def add(self, passages: Iterable[Passage]) -> Changes:
        """Append passages. Raises ValueError for an id that is given twice or already there; then nothing is added."""
        return self._put(list(passages), replace_existing=False, whole_documents=False)

    def upsert(self, passages: Iterable[Passage], *, whole_documents: bool = False) -> Changes:
        """Add passages, replacing those with the same id. Unchanged ones are not written, no text is embedded twice.

        whole_documents: the passages are all there is of their documents; others of the same documents are deleted.
        """
        return self._put(list(passages), replace_existing=True, whole_documents=whole_documents)

    def delete_document(self, document_id: str) -> Changes:
        """Delete a document's passages; no error if there are none."""
        return self.delete_documents([document_id])

    def delete_documents(self, document_ids: Iterable[str]) -> Changes:
        """Delete several documents' passages in one write."""
        names = [storable(name) for name in document_ids if name]
        with self.database.writing() as connection:
            gone = _rows(connection, "SELECT row FROM passages WHERE document = ANY(%s)", (names,))
            if gone:
                _delete(connection, gone)
        return Changes(deleted=len(gone))

    @contextmanager
    def batch(self) -> Iterator[Self]:
        """Make many writes, each durable when it returns, and tend to the search structures once, at the end."""
        self._in_batch = True
        try:
            yield self
        finally:
            self._in_batch = False
        self.finish()

    def is_finished(self) -> bool:
        """Return True: what a transaction did not end is not there."""
        return True

    def finish(self) -> None:
        """Build the search graph of vectors once there are enough, and give the space of deleted rows back."""
        if self.manifest.embedder and self.manifest.embedder.dimension <= about.WIDEST_IN_GRAPH:
            with self.database.writing() as connection:
                many = read_about(connection, self.database.address).passages > about.EXACT_UP_TO
                if many and not has_vector_graph(connection):
                    connection.execute(tables.BUILD_GRAPH)
        with self.database.outside_transactions() as connection:
            for table in ("passages", "terms"):
                connection.execute(f"VACUUM (ANALYZE) {table}")

    def _put(self, passages: Sequence[Passage], *, replace_existing: bool, whole_documents: bool) -> Changes:
        passages = [stored_form(passage) for passage in passages]
        check_distinct(passages)
        embedder = self.embedder
        vectors: dict[bytes, str] = {}
        if embedder:  # before the write, which other writers wait for
            with self.database.reading() as connection:
                unseen = _missing(connection, passages, vectors)
            vectors |= _embedded(unseen, embedder)
        with self.database.writing() as connection:
            there = {
                passage.id: (row, passage)
                for row, passage in _stored(connection, "id = ANY(%s)", [passage.id for passage in passages])
            }
            if there and not replace_existing:
                raise already_there(next(passage.id for passage in passages if passage.id in there))
            fresh = [passage for passage in passages if passage.id not in there or there[passage.id][1] != passage]
            replaced = [there[passage.id][0] for passage in fresh if passage.id in there]
            gone = self._left_over(connection, passages) if whole_documents else []
            if fresh or gone:
                if embedder:  # another writer may have deleted the passage that had the vector of a text
                    vectors |= _embedded(_missing(connection, fresh, vectors), embedder)
                self._write(connection, fresh, replaced, gone, vectors)
        return Changes(
            added=len(fresh) - len(replaced),
            replaced=len(replaced),
            unchanged=len(passages) - len(fresh),
            deleted=len(gone),
            embedded=len(vectors),
        )

    def _left_over(self, connection: Connection[Any], passages: Sequence[Passage]) -> list[int]:
        """Return the rows of the passages' documents that hold none of the passages."""
        documents = list({passage.document_id for passage in passages} - {""})
        return _rows(
            connection,
            "SELECT row FROM passages WHERE document = ANY(%s) AND NOT id = ANY(%s)",
            (documents, [passage.id for passage in passages]),
        )

    def _write(
        self,
        connection: Connection[Any],
        fresh: Sequence[Passage],
        replaced: list[int],
        gone: list[int],
        vectors: dict[bytes, str],
    ) -> None:
        _count(connection, [*replaced, *gone], -1)
        connection.execute(tables.STAGE)
        with connection.cursor() as cursor, cursor.copy(tables.COPY_STAGED) as copy:
            for number, passage in enumerate(fresh):
                text = indexed_text(passage)
                terms = self.tokeniser.terms(text)
                copy.write_row(
                    (
                        number,
                        passage.id,
                        passage.document_id,
                        passage.title,
                        passage.text,
                        json.dumps(passage.metadata),
                        digest_of(text),
                        len(terms),
                        tsvector(terms),
                        vectors.get(digest_of(text)),
                    )
                )
        connection.execute(tables.UPSERT_WITH_VECTORS if self.manifest.embedder else tables.UPSERT)
        connection.execute("DELETE FROM passages WHERE row = ANY(%s)", (gone,))
        _count(connection, _rows(connection, "SELECT row FROM passages JOIN staged USING (id)"), 1)
        connection.execute(tables.END_WRITE)


def _bring_vectors(connection: Connection[Any], address: Address) -> None:
    """Make sure that the database knows vectors. Raises IndexMismatch that says how to get the extension."""
    from psycopg import Error

    remedy = (
        "install pgvector on the server (Debian: apt-get install postgresql-16-pgvector, for your version of "
        "PostgreSQL; Docker: the image pgvector/pgvector), or index without --embedder and search by bm25"
    )
    if not connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
        raise IndexMismatch(f"{address} has no vectors, the server lacks the extension 'vector': {remedy}")
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            known = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    except Error as error:
        raise IndexMismatch(
            f"{address} has no vectors, this user may not make the extension ({str(error).splitlines()[0]}): let an "
            "administrator run CREATE EXTENSION vector in that database"
        ) from None
    if known is None or tuple(map(int, known[0].split(".")[:2])) < _PGVECTOR:
        raise IndexMismatch(f"{address} has pgvector {(known or ['none'])[0]}, 0.8 or later is needed: {remedy}")


def _rows(connection: Connection[Any], query: str, values: Sequence[object] = ()) -> list[int]:
    return [row for (row,) in connection.execute(query.encode(), values)]


def _stored(connection: Connection[Any], where: str, values: Sequence[str]) -> Iterator[tuple[int, Passage]]:
    query = f"SELECT row, id, text, title, document, metadata FROM passages WHERE {where}"
    for row, *parts in connection.execute(query.encode(), (list(values),)):
        yield row, Passage(*parts)


def _missing(connection: Connection[Any], passages: Sequence[Passage], known: dict[bytes, str]) -> dict[bytes, str]:
    """Return the texts, by their digests, that neither `known` nor a stored passage has a vector of."""
    texts = {digest_of(text): text for text in map(indexed_text, passages)}
    query = "SELECT DISTINCT digest FROM passages WHERE digest = ANY(%s) AND vector IS NOT NULL"
    found = {digest for (digest,) in connection.execute(query, (list(texts),))}
    return {digest: text for digest, text in texts.items() if digest not in found and digest not in known}


def _embedded(texts: dict[bytes, str], embedder: Embedder) -> dict[bytes, str]:
    """Return vectors by the digests of their texts."""
    vectors: dict[bytes, str] = {}
    items = list(texts.items())
    for start in range(0, len(items), EMBED_AT_ONCE):
        batch = items[start : start + EMBED_AT_ONCE]
        found = embed([text for _, text in batch], embedder, embedder.dimension)
        vectors |= {digest: vector_literal(vector) for (digest, _), vector in zip(batch, found, strict=True)}
    return vectors


def _count(connection: Connection[Any], rows: list[int], sign: int) -> None:
    """Add passages to what is counted of the index, or take them out of it."""
    for statement in (tables.COUNT_TERMS, tables.COUNT_PASSAGES):
        connection.execute(statement, {"rows": rows, "sign": sign})


def _delete(connection: Connection[Any], rows: list[int]) -> None:
    _count(connection, rows, -1)
    connection.execute("DELETE FROM passages WHERE row = ANY(%s)", (rows,))
    connection.execute(tables.END_WRITE)


def _bm25(index: PostgresIndex, *, parameters: BM25Parameters | None = None) -> PostgresBM25:
    return PostgresBM25(index.database, index.tokeniser, parameters or index.manifest.bm25)


def _dense(
    index: PostgresIndex, *, queries: Embedder | None = None, cache_size: int = 1024, exact: bool = False
) -> PostgresDense:
    if index.manifest.embedder is None:
        raise IndexMismatch(
            f"{index} holds no vectors: make another with an embedder (`ras-agent index FILES --out "
            "'postgresql://...?schema=NEW' --embedder minilm`), or retrieve by bm25"
        )
    embedder = remembering(queries or cast(Embedder, index.embedder), cache_size)
    return PostgresDense(index.database, embedder, exact=exact)


def _hybrid(index: PostgresIndex, *, constant: float = 60, depth: int = 100) -> PostgresHybrid:
    return PostgresHybrid(index.database, [_bm25(index), _dense(index)], constant=constant, depth=depth)


POSTGRES_RETRIEVERS: dict[str, Callable[..., Retriever]] = {"bm25": _bm25, "dense": _dense, "hybrid": _hybrid}

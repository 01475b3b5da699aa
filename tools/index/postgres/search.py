"""The retrievers bm25, dense and hybrid over an index in PostgreSQL, which is asked for the best passages alone.

Scores are those of an index in files, as far as rounding goes. Each search sees the index as it is at that moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from ras_agent.filters import Filter
from ras_agent.protocols import Embedder
from ras_agent.records import Hit, Passage
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.postgres import about, tables
from ras_agent.tools.index.postgres.about import has_vector_graph, read_about
from ras_agent.tools.index.postgres.database import Database
from ras_agent.tools.index.postgres.forms import clipped, query_of, vector_literal
from ras_agent.tools.index.postgres.where import Where, where_of
from ras_agent.tools.index.tokenise import Tokeniser

if TYPE_CHECKING:
    from psycopg import Connection

_FEW = 1_000
"""So many passages that hold a query's rarest terms are scored first; what they score, others have to reach."""
_SETS = 300
_ROUNDING = 1e-6
_EFFORT = 128
_MOST_EFFORT = 1000  # pgvector's own limit


class Found(NamedTuple):
    """Names a hit's place in the order of the corpus."""

    row: int
    hit: Hit


class PostgresSearch(ABC):
    """Retrieves from one database; a subclass implements `search`."""

    name: str

    def __init__(self, database: Database) -> None:
        self._database = database

    @abstractmethod
    def search(self, connection: Connection[Any], query: str, k: int, where: Where) -> list[Found]:
        """Return at most `k` hits, best first, ties in corpus order, as the connection's transaction sees the index."""

    def retrieve(self, query: str, k: int = 5, filter: object = None) -> list[Hit]:
        """Return at most `k` hits that `filter` admits, best first, ties in corpus order.

        Raises ValueError for a blank query or k < 1, and FilterError.
        """
        where = where_of(Filter.of(filter))
        if not query.strip():
            raise ValueError("the query is blank")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        with self._database.reading() as connection:
            return [found.hit for found in self.search(connection, query, k, where)]


class PostgresBM25(PostgresSearch):
    """Ranks passages by BM25 over title and text; passages that share no term with the query are no hits."""

    name = "bm25"

    def __init__(self, database: Database, tokeniser: Tokeniser, parameters: BM25Parameters) -> None:
        super().__init__(database)
        self._tokeniser, self._parameters = tokeniser, parameters

    def search(self, connection: Connection[Any], query: str, k: int, where: Where) -> list[Found]:
        now = read_about(connection, self._database.address)
        asked = Counter(map(clipped, self._tokeniser.terms(query)))
        found = connection.execute("SELECT term, passages FROM terms WHERE term = ANY(%s)", (list(asked),)).fetchall()
        counts = sorted(found, key=lambda one: (one[1], one[0]))
        weights = [asked[term] * log(1 + (now.passages - count + 0.5) / (count + 0.5)) for term, count in counts]
        terms = [query_of([term]) for term, _ in counts]
        values: dict[str, Any] = {
            **where.values,
            "terms": terms,
            "weights": weights,
            "k1": self._parameters.k1,
            "b": self._parameters.b,
            "mean": now.length / max(now.passages, 1),
            "k": k,
        }
        rarest = _prefix([count for _, count in counts])
        values["any"] = " | ".join(terms[:rarest])
        first = _search(connection, tables.BM25, where, values) if terms else []
        least = first[-1].hit.score * (1 - _ROUNDING) if len(first) == k else 0.0
        if rarest == len(terms) or least > sum(weights[rarest:]):
            return first
        values["any"] = _promising(terms, weights, least)
        return _search(connection, tables.BM25, where, values)


class PostgresDense(PostgresSearch):
    """Ranks passages by the inner product of vectors, which is their cosine where vectors have length 1."""

    name = "dense"

    def __init__(self, database: Database, embedder: Embedder, *, exact: bool = False) -> None:
        """Embed queries with `embedder`. exact: compare every vector, also where there is a search graph."""
        super().__init__(database)
        self._embedder, self._exact = embedder, exact

    def search(self, connection: Connection[Any], query: str, k: int, where: Where) -> list[Found]:
        values = {**where.values, "query": vector_literal(query_vector(self._embedder, query)), "k": k}
        if self._exact or not has_vector_graph(connection):
            return _search(connection, tables.DENSE_EXACT, where, values)
        if where.sql and _count(connection, where, about.EXACT_UP_TO + 1) <= about.EXACT_UP_TO:
            # the graph leads to what is near the query, of which a filter may admit next to nothing
            return _search(connection, tables.DENSE_EXACT, where, values)
        connection.execute(tables.SEARCH_GRAPH, (str(min(max(_EFFORT, k), _MOST_EFFORT)),))
        found = _search(connection, tables.DENSE, where, values)
        if len(found) == k or len(found) == _count(connection, where, k):
            return found
        return _search(connection, tables.DENSE_EXACT, where, values)


class PostgresHybrid(PostgresSearch):
    """Fuses searches by reciprocal rank (Cormack, Clarke and Büttcher, 2009), in one view of the index."""

    name = "hybrid"

    def __init__(
        self, database: Database, searches: Sequence[PostgresSearch], *, constant: float = 60, depth: int = 100
    ) -> None:
        """Take searches of one database.

        constant: dampens the lead of the first ranks. depth: how far down each ranking counts, at least k.
        """
        super().__init__(database)
        self._searches, self._constant, self._depth = tuple(searches), constant, depth

    def search(self, connection: Connection[Any], query: str, k: int, where: Where) -> list[Found]:
        scores: dict[int, float] = defaultdict(float)
        passages: dict[int, Passage] = {}
        for one in self._searches:
            for rank, found in enumerate(one.search(connection, query, max(k, self._depth), where), 1):
                passages[found.row] = found.hit.passage
                scores[found.row] += 1 / (self._constant + rank)
        best = sorted(scores, key=lambda row: (-scores[row], row))[:k]
        return [Found(row, Hit(passages[row], scores[row])) for row in best]


def _search(connection: Connection[Any], query: str, where: Where, values: dict[str, Any]) -> list[Found]:
    rows = connection.execute(query.replace(tables.FILTER, where.sql).encode(), values)
    return [Found(row, Hit(Passage(*parts), float(score))) for row, *parts, score in rows]


def _count(connection: Connection[Any], where: Where, most: int) -> int:
    """Return how many passages a filter admits, counted up to `most`."""
    query = tables.COUNT_UP_TO.replace(tables.FILTER, where.sql).encode()
    (count,) = connection.execute(query, {**where.values, "most": most}).fetchone() or (0,)
    return int(count)


def _prefix(counts: Sequence[int]) -> int:
    """Return how many of the first terms, at least one, are in few passages together."""
    total = used = 0
    for count in counts:
        total += count
        if used and total > _FEW:
            break
        used += 1
    return used


def _promising(terms: Sequence[str], weights: Sequence[float], least: float) -> str:
    """Return a tsquery of all passages that may score `least`: those whose terms have as much weight together.

    A term adds less to a score than its weight. Where there would be too many sets of terms, the last terms count as if
    every passage had them, so that more passages are looked at.
    """
    for tried in range(len(terms), 0, -1):
        left = _SETS

        def sets(at: int, needed: float, tried: int = tried) -> str | None:
            """Return the query of what reaches `needed` by terms from `at` on: None for nothing, "" for everything."""
            nonlocal left
            left -= 1
            if needed <= 0:
                return ""
            if left < 0 or sum(weights[at:tried]) < needed:
                return None
            having, lacking = sets(at + 1, needed - weights[at]), sets(at + 1, needed)
            if having is None:
                return lacking
            one = f"{terms[at]} & ({having})" if having else terms[at]
            return one if lacking is None else f"{one} | {lacking}"

        found = sets(0, least - sum(weights[tried:]))
        if found and left >= 0:
            return found
        if found == "":
            break
    return " | ".join(terms)

"""The tables of an index and the statements that read and write them.

BM25 needs how often a term occurs in a passage. A tsvector counts occurrences by their positions, so a term that occurs
three times is stored with the positions 1, 2 and 3; the terms are those of our own tokeniser, whatever the server's
language. `ts_rank` with weights of 1 gives for one term the sum of 1/j² over its occurrences j, divided by π²/6, from
which `_COUNT` works out their number again, exactly up to 255, the most that a tsvector holds.
"""

from __future__ import annotations

CREATE = """
CREATE TABLE about (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL,
    manifest jsonb NOT NULL,
    generation bigint NOT NULL DEFAULT 0,
    passages bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0
);
CREATE TABLE passages (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    document text COLLATE "C" NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    metadata jsonb NOT NULL,
    digest bytea NOT NULL,
    length integer NOT NULL,
    terms tsvector NOT NULL
);
-- where a row is too long for its page, text and vector leave it first: scoring reads the terms of many rows
ALTER TABLE passages ALTER COLUMN terms SET STORAGE MAIN;
CREATE INDEX passages_document ON passages (document);
CREATE INDEX passages_digest ON passages (digest);
CREATE INDEX passages_terms ON passages USING gin (terms);
CREATE INDEX passages_metadata ON passages USING gin (metadata jsonb_path_ops);
CREATE TABLE terms (term text COLLATE "C" PRIMARY KEY, passages bigint NOT NULL);
CREATE TABLE run (number integer NOT NULL);
INSERT INTO run VALUES (0);
CREATE TABLE sources (path bytea PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE);
CREATE TABLE files (
    label text COLLATE "C" PRIMARY KEY, path bytea NOT NULL UNIQUE, stamp text NOT NULL
);
CREATE TABLE documents (
    id text COLLATE "C" PRIMARY KEY, file text COLLATE "C" NOT NULL, own text COLLATE "C" NOT NULL,
    place text NOT NULL, digest bytea NOT NULL, run integer NOT NULL
);
CREATE INDEX documents_of_file ON documents (file, own);
CREATE TABLE fields (path bytea PRIMARY KEY, rules text NOT NULL);
CREATE TABLE metadata (path bytea PRIMARY KEY, given text NOT NULL);
CREATE TABLE erasing (name text COLLATE "C" PRIMARY KEY);
"""
"""Makes the tables of an empty index: its passages, what is counted of them, and the journal of its files."""

ADD_VECTORS = "ALTER TABLE passages ADD COLUMN vector vector({dimension})"
BUILD_GRAPH = "CREATE INDEX passages_vector ON passages USING hnsw (vector vector_ip_ops)"
"""By inner product, which is the cosine of vectors of length 1."""
SEARCH_GRAPH = """
SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true)
"""

STAGE = """
CREATE TEMPORARY TABLE staged (
    n bigint, id text COLLATE "C", document text, title text, text text, metadata jsonb, digest bytea, length integer,
    terms tsvector, vector text
) ON COMMIT DROP
"""
COPY_STAGED = "COPY staged FROM STDIN"

_NEW = "id, document, title, text, metadata, digest, length, terms"
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _NEW.split(", ")[1:])
UPSERT = f"""
INSERT INTO passages ({_NEW}) SELECT {_NEW} FROM staged ORDER BY n
ON CONFLICT (id) DO UPDATE SET {_REPLACED}
"""
UPSERT_WITH_VECTORS = f"""
INSERT INTO passages ({_NEW}, vector)
SELECT {_NEW}, COALESCE(vector::vector, (
    SELECT known.vector FROM passages known WHERE known.digest = staged.digest AND known.vector IS NOT NULL LIMIT 1
)) FROM staged ORDER BY n
ON CONFLICT (id) DO UPDATE SET {_REPLACED}, vector = excluded.vector
"""
"""Equal texts share a vector: one that was embedded before is copied."""

COUNT_TERMS = """
INSERT INTO terms AS known (term, passages)
SELECT term, %(sign)s * count(*) FROM passages, unnest(tsvector_to_array(terms)) term WHERE row = ANY(%(rows)s)
GROUP BY term ORDER BY term
ON CONFLICT (term) DO UPDATE SET passages = known.passages + excluded.passages
"""
COUNT_PASSAGES = """
UPDATE about SET passages = about.passages + %(sign)s * counted.passages,
    length = about.length + %(sign)s * counted.length
FROM (SELECT count(*) AS passages, COALESCE(sum(length), 0) AS length FROM passages WHERE row = ANY(%(rows)s)) counted
"""
FINGERPRINT = "SELECT md5(string_agg(md5(id) || encode(digest, 'hex'), '' ORDER BY row)) FROM passages"
END_WRITE = """
WITH unused AS (DELETE FROM terms WHERE passages = 0) UPDATE about SET generation = generation + 1
"""

_COUNT = "round(1 / (1.64493406685 * (1 - ts_rank('{1,1,1,1}', terms, asked.term))) - 0.5)"
_FOUND = "row, found.id, found.text, found.title, found.document, found.metadata"
FILTER = "/*filter*/"
"""Where a search's filter goes, which is empty or one of the conditions of where.py."""
BM25 = f"""
SELECT {_FOUND}, best.score FROM (
    SELECT row, (
        SELECT sum(asked.weight * counted.n / (counted.n + %(k1)s * (1 - %(b)s + %(b)s * length / %(mean)s)))
        FROM unnest(%(terms)s::tsquery[], %(weights)s::float8[]) AS asked(term, weight),
        LATERAL (SELECT {_COUNT} AS n) AS counted
    )::real AS score
    FROM passages WHERE terms @@ %(any)s::tsquery /*filter*/
    ORDER BY score DESC, row LIMIT %(k)s
) best JOIN passages found USING (row) ORDER BY best.score DESC, row
"""
"""Scores the passages that hold one of the terms of `any`; see bm25_matrix.py for the formula, "lucene"."""

DENSE = f"""
SELECT {_FOUND}, (-best.distance)::real FROM (
    SELECT row, vector <#> %(query)s::vector AS distance FROM passages WHERE true /*filter*/
    ORDER BY vector <#> %(query)s::vector, row LIMIT %(k)s
) best JOIN passages found USING (row) ORDER BY best.distance, row
"""
DENSE_EXACT = DENSE.replace(
    "FROM passages WHERE true /*filter*/",
    """FROM (
    SELECT row, vector FROM passages WHERE true /*filter*/ OFFSET 0
) compared""",
)
"""Compares every vector: OFFSET 0 keeps the search graph out."""
COUNT_UP_TO = "SELECT count(*) FROM (SELECT 1 FROM passages WHERE true /*filter*/ LIMIT %(most)s) admitted"

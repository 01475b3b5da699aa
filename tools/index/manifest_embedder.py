"""Names the embedder of a new index in its manifest, checks an embedder against a manifest, and loads the named one."""

from __future__ import annotations

from ras_agent.contracts.errors import IndexMismatch, RasError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import reopened_embedder, resolve_embedder
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.manifest import EmbedderIdentity, Manifest
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.vector_index import VectorSettings


def begin_manifest(
    embedder: object,
    tokeniser: Tokeniser | None,
    bm25: BM25Parameters | None,
    vectors: VectorSettings | None,
) -> tuple[Embedder | None, Manifest]:
    """Return the embedder of a new index, None for an index without vectors, and the manifest of the index."""
    resolved = None if embedder is None else resolve_embedder(embedder)
    manifest = Manifest(
        embedder=EmbedderIdentity(resolved.name, resolved.dimension)
        if resolved
        else None,
        vectors=vectors or VectorSettings(),
        bm25=bm25 or BM25Parameters(),
        tokeniser=(tokeniser or Tokeniser()).to_dict(),
    )
    return resolved, manifest


def check_embedder(manifest: Manifest, embedder: Embedder, where: str) -> None:
    """Raise IndexMismatch if the index at `where` has no vectors, or vectors of another embedder."""
    if manifest.embedder is None:
        raise IndexMismatch(
            f"{where} holds no vectors, so that embedder {embedder.name!r} cannot search it: build it again with that "
            "embedder, or retrieve by bm25"
        )
    given = EmbedderIdentity(embedder.name, embedder.dimension)
    if given != manifest.embedder:
        raise IndexMismatch(
            f"{where} was built with embedder {manifest.embedder}, not with {given}: open it with "
            f"{manifest.embedder.name}, or build it again with {given.name}"
        )


def remembered_embedder(manifest: Manifest, where: str) -> Embedder:
    """Load the embedder named in a manifest. Raises IndexMismatch if it cannot be loaded by its name."""
    assert manifest.embedder
    try:
        embedder = reopened_embedder(
            manifest.embedder.name, manifest.embedder.dimension, where
        )
    except RasError as error:
        raise IndexMismatch(
            f"{where} was built with embedder {manifest.embedder}, which could not be loaded by that name ({error}): "
            "open the index with that embedder, PassageIndex.open(place, embedder=...)"
        ) from error
    check_embedder(manifest, embedder, where)
    return embedder

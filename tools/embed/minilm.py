"""Embeds texts by the packaged all-MiniLM-L6-v2 in numpy, without torch; it is ready in a third of a second.

A vector is the mean over a text's tokens, scaled to length 1. The vectors equal those of sentence-transformers to 1e-6;
importing that takes 6 s, which is most of a short run. If the processor multiplies bfloat16, torch computes the vectors
of many texts at once, which differ by at most TOLERANCE. For a GPU, `SentenceTransformerEmbedder(packaged_minilm(),
name="minilm")` writes the same index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.text.normal_form import encodable
from ras_agent.tools.embed.bert import WIDTH, Bert, bert, panels
from ras_agent.tools.embed.bert_bfloat16 import BFloat16Bert, multiplies_bfloat16
from ras_agent.tools.embed.packaged_minilm import packaged_minilm

TOLERANCE = 0.02
"""The maximum distance between the vectors of one text that were computed on different processors, or in batches of
different sizes.

Cosines of two texts differ by 0.005 at most, on average by 0.0004: lab/embedding.md.
"""
_MAX_TOKENS = 256
_MANY = 5_000  # tokens; numpy reads them in the second that it takes to import torch


@dataclass(frozen=True, slots=True)
class _Network:
    """Holds the tokenizer and the network of the model."""

    tokenizer: Any
    bert: Bert | BFloat16Bert

    def __call__(self, panel: Sequence[Sequence[int]]) -> Floats:
        """Return the unit vectors (B, 384) of token id lists, which must be sorted by length."""
        rows, groups = self.bert.states(panel)
        sums = []
        for group in groups:
            states = rows[group.columns].reshape(group.texts, group.length, WIDTH)
            # not over the last axis, so that numpy adds whole rows, one after another
            sums.append(states.sum(axis=1))
        total = np.concatenate(sums)
        squares = (total * total).sum(axis=1, keepdims=True)
        total /= np.sqrt(squares)
        return total


class MiniLMEmbedder:
    """Embeds texts by all-MiniLM-L6-v2 from the extra `offline`. It is loaded at the first text, without network."""

    name = "minilm"
    dimension = WIDTH

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (len(texts), 384), float32. Only the first 256 word pieces of a text are read.

        Raises MissingExtra without the weights, and IndexMismatch if they are not the official ones.
        """
        if not texts:
            return np.empty((0, WIDTH), dtype=np.float32)
        network = _network()
        clean = list(map(encodable, texts))
        distinct = list(dict.fromkeys(clean))
        tokens = [encoding.ids for encoding in network.tokenizer.encode_batch(distinct)]
        if (
            sum(map(len, tokens)) >= _MANY
            and multiplies_bfloat16()
            and find_spec("torch")
        ):
            network = _network_for_many()
        vectors = np.empty((len(distinct), WIDTH), dtype=np.float32)
        for rows in panels(tokens, network.bert.columns):
            vectors[rows] = network([tokens[row] for row in rows])
        row_of = {text: row for row, text in enumerate(distinct)}
        return vectors[[row_of[text] for text in clean]]


def minilm(argument: str) -> MiniLMEmbedder:
    """Build the packaged embedder. Raises SettingsError if `argument` is not empty."""
    if argument:
        raise SettingsError(
            f"embedder minilm takes no argument, got {argument!r:.80}: write minilm, or st:MODEL for another model"
        )
    return MiniLMEmbedder()


def token_vectors(text: str) -> tuple[Floats, list[tuple[int, int]]]:
    """Return a unit vector for each word piece of a text in its context, and the (start, end) offsets of each piece.

    Raises MissingExtra without the weights.
    """
    network = _network()
    encoding = network.tokenizer.encode(encodable(text))
    states, groups = network.bert.states([encoding.ids])
    (group,) = groups
    vectors = states[group.columns]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= lengths
    return vectors, encoding.offsets


@cache
def _network() -> _Network:
    tokenizer = packaged_tokenizer()
    tokenizer.enable_truncation(_MAX_TOKENS)
    return _Network(tokenizer, bert(packaged_weights()))


@cache
def _network_for_many() -> _Network:
    network = _network()
    assert isinstance(network.bert, Bert)
    return _Network(network.tokenizer, BFloat16Bert(network.bert))


def packaged_weights() -> Mapping[str, Floats]:
    """Return the packaged weights by name.

    Raises MissingExtra without the weights, and IndexMismatch if they are not the official ones.
    """
    with needs_extra("the packaged MiniLM", "offline"):
        from safetensors.numpy import load_file
    weights: Mapping[str, Floats] = load_file(packaged_minilm() / "model.safetensors")
    return weights


def packaged_tokenizer() -> Any:
    """Return the packaged tokenizer, without padding or truncation. Raises as `packaged_weights` does."""
    with needs_extra("the packaged MiniLM", "offline"):
        from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer

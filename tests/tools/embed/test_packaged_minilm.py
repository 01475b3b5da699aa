"""The packaged MiniLM is the official one in every file that is read: weights, tokenizer, pooling."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ras_agent.contracts.errors import IndexMismatch
from ras_agent.tools.embed import packaged_minilm
from tests.messages import says


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a copy of the package, which is found in its place; the weights are a link."""
    official = packaged_minilm.packaged_minilm()
    folder = tmp_path / "model"
    shutil.copytree(
        official, folder, ignore=shutil.ignore_patterns("model.safetensors")
    )
    (folder / "model.safetensors").symlink_to(official / "model.safetensors")
    origin = str(tmp_path / "__init__.py")
    monkeypatch.setattr(
        packaged_minilm, "find_spec", lambda name: SimpleNamespace(origin=origin)
    )
    packaged_minilm.packaged_minilm.cache_clear()
    yield folder
    packaged_minilm.packaged_minilm.cache_clear()


def test_an_unchanged_copy_is_accepted(copied: Path) -> None:
    assert packaged_minilm.packaged_minilm() == copied


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "vocab.txt", "config.json", "1_Pooling/config.json"]
)
def test_a_file_that_is_not_the_official_one_is_named(copied: Path, name: str) -> None:
    with (copied / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(
        IndexMismatch, match=says(str(copied / name), "sha256", "reinstall")
    ):
        packaged_minilm.packaged_minilm()


def test_a_file_that_is_missing_is_named(copied: Path) -> None:
    (copied / "tokenizer.json").unlink()
    with pytest.raises(
        IndexMismatch, match=says("tokenizer.json", "missing", "reinstall")
    ):
        packaged_minilm.packaged_minilm()

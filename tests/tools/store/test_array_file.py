"""Arrays in one file: read as they were written, with their checksum."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from ras_agent.tools.store import array_file
from ras_agent.tools.store.array_file import (
    is_whole,
    read_arrays,
    write_arrays,
    write_sum,
)

ARRAYS = {
    "bytes": np.arange(5, dtype=np.uint8),
    "halves": np.array([[0.5, 1.5], [2.5, 3.5]], dtype=np.float16),
    "numbers": np.array([1, -2, 3], dtype=np.int64),
    "none": np.empty((0, 3), dtype=np.int32),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_arrays(tmp_path / "arrays", ARRAYS, {"about": "Łódź"})
    return tmp_path / "arrays"


def test_arrays_are_read_back_as_they_are_in_their_shapes(file: Path) -> None:
    arrays, about = read_arrays(file)
    assert about == {"about": "Łódź"}
    assert {name: array.tolist() for name, array in arrays.items()} == {
        n: a.tolist() for n, a in ARRAYS.items()
    }
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {
        name: (array.dtype, array.shape) for name, array in ARRAYS.items()
    }
    assert not arrays["numbers"].flags.writeable


def test_the_file_is_laid_out_as_safetensors_lays_it_out(file: Path) -> None:
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert length % 8 == 0
    assert header["numbers"] == {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}
    assert header["__metadata__"] == {"about": "Łódź"}
    assert content[8 + length :][:24] == ARRAYS["numbers"].tobytes()


def test_its_checksum_is_beside_it(file: Path) -> None:
    assert file.with_name("arrays.sum").read_bytes() == b"%d" % zlib.crc32(
        file.read_bytes()
    )
    assert is_whole(file)


@pytest.mark.parametrize("large", [False, True])
def test_a_changed_byte_is_told_of_a_file_that_is_compared_whole(
    large: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(array_file, "SMALL", file.stat().st_size - 1)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert not is_whole(file)
    if large:
        assert read_arrays(file)[0]["bytes"].tolist() == [0, 1, 2, 3, 5]
    else:
        with pytest.raises(
            ValueError, match="its bytes are not those that were written"
        ):
            read_arrays(file)


def test_a_file_that_something_else_has_written_gets_its_checksum(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    write_sum(file)
    assert is_whole(file)


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        '{"a": {"dtype": "I64", "shape": [2], "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}',
        '{"a": {"dtype": "I64", "shape": [-1], "data_offsets": [8, 0]}}',
        '{"a": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}}',
        '{"a": {"shape": [0]}}',
        "{",
    ],
)
def test_a_header_that_does_not_fit_is_told(header: str, tmp_path: Path) -> None:
    (tmp_path / "arrays").write_bytes(
        len(header).to_bytes(8, "little") + header.encode()
    )
    write_sum(tmp_path / "arrays")
    with pytest.raises((ValueError, KeyError)):
        read_arrays(tmp_path / "arrays")


def test_a_header_longer_than_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "arrays").write_bytes((100).to_bytes(8, "little") + b"{}")
    write_sum(tmp_path / "arrays")
    with pytest.raises(ValueError, match="is damaged"):
        read_arrays(tmp_path / "arrays")

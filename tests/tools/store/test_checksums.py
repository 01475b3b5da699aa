"""Checksums tell whether a file is the one that was written."""

import os
import pickle
import zlib
from pathlib import Path

import numpy as np
import pytest

from ras_agent.errors import IndexMismatch, RasError
from ras_agent.tools.store.checksums import (
    FileSum,
    check_file,
    file_sum,
    file_sums,
    load_array,
    reading,
    row_sums,
    sums_from_dict,
)

EIGHT_MEBIBYTES = 8 * 1024 * 1024


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rows.npy").write_bytes(b"123456789")
    return tmp_path / "rows.npy"


def _with_zeros(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_sum_is_the_size_and_the_crc_32_of_all_bytes(file: Path) -> None:
    assert file_sum(file) == FileSum(9, 0xCBF43926)
    content = b"0123456789" * 300_000
    file.write_bytes(content)
    assert file_sum(file) == FileSum(3_000_000, zlib.crc32(content))


def test_a_folder_is_summed_file_by_file(file: Path) -> None:
    (file.parent / "bm25").mkdir()
    for name in ("b", "a"):
        (file.parent / "bm25" / name).write_text(name)
    sums = file_sums(file.parent, ["rows.npy", "bm25"])
    assert list(sums) == ["rows.npy", "bm25/a", "bm25/b"]
    assert sums["bm25/a"] == FileSum(1, zlib.crc32(b"a"))


def test_sums_come_back_from_json() -> None:
    assert sums_from_dict({"a": {"size": 9, "crc": 5}}) == {"a": FileSum(9, 5)}


def test_a_file_as_it_was_written_passes(file: Path) -> None:
    check_file(file, FileSum(9, 0xCBF43926), "delete it")
    check_file(file, FileSum(9, 0xCBF43926), "delete it", whole=True)


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        (None, "its manifest does not list it"),
        (FileSum(1000, 0xCBF43926), "it has 9 bytes, and 1,000 were written"),
        (FileSum(9, 0xCBF43927), "its bytes are not those that were written"),
    ],
)
def test_another_file_is_named_with_the_reason_and_the_remedy(
    file: Path, expected: FileSum | None, reason: str
) -> None:
    with pytest.raises(IndexMismatch) as caught:
        check_file(file, expected, "delete it")
    assert str(caught.value) == f"{file} is damaged ({reason}): delete it"


def test_a_file_of_eight_mebibytes_is_read_whole_and_a_larger_one_when_asked_to(tmp_path: Path) -> None:
    small = _with_zeros(tmp_path / "small", EIGHT_MEBIBYTES)
    large = _with_zeros(tmp_path / "large", EIGHT_MEBIBYTES + 1)
    with pytest.raises(IndexMismatch, match="its bytes"):
        check_file(small, FileSum(EIGHT_MEBIBYTES, 1), "delete it")
    check_file(large, FileSum(EIGHT_MEBIBYTES + 1, 1), "delete it")
    with pytest.raises(IndexMismatch, match="its bytes"):
        check_file(large, FileSum(EIGHT_MEBIBYTES + 1, 1), "delete it", whole=True)


def test_a_file_that_is_gone_is_not_called_damaged(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_file(file.with_name("gone"), FileSum(9, 1), "delete it")
    with pytest.raises(FileNotFoundError):
        load_array(file.with_name("gone"), "delete it")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("bad magic"), "x.npy is damaged (bad magic): delete it"),
        (KeyError(), "x.npy is damaged (KeyError): delete it"),
        (PermissionError(13, "Permission denied"), "x.npy cannot be read (Permission denied): delete it"),
        (OSError("no more"), "x.npy cannot be read (no more): delete it"),
    ],
)
def test_what_damaged_content_raises_is_told_with_file_and_remedy(error: Exception, message: str) -> None:
    with pytest.raises(IndexMismatch) as caught, reading(Path("x.npy"), "delete it"):
        raise error
    assert str(caught.value) == message
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [RasError("ours"), MemoryError(), FileNotFoundError()])
def test_what_is_no_damage_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, reading(Path("x.npy"), "delete it"):
        raise error
    assert caught.value is error


def test_an_array_is_mapped(file: Path) -> None:
    np.save(file, np.array([1, 2, 3], dtype=np.int32))
    array = load_array(file, "delete it")
    assert type(array) is np.ndarray
    assert isinstance(array.base, np.memmap)
    assert array.tolist() == [1, 2, 3]


class Unpickled:
    """Makes the folder that it was given when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


def test_nothing_is_unpickled(file: Path) -> None:
    made = file.with_name("made")
    file.write_bytes(pickle.dumps(Unpickled(made)))
    with pytest.raises(IndexMismatch, match="is damaged"):
        load_array(file, "delete it")
    assert not made.exists()


def test_each_row_has_a_sum_of_its_bytes_in_order() -> None:
    rows = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert row_sums(rows).tolist() == [zlib.crc32(rows[number].tobytes()) for number in (0, 1)]
    assert row_sums(rows).dtype == np.uint32
    assert row_sums(np.empty((0, 3), dtype=np.float32)).shape == (0,)

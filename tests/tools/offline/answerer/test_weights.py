from pathlib import Path

import numpy as np
import pytest

from ras_agent.errors import WeightsError
from ras_agent.tools.offline.answerer.weights import read_safetensors, write_safetensors

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array([1, 255], np.uint8),
    "c": np.array([0.5], np.float16),
}


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "w.safetensors", ARRAYS, {"made_by": "a test"})
    back = read_safetensors(tmp_path / "w.safetensors")
    assert back.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def test_the_safetensors_library_reads_the_same(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    write_safetensors(tmp_path / "w.safetensors", ARRAYS, {"made_by": "a test"})
    for name, array in library.load_file(tmp_path / "w.safetensors").items():
        np.testing.assert_array_equal(array, ARRAYS[name])


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(WeightsError, match=r"w\.safetensors: not a safetensors file"):
        read_safetensors(tmp_path / "w.safetensors")

"""The loops that numba compiles work also where no folder for its cache can be written to."""

import numpy as np
import pytest

caching = pytest.importorskip("numba.core.caching")

from ras_agent.tools.gfm.cpu_kernels import compile_loop  # noqa: E402


def _doubled(numbers: np.ndarray) -> None:
    for at in range(len(numbers)):
        numbers[at] *= 2


@pytest.mark.parametrize("reorder", [False, True])
def test_a_function_is_compiled(reorder: bool) -> None:
    numbers = np.array([1.0, 3.0])
    compile_loop(_doubled, reorder=reorder)(numbers)
    assert numbers.tolist() == [2, 6]


def test_a_function_is_compiled_where_no_folder_can_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])  # numba finds no place
    numbers = np.array([1.0, 3.0])
    compile_loop(_doubled)(numbers)
    assert numbers.tolist() == [2, 6]

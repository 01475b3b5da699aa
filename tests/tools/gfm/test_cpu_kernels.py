"""The loops that numba compiles, also where no folder for its cache can be written to, and threads that share them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
caching = pytest.importorskip("numba.core.caching")

from ras_agent.tools.gfm.cpu_kernels import CpuLoop


def _doubled(numbers: np.ndarray) -> None:
    for at in range(len(numbers)):
        numbers[at] *= 2


@pytest.mark.parametrize("reorder", [False, True])
def test_a_function_is_compiled(reorder: bool) -> None:
    numbers = np.array([1.0, 3.0])
    CpuLoop(_doubled, reorder=reorder).compiled(numbers)
    assert numbers.tolist() == [2, 6]


def test_a_function_is_compiled_where_no_folder_can_be_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # numba finds no place
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    numbers = np.array([1.0, 3.0])
    CpuLoop(_doubled).compiled(numbers)
    assert numbers.tolist() == [2, 6]


@CpuLoop
def _sum_of_part(numbers: np.ndarray, begin: int, end: int) -> float:
    return numbers[begin:end].sum()


@pytest.mark.parametrize(("threads", "sums"), [(1, [499_500]), (2, [124_750, 374_750])])
def test_threads_share_a_loop_and_what_its_parts_return_keeps_their_order(
    threads: int, sums: list[int]
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert _sum_of_part.share(1000, torch.arange(1000)) == sums
    finally:
        torch.set_num_threads(before)

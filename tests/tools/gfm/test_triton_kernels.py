"""What entities propagate on a device, by torch's own operations and by the Triton kernels."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cuda import kernels_work, try_kernels  # noqa: E402
from tests.messages import says  # noqa: E402

CPU = torch.device("cpu")


def _run(file: str, **environment: str) -> str:
    """Run the tests of a file beside this one in a process of their own, and return what they print.

    Triton reads TRITON_INTERPRET when it is imported, and its compiler prints what it leaks when its process ends.
    """
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", str(Path(__file__).with_name(file))]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow("large examples")
def test_the_triton_kernels_pass_their_tests_in_tritons_interpreter() -> None:
    # older interpreters do not get along with numpy 2
    pytest.importorskip("triton", minversion="3.9", reason="Triton is for Linux; torch may want an older")
    assert "7 passed" in _run("interpreted_kernels.py", TRITON_INTERPRET="1")


@pytest.mark.slow("large examples")
def test_the_triton_kernels_compile_for_hopper_and_read_sixteen_bytes_at_a_time() -> None:
    pytest.importorskip("triton")
    assert "6 passed" in _run("compiled_kernels.py")


def test_where_a_kernel_cannot_be_launched_a_warning_says_why_and_what_may_help() -> None:
    pytest.importorskip("triton")
    try_kernels.cache_clear()
    with pytest.warns(RuntimeWarning, match=says("GFM on cpu", "Triton kernels are not used", "C compiler")):
        assert not try_kernels(CPU, torch.float32)
    assert not try_kernels(CPU, torch.float32)  # and warns once


def test_the_kernels_are_not_tried_where_there_is_no_cuda_device() -> None:
    assert not kernels_work(CPU, torch.float32)

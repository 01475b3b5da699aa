"""Small networks compute on one thread, and the program's own number of threads is back afterwards."""

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ras_agent.contracts.arrays import Floats
from ras_agent.running.blas import one_blas_thread
from ras_agent.tools.embed.bert import PLACES, WIDTH, Bert


def blas_threads() -> set[int]:
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }


def test_overlapping_blocks_hold_one_thread_until_the_last_ends() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_the_number_of_threads_is_back_after_an_error() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            raise ZeroDivisionError
        assert blas_threads() == before


def test_bert_computes_its_layers_on_one_thread() -> None:
    seen = []

    def layer(x: Floats, groups: object) -> Floats:
        seen.append(blas_threads())
        return x

    zeros = np.zeros((PLACES, WIDTH), np.float32)
    network = Bert(
        margin=0,
        words=zeros,
        positions=zeros,
        segments=zeros,
        norm=lambda x: x,  # type: ignore[arg-type]
        layers=(layer,),  # type: ignore[arg-type]
    )
    with threadpool_limits(limits=2, user_api="blas"):
        network.states([[1, 2, 3]])
    assert seen == [{1}]


def test_a_library_that_is_loaded_later_computes_on_one_thread_too() -> None:
    pytest.importorskip("scipy.linalg")
    code = """
import numpy
from ras_agent.running.blas import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
from threadpoolctl import threadpool_info
with one_blas_thread():
    print({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, env=environment, text=True)
    assert printed.strip() == "{1}"

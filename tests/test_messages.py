"""The words of a message are looked for one by one."""

import pytest

from tests.messages import says

MESSAGE = (
    "docs/rows.npy is damaged\n(line 20): delete it, and run `ras-agent index` again"
)


@pytest.mark.parametrize(
    "words",
    [
        ("rows.npy", "damaged", "delete"),
        ("DELETE it", "is damaged (line 20)"),
        ("`ras-agent index`", "docs/rows.npy"),
    ],
)
def test_words_are_found_in_any_order_and_case_and_across_lines(
    words: tuple[str, ...],
) -> None:
    assert says(*words).search(MESSAGE)


@pytest.mark.parametrize("missing", ["line 2", "rows,npy", "amaged", "is delete", ".*"])
def test_one_word_that_is_not_there_is_enough_to_fail(missing: str) -> None:
    assert not says("rows.npy", missing, "delete").search(MESSAGE)

"""Mutants that behave as the original does, so that no test can notice them, with the reason."""

from __future__ import annotations

# file: {(the line, the mutant's line): why}
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "eval/significance.py": {
        (
            "_CELLS = 4_000_000  # drawn at once, so that a large question set does not fill the memory",
            f"_CELLS = {cells}  # drawn at once, so that a large question set does not fill the memory",
        ): "any size of a part gives the same draws"
        for cells in (3999999, 4000001)
    },
    "tools/answer/citations.py": {
        (
            "numbers += range(low, high + 1) if low <= high <= low + _LONGEST_RANGE else (low, high)",
            "numbers += range(low, high + 1) if low < high <= low + _LONGEST_RANGE else (low, high)",
        ): "a number to itself is its two ends, and a number counts once",
    },
}

"""The files of the core that are mutated, and the tests that are to notice it."""

from __future__ import annotations

TESTS: dict[str, tuple[str, ...]] = {
    "eval/significance.py": ("tests/eval/test_significance.py",),
    "tools/index/journal.py": ("tests/tools/index/test_ingest.py",),
    "tools/index/durable.py": ("tests/tools/index/test_durable.py",),
    "tools/answer/citations.py": ("tests/tools/answer",),
    "ras_agent/budget.py": ("tests/test_budget.py",),
}

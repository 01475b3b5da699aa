"""Mutants that behave as the original does, so that no test can notice them, with the reason."""

from __future__ import annotations

# file: {(the line, the mutant's line): why}
EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {}

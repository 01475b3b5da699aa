"""The failures of a run, but that no sentence supports its answer: the answers of the tests' answerers are counts."""

from typing import Any

_UNBORNE = ("no cited sentence supports", "the answer ")


def what_failed(out: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        failure
        for failure in out["failures"]
        if not failure["message"].startswith(_UNBORNE)
    ]

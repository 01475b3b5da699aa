"""Every linker keeps one contract, ras_agent.testing.linkers."""

from collections.abc import Mapping
from typing import Any

import pytest

from ras_agent.running.protocols import Linker
from ras_agent.testing import LINKER_CHECKS, Check, ConformanceError, check_linker
from ras_agent.tools.roles import resolve_linker


class Own:
    """A user's linker."""

    def links(self, question: str) -> dict[str, float]:
        return {word: 1.0 for word in question.split() if word[0].isupper()}


@pytest.fixture(params=["own", "llm", "facts"])
def linker(request: pytest.FixtureRequest, scripted_model: Any) -> Linker:
    spec: Any = Own()
    if request.param == "llm":
        spec = scripted_model(("Bell", "Alexander Graham Bell"), ("", "[NONE]"))
    if request.param == "facts":
        spec = "facts"
    linker = resolve_linker(spec)
    assert linker is not None
    return linker


@pytest.mark.parametrize("check", LINKER_CHECKS, ids=str)
def test_contract(check: Check, linker: Linker) -> None:
    check(linker)


def test_a_weight_that_is_none_breaks_a_promise() -> None:
    class Wrong:
        def links(self, question: str) -> Mapping[str, float]:
            return {"Bell": 0.0}

    with pytest.raises(ConformanceError, match="a weight is a number above 0"):
        check_linker(Wrong())

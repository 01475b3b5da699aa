"""Every reranker keeps one contract, ras_agent.testing.rerankers."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ras_agent.running.protocols import Reranker
from ras_agent.testing import RERANKER_CHECKS, Check
from ras_agent.tools.roles import resolve_reranker


def shares(prompt: str) -> str:
    """A model's reply that gives each passage the share of its length."""
    passages = re.findall(r"^(\d+)\. (.*)$", prompt, re.MULTILINE)
    return "\n".join(f"{number}: {len(text) / 9999:.4f}" for number, text in passages)


class Own:
    """A user's reranker."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [float(len(text)) for text in texts]


@pytest.fixture(params=["own", "ce", "llm", "http", "http in TEI's form"])
def reranker(
    request: pytest.FixtureRequest, scripted_model: Any, scripted_llm: Any
) -> Reranker:
    spec: Any = Own()
    if request.param == "ce":
        folder: Path = request.getfixturevalue("tiny_cross_encoder")
        spec = f"ce:{folder}"
    elif request.param == "llm":
        spec = scripted_model(("", shares))
    elif request.param.startswith("http"):
        form = "tei" if "TEI" in request.param else "jina"
        scripted_llm.script({"rerank": form, "repeat": True})
        spec = f"{scripted_llm.root}/rerank#m"
    reranker = resolve_reranker(spec)
    assert reranker is not None
    return reranker


@pytest.mark.parametrize("check", RERANKER_CHECKS, ids=str)
def test_contract(check: Check, reranker: Reranker) -> None:
    check(reranker)

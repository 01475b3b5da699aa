"""Every graph encoder keeps one contract, ras_agent.testing.encoders."""

from typing import Any

import pytest

from ras_agent.config.registry import names
from ras_agent.testing import GRAPH_ENCODER_CHECKS, Check

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")


@pytest.fixture(scope="module", params=names("graph-encoder"))
def encoder(request: pytest.FixtureRequest) -> Any:
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig, build_encoder

    torch.manual_seed(0)
    return build_encoder(
        EncoderConfig(request.param, layers=3, heads=2, width=16, input=12, dropout=0.5)
    ).eval()


@pytest.mark.parametrize("check", GRAPH_ENCODER_CHECKS, ids=str)
def test_contract(check: Check, encoder: Any) -> None:
    check((encoder, 12))

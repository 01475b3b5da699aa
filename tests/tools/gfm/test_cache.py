"""The cached arrays of a graph are those that the plain network computes, however it is put together."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.cache import ScoreHead, build_cache, deviation_of
from ras_agent.tools.gfm.cached_rows import cache_rows, empty_rows
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import project_relations, relation_inputs
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights


@pytest.mark.parametrize(
    "inverse",
    [None, -1.0, 0.5],
    ids=["negated inverses", "the same, written", "other inverses"],
)
@pytest.mark.parametrize(
    "text_width", [6, 12, 40], ids=["narrow texts", "middling texts", "wide texts"]
)
def test_relation_states_are_those_of_the_plain_network(
    text_width: int, inverse: float | None
) -> None:
    weights = initial_weights(GFMConfig(text_width, 8, 3), 0)
    rng = np.random.default_rng(0)
    weights = {
        name: value + 0.1 * torch.from_numpy(rng.normal(size=value.shape)).float()
        for name, value in weights.items()
    }
    vectors = rng.normal(size=(5, text_width)).astype(np.float32)
    facts = np.column_stack(
        (rng.integers(0, 9, 30), rng.integers(0, 5, 30), rng.integers(0, 9, 30))
    )
    graph = GFMGraph.from_edges(
        9, facts, vectors, None if inverse is None else vectors * np.float32(inverse)
    )
    cache = build_cache(
        weights, graph, ScoreHead.of(weights, "entity_model.mlp", 8), 10**9, False
    )
    both = np.concatenate(
        (vectors, vectors * np.float32(-1 if inverse is None else inverse))
    )
    inputs = relation_inputs(weights, torch.from_numpy(both))
    for layer, states in enumerate(cache.relation_states):
        expected = project_relations(weights, layer, inputs)
        # sums in another order
        assert float((states.values - expected).abs().max()) < 1e-5
    for rows, deviation in zip(cache.pre_norm, cache.deviation, strict=True):
        assert torch.allclose(deviation, deviation_of(rows.values), rtol=1e-4)


def test_rows_written_in_parts_are_those_cached_at_once_and_know_their_largest_numbers() -> (
    None
):
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(11, 4))).float()
    for half in (False, True):
        whole, parts = cache_rows(rows, half), empty_rows(11, 4, half)
        parts.write(0, rows[:3])
        parts.write(3, rows[3:])
        assert torch.equal(parts.values, whole.values)
        assert torch.equal(parts.scales, whole.scales)
        assert torch.allclose(whole.largest(), rows.abs().amax(dim=1), rtol=1e-4)

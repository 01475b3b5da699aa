"""The lab's measure of a network that completes facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lab.completion import ranks  # noqa: E402
from ras_agent.records import Source, Triple  # noqa: E402
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights  # noqa: E402
from ras_agent.tools.kg.index import KGIndex  # noqa: E402
from ras_agent.tools.kg.passage_facts import PassageFacts  # noqa: E402
from ras_agent.train.gfm.sets import GFMSet  # noqa: E402


def test_a_network_that_knows_nothing_ranks_the_hidden_end_by_chance(hash_embedder: Any) -> None:
    facts = [
        PassageFacts(f"p{n}", (Triple(f"Person {n}", "was born in", f"Town {n}", (Source(f"p{n}"),)),))
        for n in range(20)
    ]
    config = GFMConfig(hash_embedder.dimension, 8, 2, inverse="negated")
    gfm_set = GFMSet("people", KGIndex.in_memory(facts, hash_embedder), {}, config)
    found = np.array(ranks(gfm_set, initial_weights(config, 0), 30, 0))
    assert found.shape == (30,)
    assert 1 <= found.min() <= found.max() <= 40


def test_other_ends_of_the_same_fact_do_not_count(hash_embedder: Any) -> None:
    # whichever town is asked for, the other nineteen complete the fact as well: only the person is left to be better
    facts = [PassageFacts(f"p{n}", (Triple("Person", "visited", f"Town {n}", (Source(f"p{n}"),)),)) for n in range(20)]
    config = GFMConfig(hash_embedder.dimension, 8, 2, inverse="negated")
    gfm_set = GFMSet("visits", KGIndex.in_memory(facts, hash_embedder), {}, config)
    found = ranks(gfm_set, initial_weights(config, 0), 40, 0)
    assert min(found) <= 2
    assert sum(rank <= 2 for rank in found) >= 10  # those that ask for a town

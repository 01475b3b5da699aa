"""A small family, whose paths can be counted by hand."""

from __future__ import annotations

import pytest

from ras_agent.tools.subgraph.graph import Graph

FAMILY = (
    ("frederica", "spouse", "ernest_augustus"),
    ("ernest_augustus", "nationality", "united_kingdom"),
    ("frederica", "parents", "charles_ii"),
    ("charles_ii", "children", "frederica"),
    ("charles_ii", "nationality", "germany"),
    ("george_v", "parents", "ernest_augustus"),
    ("george_v", "nationality", "germany"),
    ("lonely", "knows", "nobody"),
)


@pytest.fixture
def family() -> Graph:
    return Graph.from_triples(FAMILY)

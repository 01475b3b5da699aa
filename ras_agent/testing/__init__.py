"""Checks that a retriever, a role or an encoder keeps its contract: conformance suites for authors of plug-ins.

    from ras_agent.testing import check_retriever

    def test_my_retriever_keeps_the_contract():
        check_retriever(lambda passages: MyRetriever(passages))

Each `check_...` function runs a whole suite and raises ConformanceError, which names every promise that was broken.
The suites are also available as tuples of single checks (`RETRIEVER_CHECKS`, ...), for a test that shows them one by
one:

    @pytest.mark.parametrize("check", RETRIEVER_CHECKS, ids=str)
    def test_contract(check):
        check(lambda passages: MyRetriever(passages))

ras_agent.testing.cassettes is for tests of agents that ask no models; ras_agent.testing.plugin has its pytest fixture.
"""

from ras_agent.testing.answerers import ANSWERER_CHECKS, check_answerer
from ras_agent.testing.conformance import Check, ConformanceError
from ras_agent.testing.encoders import (
    EMBEDDER_CHECKS,
    GRAPH_ENCODER_CHECKS,
    SPAN_READER_CHECKS,
    check_embedder,
    check_graph_encoder,
    check_span_reader,
)
from ras_agent.testing.environments import (
    ENVIRONMENT_CHECKS,
    EnvironmentCase,
    check_environment,
)
from ras_agent.testing.extractors import EXTRACTOR_CHECKS, check_extractor
from ras_agent.testing.linkers import LINKER_CHECKS, check_linker
from ras_agent.testing.planners import (
    PLANNER_CHECKS,
    REASONER_CHECKS,
    check_planner,
    check_reasoner,
)
from ras_agent.testing.rerankers import RERANKER_CHECKS, check_reranker
from ras_agent.testing.retrievers import RETRIEVER_CHECKS, check_retriever
from ras_agent.testing.rewards import check_rewards
from ras_agent.testing.rewriters import REWRITER_CHECKS, check_rewriter
from ras_agent.testing.scorers import SCORER_CHECKS, check_scorer

__all__ = [
    "ANSWERER_CHECKS",
    "EMBEDDER_CHECKS",
    "ENVIRONMENT_CHECKS",
    "EXTRACTOR_CHECKS",
    "GRAPH_ENCODER_CHECKS",
    "LINKER_CHECKS",
    "PLANNER_CHECKS",
    "REASONER_CHECKS",
    "RERANKER_CHECKS",
    "RETRIEVER_CHECKS",
    "REWRITER_CHECKS",
    "SCORER_CHECKS",
    "SPAN_READER_CHECKS",
    "Check",
    "ConformanceError",
    "EnvironmentCase",
    "check_answerer",
    "check_embedder",
    "check_environment",
    "check_extractor",
    "check_graph_encoder",
    "check_linker",
    "check_planner",
    "check_reasoner",
    "check_reranker",
    "check_retriever",
    "check_rewards",
    "check_rewriter",
    "check_scorer",
    "check_span_reader",
]

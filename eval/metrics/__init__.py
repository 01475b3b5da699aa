"""Scores as the papers report them: pure functions, all in 0..1."""

from ras_agent.eval.metrics.answer_sets import (
    SetScore,
    answer_hit,
    answer_set_score,
    contained_set_score,
    set_score,
    split_answers,
)
from ras_agent.eval.metrics.answers import (
    answer_coverage,
    exact_match,
    golden_match,
    holds,
    normalise_answer,
    squad_f1,
    token_f1,
)
from ras_agent.eval.metrics.choices import chosen_class, chosen_label, stated_verdict
from ras_agent.eval.metrics.cited_graph import read_cited_graph
from ras_agent.eval.metrics.graphs import (
    CitedGraph,
    GraphValidity,
    entity_score,
    graph_validity,
    pooled_validity,
    triple_score,
)
from ras_agent.eval.metrics.grounding import answer_support, checkable, citation_precision
from ras_agent.eval.metrics.ranking import all_recalled_at, hit_at, recall_at, reciprocal_rank
from ras_agent.eval.metrics.rouge import rouge_lsum
from ras_agent.eval.metrics.soft_triples import ends_score, soft_triple_score
from ras_agent.eval.metrics.stopping import Stop, judged_stop, sufficiency_precision

__all__ = [
    "CitedGraph",
    "GraphValidity",
    "SetScore",
    "Stop",
    "all_recalled_at",
    "answer_coverage",
    "answer_hit",
    "answer_set_score",
    "answer_support",
    "checkable",
    "chosen_class",
    "chosen_label",
    "citation_precision",
    "contained_set_score",
    "ends_score",
    "entity_score",
    "exact_match",
    "golden_match",
    "graph_validity",
    "hit_at",
    "holds",
    "judged_stop",
    "normalise_answer",
    "pooled_validity",
    "read_cited_graph",
    "recall_at",
    "reciprocal_rank",
    "rouge_lsum",
    "set_score",
    "soft_triple_score",
    "split_answers",
    "squad_f1",
    "stated_verdict",
    "sufficiency_precision",
    "token_f1",
    "triple_score",
]

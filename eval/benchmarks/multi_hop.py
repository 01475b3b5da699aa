"""What is measured on multi-hop questions over text: the answer, the passages, the citations, the planner's stop."""

__all__ = ["MULTI_HOP"]

MULTI_HOP = (
    "f1",
    "em",
    "recall@2",
    "recall@5",
    "all_recall@5",
    "mrr",
    "citation_support",
    "sufficiency_precision",
    "sufficient_evidence",
)

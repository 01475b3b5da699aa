"""Makes training samples for a planner and an answerer that read the question graph, as in RAS's HotpotQA-SUBQ."""

from ras_agent.train.subq.samples import SubqSample, SubqStep, read_samples

__all__ = ["SubqSample", "SubqStep", "read_samples"]

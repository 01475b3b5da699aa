"""Studies: sets of evaluation runs that differ in one thing, so that it shows what the thing is worth."""

from ras_agent.eval.study.design import Choices, Design, Shown
from ras_agent.eval.study.registry import STUDIES, designed
from ras_agent.eval.study.run import run_study

__all__ = ["STUDIES", "Choices", "Design", "Shown", "designed", "run_study"]

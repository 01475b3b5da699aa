"""Runs studies: sets of evaluation runs that differ in one thing, to show how much it contributes."""

from ras_agent.eval.study.ablations import ablations_design
from ras_agent.eval.study.abundance import abundance_design
from ras_agent.eval.study.counterfactuals import Removal, removals
from ras_agent.eval.study.crossings import roles_design, sweep_design
from ras_agent.eval.study.design import Design, Shown
from ras_agent.eval.study.extractors import extractors_design
from ras_agent.eval.study.graph_pays import graph_pays_design
from ras_agent.eval.study.oracles import oracles_design
from ras_agent.eval.study.run import run_study

__all__ = [
    "Design",
    "Removal",
    "Shown",
    "ablations_design",
    "abundance_design",
    "extractors_design",
    "graph_pays_design",
    "oracles_design",
    "removals",
    "roles_design",
    "run_study",
    "sweep_design",
]

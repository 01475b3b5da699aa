"""Runs every combination of two choices: planners with answerers (RAS, Fig. 3), or hop limits with numbers of
passages k.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ras_agent.config.settings import Settings
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import Design, extended, on_task
from ras_agent.eval.study.tables import show_crossed
from ras_agent.graphs.resolve import role_specs
from ras_agent.tools.roles import role_name

HOPS = (1, 2, 3, 5)
KS = (3, 5, 10)


def roles_design(
    task: Task,
    settings: Settings,
    *,
    planners: Sequence[str] = (),
    answerers: Sequence[str] = (),
) -> Design:
    """Return a design with a run for each pair of a planner and an answerer.

    All runs have the same extractor: that of the settings, or else the default one for the first planner.
    """
    specs = role_specs(settings)
    planners = tuple(dict.fromkeys(planners)) or (specs.get("planner", "offline"),)
    answerers = tuple(dict.fromkeys(answerers)) or (specs["answerer"],)
    extractor = role_specs(
        settings.model_copy(update={"planner": planners[0], "answerer": answerers[0]})
    ).get("extractor")
    runs = []
    cells = {}
    for planner in planners:
        for answerer in answerers:
            pair = (role_name(planner), role_name(answerer))
            cells[pair] = f"planner {pair[0]}, answerer {pair[1]}"
            changes = {"planner": planner, "answerer": answerer, "extractor": extractor}
            runs.append(
                EvalAgent(
                    cells[pair],
                    settings.model_copy(update=changes),
                    variant={"planner": pair[0], "answerer": pair[1]},
                )
            )
    metrics = extended(task.metrics[:2], "all_recall", "sufficiency_precision")
    show = partial(
        show_crossed, cells=cells, metrics=metrics, titles=("planner", "answerer")
    )
    scored = task.scored_by(
        extended(task.metrics, "all_recall", "sufficiency_precision")
    )
    return Design("roles", on_task(scored, runs), show, task.benchmark.headline)


def sweep_design(
    task: Task, settings: Settings, *, hops: Sequence[int] = (), ks: Sequence[int] = ()
) -> Design:
    """Return a design with a run for each pair of a hop limit and a number k of passages per hop.

    The tables show the headline metric, and the share of questions for which all gold passages were found at any hop.
    """
    runs = []
    cells = {}
    for limit in dict.fromkeys(hops or HOPS):
        for k in dict.fromkeys(ks or KS):
            cells[str(limit), str(k)] = name = f"{limit} hops, k {k}"
            runs.append(
                EvalAgent(
                    name,
                    settings.model_copy(update={"max_hops": limit, "k": k}),
                    variant={"max_hops": limit, "k": k},
                )
            )
    metrics = extended((task.benchmark.headline,), "all_recall")
    show = partial(show_crossed, cells=cells, metrics=metrics, titles=("hops", "k"))
    scored = task.scored_by(extended(task.metrics, "all_recall"))
    return Design("sweep", on_task(scored, runs), show, task.benchmark.headline)

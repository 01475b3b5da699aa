"""Which role loses the points? One role after the other, and two together, knows the gold annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from typing import Any

from ras_agent.budget import Limits
from ras_agent.eval.metrics import checkable
from ras_agent.eval.question import Question
from ras_agent.eval.run.evaluation import Configuration, Material
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.askers import replaced_for_each
from ras_agent.eval.study.choices import Choices
from ras_agent.eval.study.design import Design, Shown, extended
from ras_agent.eval.study.folder import LeftOut
from ras_agent.eval.study.oracle_roles import OracleAnswerer, OraclePlanner, OracleRetriever, gold_passages, named
from ras_agent.eval.study.shown import left_out_lines
from ras_agent.eval.study.tables import compared, markdown_matrix, markdown_rows, matrix
from ras_agent.graphs.from_settings import Roles, limits_of
from ras_agent.graphs.registry import graph_spec
from ras_agent.settings import Settings

__all__ = ["oracles_design"]

OWN = "own roles"


def oracles_design(material: Material, settings: Settings, choices: Choices) -> Design:
    """Runs with own and oracle roles crossed; the answerer's oracle looks in the triples, and again in the passages."""
    settings = choices.single(settings)
    metrics = extended(material.asked.metrics, "all_recall", "answer_in_facts", "answer_in_passages")
    left_out = tuple(_left_out(material, settings))
    without = {one.name for one in left_out}
    planners = (False,) if "planner oracle" in without else (False, True)
    retrievers = (False,) if "retriever oracle" in without else (False, True)
    runs = []
    for within, planned, found in product(("", "facts", "passages"), planners, retrievers):
        oracles = {"planner": planned, "retriever": found, "answerer": within}
        limits = limits_of(settings)
        runs.append(
            Configuration(
                _name(planned, found, within),
                settings,
                metrics=metrics,
                roles=_named_roles(planned, found, within),
                limits=_unhurried(limits) if planned else limits,
                asker=replaced_for_each(partial(_oracles, planned, found, within)),
                variant={"oracles": oracles},
            )
        )
    show = partial(_show, metrics=extended(material.asked.metrics[:2], "all_recall"), headline=material.asked.headline,
                   left_out=left_out)  # fmt: skip
    return Design("oracles", tuple((material, run) for run in runs), show, material.asked.headline, OWN, left_out)


def _left_out(material: Material, settings: Settings) -> list[LeftOut]:
    left_out = []
    bare = sum(not question.decomposition for question in material.questions)
    if graph_spec(settings.graph).planner != "planner":
        left_out.append(LeftOut("planner oracle", f"the graph {settings.graph!r} asks no planner for sub-questions"))
    elif bare:
        why = f"{bare} of {len(material.questions)} questions come without a gold decomposition"
        left_out.append(LeftOut("planner oracle", why))
    bare = sum(not question.supporting for question in material.questions)
    if bare:
        why = f"{bare} of {len(material.questions)} questions name no gold passages"
        left_out.append(LeftOut("retriever oracle", why))
    return left_out


def _name(planned: bool, found: bool, within: str) -> str:
    parts = ["planner"] * planned + ["retriever"] * found + [f"answerer ({within})"] * bool(within)
    return f"oracle {' + '.join(parts)}" if parts else OWN


def _named_roles(planned: bool, found: bool, within: str) -> dict[str, str]:
    names = {"planner": planned and "oracle", "retriever": found and "oracle"}
    names["answerer"] = within and f"oracle:{within}"
    return {role: name for role, name in names.items() if name}


def _oracles(planned: bool, found: bool, within: str, material: Material) -> Callable[[Roles, Question], Roles]:
    by_title = {question.by_title for question in material.questions} if found else set()
    corpus = {key: named(material.index.passages, key) for key in by_title}

    def change(roles: Roles, question: Question) -> Roles:
        if planned:
            roles = replace(roles, planner=OraclePlanner(question), limits=_unhurried(roles.limits))
        if found:
            gold = gold_passages(question, corpus[question.by_title])
            # a search that finds them all, however few a hop may bring
            limits = replace(roles.limits, k=max(roles.limits.k, len(gold)))
            roles = replace(roles, retriever=OracleRetriever(gold), limits=limits)
        return replace(roles, answerer=OracleAnswerer(question, within)) if within else roles

    return change


def _unhurried(limits: Limits) -> Limits:
    """The gold plan is asked to its end: stopping where a hop adds nothing is the loop's guess, not the plan's."""
    return replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)


def _show(
    runs: Mapping[str, Sequence[Result]], *, metrics: Sequence[str], headline: str, left_out: Sequence[LeftOut]
) -> Shown:
    """All questions; those whose answer a text can state, which alone an oracle answerer can get; by gold hops."""
    parts: list[str] = []
    figures: dict[str, Any] = {}
    asked = next(iter(runs.values()), ())
    subsets: dict[str, Callable[[Result], bool] | None] = {"all questions": None}
    if 0 < sum(map(_stated, asked)) < len(asked):
        subsets["answers that a text can state (not yes or no)"] = _stated
    for title, keep in subsets.items():
        rows = compared(runs, metrics, headline, OWN, keep=keep)
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n{markdown_rows(rows, metrics, headline, OWN)}\n")
        figures[title] = [asdict(row) for row in rows]
    hops = sorted({one.gold_hops for one in asked if one.gold_hops is not None})
    if len(hops) > 1:
        cells = {(name, f"{count} hops"): f"{name}/{count}" for name in runs for count in hops}
        parted = {
            f"{name}/{count}": [one for one in results if one.gold_hops == count]
            for name, results in runs.items()
            for count in hops
        }
        found = matrix(parted, cells, headline, "run")
        parts.append(f"## {headline} by gold hops\n\n{markdown_matrix(found)}\n")
        figures["by gold hops"] = found.to_dict()
    return Shown("\n".join(parts) + left_out_lines(left_out), figures)


def _stated(result: Result) -> bool:
    return any(map(checkable, result.answers))

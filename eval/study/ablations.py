"""What each part of the loop is worth (RAS, Table 2, inference): the agent with one of them taken away."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ras_agent.errors import RasError
from ras_agent.eval.run.evaluation import Configuration, Material
from ras_agent.eval.study.ablated_roles import NeverRetrieves, ReadsNothing, SentencesAsFacts, TakesGraphTokens
from ras_agent.eval.study.askers import replaced
from ras_agent.eval.study.choices import Choices
from ras_agent.eval.study.design import Design, extended
from ras_agent.eval.study.folder import LeftOut
from ras_agent.eval.study.shown import side_by_side
from ras_agent.graphs.from_settings import Roles, role_specs
from ras_agent.graphs.registry import graph_spec
from ras_agent.settings import Settings
from ras_agent.tools.roles import resolve_answerer, role_name

__all__ = ["ablations_design"]

FULL = "full loop"


def ablations_design(material: Material, settings: Settings, choices: Choices) -> Design:
    """The full loop; without planning (one search, with the question); with sentences in place of triples; without
    retrieval; and, where the answerer takes graph tokens, without these.
    """
    settings = choices.single(settings)
    metrics = extended(material.asked.metrics, "all_recall", "answer_in_facts", "answer_in_passages")
    specs = role_specs(settings)
    named = {role: role_name(spec) for role, spec in specs.items()}
    runs = [Configuration(FULL, settings, metrics=metrics, variant={"ablation": "none"})]
    left_out: list[LeftOut] = []

    def add(name: str, key: str, **changes: object) -> None:
        runs.append(Configuration(name, settings, metrics=metrics, variant={"ablation": key}, **changes))  # type: ignore[arg-type]

    if graph_spec(settings.graph).planner is None:
        left_out.append(LeftOut("no planning", f"the graph {settings.graph!r} plans nothing"))
    else:
        add("no planning", "no_planning", graph="single-shot", asker=replaced(_without_planning))
    if "extractor" in named:
        add("no text-to-triples", "no_triples", roles={"extractor": "none"}, asker=replaced(_without_triples))
    else:
        left_out.append(
            LeftOut("no text-to-triples", f"the graph {settings.graph!r} reads no triples for this answerer")
        )
    add(
        "no retrieval",
        "no_retrieval",
        graph="ras",
        roles={"planner": "none", "retriever": "none"},
        asker=replaced(_without_retrieval),
    )
    if _takes_graph_tokens(specs["answerer"]):
        add("no graph encoding", "no_graph_encoding", asker=replaced(_without_graph_tokens))
    else:
        why = f"the answerer {named['answerer']} reads the graph as text and takes no graph tokens"
        left_out.append(LeftOut("no graph encoding", why))
    headline = material.asked.headline
    shown = extended(material.asked.metrics[:2], "all_recall", "answer_in_facts", "answer_in_passages")
    show = partial(side_by_side, metrics=shown, headline=headline, base=FULL, left_out=left_out)
    return Design("ablations", tuple((material, run) for run in runs), show, headline, FULL, tuple(left_out))


def _without_planning(roles: Roles) -> Roles:
    extractor = roles.extractor or ReadsNothing()  # where the full loop reads no facts, this run does not either
    return replace(roles, graph="single-shot", planner=None, preset=None, extractor=extractor)


def _without_triples(roles: Roles) -> Roles:
    return replace(roles, extractor=SentencesAsFacts())


def _without_retrieval(roles: Roles) -> Roles:
    return replace(roles, graph="ras", planner=NeverRetrieves())


def _without_graph_tokens(roles: Roles) -> Roles:
    if not isinstance(roles.answerer, TakesGraphTokens):
        raise TypeError(f"the answerer {role_name(roles.answerer)} takes no graph tokens")
    return replace(roles, answerer=roles.answerer.without_graph_tokens())


def _takes_graph_tokens(spec: str) -> bool:
    try:
        return isinstance(resolve_answerer(spec), TakesGraphTokens)
    except RasError:  # told, with its remedy, when the full loop is set up
        return False

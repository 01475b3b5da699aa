"""Measures how much each part of the loop contributes, by runs without that part (RAS, Table 2, inference)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RasError
from ras_agent.contracts.records import (
    EvidenceLayout,
    Extraction,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
)
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import Design, LeftOut, asked_anyway, extended, on_task
from ras_agent.eval.study.tables import side_by_side
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import role_specs
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.roles import resolve_answerer, role_name

FULL = "full loop"
WITH_PASSAGES = "full loop, passages beside the triples"


def ablations_design(task: Task, settings: Settings) -> Design:
    """Return a design with the full loop, and runs that each lack one part of it.

    In the full loop planner and answerer are shown each sub-query with its triples and no passages, as in RAS.
    The other runs are: no planning (one search with the question), raw text instead of triples, no retrieval,
    and, if the answerer takes graph tokens, no graph tokens. One more run shows the passages with the triples.
    In all runs the answerer answers from its model's knowledge if there is no evidence, as it must without
    retrieval, so that the runs differ only in the missing part.
    """
    reads_facts = "extractor" in role_specs(settings)
    if reads_facts:
        layout: EvidenceLayout = "chain"
    else:
        layout = "evidence"
    settings = settings.model_copy(update={"layout": layout})
    metrics = extended(
        task.metrics, "all_recall", "answer_in_facts", "answer_in_passages"
    )
    scored = task.scored_by(metrics)
    specs = role_specs(settings)
    names = {role: role_name(spec) for role, spec in specs.items()}
    runs: list[EvalAgent] = []
    left_out: list[LeftOut] = []

    def add(
        name: str, key: str, layout: EvidenceLayout = layout, **changes: Any
    ) -> None:
        laid_out = settings.model_copy(update={"layout": layout})
        runs.append(
            EvalAgent(
                name,
                laid_out,
                **{"make": asked_anyway(), "variant": {"ablation": key}, **changes},
            )
        )

    add(FULL, "none")
    if reads_facts:
        add(WITH_PASSAGES, "none, passages too", "evidence")
    if graph_spec(settings.loop).planner is None:
        left_out.append(
            LeftOut("no planning", f"the loop {settings.loop!r} plans nothing")
        )
    else:
        add(
            "no planning",
            "no_planning",
            graph="single-shot",
            make=asked_anyway(_without_planning),
        )
    if reads_facts:
        changes = {
            "roles": {"extractor": "none"},
            "make": asked_anyway(without_triples),
        }
        add("no text-to-triples", "no_triples", "chain-of-text", **changes)
    else:
        left_out.append(
            LeftOut(
                "no text-to-triples",
                f"the loop {settings.loop!r} reads no triples for this answerer",
            )
        )
    add(
        "no retrieval",
        "no_retrieval",
        graph="ras",
        roles={"planner": "none", "retriever": "none"},
        make=asked_anyway(_without_retrieval, seeded=False),
    )
    if _takes_graph_tokens(specs["answerer"]):
        add(
            "no graph encoding",
            "no_graph_encoding",
            make=asked_anyway(_without_graph_tokens),
        )
    else:
        why = f"the answerer {names['answerer']} reads the graph as text and takes no graph tokens"
        left_out.append(LeftOut("no graph encoding", why))
    headline = task.benchmark.headline
    columns = extended(
        task.metrics[:2], "all_recall", "answer_in_facts", "answer_in_passages"
    )
    show = partial(
        side_by_side, metrics=columns, headline=headline, base=FULL, left_out=left_out
    )
    return Design(
        "ablations",
        on_task(scored, runs),
        show,
        headline,
        FULL,
        tuple(left_out),
    )


def _without_planning(roles: AgentParts) -> AgentParts:
    # if the full loop extracts no facts, this run does not either
    extractor = roles.extractor or ReadsNothing()
    return replace(roles, graph="single-shot", planner=None, extractor=extractor)


def without_triples(roles: AgentParts) -> AgentParts:
    """Return the agent's parts with an extractor that returns each sentence as one fact, in place of triples."""
    return replace(roles, extractor=SentencesAsFacts())


def _without_retrieval(roles: AgentParts) -> AgentParts:
    preset = replace(roles.preset, from_memory=True)
    return replace(roles, graph="ras", planner=NeverRetrieves(), preset=preset)


def _without_graph_tokens(roles: AgentParts) -> AgentParts:
    if not isinstance(roles.answerer, TakesGraphTokens):
        raise TypeError(
            f"the answerer {role_name(roles.answerer)} takes no graph tokens: give one with without_graph_tokens"
        )
    if isinstance(roles.planner, TakesGraphTokens):
        planner = roles.planner.without_graph_tokens()
    else:
        planner = roles.planner
    return replace(
        roles, planner=planner, answerer=roles.answerer.without_graph_tokens()
    )


def _takes_graph_tokens(spec: str) -> bool:
    try:
        return isinstance(resolve_answerer(spec), TakesGraphTokens)
    except RasError:  # the error is reported when the full loop is set up
        return False


_FIRST_WORDS = 3  # the words that replace a passage's title


class NeverRetrieves:
    """Plans [NO_RETRIEVAL] for every question, so that the answerer uses its model's knowledge."""

    name = "none"

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the plan [NO_RETRIEVAL]."""
        return Plan("no_retrieval")


class ReadsNothing:
    """Plays an extractor that finds no facts."""

    name = "none"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return no facts."""
        return Extraction()


class SentencesAsFacts:
    """Plays an extractor that returns each sentence unchanged as one fact of its passage.

    So the loop stays the same, and roles that read only facts are shown the retrieved text instead of triples.
    Roles on a chat model are shown the passages.
    """

    name = "none"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return a fact (title or first words | text | sentence) for each sentence, with the sentence's
        position.
        """
        facts = []
        for passage in passages:
            text = passage.text
            subject = passage.title or " ".join(text.split()[:_FIRST_WORDS])
            for start, end in sentence_spans(text):
                source = Source(passage.id, start, end, extractor=self.name)
                facts.append(Triple(subject, "text", text[start:end], (source,)))
        return Extraction(tuple(facts))


@runtime_checkable
class TakesGraphTokens(Protocol):
    """Describes a planner or answerer that can read an encoding of the graph before its text."""

    def without_graph_tokens(self) -> Any:
        """Return the same role reading the graph only as text."""
        ...

"""Shows which role loses the points, by replacing roles with oracles, which know the gold annotation.

    planner     asks the gold decomposition, with #k replaced by the gold answer of step k
    retriever   finds the gold passages
    answerer    gives the gold answer if the evidence contains it word for word, else abstains

Points that are still lost with an oracle are lost by the other, real roles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Answer, Citation, Hit, Passage, Plan, Step
from ras_agent.eval.metrics import checkable, holds
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import (
    Design,
    LeftOut,
    Shown,
    extended,
    on_task,
    replaced_for_each,
)
from ras_agent.eval.study.tables import (
    compared,
    left_out_lines,
    markdown_matrix,
    markdown_rows,
    matrix,
)
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.registry import graph_spec
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Limits

_REFERENCE = re.compile(r"#(\d+)")
OWN = "own roles"


def oracles_design(task: Task, settings: Settings) -> Design:
    """Return a design with a run for every combination of real roles and oracle roles.

    There are two oracle answerers: one looks for the gold answer in the triples, the other in the passages.
    """
    metrics = extended(
        task.metrics, "all_recall", "answer_in_facts", "answer_in_passages"
    )
    left_out = tuple(_left_out(task, settings))
    without = {cell.name for cell in left_out}
    planners = [False]
    if "planner oracle" not in without:
        planners.append(True)
    retrievers = [False]
    if "retriever oracle" not in without:
        retrievers.append(True)
    runs = []
    for within, planned, retrieval in product(
        ("", "facts", "passages"), planners, retrievers
    ):
        oracles = {"planner": planned, "retriever": retrieval, "answerer": within}
        limits = settings.limits
        runs.append(
            EvalAgent(
                _name(planned, retrieval, within),
                settings,
                roles=_named_roles(planned, retrieval, within),
                limits=_without_early_stops(limits) if planned else limits,
                make=replaced_for_each(partial(_oracles, planned, retrieval, within)),
                variant={"oracles": oracles},
            )
        )
    show = partial(_show, metrics=extended(task.metrics[:2], "all_recall"), headline=task.benchmark.headline,
                   left_out=left_out)  # fmt: skip
    scored = task.scored_by(metrics)
    return Design(
        "oracles",
        on_task(scored, runs),
        show,
        task.benchmark.headline,
        OWN,
        left_out,
    )


def _left_out(task: Task, settings: Settings) -> list[LeftOut]:
    left_out = []
    bare = sum(not question.decomposition for question in task.questions)
    if graph_spec(settings.loop).planner != "planner":
        left_out.append(
            LeftOut(
                "planner oracle",
                f"the loop {settings.loop!r} asks no planner for sub-questions",
            )
        )
    elif bare:
        why = f"{bare} of {len(task.questions)} questions come without a gold decomposition"
        left_out.append(LeftOut("planner oracle", why))
    bare = sum(not question.supporting for question in task.questions)
    if bare:
        why = f"{bare} of {len(task.questions)} questions name no gold passages"
        left_out.append(LeftOut("retriever oracle", why))
    return left_out


def _name(planned: bool, retrieval: bool, within: str) -> str:
    parts = []
    if planned:
        parts.append("planner")
    if retrieval:
        parts.append("retriever")
    if within:
        parts.append(f"answerer ({within})")
    if parts:
        return f"oracle {' + '.join(parts)}"
    return OWN


def _named_roles(planned: bool, retrieval: bool, within: str) -> dict[str, str]:
    names = {}
    if planned:
        names["planner"] = "oracle"
    if retrieval:
        names["retriever"] = "oracle"
    if within:
        names["answerer"] = f"oracle:{within}"
    return names


def _oracles(
    planned: bool, retrieval: bool, within: str, task: Task
) -> Callable[[AgentParts, Question], AgentParts]:
    corpus = {}
    if retrieval:
        for key in {question.by_title for question in task.questions}:
            corpus[key] = by_name(task.index.passages, key)

    def change(roles: AgentParts, question: Question) -> AgentParts:
        if planned:
            roles = replace(
                roles,
                planner=OraclePlanner(question),
                limits=_without_early_stops(roles.limits),
            )
        if retrieval:
            gold = gold_passages(question, corpus[question.by_title])
            # a search finds all gold passages, even if k is smaller
            limits = replace(roles.limits, k=max(roles.limits.k, len(gold)))
            roles = replace(roles, retriever=OracleRetriever(gold), limits=limits)
        if within:
            return replace(roles, answerer=OracleAnswerer(question, within))
        return roles

    return change


def _without_early_stops(limits: Limits) -> Limits:
    """Return the limits without the early stop at a hop that adds nothing, so that the gold plan is followed to
    its end.
    """
    return replace(limits, stop_on_repeat=False, stop_on_no_new_facts=False)


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    metrics: Sequence[str],
    headline: str,
    left_out: Sequence[LeftOut],
) -> Shown:
    """Return tables of the scores: of all questions, of those whose answer a text can contain, and by number of
    gold hops.

    The second table is there because an oracle answerer can be right only on those questions.
    """
    parts: list[str] = []
    figures: dict[str, Any] = {}
    results_of_one = next(iter(runs.values()), ())
    subsets: dict[str, Callable[[Result], bool] | None] = {"all questions": None}
    if 0 < sum(map(_states_gold, results_of_one)) < len(results_of_one):
        subsets["answers that a text can state (not yes or no)"] = _states_gold
    for title, keep in subsets.items():
        rows = compared(runs, metrics, headline, OWN, keep=keep)
        parts.append(
            f"## {title[0].upper()}{title[1:]}\n\n{markdown_rows(rows, metrics, headline, OWN)}\n"
        )
        figures[title] = [asdict(row) for row in rows]
    counts = {result.gold_hops for result in results_of_one}
    hops = sorted(filter(None, counts))
    if len(hops) > 1:
        cells = {}
        parted = {}
        for name, count in product(runs, hops):
            part = f"{name}/{count}"
            cells[(name, f"{count} hops")] = part
            parted[part] = [one for one in runs[name] if one.gold_hops == count]
        table = matrix(parted, cells, headline, "run")
        parts.append(f"## {headline} by gold hops\n\n{markdown_matrix(table)}\n")
        figures["by gold hops"] = asdict(table)
    return Shown("\n".join(parts) + left_out_lines(left_out), figures)


def _states_gold(result: Result) -> bool:
    return any(map(checkable, result.answers))


def decomposed(question: Question) -> list[str]:
    """Return the gold sub-questions, with #1, #2 ... replaced by the gold answers of earlier steps; [] if there
    are none.

    Raises:
        RunError: if a reference is not to an earlier step, or to a step without an answer.
    """
    searches: list[str] = []
    answers: list[str] = []

    def answer(reference: re.Match[str]) -> str:
        number = int(reference[1])
        if not 0 < number <= len(answers) or not answers[number - 1]:
            raise RunError(
                f"{question.id}: step {len(answers) + 1} of the decomposition refers to {reference[0]}, but no "
                "earlier step has this answer: correct the decomposition"
            )
        return answers[number - 1]

    for step in question.decomposition:
        searches.append(_REFERENCE.sub(answer, step["question"]))
        answers.append(step.get("answer", ""))
    return searches


class OraclePlanner:
    """Plans the gold sub-questions in order, then stops because the facts suffice.

    As for every planner, the loop's first sub-query is the question itself.
    """

    name = "oracle"

    def __init__(self, question: Question) -> None:
        """Take the question whose gold sub-questions are planned.

        Raises:
            RunError: if it has no gold decomposition.
        """
        self._searches = decomposed(question)
        if not self._searches:
            raise RunError(
                f"{question.id}: no gold decomposition, which an oracle planner needs: add one, or leave this planner out"
            )

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next gold sub-question."""
        if not steps:
            return Plan("subq", question)
        if len(steps) > len(self._searches):
            return Plan("sufficient", reason="all gold sub-questions are asked")
        return Plan("subq", self._searches[len(steps) - 1])


class OracleRetriever:
    """Returns the gold passages for any query, in the order of the annotation."""

    name = "oracle"

    def __init__(self, gold: Sequence[Passage]) -> None:
        self._gold = tuple(gold)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return the first `k` gold passages, scored 1, 1/2, 1/3, ...

        Raises:
            ValueError: the query is blank or `k` is below 1.
        """
        if not query.strip() or k < 1:
            raise ValueError(
                f"a search needs a query that is not blank and a k of at least 1, got {query!r} and {k}"
            )
        hits = []
        for rank, passage in enumerate(self._gold[:k], start=1):
            hits.append(Hit(passage, 1 / rank))
        return hits


class OracleAnswerer:
    """Answers with a gold answer if the evidence contains it as whole words, normalised, and otherwise
    abstains.

    An answer that no text contains, such as yes or no, is never found. The score is therefore the share of
    questions whose evidence contains the answer: the best score that a reader of this evidence can reach.

    Args:
        within: The evidence to search: "facts" for the graph's triples, "passages" for the retrieved texts.
    """

    def __init__(self, question: Question, within: str = "facts") -> None:
        if within not in ("facts", "passages"):
            raise ValueError(
                f"an oracle answerer looks within 'facts' or 'passages', got {within!r}"
            )
        self.name = f"oracle:{within}"
        self._golds = tuple(filter(checkable, question.answers))
        self._within = within

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the first gold answer that the evidence contains, and cite the first place that contains it."""
        for gold in self._golds:
            if self._within == "facts":
                passages_with_answer = _in_facts(gold, graph, passages)
            else:
                passages_with_answer = _in_passages(gold, passages)
            if passages_with_answer:
                return passages_with_answer
        return Answer("The evidence does not state the answer.", abstained=True)


def by_name(passages: Iterable[Passage], by_title: bool) -> dict[str, list[Passage]]:
    """Return passages by the names that gold annotations use: title, or id and document id.

    Several passages may share a name.
    """
    table: dict[str, list[Passage]] = {}
    for passage in passages:
        names = {passage.id, passage.document_id or passage.id}
        if by_title:
            names = {passage.title}
        for name in names:
            table.setdefault(name, []).append(passage)
    return table


def gold_passages(
    question: Question, corpus: Mapping[str, Sequence[Passage]]
) -> list[Passage]:
    """Return the question's gold passages, from the corpus (see `by_name`) or else from the question's
    contexts.

    Raises:
        RunError: If the question names no gold passages, or one is in neither place.
    """
    if not question.supporting:
        raise RunError(
            f"{question.id}: no gold passages, which an oracle retriever needs: add them, or leave this retriever out"
        )
    contexts = by_name(question.contexts, question.by_title)
    gold: list[Passage] = []
    for name in question.supporting:
        passages = corpus.get(name) or contexts.get(name)
        if not passages:
            raise RunError(
                f"{question.id}: the gold passage {name!r} is not in the corpus; search the corpus that the questions "
                "were made for"
            )
        gold += passages
    return gold


def _in_facts(
    gold: str, graph: QuestionGraph, passages: Sequence[Passage]
) -> Answer | None:
    texts = {passage.id: passage for passage in passages}
    for name, fact in graph.by_id.items():
        if not holds(f"{fact.subject} {fact.predicate} {fact.object}", (gold,)):
            continue
        for source in fact.sources:
            passage = texts.get(source.passage_id)
            if passage:
                return _cited(gold, passage, source.start, source.end, name)
        return Answer(gold)
    return None


def _in_passages(gold: str, passages: Sequence[Passage]) -> Answer | None:
    for passage in passages:
        if holds(f"{passage.title}. {passage.text}", (gold,)):
            return _cited(gold, passage, 0, len(passage.text))
    return None


def _cited(gold: str, passage: Passage, start: int, end: int, *facts: str) -> Answer:
    quote = passage.text[start:end]
    citation = Citation(1, passage.id, passage.title, start, end, quote, facts)
    return Answer(gold, (citation,))

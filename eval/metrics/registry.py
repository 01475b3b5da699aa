"""Registers metrics by name. A decorator registers a function as a metric:

    @metric("brief")
    def brief(question: Question, outcome: Outcome) -> float | None:
        return float(len(outcome.answer.split()) <= 5) if outcome.answer else None

A metric scores one question's outcome in 0..1, or returns None if it does not apply. A run's score is the mean
over the questions that have one. A metric with a cutoff is also called by names such as `recall@5`. The modules
of this folder register themselves. A metric of another package is known once its module has been imported, or
by name if the package lists it under its entry points `ras_agent.metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from typing import Any, Literal, Self, TypeVar

from ras_agent.config import registry
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import Citation, Passage, Triple
from ras_agent.eval.question import Question

Cutoff = Literal["none", "optional", "required"]
ScoreQuestion = Callable[..., float | None]
"""A function that scores (question, outcome). With a cutoff it also takes the keyword `k`."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Holds everything that a metric reads: an agent's answer and its evidence."""

    answer: str
    abstained: bool = False
    citations: tuple[Citation, ...] = ()
    passages: tuple[Passage, ...] = ()
    """The retrieved passages, by hop, then by rank within the hop."""
    facts: Mapping[str, Triple] = field(default_factory=dict)
    """The facts of the question graph, by id."""
    hops: int = 0
    stop_reason: str = ""
    reply: str = ""
    """The model's whole reply, if it was asked to list nodes and edges with its answer; otherwise ""."""
    shown_nodes: tuple[str, ...] = ()
    """The texts of the nodes that a prompt showed with row numbers, in order."""

    @classmethod
    def from_output(cls, out: Mapping[str, Any]) -> Self:
        """Return the outcome of an agent's output, or of a trace's `to_dict()`."""
        graph = out.get("graph") or {}
        facts = graph.get("facts", ())
        return cls(
            answer=out["answer"],
            abstained=bool(out.get("abstained")),
            citations=tuple(map(Citation.from_dict, out.get("citations") or ())),
            passages=tuple(
                map(Passage.from_dict, (out.get("passages") or {}).values())
            ),
            facts={fact["id"]: Triple.from_dict(fact) for fact in facts},
            hops=len(out.get("steps") or ()),
            stop_reason=out.get("stop_reason") or "",
            shown_nodes=tuple(out.get("shown_nodes") or ()),
        )

    def ranked(self, question: Question) -> list[str]:
        """Return the names of the retrieved passages, each once: titles or ids, whichever the question's gold
        passages use.
        """
        names = question.names(self.passages)
        return list(dict.fromkeys(names))

    def triples(self) -> list[tuple[str, str, str]]:
        """Return the facts of the question graph as (subject, predicate, object)."""
        triples = []
        for fact in self.facts.values():
            triples.append((fact.subject, fact.predicate, fact.object))
        return triples


@dataclass(frozen=True, slots=True)
class Metric:
    """Describes a registered metric."""

    name: str
    score: ScoreQuestion
    """Returns the score of a question's outcome, from 0 to 1, or None if the metric does not apply."""
    of_passages: bool = False
    """Whether it needs only the retrieved passages, so that it can score a search without an answer."""
    decides: int | None = None
    """Its rank among the metrics that can decide whether an answer is right; None if it cannot. Of a run's
    metrics, reports use the one with the lowest rank."""
    cutoff: Cutoff = "none"
    """Whether its name may or must have a cutoff, as in `recall@5`, which is passed to `score` as `k`."""


def metric(
    name: str,
    *,
    of_passages: bool = False,
    decides: int | None = None,
    cutoff: Cutoff = "none",
) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function of question and outcome as the metric `name`.

    The other arguments are fields of Metric. The decorator raises ValueError if a built-in metric has this
    name.
    """

    def registered(function: _Function) -> _Function:
        if not _is_own(function) and name in _own_names():
            raise ValueError(
                f"metric {name!r} is built in: register yours under another name"
            )
        registry.register(
            "metric", name, Metric(name, function, of_passages, decides, cutoff)
        )
        return function

    return registered


def answer_metric(
    name: str, *, decides: int | None = None
) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function of an answer and the gold answers as the metric `name`.

    The metric applies only to questions with gold answers. An abstention scores 0.0.
    """

    def registered(rule: _Function) -> _Function:
        @wraps(rule)
        def scored(question: Question, outcome: Outcome) -> float | None:
            if not question.answers:
                return None
            if outcome.abstained:
                return 0.0
            return float(rule(outcome.answer, question.answers))

        metric(name, decides=decides)(scored)
        return rule

    return registered


def ranking_metric(
    name: str, *, decides: int | None = None
) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function of k, ranked names and gold names as the metrics `name@k`
    and `name`.

    `name` counts all ranks. The metrics apply only to questions that name gold passages. `decides` is as for
    Metric.
    """

    def registered(rule: _Function) -> _Function:
        @wraps(rule)
        def scored(
            question: Question, outcome: Outcome, k: int | None = None
        ) -> float | None:
            if not question.supporting:
                return None
            ranked = outcome.ranked(question)
            depth = k or max(1, len(outcome.passages))
            return float(rule(depth, ranked, question.supporting))

        metric(name, of_passages=True, decides=decides, cutoff="optional")(scored)
        return rule

    return registered


_RENAMED = {"citation_precision": "supporting_citations"}
"""Earlier names of metrics, which are still accepted."""


def find_metric(name: str) -> Metric:
    """Return the metric called `name`.

    Raises:
        UnknownName: there is no such metric; the message lists the names.
    """
    _own_names()
    name = _RENAMED.get(name, name)
    base, at, cutoff = name.partition("@")
    if not registry.is_registered("metric", base):
        raise UnknownName("metric", name, metric_names())
    plugin = registry.find("metric", base)
    # loading an entry point gave its function; its decorator has registered the metric by now
    if not isinstance(plugin, Metric):
        plugin = registry.find("metric", base)
    if not isinstance(plugin, Metric):
        plugin = Metric(base, plugin)
    if not at and plugin.cutoff != "required":
        return plugin
    if plugin.cutoff == "none" or not (cutoff.isdigit() and int(cutoff) > 0):
        raise UnknownName("metric", name, metric_names())
    return replace(plugin, name=name, score=partial(plugin.score, k=int(cutoff)))


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics, sorted; `@k` in a name stands for any cutoff."""
    _own_names()
    listed: set[str] = set()
    for name in registry.names("metric"):
        plugin = registry.PLUGINS["metric"].get(name)
        cutoff = "none"
        if isinstance(plugin, Metric):
            cutoff = plugin.cutoff
        if cutoff != "required":
            listed.add(name)
        if cutoff != "none":
            listed.add(f"{name}@k")
    return tuple(sorted(listed))


def score(
    question: Question, outcome: Outcome, metrics: Iterable[str]
) -> dict[str, float]:
    """Return the score in 0..1 of each metric that applies to the question.

    Raises:
        UnknownName: there is no such metric.
    """
    scores = {}
    for name in metrics:
        value = find_metric(name).score(question, outcome)
        if value is not None:
            scores[name] = value
    return scores


@cache
def _own_names() -> frozenset[str]:
    """Import the modules of this folder, which registers their metrics, and return the names of these metrics."""
    registry.import_modules_of(_FOLDER)
    table = registry.PLUGINS["metric"].items()
    names = []
    for name, plugin in table:
        if isinstance(plugin, Metric) and _is_own(plugin.score):
            names.append(name)
    return frozenset(names)


_FOLDER = __name__.rpartition(".")[0]


def _is_own(function: Callable[..., Any]) -> bool:
    """Tell whether a function is defined in this folder. Of a `partial`, its function is checked."""
    if isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", "")
    return str(module).startswith(f"{_FOLDER}.")

"""Metrics by name. A metric is registered where it is defined: one function under one decorator, and no list elsewhere.

    @metric("brief")
    def brief(question: Question, outcome: Outcome) -> float | None:
        return float(len(outcome.answer.split()) <= 5) if outcome.answer else None

A metric scores one question's outcome in 0..1, or returns None where it does not apply; a run averages the scores of
the questions that have one. A metric with a cutoff is also called by names such as `recall@5`. The modules of this
folder register themselves. A metric of another package is known once its module has been imported, or by its name if
the package names it in its entry points `ras_agent.metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from typing import Any, Literal, Self, TypeVar

from ras_agent import registry
from ras_agent.errors import UnknownName
from ras_agent.eval.question import Question
from ras_agent.records import Citation, Passage, Triple

Cutoff = Literal["none", "optional", "required"]
ScoreQuestion = Callable[..., float | None]
"""Scores (question, outcome); that of a metric with a cutoff also takes the keyword `k`."""
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Outcome:
    """An agent's answer to one question and its evidence, which is all that a metric looks at.

    passages: in the order of retrieval (by hop, then by rank within the hop). facts: the question graph's, by id.
    reply: the answer with the nodes and edges that it lists, where these were asked for; "" where they were not.
    shown_nodes: the texts of the nodes that a prompt showed with row numbers, in their order.
    """

    answer: str
    abstained: bool = False
    citations: tuple[Citation, ...] = ()
    passages: tuple[Passage, ...] = ()
    facts: Mapping[str, Triple] = field(default_factory=dict)
    hops: int = 0
    stop_reason: str = ""
    reply: str = ""
    shown_nodes: tuple[str, ...] = ()

    @classmethod
    def from_output(cls, out: Mapping[str, Any]) -> Self:
        """Return the outcome in an agent's output, or in a trace's `to_dict()`."""
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
        """Return the retrieved passages' names, each once: titles or ids, as the question names its gold passages."""
        return list(dict.fromkeys(question.names(self.passages)))

    def triples(self) -> list[tuple[str, str, str]]:
        """Return the question graph's facts as (subject, predicate, object)."""
        triples = []
        for fact in self.facts.values():
            triples.append((fact.subject, fact.predicate, fact.object))
        return triples


@dataclass(frozen=True, slots=True)
class Metric:
    """A registered metric.

    of_passages: it needs nothing but the retrieved passages, so that a bare search can be scored by it.
    decides: its rank among the metrics that can say whether an answer is right. Of those that a run has, the one with
    the lowest rank does so in reports. A metric without a rank never does.
    cutoff: whether its name may or must be followed by a cutoff, as in `recall@5`, which is `score`'s `k`.
    """

    name: str
    score: ScoreQuestion
    of_passages: bool = False
    decides: int | None = None
    cutoff: Cutoff = "none"


def metric(
    name: str,
    *,
    of_passages: bool = False,
    decides: int | None = None,
    cutoff: Cutoff = "none",
) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function of question and outcome as the metric `name` (see `Metric`).

    Raises ValueError where the name is that of a metric of this folder.
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

    It applies to questions with gold answers. An abstention scores 0.0, whatever words it shares with them.
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
    """Return a decorator that registers a function of k, ranked and gold names as the metric `name@k`, and as `name`.

    Without `@k` all ranks count. It applies to questions that name gold passages.
    """

    def registered(rule: _Function) -> _Function:
        @wraps(rule)
        def scored(
            question: Question, outcome: Outcome, k: int | None = None
        ) -> float | None:
            if not question.supporting:
                return None
            if k is None:
                depth = max(1, len(outcome.passages))
            else:
                depth = k
            return float(rule(depth, outcome.ranked(question), question.supporting))

        metric(name, of_passages=True, decides=decides, cutoff="optional")(scored)
        return rule

    return registered


_RENAMED = {"citation_precision": "supporting_citations"}
"""Names under which metrics are known too"""


def find_metric(name: str) -> Metric:
    """Return the metric called `name`. Raises UnknownName with the names there are."""
    _own_names()
    name = _RENAMED.get(name, name)
    base, at, cutoff = name.partition("@")
    if not registry.is_registered("metric", base):
        raise UnknownName("metric", name, metric_names())
    plugin = registry.find("metric", base)
    # the function of an entry point, which its decorator has registered by now
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
    """Return all names, sorted; `@k` stands for any cutoff."""
    _own_names()
    listed: set[str] = set()
    for name in registry.names("metric"):
        cutoff = "none"
        if isinstance(plugin := registry.PLUGINS["metric"].get(name), Metric):
            cutoff = plugin.cutoff
        listed |= (
            {name}
            if cutoff == "none"
            else {f"{name}@k"}
            if cutoff == "required"
            else {name, f"{name}@k"}
        )
    return tuple(sorted(listed))


def score(
    question: Question, outcome: Outcome, metrics: Iterable[str]
) -> dict[str, float]:
    """Return the score of each metric that applies to the question, in 0..1. Raises UnknownName."""
    scored = ((name, find_metric(name).score(question, outcome)) for name in metrics)
    return {name: value for name, value in scored if value is not None}


@cache
def _own_names() -> frozenset[str]:
    """Import the modules of this folder, whose decorators register their metrics, and return the metrics' names."""
    registry.import_modules_of(_FOLDER)
    table = registry.PLUGINS["metric"].items()
    names = []
    for name, plugin in table:
        if isinstance(plugin, Metric) and _is_own(plugin.score):
            names.append(name)
    return frozenset(names)


_FOLDER = __name__.rpartition(".")[0]


def _is_own(function: Callable[..., Any]) -> bool:
    """Tell whether a function, or the function of a partial, is defined in this folder."""
    if isinstance(function, partial):
        inner = function.func
    else:
        inner = function
    return str(getattr(inner, "__module__", "")).startswith(f"{_FOLDER}.")

"""Compares two runs of the same questions, and finds the step at which each question's runs first differ.

A question is followed hop by hop: the plan, the hits of the search, the facts that were read, and at the end
the answer. After the first difference later steps are not compared, because they follow from it, but it is
noted whether the answer turned right or wrong. If either run has no trace of a question, only the retrieved
passages and the answer are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from ras_agent.contracts.records import JSON
from ras_agent.eval.report.figures import Run, Versus, comparisons
from ras_agent.eval.report.markdown import (
    difference_text,
    markdown_table,
    p_text,
)
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.verdicts import deciding_metric, verdict

StepName = Literal["plan", "hits", "facts", "answer"]
STEPS: tuple[StepName, ...] = ("plan", "hits", "facts", "answer")
Turned = Literal["wrong", "right", ""]
_ORDER: tuple[Turned, ...] = ("wrong", "right", "")
_SHOWN = 3  # hits or facts of one side of a difference


@dataclass(frozen=True, slots=True)
class Change:
    """Holds the first difference between the two runs of a question."""

    id: str
    question: str
    step: StepName
    """The kind of step at which the runs differ: plan, hits, facts or answer."""
    hop: int
    """The hop of the difference; 0 if a trace is missing."""
    there: str
    """What the earlier run has at this step, as text."""
    here: str
    """What the later run has at this step, as text."""
    turned: Turned = ""
    """"wrong" if only the earlier answer was right, "right" if only the later answer is, otherwise ""."""
    answers: tuple[str, str] = ("", "")
    """The earlier and the later answer."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Holds the differences between an earlier run and a later one."""

    there: str
    """The name of the earlier run."""
    here: str
    """The name of the later run."""
    changed: tuple[Change, ...]
    """Questions whose answer turned wrong first, then those whose answer turned right, then the others."""
    equal: int
    """The number of questions without a difference at any step."""
    only_there: int
    """The number of questions that the later run does not have, or has with another text."""
    only_here: int
    """The number of questions that the earlier run does not have, or has with another text."""
    differences: tuple[Versus, ...]
    """The paired differences in the metrics that were compared."""
    metric: str = ""
    """The metric that decides whether an answer is right."""

    def turned(self, to: Turned) -> int:
        """Return the number of answers that turned `to`: "right" or "wrong"."""
        return sum(change.turned == to for change in self.changed)

    @property
    def any(self) -> bool:
        """Tell whether the runs differ in any question."""
        return bool(self.changed or self.only_there or self.only_here)


class _Moment(NamedTuple):
    """Holds a step of a question: `value` is compared, and `texts` are shown."""

    step: StepName
    hop: int
    value: Any
    texts: Mapping[str, str]


def changes(
    before: Run, after: Run, metrics: Sequence[str], metric: str = ""
) -> Changes:
    """Compare two runs question by question.

    Args:
        before: The earlier run.
        after: The later run.
        metrics: The metrics whose paired differences are reported.
        metric: The metric that decides whether an answer is right; by default the best suited one of `metrics`.
    """
    metric = metric or deciding_metric(metrics)
    old = before.by_id
    new = after.by_id
    pairs = []
    for name in old:
        if name in new and old[name].question == new[name].question:
            pairs.append((old[name], new[name]))
    changed = []
    for then, now in pairs:
        change = change_of(then, now)
        if change:
            changed.append(replace(change, turned=_turned(then, now, metric)))
    changed.sort(key=lambda change: _ORDER.index(change.turned))
    asked = {result.id for result, _ in pairs}
    both = []
    for run in (before, after):
        results = [result for result in run.results if result.id in asked]
        both.append(replace(run, results=tuple(results)))
    return Changes(
        before.name,
        after.name,
        tuple(changed),
        len(pairs) - len(changed),
        len(old) - len(pairs),
        len(new) - len(pairs),
        tuple(comparisons(both, metrics)),
        metric,
    )


def _turned(before: Result, after: Result, metric: str) -> Turned:
    if not metric:
        return ""
    was_right = verdict(before, metric) == "right"
    is_right = verdict(after, metric) == "right"
    if was_right == is_right:
        return ""
    if is_right:
        return "right"
    return "wrong"


def change_of(before: Result, after: Result) -> Change | None:
    """Return the first difference between two results of a question; None if they do not differ."""
    traced = bool(before.trace and after.trace)
    for old, new in zip_longest(_moments(before, traced), _moments(after, traced)):
        if old is None or new is None or old[:3] != new[:3]:
            # the earlier of the two steps; if one run has ended, the other run's next step
            moment = min(filter(None, (old, new)), key=_order)
            there = _text_of(old, new, moment.step)
            here = _text_of(new, old, moment.step)
            return Change(
                id=before.id,
                question=before.question,
                step=moment.step,
                hop=moment.hop,
                there=there,
                here=here,
                answers=(_answer(before), _answer(after)),
            )
    return None


def _order(moment: _Moment) -> tuple[bool, int, int]:
    """Return a sort key by which steps come in their order, the answer last."""
    return moment.step == "answer", moment.hop, STEPS.index(moment.step)


def changes_markdown(found: Changes, *, most: int = 0) -> str:
    """Return the changes as Markdown: counts by step, paired differences, and the first `most` changed questions.

    All changed questions are listed if `most` is 0.
    """
    counts = []
    for step in STEPS:
        counts.append([step, str(sum(change.step == step for change in found.changed))])
    asked = len(found.changed) + found.equal
    only = ((found.only_there, found.there), (found.only_here, found.here))
    apart = "".join(f"; {count} only in {name}" for count, name in only if count)
    parts = [
        f"{len(found.changed)} of {asked} questions changed from {found.there} to {found.here}{apart}"
        f"{_turns(found)}",
        markdown_table(["first change", "questions"], counts),
    ]
    if found.differences:
        rows = []
        for one in found.differences:
            gap = difference_text(one.comparison)
            p = p_text(one.comparison.permutation_p)
            corrected = p_text(one.corrected_p)
            rows.append([one.metric, gap, p, corrected, str(one.comparison.n)])
        difference = f"{found.here} − {found.there}"
        heads = ["metric", difference, "p", f"p of {len(rows)}, Holm", "n"]
        parts.append(markdown_table(heads, rows))
    shown = found.changed[: most or None]
    parts += [_shown(one, found) for one in shown]
    left = len(found.changed) - len(shown)
    if left:
        parts.append(f"{left} more")
    return "\n\n".join(parts) + "\n"


def _turns(found: Changes) -> str:
    """Return how many answers turned wrong and how many right; "" if there is no metric or no change."""
    if not (found.changed and found.metric):
        return ""
    wrong = found.turned("wrong")
    right = found.turned("right")
    return f"; {wrong} turned wrong and {right} right, by {found.metric}"


def _shown(change: Change, found: Changes) -> str:
    """Return a change as lines of text: its step, and what each run has at that step."""
    place: str = change.step
    if change.hop:
        place = f"{place}, hop {change.hop}"
    if change.turned:
        place = f"turned {change.turned}; {place}"
    lines = [f"{change.id}: {place}"]
    lines.append(f"    {found.there}: {change.there}")
    lines.append(f"    {found.here}: {change.here}")
    if change.turned and change.step != "answer":
        there, here = change.answers
        lines.append(f"    answers: {there} → {here}")
    return "\n".join(lines)


def _moments(result: Result, traced: bool) -> Iterator[_Moment]:
    """Yield the steps of a question from its trace; if not `traced`, only its retrieved passages and its
    answer.
    """
    trace: JSON = {}
    if traced and result.trace:
        trace = result.trace
    steps = {step["hop"]: step for step in trace.get("steps", ())}
    plans = {plan["hop"]: plan for plan in trace.get("plans", ())}
    facts = {fact["id"]: f"({fact['subject']} | {fact['predicate']} | {fact['object']})"
             for fact in trace.get("graph", {}).get("facts", ())}  # fmt: skip
    for hop in sorted(steps.keys() | plans.keys()):
        plan = plans.get(hop)
        if plan:
            asked = "; ".join([plan["subquery"], *plan.get("further", ())])
            words = asked or plan["action"]
            yield _Moment("plan", hop, (plan["action"], asked), {words: words})
        step = steps.get(hop)
        if step:
            hits = {}
            for hit in step["hits"]:
                name = str(hit["passage_id"])
                hits[name] = str(hit.get("title") or name)
            yield _Moment("hits", hop, tuple(hits), hits)
            read = {}
            for name in step["triple_ids"]:
                read[str(name)] = facts.get(name) or str(name)
            yield _Moment("facts", hop, frozenset(read), read)
    if not trace:
        retrieved = dict(zip(result.retrieved, result.retrieved, strict=True))
        yield _Moment("hits", 0, tuple(result.retrieved), retrieved)
    answer = _answer(result)
    value = (answer, result.abstained)
    yield _Moment("answer", max(steps, default=0), value, {answer: answer})


def _answer(result: Result) -> str:
    if result.error:
        return f"error: {result.error.get('message', '')}"
    if result.abstained:
        return "abstained"
    return result.answer


def _text_of(moment: _Moment | None, other: _Moment | None, step: StepName) -> str:
    """Return what one run has at a step, as text, without what the other run has too."""
    if moment is None or moment.step != step:
        if moment is None or moment.step == "answer":
            return "nothing: it has ended"
        return f"no {step}: {moment.step} next"
    if step in ("plan", "answer"):
        return next(iter(moment.texts.values()))
    theirs: Mapping[str, str] = {}
    if other is not None and other.step == step:
        theirs = other.texts
    own = [text for name, text in moment.texts.items() if name not in theirs]
    if not own:
        if len(moment.texts) == len(theirs):
            return "the same in another order"
        return "only some of those"
    more = ""
    if len(own) > _SHOWN:
        more = f" and {len(own) - _SHOWN} more"
    return f"{', '.join(own[:_SHOWN])}{more}"

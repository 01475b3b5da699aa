"""Compares two runs of the same questions: the step of each question at which they first part.

A question is followed hop by hop: the plan, the hits of the search, the facts that were read; at its end the answer.
Later steps follow from the first difference, and are not compared, but for whether the answer turned right or
wrong: such questions stand first. Where a run has no trace of a question, both are compared only by the retrieved
passages and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from ras_agent.eval.report.figures import Run, Versus, comparisons
from ras_agent.eval.report.markdown import difference_text, markdown_table
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.verdicts import deciding_metric, verdict
from ras_agent.records import JSON

StepName = Literal["plan", "hits", "facts", "answer"]
STEPS: tuple[StepName, ...] = ("plan", "hits", "facts", "answer")
Turned = Literal["wrong", "right", ""]
_ORDER: tuple[Turned, ...] = ("wrong", "right", "")
_SHOWN = 3  # hits or facts of one side of a difference


@dataclass(frozen=True, slots=True)
class Change:
    """First difference of a question's two runs.

    hop: 0 where a trace is missing. there, here: the text of each run at this step. turned: "wrong" or "right" where
    the later answer is so and the earlier is not. answers: those of both runs.
    """

    id: str
    question: str
    step: StepName
    hop: int
    there: str
    here: str
    turned: Turned = ""
    answers: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences of a run to another.

    changed: those whose answer turned wrong first, then those that turned right. equal: questions alike at each step.
    only_there, only_here: not in the other, or there with another text. metric: it decides whether an answer is right.
    """

    there: str
    here: str
    changed: tuple[Change, ...]
    equal: int
    only_there: int
    only_here: int
    differences: tuple[Versus, ...]
    metric: str = ""

    def turned(self, to: Turned) -> int:
        """Count the answers that turned right or wrong."""
        return sum(change.turned == to for change in self.changed)

    @property
    def any(self) -> bool:
        """Tell whether anything differs."""
        return bool(self.changed or self.only_there or self.only_here)


class _Moment(NamedTuple):
    """A step of a question. value: the object to compare. texts: the texts to show of it, by part."""

    step: StepName
    hop: int
    value: Any
    texts: Mapping[str, str]


def changes(
    before: Run, after: Run, metrics: Sequence[str], metric: str = ""
) -> Changes:
    """Compare two runs question by question.

    metrics: those to report paired differences of. metric: decides whether an answer is right; if empty, one of
        `metrics`.
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
    asked = {old_result.id for old_result, _ in pairs}
    both = []
    for run in (before, after):
        both.append(
            replace(run, results=tuple(one for one in run.results if one.id in asked))
        )
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
    """Return where two results of a question first differ; None if they do not."""
    traced = bool(before.trace and after.trace)
    for old, new in zip_longest(_moments(before, traced), _moments(after, traced)):
        if old is None or new is None or old[:3] != new[:3]:
            # the earlier step of the two, but where one run has ended, the step by which the other goes on
            both = [one for one in (old, new) if one]
            moment = min(
                both,
                key=lambda one: (one.step == "answer", one.hop, STEPS.index(one.step)),
            )
            there = _told(old, new, moment.step)
            here = _told(new, old, moment.step)
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


def changes_markdown(found: Changes, *, most: int = 0) -> str:
    """Return the changes as Markdown: counts by step, paired differences, and `most` of the questions, 0 for all."""
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
    if rows := [
        [
            one.metric,
            difference_text(one.comparison),
            f"{one.comparison.permutation_p:.4f}",
            f"{one.corrected_p:.4f}",
            str(one.comparison.n),
        ]
        for one in found.differences
    ]:
        parts.append(
            markdown_table(
                [
                    "metric",
                    f"{found.here} − {found.there}",
                    "p",
                    f"p of {len(found.differences)}, Holm",
                    "n",
                ],
                rows,
            )
        )
    shown = found.changed[: most or None]
    parts += [_shown(one, found) for one in shown]
    if left := len(found.changed) - len(shown):
        parts.append(f"{left} more")
    return "\n\n".join(parts) + "\n"


def _turns(found: Changes) -> str:
    """Return how many answers turned wrong and right; "" if no metric can tell."""
    if not (found.changed and found.metric):
        return ""
    wrong = found.turned("wrong")
    right = found.turned("right")
    return f"; {wrong} turned wrong and {right} right, by {found.metric}"


def _shown(change: Change, found: Changes) -> str:
    """Return the lines of a change: where it is, and both sides of it."""
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
    """Yield the steps of a question, as its trace has them; if not `traced`, the retrieved passages and the answer."""
    trace: JSON = {}
    if traced and result.trace:
        trace = result.trace
    steps = {step["hop"]: step for step in trace.get("steps", ())}
    plans = {plan["hop"]: plan for plan in trace.get("plans", ())}
    facts = {fact["id"]: f"({fact['subject']} | {fact['predicate']} | {fact['object']})"
             for fact in trace.get("graph", {}).get("facts", ())}  # fmt: skip
    for hop in sorted(steps.keys() | plans.keys()):
        if plan := plans.get(hop):
            asked = "; ".join([plan["subquery"], *plan.get("further", ())])
            words = asked or plan["action"]
            yield _Moment("plan", hop, (plan["action"], asked), {words: words})
        if step := steps.get(hop):
            hits = {}
            for hit in step["hits"]:
                hits[str(hit["passage_id"])] = str(
                    hit.get("title") or hit["passage_id"]
                )
            yield _Moment("hits", hop, tuple(hits), hits)
            read = {}
            for name in step["triple_ids"]:
                read[str(name)] = facts.get(name) or str(name)
            yield _Moment("facts", hop, frozenset(read), read)
    if not trace:
        yield _Moment(
            "hits",
            0,
            tuple(result.retrieved),
            {name: name for name in result.retrieved},
        )
    answer = _answer(result)
    yield _Moment(
        "answer", max(steps, default=0), (answer, result.abstained), {answer: answer}
    )


def _answer(result: Result) -> str:
    if result.error:
        return f"error: {result.error.get('message', '')}"
    if result.abstained:
        return "abstained"
    return result.answer


def _told(moment: _Moment | None, other: _Moment | None, step: StepName) -> str:
    """Return the texts that one run has at a step, without those that the other has too."""
    if moment is None or moment.step != step:
        if moment is None or moment.step == "answer":
            return "nothing: it has ended"
        return f"no {step}: {moment.step} next"
    if step in ("plan", "answer"):
        return next(iter(moment.texts.values()))
    if other is not None and other.step == step:
        theirs = other.texts
    else:
        theirs = {}
    own = []
    for name, text in moment.texts.items():
        if name not in theirs:
            own.append(text)
    if not own:
        if len(moment.texts) == len(theirs):
            return "the same in another order"
        return "only some of those"
    more = ""
    if len(own) > _SHOWN:
        more = f" and {len(own) - _SHOWN} more"
    return f"{', '.join(own[:_SHOWN])}{more}"

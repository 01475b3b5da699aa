"""Estimates how likely an answer is to be right, from signals of the finished run. It works with any answerer.

`ras-agent calibrate RUN` fits the weights of the signals to a run and writes calibration.json;
`Settings(calibration=FILE)` uses it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import TypeAdapter, ValidationError

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON, Advice, Answer, Passage, Span
from ras_agent.contracts.shape import Record
from ras_agent.question_graph.disputes import independent
from ras_agent.question_graph.graph import QuestionGraph
from ras_agent.question_graph.proof import proof_of
from ras_agent.running.trace import Trace
from ras_agent.text.overlap import holds

UNSURE = "I am not sure enough of an answer to say it."
_MOST_READ = 5  # number of cited passages that the reader is shown
_FARTHEST = 9.0  # larger margins of the reader, in logits, count as this one
SUGGESTED = 0.5
"""The confidence from which a withheld answer is suggested, because it is then more likely right than wrong."""


@dataclass(frozen=True, slots=True)
class Signals:
    """Holds the signals of an answer from which its confidence is computed, most of them between 0 and 1."""

    own: float
    """The answerer's own confidence; 0.5 if it states none"""
    proof: float
    """1 if cited sentences lead from a name of the question to the answer"""
    proof_steps: float
    """A third of the number of these sentences, at most 1"""
    supported: float
    """The share of the citations that support the answer"""
    stated: float
    """1 if a passage that was found contains the answer word for word"""
    stated_twice: float
    """1 if two independent documents contain it; copies of one text count once"""
    sufficient: float
    """1 if the planner ended the search because the facts suffice"""
    hops: float
    """A fifth of the number of searches, at most 1"""
    failed: float
    """1 if something failed during the run"""
    words: float
    """A quarter of the logarithm of one plus the number of the answer's words"""
    read_margin: float
    """How much the packaged span reader prefers its best answer in the cited passages to "no answer", from -1
    to 1"""
    read_same: float
    """1 if the reader's answer equals the answer, is a part of it, or contains it"""
    undisputed: float
    """The share of independent documents that state the answer if some disagree; else 1"""
    agreement: float
    """The share of the samples of the answerer that say the same as the answer; 1 if it was asked once"""


def signals_of(
    question: str,
    answer: Answer,
    graph: QuestionGraph,
    passages: Mapping[str, Passage],
    *,
    stop_reason: str = "",
    hops: int = 0,
    failed: bool = False,
    spans: Sequence[Sequence[Span]] = (),
) -> Signals:
    """Return the signals of an answer.

    Args:
        question: The question that is answered.
        answer: The answer, with `supported` set in its citations and its disputes filled in.
        graph: The question graph of the run.
        passages: All passages that were retrieved, by id.
        stop_reason: Why the search ended, such as "sufficient".
        hops: The number of searches.
        failed: Whether something failed during the run.
        spans: The spans that the packaged span reader finds in each of the `cited_texts`; () without the reader.
    """
    said = _said(answer)
    proof = proof_of(question, said, answer.citations, graph.by_id)
    stating = [one for one in passages.values() if holds(one.text, said)]
    documents = len(independent(stating))
    supporting = [one for one in answer.citations if one.supported]
    margin, is_same = _as_read(said, cited_texts(answer, passages), spans)
    return Signals(
        own=0.5 if answer.confidence is None else answer.confidence,
        proof=float(bool(proof)),
        proof_steps=min(len(proof), 3) / 3,
        supported=len(supporting) / max(1, len(answer.citations)),
        stated=float(documents > 0),
        stated_twice=float(documents > 1),
        sufficient=float(stop_reason == "sufficient"),
        hops=min(hops, 5) / 5,
        failed=float(failed),
        words=math.log(1 + len(said.split())) / 4,
        read_margin=margin / _FARTHEST,
        read_same=float(is_same),
        undisputed=min((one.share for one in answer.disputes), default=1.0),
        agreement=1.0 if answer.agreement is None else answer.agreement,
    )


def signals_of_trace(trace: Trace, spans: Sequence[Sequence[Span]] = ()) -> Signals:
    """Return the signals of the answer in the trace of a finished run. `spans` are as for `signals_of`."""
    return signals_of(
        trace.question,
        answer_of(trace),
        trace.graph,
        trace.passages,
        stop_reason=trace.stop_reason,
        hops=len(trace.steps),
        failed=bool(trace.failures),
        spans=spans,
    )


def answer_of(trace: Trace) -> Answer:
    """Return the answer of a finished run, made from its trace."""
    return Answer(
        trace.answer,
        trace.citations,
        trace.abstained,
        trace.confidence,
        failed=trace.failed,
        suggestion=trace.suggestion,
        disputes=trace.disputes,
        agreement=trace.agreement,
    )


def cited_texts(answer: Answer, passages: Mapping[str, Passage]) -> list[str]:
    """Return the title and text of each passage that an answer cites, each once, for the packaged span reader."""
    cited = dict.fromkeys(one.passage_id for one in answer.citations)
    known = [passages[name] for name in cited if name in passages]
    return [f"{one.title}. {one.text}" for one in known[:_MOST_READ]]


def _said(answer: Answer) -> str:
    """Return the answer's text without the contradicting claims of other documents."""
    if answer.disputes:
        return answer.disputes[0].claims[0].text
    return answer.text


def _as_read(
    said: str, texts: Sequence[str], spans: Sequence[Sequence[Span]]
) -> tuple[float, bool]:
    """Return the margin of the reader's best span, at most _FARTHEST, and whether span and answer say the same."""
    margin = -_FARTHEST
    best = ""
    for text, found in zip(texts, spans, strict=False):
        for span in found[:1]:
            if span.margin > margin:
                margin = span.margin
                best = text[span.start : span.end]
    return min(margin, _FARTHEST), holds(said, best) or holds(best, said)


@dataclass(frozen=True)
class RiskRow(Record):
    """Tells how often a run's answers are wrong if their confidence is at least `threshold`."""

    threshold: float
    said: int
    """the number of answers with that confidence"""
    wrong: int
    """the number of wrong answers among these"""
    at_most: float
    """the upper bound of the share of wrong answers, which holds with the calibration's probability `sure`"""


@dataclass(frozen=True)
class Calibration(Record):
    """Computes confidences, by a logistic regression over `Signals` that was fitted to a run, and has a
    threshold that limits the risk.
    """

    json_keys = ("schema", "version", "*")
    schema: ClassVar[Literal["ras-agent/calibration"]] = "ras-agent/calibration"
    version: ClassVar[Literal[1]] = 1

    run: str
    """the folder of the run"""
    condition: str
    """the questions for which the bound holds"""
    asked_by: Mapping[str, str]
    """the loop of the run, and the component in each role"""
    settings_sha256: str
    """a hash of the run's settings, roles and limits"""
    right: str
    """which answers count as right, such as "f1>=0.5\""""
    risk: float
    """the share of wrong answers that is allowed among the stated answers"""
    sure: float
    """the probability with which the bound holds"""
    n: int
    """the number of answers to which the weights were fitted"""
    count_right: int
    """the number of right answers among these"""
    offset: float
    """the intercept of the regression"""
    weights: Mapping[str, float]
    """the weight of each signal, by the signal's name"""
    threshold: float
    """the lowest confidence for which the bound of the risk holds"""
    table: tuple[RiskRow, ...] = ()
    """the risk at each of several thresholds"""
    error: float = 0.0
    """the expected calibration error, cross-validated"""
    area: float = 0.0
    """the mean share of wrong answers over all coverages (AURC), cross-validated"""

    def confidence(self, signals: Signals) -> float:
        """Return the probability that an answer is right, from 0 to 1.

        If documents disagree, it is at most the share of them that state the answer.
        """
        total = self.offset
        for name, weight in self.weights.items():
            total += weight * getattr(signals, name)
        return min(logistic(total), signals.undisputed)

    @classmethod
    def load(cls, path: str | Path) -> Calibration:
        """Read a file that `ras-agent calibrate` wrote. Raises SettingsError for any other file."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            calibration: Calibration = _shape().validate_python(_known(data))
        except (OSError, ValueError) as error:
            detail = str(error).partition("\n")[0]
            if isinstance(error, ValidationError):
                first = error.errors(include_url=False)[0]
                detail = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise SettingsError(
                f"calibration {str(path)!r} cannot be read ({detail}): make it with `ras-agent calibrate RUN`"
            ) from error
        return calibration

    def unlike(self, asked_by: Mapping[str, str]) -> str:
        """Return how a loop and its components differ from the calibration's, such as "retriever bm25, not
        dense"; "" if they do not.

        `asked_by` names the loop, and the component in each role.
        """
        differing = []
        for name, there in self.asked_by.items():
            here = asked_by.get(name, "none")
            if here != there:
                differing.append(f"{name} {there}, not {here}")
        return ", ".join(differing)


@cache
def _shape() -> TypeAdapter[Any]:
    return TypeAdapter(Calibration)


def _known(data: Any) -> JSON:
    """Return the fields of a calibration. Raises ValueError for any other JSON."""
    if not isinstance(data, dict) or data.get("schema") != Calibration.schema:
        raise ValueError('it has no "schema": "ras-agent/calibration"')
    if data.get("version") != Calibration.version:
        raise ValueError(f"its version is {data.get('version')!r:.20}, not 1")
    unknown = set(data.get("weights") or ()) - set(Signals.__dataclass_fields__)
    if unknown:
        raise ValueError(f"unknown signals {', '.join(sorted(unknown))}")
    return {key: data[key] for key in data if key not in ("schema", "version")}


def logistic(log_odds: float) -> float:
    """Return 1 / (1 + exp(-log_odds)), computed so that no exponential overflows."""
    if log_odds < 0:
        return 1 - logistic(-log_odds)
    return 1 / (1 + math.exp(-log_odds))


def said_if_sure(answer: Answer, least: float) -> Answer:
    """Return the answer, or an abstention if its confidence is below `least`.

    The abstention keeps the answer as its `suggestion` if the answer is more likely right than wrong.
    """
    sure = answer.confidence
    if answer.abstained or sure is None or sure >= least:
        return answer
    suggestion = answer.text if sure >= SUGGESTED else ""
    return replace(answer, text=UNSURE, abstained=True, suggestion=suggestion)


@dataclass(frozen=True, slots=True)
class Sureness:
    """Decides whether an answer is confident enough to be stated."""

    least: float | None = None
    """the lowest confidence with which an answer is stated; None leaves the decision to the calibration or the
    answerer
    """
    calibration: Calibration | None = None
    """computes the confidence; if None, the confidence is the answerer's, if it states one"""
    unlike: str = ""
    """how the agent differs from that of the calibration's run (see `Calibration.unlike`)"""

    def of_answerer(self, answer: Answer) -> Answer:
        """Return an abstention if the answerer's own confidence is below `least`, otherwise the answer.

        With a calibration the answer is returned unchanged, because `calibrated` judges it later.
        """
        if not self.least or self.calibration is not None or answer.abstained:
            return answer
        if answer.confidence is None:
            return _with_advice(
                answer,
                "least_confidence has no effect: the answerer states no confidence; `ras-agent calibrate RUN` gives it one",
            )
        return said_if_sure(answer, self.least)

    def calibrated(self, answer: Answer, signals: Signals) -> Answer:
        """Return the answer with the confidence that the calibration computes, or an abstention if that is too low."""
        if self.calibration is None:
            return answer
        sure = self.calibration.confidence(signals)
        answer = replace(answer, confidence=sure)
        if self.unlike:
            answer = _with_advice(
                answer,
                f"the calibration was fitted to a run with {self.unlike}: its bound of wrong answers does not hold here",
            )
        least = self.calibration.threshold
        if self.least is not None:
            least = self.least
        return said_if_sure(answer, least)


def asked_in(loop: str, components: Mapping[str, str], samples: int) -> dict[str, str]:
    """Return how questions are asked, as a value of `Calibration.asked_by`: the loop, the components, and how
    many samples, if several.
    """
    asked = {"loop": loop, **components}
    if samples > 1:
        asked["samples"] = str(samples)
    return asked


ANY_SURENESS = Sureness()
"""The default: the answerer decides how sure an answer is, and whether to state it."""


def _with_advice(answer: Answer, message: str) -> Answer:
    advice = Advice("answerer", message)
    return replace(answer, failures=(*answer.failures, advice))

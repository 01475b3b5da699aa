"""Draws a run on screen from its events, live or from a saved trace, with a summary line.

hop 1  [SUBQ] Which river flows through the city where the inventor of the telephone was born?
       hits      Telephone 14.2 · Alexander Graham Bell 11.9
       facts +6  (Telephone | was patented by | Alexander Graham Bell) (…) … 4 more
answer Water of Leith [1]
       [1] Water of Leith, sentence 2: “…”
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from ras_agent.app.cli.terminal import (
    MARGIN,
    Hanging,
    fact_line,
    hang,
    inert,
    inert_lines,
    pack,
    quantity,
)
from ras_agent.contracts.events import (
    Answered,
    AnswerToken,
    Event,
    Failed,
    GraphDelta,
    Hits,
    Planned,
    Rewritten,
    WaitingForModel,
)
from ras_agent.contracts.marks import ACTIONS
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Failure,
    Hit,
    Passage,
    Plan,
    Step,
    Triple,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.confidence import answer_of
from ras_agent.running.trace import Trace
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.words import stems

_LABELLED = MARGIN + 10
_FACT_LINES = 3
_LONGEST_QUOTE = 300
_LONGEST_NAME = 60
_CITED = re.compile(r"\[\d+\]")
_FROM_MEMORY = "from the model's memory: nothing was looked up"
_CITES_NOTHING = "not shown to be right: it cites nothing of what was found"
_NOT_BORNE = "not shown to be right: no cited sentence supports it"
# stop reasons that are not printed, because the planner or the graph intended them
_EXPECTED = frozenset({"sufficient", "no_retrieval", "single_shot", "static"})


def _nothing(doing: str) -> None:
    return None


class Drawing:
    """Draws a run on a console. Each event is printed when it happens.

    `verbose` prints all facts, one per line, and whole quotes. `doing` is called with a description of the current
    work, and with "" while the answer is being written.
    """

    def __init__(
        self,
        console: Console,
        *,
        verbose: bool = False,
        doing: Callable[[str], None] = _nothing,
    ) -> None:
        self._console = console
        self._verbose = verbose
        self._doing = doing
        self._passages: dict[str, Passage] = {}
        self._hop = 0
        self._subqueries: dict[int, str] = {}
        self._thought = ""
        self._at_once: set[int] = set()  # hops of a plan of several
        self._conflicts = 0
        self._answer: Hanging | None = None
        self._streamed = ""
        self._late: list[Failure] = []

    def draw(self, event: Event) -> None:
        """Print an event. A Triples event is not printed, because the GraphDelta event after it has the same
        facts, merged.
        """
        if not isinstance(event, Hits | WaitingForModel):
            self._draw_thought()
        match event:
            case Rewritten(_, standalone):
                hang(
                    self._console,
                    Text("asks", "bold cyan"),
                    Text(inert(standalone), "bold"),
                    MARGIN,
                )
            case Planned(_, plan, thought=True):
                self._thought = plan.subquery or plan.reason
            case Planned(hop, plan):
                self._draw_plan(hop, plan)
            case Hits(hop, subquery, hits):
                self._draw_hits(hop, subquery, hits)
            case GraphDelta():
                self._draw_growth(event)
            case WaitingForModel(asked, calls, answered):
                replies = f", {answered} answered" if answered else ""
                self._doing(
                    f"waiting for the model's server ({asked} of {calls} asked{replies})"
                )
            case AnswerToken(text):
                self._draw_token(text)
            case Answered(answer, _, grounded):
                self._draw_answer(answer, grounded)
            case Failed(failure) if failure.role == "answerer":
                # printed after the answer, which may have stopped in the middle of a line
                self._late.append(failure)
            case Failed(failure):
                self._draw_failure(failure)

    def end(self) -> None:
        """End a half-written line, if the run was interrupted."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _draw_plan(self, hop: int, plan: Plan) -> None:
        mark = str(ACTIONS[plan.action])
        for place, subquery in enumerate(plan.subqueries):
            line = Text.assemble((f"{mark} ", "cyan"), (inert(subquery), "bold"))
            self._subqueries[hop + place] = subquery
            self._draw_hop(hop + place, line)
            if plan.further:
                self._at_once.add(hop + place)
        if plan.subqueries:
            return
        verdict = Text.assemble(
            (mark, "green"), (f" {inert(plan.reason, limit=300)}", "dim")
        )
        verdict.rstrip()
        hang(self._console, Text(), verdict, MARGIN)
        self._doing("answering")

    def _draw_hop(self, hop: int, body: Text) -> None:
        self._hop = hop
        hang(self._console, Text(f"hop {hop}", "bold cyan"), body, MARGIN)
        self._doing(f"hop {hop}: retrieving")

    def _draw_hits(self, hop: int, subquery: str, hits: Sequence[Hit]) -> None:
        self._passages.update((hit.passage.id, hit.passage) for hit in hits)
        # hops without a plan: a single-shot run, or IRCoT, where the thought is the sub-query
        if hop not in self._subqueries:
            self._draw_hop(
                hop, Text(inert(subquery), "italic" if self._thought else "bold")
            )
        self._subqueries[hop] = subquery
        self._thought = ""
        digits = _digits(hits)
        items: list[Text] = []
        for hit in hits:
            score = f"{hit.score:.{digits}f}"
            items.append(Text.assemble(_name(hit.passage), " ", (score, "dim")))
        body = Text("none", "yellow")
        if items:
            body = pack(items, self._width(), " · ")
        self._print_with_label("hits", body, hop)
        self._doing(f"hop {hop}: reading facts")

    def _draw_growth(self, delta: GraphDelta) -> None:
        if not delta.added:
            body = Text("nothing new", "dim")
        elif self._verbose:
            facts = [
                fact_line(fact.subject, fact.predicate, fact.object)
                for fact in delta.added
            ]
            body = Text("\n").join(facts)
        else:
            subquery = self._subqueries.get(delta.hop, "")
            nearest = _nearest_first(delta.added, subquery)
            facts = [
                fact_line(
                    fact.subject, fact.predicate, fact.object, limit=_LONGEST_NAME
                )
                for fact in nearest
            ]
            body = pack(facts, self._width(), " ", lines=_FACT_LINES)
        self._print_with_label(f"facts +{len(delta.added)}", body, delta.hop)
        size = f"{quantity(delta.facts, 'fact')}, {quantity(delta.entities, 'entity', 'entities')}"
        if delta.conflicts > self._conflicts:
            size += f", {delta.conflicts} in conflict"
        self._print_with_label("graph", Text(size, "dim"))
        self._conflicts = delta.conflicts
        self._doing(f"hop {delta.hop + 1}: planning")

    def _draw_thought(self) -> None:
        """Print a thought that no search has followed."""
        if self._thought:
            hang(self._console, Text(), Text(inert(self._thought), "italic"), MARGIN)
            self._thought = ""

    def _draw_token(self, text: str) -> None:
        if self._answer is None:
            self._doing("")
            self._answer = Hanging(
                self._console, Text("answer", "bold green"), MARGIN, "bold"
            )
        self._answer.add(inert_lines(text))
        self._streamed += text

    def _draw_answer(self, answer: Answer, grounded: bool) -> None:
        self._doing("")
        marks = _marks(answer)
        if self._answer is not None and self._streamed == answer.text:
            self._answer.add(marks)
            self.end()
        else:
            self.end()
            text = inert_lines(answer.text).strip() or "(no answer)"
            look = "yellow" if answer.abstained else "bold"
            body = Text.assemble((text, look), (marks, "cyan"))
            hang(self._console, Text("answer", "bold green"), body, MARGIN)
        if answer.agreement is not None:
            share = f"{answer.agreement:.0%} of the samples say so"
            hang(self._console, Text(), Text(share, "cyan"), MARGIN)
        if answer.suggestion:
            suggested = Text(inert_lines(answer.suggestion).strip(), "yellow")
            hang(self._console, Text("perhaps", "yellow"), suggested, MARGIN)
        if not (grounded or answer.abstained):
            hang(self._console, Text(), Text(self._doubt(answer), "yellow"), MARGIN)
        for citation in answer.citations:
            self._draw_citation(citation)
        for failure in self._late:
            self._draw_failure(failure)

    def _doubt(self, answer: Answer) -> str:
        """Return why an answer is not grounded."""
        if answer.citations:
            return _NOT_BORNE
        return _CITES_NOTHING if self._passages else _FROM_MEMORY

    def _draw_citation(self, citation: Citation) -> None:
        body = Text.assemble(
            (inert(citation.title) or inert(citation.passage_id), "bold")
        )
        if citation.headings:
            headings = " > ".join(citation.headings)
            body.append(f" > {inert(headings)}")
        if citation.supported is False:
            body.append(", which does not support the answer", "yellow")
        passage = self._passages.get(citation.passage_id)
        if citation.file:
            page = f", page {citation.page}" if citation.page else ""
            body.append(f" ({inert(citation.file)}{page})")
        if citation.quote:
            if passage is not None:
                body.append(
                    f", sentence {_sentence_number(passage.text, citation.start)}"
                )
            quote = inert(
                citation.quote, limit=None if self._verbose else _LONGEST_QUOTE
            )
            body.append(": ").append(f"“{quote}”", "dim")
        hang(
            self._console,
            Text(" " * MARGIN).append(f"[{citation.number}]", "cyan"),
            body,
            MARGIN + 4,
        )

    def _draw_failure(self, failure: Failure) -> None:
        self._print_with_label(
            "failed",
            Text(
                f"{inert(failure.role)}: {inert(failure.message, limit=300)}", "yellow"
            ),
        )

    def _print_with_label(self, label: str, body: Text, hop: int = 0) -> None:
        """Print a line. If several hops were planned at once, its hop is in the margin, because their lines may
        be mixed.
        """
        margin = ""
        if hop in self._at_once:
            margin = f"hop {hop}"
        start = Text(margin.ljust(MARGIN), "cyan").append(label, "dim")
        hang(self._console, start, body, _LABELLED)

    def _width(self) -> int:
        return max(self._console.width - _LABELLED, 20)


def _marks(answer: Answer) -> str:
    """Return " [1][2]" for the citations that support an answer if its text has no numbers, else ""."""
    if _CITED.search(answer.text):
        return ""
    supporting = [
        citation for citation in answer.citations if citation.supported is not False
    ]
    if not supporting:
        return ""
    return " " + "".join(f"[{citation.number}]" for citation in supporting)


def _name(passage: Passage) -> str:
    return inert(passage.title, limit=_LONGEST_NAME) or inert(
        passage.id, limit=_LONGEST_NAME
    )


def _nearest_first(facts: Sequence[Triple], subquery: str) -> list[Triple]:
    """Sort facts by how many words they share with the sub-query, most first, because only the first ones are
    shown.
    """
    words = set(stems(subquery))
    return sorted(
        facts, key=lambda fact: -len(words.intersection(stems(" ".join(fact.key))))
    )


def _digits(hits: Sequence[Hit]) -> int:
    """Return how many decimals of the hits' scores to print: BM25's scores are tens, cosines are below one,
    fused ranks are tiny.
    """
    best = max((abs(hit.score) for hit in hits), default=0.0)
    for digits, least in ((1, 10), (2, 1), (3, 0.1)):
        if best >= least:
            return digits
    return 4


def _sentence_number(text: str, offset: int) -> int:
    return max(sum(start <= offset for start, _ in sentence_spans(text)), 1)


# ---- a saved run


def replayed(trace: Trace) -> Iterator[Event]:
    """Yield the events of a finished run in their order, without facts that the graph has hidden since then."""
    if trace.asked:
        yield Rewritten(trace.asked, trace.question)
    yield from _failures_of(trace, 0, "rewriter")
    for step in trace.steps:
        yield from _events_before(trace, step.hop)
        yield Hits(step.hop, step.subquery, step.hits)
        yield from _failures_of(trace, step.hop, "retriever", "extractor")
        yield _growth(trace.graph, step)
    last = trace.steps[-1].hop if trace.steps else 0
    yield from _events_before(trace, last + 1)
    yield from _failures_of(trace, last, "answerer")
    yield Answered(answer_of(trace), trace.stop_reason, trace.grounded)


def _events_before(trace: Trace, hop: int) -> Iterator[Event]:
    """Yield the events before the search of `hop`: failures, and the plan."""
    yield from _failures_of(trace, hop, "planner", "reasoner")
    yield from (planned for planned in trace.plans if planned.hop == hop)


def _failures_of(trace: Trace, hop: int, *roles: str) -> Iterator[Failed]:
    return (
        Failed(failure)
        for failure in trace.failures
        if failure.hop == hop and failure.role in roles
    )


def _growth(graph: QuestionGraph, step: Step) -> GraphDelta:
    """Return how the graph grew at the step, computed from the readings of this and earlier hops."""
    readings: list[Triple] = []
    for reading in graph.readings:
        sources = tuple(source for source in reading.sources if source.hop <= step.hop)
        if sources:
            readings.append(replace(reading, sources=sources))
    then = QuestionGraph(tuple(readings), graph.hidden_facts)
    added = [graph.by_id[name] for name in step.new_triple_ids if name in graph.by_id]
    return GraphDelta(
        hop=step.hop,
        added=tuple(added),
        facts=len(then),
        entities=len(then.entities),
        conflicts=len(then.conflicts),
    )


def summary(trace: Trace, saved: Sequence[Path] = ()) -> str:
    """Return a summary line of a run, such as "9 facts, 0 conflicts · 2 hops · 0 LLM calls · 0.21 s".

    It also names the files in `saved`.
    """
    usage = trace.usage
    calls = quantity(len(usage.calls), "LLM call")
    if usage.calls:
        calls += f" ({usage.input_tokens:,} + {usage.output_tokens:,} tokens)"
    replayed = sum(call.replayed for call in usage.calls)
    if replayed:
        calls += f", {replayed} from cache"
    conflicts = max(len(trace.graph.conflicts), len(trace.disputes))
    digits = 1 if trace.seconds >= 1 else 2
    parts = [
        f"{quantity(len(trace.graph), 'fact')}, {quantity(conflicts, 'conflict')}",
        quantity(len(trace.steps), "hop"),
        calls,
        f"{trace.seconds:.{digits}f} s",
    ]
    if trace.stop_reason not in _EXPECTED:
        parts.append(f"stopped by {trace.stop_reason}")
    if trace.reviews:
        parts.append(quantity(len(trace.reviews), "review"))
    if trace.failures:
        parts.append(quantity(len(trace.failures), "failure"))
    for path in saved:
        parts.append(f"{path} written")
    return " · ".join(parts)

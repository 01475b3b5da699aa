"""Roles that know a question's gold annotation, made for one question: which role loses the points?

    planner     the gold decomposition, with #k replaced by the gold answer of step k
    retriever   the gold passages
    answerer    the gold answer if the evidence holds it in so many words, else an abstention

With one role an oracle and the others real, what is still lost is lost by the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ras_agent.errors import RunError
from ras_agent.eval.metrics import checkable, holds
from ras_agent.eval.question import Question
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Hit, Passage, Plan, Step

__all__ = ["OracleAnswerer", "OraclePlanner", "OracleRetriever", "decomposed", "gold_passages", "named"]

_REFERENCE = re.compile(r"#(\d+)")


def decomposed(question: Question) -> list[str]:
    """The gold sub-questions as a planner that knows all earlier answers would ask them; empty without any.

    Raises RunError for a reference to a step that does not come earlier, or has no answer.
    """
    asked: list[str] = []
    answers: list[str] = []

    def answer(reference: re.Match[str]) -> str:
        number = int(reference[1])
        if not 0 < number <= len(answers) or not answers[number - 1]:
            raise RunError(
                f"{question.id}: step {len(answers) + 1} of the decomposition refers to {reference[0]}, which no "
                "earlier step answers"
            )
        return answers[number - 1]

    for step in question.decomposition:
        asked.append(_REFERENCE.sub(answer, step["question"]))
        answers.append(step.get("answer", ""))
    return asked


class OraclePlanner:
    """Asks the gold sub-questions in their order, then says that it has enough.

    The loop's first sub-query is the question itself, as it is for every planner.
    """

    name = "oracle"

    def __init__(self, question: Question) -> None:
        """Raises RunError for a question without a gold decomposition."""
        self._asked = decomposed(question)
        if not self._asked:
            raise RunError(f"{question.id}: no gold decomposition, so there is no oracle planner for it")

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """The next gold sub-question."""
        if not steps:
            return Plan("subq", question)
        if len(steps) > len(self._asked):
            return Plan("sufficient", reason="all gold sub-questions are asked")
        return Plan("subq", self._asked[len(steps) - 1])


class OracleRetriever:
    """Finds the gold passages, whatever is looked for, in the order of the annotation."""

    name = "oracle"

    def __init__(self, gold: Sequence[Passage]) -> None:
        self._gold = tuple(gold)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """The first `k` gold passages, scored 1, 1/2, 1/3, ... Raises ValueError as every retriever does."""
        if not query.strip() or k < 1:
            raise ValueError(f"a search needs words and a k of at least 1, got {query!r} and {k}")
        return [Hit(passage, 1 / rank) for rank, passage in enumerate(self._gold[:k], start=1)]


class OracleAnswerer:
    """Gives a gold answer if it stands, as whole words once normalised, in the evidence; else it abstains.

    within: "facts", the graph's triples, or "passages", the retrieved texts. An answer that no text states, such as yes
    or no, is never found. So its score is the share of questions whose evidence holds the answer: what the best reader
    of that evidence could get.
    """

    def __init__(self, question: Question, within: str = "facts") -> None:
        if within not in ("facts", "passages"):
            raise ValueError(f"an oracle answerer looks within 'facts' or 'passages', got {within!r}")
        self.name = f"oracle:{within}"
        self._golds = tuple(gold for gold in question.answers if checkable(gold))
        self._within = within

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        """The first gold answer that the evidence holds, with the first place that holds it as its citation."""
        for gold in self._golds:
            found = _in_facts(gold, graph, passages) if self._within == "facts" else _in_passages(gold, passages)
            if found:
                return found
        return Answer("The evidence does not state the answer.", abstained=True)


def named(passages: Iterable[Passage], by_title: bool) -> dict[str, list[Passage]]:
    """Passages by title or by id, as gold annotations name them; several may share a title."""
    table: dict[str, list[Passage]] = {}
    for passage in passages:
        table.setdefault(passage.title if by_title else passage.id, []).append(passage)
    return table


def gold_passages(question: Question, corpus: Mapping[str, Sequence[Passage]]) -> list[Passage]:
    """The question's gold passages: by name from the corpus (see `named`), else from the question's own contexts.

    Raises RunError for a question without gold passages, and for one that is in neither place.
    """
    if not question.supporting:
        raise RunError(f"{question.id}: no gold passages are named, so there is no oracle retriever for it")
    own = named(question.contexts, question.by_title)
    gold: list[Passage] = []
    for name in question.supporting:
        passages = corpus.get(name) or own.get(name)
        if not passages:
            raise RunError(
                f"{question.id}: the gold passage {name!r} is not in the corpus; search the corpus that the questions "
                "were made for"
            )
        gold += passages
    return gold


def _in_facts(gold: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer | None:
    texts = {passage.id: passage for passage in passages}
    for name, fact in graph.by_id.items():
        if holds(f"{fact.subject} {fact.predicate} {fact.object}", (gold,)):
            read = [(source, texts[source.passage_id]) for source in fact.sources if source.passage_id in texts]
            return Answer(
                gold,
                tuple(
                    Citation(1, text.id, text.title, at.start, at.end, text.text[at.start : at.end], (name,))
                    for at, text in read[:1]
                ),
            )
    return None


def _in_passages(gold: str, passages: Sequence[Passage]) -> Answer | None:
    for passage in passages:
        if holds(f"{passage.title}. {passage.text}", (gold,)):
            return Answer(gold, (Citation(1, passage.id, passage.title, 0, len(passage.text), passage.text),))
    return None

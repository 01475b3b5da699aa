"""Answering a nested question by naming its descriptions first, each with its own evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ras_agent.protocols import Answerer
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.offline.question_chain import MOST_LINKS, innermost, names_link, speaking_of

__all__ = ["ChainAnswerer"]


class ChainAnswerer:
    """Answers the question that is left when every description in it has a name, and cites what named them.

    inner: answers plain questions, and abstains where it cannot name a description. last: answers the question itself;
    `inner` unless given. trust: the confidence, in 0..1, from which a name stands for its description. A link that
    stays open, or a chain that ends in no answer, leaves the question to `last` as it was asked.
    """

    name = "offline"

    def __init__(self, inner: Answerer, last: Answerer | None = None, trust: float = 0.3) -> None:
        self._inner, self._last, self._trust = inner, last or inner, trust

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        rest, last, name, names, evidence = question, question, "", list[str](), list[Citation]()
        known = {passage.id: passage for passage in passages}
        for _ in range(MOST_LINKS):
            link = innermost(rest)
            if link is None:
                break
            found = self._inner.answer(link.as_question, graph, speaking_of(name, passages))
            if not names_link(found, link, known, self._trust):
                return self._last.answer(question, graph, passages)
            # the description stays beside the name: what it speaks of is known, and no answer
            last = link.replaced(rest, f"{found.text}, {link.text},")
            rest, name = link.replaced(rest, found.text), found.text
            names.append(name)
            evidence += found.citations[:1]
        answer = self._last.answer(last, graph, speaking_of(name, passages))
        if answer.abstained and names:
            asked_plainly = self._last.answer(question, graph, passages)
            # what only led towards the answer is not the answer
            return answer if _is_one_of(names, asked_plainly.text) else asked_plainly
        return replace(answer, citations=_numbered([*evidence, *answer.citations])) if evidence else answer


def _is_one_of(names: Iterable[str], text: str) -> bool:
    return canonical_key(text) in map(canonical_key, names)


def _numbered(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Each piece of evidence once, numbered from 1 in order."""
    distinct = {(cited.passage_id, cited.start, cited.end): cited for cited in citations}
    return tuple(replace(cited, number=number) for number, cited in enumerate(distinct.values(), start=1))

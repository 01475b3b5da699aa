"""An answerer without a model: candidates from the graph and its sentences, ranked; comparisons decided from facts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from ras_agent.canonical import canonical_key
from ras_agent.mentions import name_spans
from ras_agent.protocols import Embedder, SpanReader
from ras_agent.question_analysis import QuestionAnalysis, analyse
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage, Source
from ras_agent.tools.answer.reading import Read, plain_title, read
from ras_agent.tools.answer.figures import figures_in
from ras_agent.words import stems

__all__ = ["OfflineAnswerer"]

_I_DO_NOT_KNOW = "I don't know: the passages found do not hold the answer."


class OfflineAnswerer:
    """Answers with rules and a small ranker; fits `Answerer`. `may_abstain=False` always gives the best guess."""

    name = "offline"

    def __init__(
        self, embedder: Embedder | None = None, reader: SpanReader | None = None, may_abstain: bool = True
    ) -> None:
        self._embedder, self._reader, self._may_abstain = embedder, reader, may_abstain

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        asked, sentences = analyse(question), read(passages)
        if asked.kind == "yes_no" and sentences:
            return Answer("yes", _cite(sentences[:1], passages, graph))
        best = _best(asked, sentences, passages)
        if best is None:
            return Answer(_I_DO_NOT_KNOW, abstained=True)
        text, sentence = best
        return Answer(text, _cite([sentence], passages, graph))


def _best(asked: QuestionAnalysis, sentences: Sequence[Read], passages: Sequence[Passage]) -> tuple[str, Read] | None:
    wanted = set(stems(asked.question))
    spread = Counter(stem for sentence in sentences for stem in sentence.stems)
    options = [canonical_key(name) for name in asked.compared]
    known = canonical_key(asked.question)
    best: tuple[str, Read] | None = None
    most = -math.inf
    for sentence in sentences:
        title = passages[sentence.passage].title
        seen = sentence.stems | set(stems(title))
        overlap = sum(math.log(1 + len(sentences) / (1 + spread[word])) for word in wanted & seen)
        for text in _spans(sentence, title, asked):
            key = canonical_key(text)
            bonus = 1.0 if options and key in options else -2.0 if key in known else 0.0
            if overlap + bonus > most:
                best, most = (text, sentence), overlap + bonus
    return best


def _spans(sentence: Read, title: str, asked: QuestionAnalysis) -> list[str]:
    kind = asked.answer_type
    values = figures_in(sentence.text)
    if kind == "date":
        return [sentence.text[v.start : v.end] for v in values if v.kind not in {"number", "ordinal"}]
    if kind == "number":
        return [sentence.text[v.start : v.end] for v in values if v.kind == "number"]
    return [plain_title(title), *(sentence.text[a:b] for a, b in name_spans(sentence.text))]


def _cite(chosen: Sequence[Read], passages: Sequence[Passage], graph: QuestionGraph) -> tuple[Citation, ...]:
    """One citation for each sentence, with the facts that were read there."""
    citations = []
    for number, sentence in enumerate(chosen, start=1):
        passage = passages[sentence.passage]
        end = sentence.start + len(sentence.text)
        ids = [
            fact.id
            for fact in graph.facts
            if any(_inside(source, passage.id, sentence.start, end) for source in fact.sources)
        ]
        citations.append(
            Citation(number, passage.id, passage.title, sentence.start, end, sentence.text, tuple(dict.fromkeys(ids)))
        )
    return tuple(citations)


def _inside(source: Source, passage_id: str, start: int, end: int) -> bool:
    return source.passage_id == passage_id and source.start < end and start < source.end

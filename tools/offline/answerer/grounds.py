"""The sentences that an answer rests on, as citations: where it stands, and what ties that place to the question."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Citation, Passage, Source
from ras_agent.text.canonical import canonical_key
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.reading import Read, plain_title

__all__ = ["bridges", "cited"]

_LEAST_GAIN = 2
_MOST_BRIDGES = 2


def bridges(question: str, answer: Read, sentences: Sequence[Read], passages: Sequence[Passage]) -> list[Read]:
    """At most two sentences of other passages that say what the answer's own leaves out of the question.

    Such a passage names the answer's passage, is named by it, or names nothing but says at least two more words.
    """
    titles = [canonical_key(plain_title(passage.title)) for passage in passages]
    missing = set(stems(question)) - answer.stems - set(stems(passages[answer.passage].title))
    own = f" {canonical_key(passages[answer.passage].text)} "
    chosen: list[Read] = []
    for _ in range(_MOST_BRIDGES):
        best, most = None, 0.0
        for sentence in sentences:
            if sentence.passage in {answer.passage, *(read.passage for read in chosen)}:
                continue
            gain = float(len(missing & (sentence.stems | set(stems(passages[sentence.passage].title)))))
            title = titles[answer.passage]
            linked = (title and f" {title} " in f" {canonical_key(sentence.text)} ") or (
                titles[sentence.passage] and f" {titles[sentence.passage]} " in own
            )
            if gain + (0.0 if linked else 1.0 - _LEAST_GAIN) > most:
                best, most = sentence, gain + (0.0 if linked else 1.0 - _LEAST_GAIN)
        if best is None:
            break
        chosen.append(best)
        missing -= best.stems | set(stems(passages[best.passage].title))
    return chosen


def cited(sentences: Sequence[Read], passages: Sequence[Passage], graph: QuestionGraph) -> tuple[Citation, ...]:
    """One citation for each sentence, numbered from 1, with the facts that were read there."""
    citations = []
    for number, sentence in enumerate(dict.fromkeys(sentences), start=1):
        passage, start = passages[sentence.passage], sentence.start
        here = Source(passage.id, start, start + len(sentence.text))
        ids = [fact.id for fact in graph.facts if any(_overlap(source, here) for source in fact.sources)]
        citations.append(Citation(number, passage.id, passage.title, start, here.end, sentence.text, tuple(ids)))
    return tuple(citations)


def _overlap(one: Source, other: Source) -> bool:
    return one.passage_id == other.passage_id and one.start < other.end and other.start < one.end

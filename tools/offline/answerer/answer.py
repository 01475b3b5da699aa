"""An answerer without a model: it compares, intersects or ranks what was read, and says when it does not know."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage, Source, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.choice import GUESSED, Side, choose, sides_of, well_known
from ras_agent.tools.offline.answerer.confidence import packaged_confidence, signs_of
from ras_agent.tools.offline.answerer.rank import Ranker, likeliest, packaged_ranker
from ras_agent.tools.offline.answerer.shared import Common, common_ground, spoken
from ras_agent.tools.offline.answerer.yes_no import decide
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reading import MOST_READ, ReadPassage, Sentence, read

I_DO_NOT_KNOW = "I don't know: the passages found do not hold the answer."
LEAST_CONFIDENCE = 0.15
"""The confidence below which an answer is left unsaid, if nobody sets another."""


class OfflineAnswerer:
    """Fits `Answerer`. Weights load at the first question; may be used from several threads at once.

    may_abstain: False always gives the best guess there is.
    ranker: the packaged one unless given. least_confidence: an answer with less is "I don't know".
    """

    name = "offline"

    def __init__(
        self,
        may_abstain: bool = True,
        ranker: Ranker | None = None,
        least_confidence: float = LEAST_CONFIDENCE,
    ) -> None:
        self._may_abstain, self._ranker = may_abstain, ranker
        self._least_confidence = least_confidence

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the passages write it; `confidence` is the token F1 to expect of it."""
        asked, found = analyse(question), read(passages[:MOST_READ])
        if not any(passage.sentences for passage in found):
            return Answer(I_DO_NOT_KNOW, abstained=True)
        sides = sides_of(asked, found)
        known = bool(sides) and all(side.sentences for side in sides)
        ranker = self._ranker or packaged_ranker()
        if asked.kind == "yes_no":
            answer = self._yes_no(asked, sides, graph)
        elif asked.kind == "choice" and sides:
            answer = self._choice(asked, sides, graph)
        elif asked.kind == "shared" and known and (common := common_ground(asked, sides)):
            answer = self._shared(asked, sides, common, graph, ranker)
        else:
            answer = self._span(asked, graph, found, ranker, len(steps))
        unsure = answer.confidence is not None and answer.confidence < self._least_confidence
        if self._may_abstain and unsure:
            return Answer(I_DO_NOT_KNOW, abstained=True, confidence=answer.confidence)
        return answer

    def _yes_no(self, asked: QuestionAnalysis, sides: Sequence[Side], graph: QuestionGraph) -> Answer:
        verdict = decide(asked, sides)
        if not verdict.grounds and self._may_abstain:
            return Answer(I_DO_NOT_KNOW, abstained=True)
        citations = cited(verdict.grounds, graph)
        return Answer("yes" if verdict.yes else "no", citations, confidence=verdict.confidence(sides))

    def _choice(self, asked: QuestionAnalysis, sides: Sequence[Side], graph: QuestionGraph) -> Answer:
        choice = choose(asked, sides)
        if not choice.grounds and self._may_abstain:
            return Answer(I_DO_NOT_KNOW, abstained=True)
        citations = cited(choice.grounds, graph)
        return Answer(choice.side.asked, citations, confidence=choice.confidence(sides))

    def _shared(
        self,
        asked: QuestionAnalysis,
        sides: Sequence[Side],
        common: Sequence[Common],
        graph: QuestionGraph,
        ranker: Ranker,
    ) -> Answer:
        told = spoken(asked, common, ranker.types)
        return Answer(told.text, cited(told.grounds, graph), confidence=0.4 if well_known(sides) else GUESSED)

    def _span(
        self,
        asked: QuestionAnalysis,
        graph: QuestionGraph,
        passages: Sequence[ReadPassage],
        ranker: Ranker,
        hops: int,
    ) -> Answer:
        ranked = ranker.rank(asked, graph, passages)
        if not ranked:
            return Answer(I_DO_NOT_KNOW, abstained=True)
        best = likeliest(asked, ranked)
        confidence = packaged_confidence()(signs_of(asked, best, ranked, passages, hops, ranker.rarity))
        if self._may_abstain and unheard_names(asked.question, passages):
            return Answer(I_DO_NOT_KNOW, abstained=True, confidence=confidence)
        grounds = [best.sentence, *bridges(asked.question, best.sentence, passages)]
        return Answer(best.text, cited(grounds, graph), confidence=confidence)


_LEAST_GAIN = 2
_MOST_BRIDGES = 2


def bridges(question: str, answer: Sentence, passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return at most two sentences of other passages that say what the answer's own leaves out of the question.

    Such a passage names the answer's passage, is named by it, or names nothing but says at least two more words.
    """
    own = answer.passage
    missing = set(stems(question)) - answer.stems - own.title_stems
    chosen: list[Sentence] = []
    for _ in range(_MOST_BRIDGES):
        best, most = None, 0.0
        read_before = {own, *(sentence.passage for sentence in chosen)}
        for passage in passages:
            named = passage not in read_before and own.tells_of(passage)
            for sentence in passage.sentences if passage not in read_before else ():
                gain = float(len(missing & (sentence.stems | passage.title_stems)))
                linked = named or (own.key and f" {own.key} " in f" {canonical_key(sentence.text)} ")
                if gain + (0.0 if linked else 1.0 - _LEAST_GAIN) > most:
                    best, most = sentence, gain + (0.0 if linked else 1.0 - _LEAST_GAIN)
        if best is None:
            break
        chosen.append(best)
        missing -= best.stems | best.passage.title_stems
    return chosen


def cited(sentences: Sequence[Sentence], graph: QuestionGraph) -> tuple[Citation, ...]:
    """Return one citation for each sentence, numbered from 1, with the facts that were read there."""
    citations = []
    for number, sentence in enumerate(dict.fromkeys(sentences), start=1):
        passage, start = sentence.passage, sentence.start
        here = Source(passage.id, start, start + len(sentence.text))
        ids = [fact.id for fact in graph.facts if any(_overlap(source, here) for source in fact.sources)]
        citations.append(Citation(number, passage.id, passage.title, start, here.end, sentence.text, tuple(ids)))
    return tuple(citations)


def _overlap(one: Source, other: Source) -> bool:
    return one.passage_id == other.passage_id and one.start < other.end and other.start < one.end


def unheard_names(question: str, passages: Sequence[ReadPassage]) -> list[str]:
    """Return the names of which not a single word is in any sentence or title, in the question's order."""
    said = {root for passage in passages for sentence in passage.sentences for root in sentence.stems}
    said.update(root for passage in passages for root in passage.title_stems)
    names = [question[start:end] for start, end in name_spans(question)]
    return [name for name in names if stems(name) and said.isdisjoint(stems(name))]

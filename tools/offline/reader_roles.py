"""Planner and answerer that read: a question is taken apart, each part is searched for, read and answered by itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from dataclasses import replace

from ras_agent.protocols import Answerer, Planner
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Hit, Passage, Plan, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.values import figures_in
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.answer import I_DO_NOT_KNOW, cited
from ras_agent.tools.offline.answerer.rank import packaged_ranker
from ras_agent.tools.offline.chain import Chain, Found, answers, answers_in_pairs, follow, passages_of
from ras_agent.tools.offline.lists import all_of_list
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reader import Reader, with_title
from ras_agent.tools.offline.reading import ReadPassage, Sentence
from ras_agent.tools.offline.reviewed import steps_as_reviewed
from ras_agent.tools.offline.said import asks_for_sentences, sentences_that_say

_SURE = math.log(0.4)  # worth of a chain whose answer needs no other search, and goes before one to the whole question
_AND = re.compile(r"\b(?:and|both)\b", re.IGNORECASE)
_JUDGED = 8  # passages that a question is judged over
_PAIRED = 12  # passages of which pairs are made
# what the judges of an answer to the whole question weigh; the middle of a plateau on HotpotQA's tuning half
_ALONE, _RANKER = 0.5, 0.5
_LEAST, _FLOOR = -3.0, 0.02
# of the curve from worth to confidence, fitted to HotpotQA's tuning half and MuSiQue's 60 questions
_OFFSET, _OF_CHAINS, _OF_WHOLES = 1.0, 5.5, 0.57
_AFTER_A_CHAIN = 0.4  # of an answer to the whole question whose chain found every name, but no answer
_LEAST_CONFIDENCE = 0.25
_WITHOUT_A_VALUE = 0.25  # of a yes whose sentence lacks a name or a figure of the question
_RANKED = 30  # spans of the ranker that have a voice


class ReadingPlanner:
    """Asks for what the question describes, the innermost first; `plain` plans where it describes nothing.

    It asks the whole question and goes on with `plain`, too, where a chain ends without an answer that it trusts.
    """

    name = "offline"

    def __init__(self, reader: Reader, plain: Planner) -> None:
        self._reader, self._plain = reader, plain

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next sub-query, or sufficient; the reason says what has been found and what is missing."""
        steps = steps_as_reviewed(graph, steps)
        chain = follow(question, self._reader, steps, passages_of(steps))
        if chain.open:
            return Plan("subq", chain.open, _told(chain))
        if chain.end and chain.worth > _SURE:
            return Plan("sufficient", reason=f"{_told(chain)}; an answer has been read: {chain.end.text}")
        if canonical_key(question) not in {canonical_key(step.subquery) for step in steps}:
            return Plan("subq", question, _told(chain) or "the question itself comes first")
        return self._plain.plan(question, graph, steps)


def _told(chain: Chain) -> str:
    """Say what the links have found: "the inventor of the telephone: Alexander Graham Bell"."""
    return "; ".join(f"{link.description}: {link.found.text}" for link in chain.links)


class ReadingAnswerer:
    """Answers with what the reader reads, and cites the sentences of every link; `compare` answers for two things.

    may_abstain: False always gives the best guess there is. least_confidence: an answer with less is "I don't know".
    """

    name = "offline"

    def __init__(
        self,
        reader: Reader,
        compare: Answerer,
        may_abstain: bool = True,
        least_confidence: float | None = None,
    ) -> None:
        self._reader, self._compare, self._may_abstain = reader, compare, may_abstain
        self._least_confidence = _LEAST_CONFIDENCE if least_confidence is None else least_confidence

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the passages write it; `confidence` is how likely it is to be right."""
        answer = self._answer(question, graph, passages, steps)
        unsure = answer.confidence is not None and answer.confidence < self._least_confidence
        if self._may_abstain and unsure:
            return Answer(I_DO_NOT_KNOW, abstained=True, confidence=answer.confidence)
        return answer

    def _answer(
        self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]
    ) -> Answer:
        given = {passage.id for passage in passages}
        found = {name: one for name, one in passages_of(steps).items() if name in given}
        found = found or passages_of([Step(1, question, tuple(Hit(passage, 0.0) for passage in passages))])
        found = {name: one for name, one in found.items() if one.sentences}
        if not found:
            return Answer(I_DO_NOT_KNOW, abstained=True)
        if asks_for_sentences(question):
            if not (said := sentences_that_say(question, list(found.values())[:_JUDGED])):
                return Answer(I_DO_NOT_KNOW, abstained=True)
            told = " ".join(" ".join(one.text for one in said).split())
            return Answer(f"The text says: {told}", cited(said, graph))
        chain = follow(question, self._reader, steps, found)
        asked = analyse(chain.question)
        if asked.kind == "choice" or (asked.kind == "yes_no" and asked.compared and _AND.search(asked.question)):
            return self._compare.answer(chain.question, graph, passages, steps)
        if asked.kind == "yes_no":
            return self._verdict(asked, chain, graph, list(found.values()))
        if chain.end and chain.worth > _SURE:
            text, listed = all_of_list(question, chain.end.text, chain.end.sentence)
            grounds = [*(link.found.sentence for link in chain.links), *listed]
            return Answer(text, cited(grounds, graph), confidence=_confidence(chain.worth, _OF_CHAINS))
        led = {canonical_key(link.found.text) for link in chain.links}
        whole = self._whole(analyse(question), graph, list(found.values())[:_PAIRED], led)
        if whole is None:
            return Answer(I_DO_NOT_KNOW, abstained=True)
        text, listed = all_of_list(question, whole.text, whole.sentence)
        grounds = [one for one in (whole.named_by, *listed) if one]
        sure = _confidence(whole.worth, _OF_WHOLES) * (_AFTER_A_CHAIN if led else 1.0)
        return Answer(text, cited(grounds, graph), confidence=sure)

    def _whole(
        self, asked: QuestionAnalysis, graph: QuestionGraph, passages: Sequence[ReadPassage], led: Set[str]
    ) -> Found | None:
        """Return the answer to the whole question: three judges say how likely each is, and their voices are added.

        The reader reads pairs of passages and single ones, and the ranker of spans weighs what overlaps an answer.
        led: canonical keys of what only leads towards the answer, and is none.
        """
        pairs = answers_in_pairs(asked.question, self._reader, passages)
        alone = answers(asked.question, self._reader, passages)
        ranked = packaged_ranker().rank(asked, graph, passages)[:_RANKED]
        words = [(frozenset(one.key.split()), one.share) for one in ranked]
        in_pairs = {canonical_key(one.text): one for one in pairs}
        single = {canonical_key(one.text): one for one in alone}
        best: Found | None = None
        for key in dict.fromkeys((*in_pairs, *single)):
            if key in led:
                continue
            found = in_pairs.get(key) or single[key]
            worth = max(in_pairs[key].worth, _LEAST) if key in in_pairs else _LEAST
            worth += _ALONE * (max(single[key].worth, _LEAST) if key in single else _LEAST)
            own = frozenset(key.split())
            overlap = sum(share * 2 * len(own & other) / (len(own) + len(other)) for other, share in words)
            worth += _RANKER * math.log(overlap + _FLOOR)
            if best is None or worth > best.worth:
                best = replace(found, worth=worth)
        return best

    def _verdict(
        self, asked: QuestionAnalysis, chain: Chain, graph: QuestionGraph, passages: Sequence[ReadPassage]
    ) -> Answer:
        """Return what a sentence says that has most words of the question and tells most, alone and in its passage.

        What a sentence affirms whose name or figure it does not hold is most often false.
        """
        words = set(stems(asked.question))
        likely = [
            max(passage.sentences, key=lambda one: len(words & (one.stems | one.passage.title_stems)))
            for passage in passages[:_JUDGED]
        ]
        verdicts = self._reader.judge(asked.question, [_said([sentence]) for sentence in likely])
        held = [sentence.stems | sentence.passage.title_stems for sentence in likely]
        worth = [len(words & has) * (1 - one.not_said) for one, has in zip(verdicts, held, strict=True)]
        best = worth.index(max(worth))
        deciding, (among,) = likely[best], self._reader.judge(asked.question, [_said(passages[best].sentences)])
        yes, no = (verdicts[best].true + among.true) / 2, (verdicts[best].false + among.false) / 2
        told = max(yes, no)
        if yes >= no and not _values(asked.question) <= held[best]:
            told *= _WITHOUT_A_VALUE
        grounds = [*(link.found.sentence for link in chain.links), deciding]
        return Answer("yes" if yes >= no else "no", cited(grounds, graph), confidence=told)


def _values(question: str) -> set[str]:
    """Return the stems of the names and the figures of a question of yes or no, whose first word is no name."""
    text = question[0].lower() + question[1:]
    spans = [*name_spans(text), *((figure.start, figure.end) for figure in figures_in(text))]
    return {stem for start, end in spans for stem in stems(text[start:end])}


def _said(sentences: Sequence[Sentence]) -> str:
    """Return sentences of one passage as the reader reads them."""
    return with_title(sentences[0].passage.title, " ".join(sentence.text for sentence in sentences))


def _confidence(worth: float, slope: float) -> float:
    """Return the token F1 to expect of an answer: a logistic curve of its worth, through what the two sets showed."""
    return 1 / (1 + math.exp(-_OFFSET - slope * worth))

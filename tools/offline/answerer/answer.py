"""The answerer of the offline mode: it reads, judges or compares, and cites what it rests on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Failure, Passage, Source, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.values import figures_in
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.compare import Reply, compare, in_common, sides_of, well_known
from ras_agent.tools.offline.answerer.wording import denies, wording
from ras_agent.tools.offline.chain import Found, answers, answers_in_pairs, follow, is_left_out, passages_of
from ras_agent.tools.offline.english import EnglishOnly
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import MOST_READ, ReadPassage, Sentence, Token, tokens_of
from ras_agent.tools.offline.reading import read as read_passages
from ras_agent.tools.offline.said import all_of_list, sentences_that_say

I_DO_NOT_KNOW = "I don't know: the passages found do not hold the answer."
LEAST_CONFIDENCE = 0.4
"""The confidence below which an answer is left unsaid, if nobody sets another."""
_AND = re.compile(r"\b(?:and|both)\b", re.IGNORECASE)
_JUDGED = 8  # passages that a question is judged over
_PAIRED = 12  # passages of which pairs are made
# of what is read over the whole question; the middle of a plateau on HotpotQA's tuning half
_SHARPNESS, _FLOOR, _UNPAIRED = 0.3, 0.02, 0.7
# offset and slope of the curves from worth to confidence, fitted to HotpotQA's tuning half and MuSiQue's 60 questions
_OF_CHAINS, _OF_WHOLES = (0.59, 2.99), (0.23, 0.23)
# factors of the confidence in an answer to the whole question: where a chain found every name, but no answer; and where
# the passages leave a name of the question out
_AFTER_A_CHAIN, _UNHEARD = 0.4, 0.5
_IN_ITS_WORDS = 0.95  # of what a sentence says in the question's words
_AGAINST_ITS_VALUES = 0.25  # of a yes to a name or a figure that the sentence lacks, or of a no where it lacks none


class OfflineAnswerer:
    """Fits `Answerer`. A reader answers and judges; rules tell which of two is first or has most. Threads may share it.

    may_abstain: False always gives the best guess there is. least_confidence: an answer with less is "I don't know".
    language: of the texts, if it is known; to what is not English there is no answer, and the reason is told.
    """

    name = "offline"

    def __init__(
        self, reader: Reader, may_abstain: bool = True, least_confidence: float = LEAST_CONFIDENCE, language: str = ""
    ) -> None:
        self._reader, self._may_abstain, self._least_confidence = reader, may_abstain, least_confidence
        self._english = EnglishOnly("answerer", language)

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the passages write it; `confidence` is how likely it is to be right."""
        english, failures = self._english.readable(passages)
        refusal = self._english.refusal(question) or (failures[0].message if failures and not english else "")
        if refusal:
            failed = (Failure("answerer", refusal),)
            return Answer(f"No answer: {refusal}.", abstained=True, failures=failed, failed=refusal)
        given = {passage.id for passage in english}
        # in the order in which the steps found them; all of them where they found none
        read = [one for one in passages_of(steps).values() if one.id in given]
        read = [one for one in read or read_passages(english[:MOST_READ]) if one.sentences]
        reply = self._reply(question, read, steps) if read else None
        unsure = reply is not None and (reply.confidence is not None and reply.confidence < self._least_confidence)
        if reply is None or (self._may_abstain and (unsure or not reply.grounds)):
            sure = reply.confidence if reply else None
            return Answer(I_DO_NOT_KNOW, abstained=True, confidence=sure, failures=failures)
        return Answer(reply.text, cited(reply.grounds, graph), confidence=reply.confidence, failures=failures)

    def _reply(self, question: str, passages: Sequence[ReadPassage], steps: Sequence[Step]) -> Reply | None:
        sentences = sentences_that_say(question, passages[:_JUDGED])
        if sentences is None and (reply := _in_its_words(analyse(question), passages, [])):
            return reply
        chain = follow(question, self._reader, steps, {passage.id: passage for passage in passages})
        links = tuple(link.found.sentence for link in chain.links)
        if sentences == [] and (said := sentences_that_say(chain.question, passages[:_JUDGED])):
            sentences = list(dict.fromkeys([*links, *said]))
        if sentences is not None:
            told = " ".join(" ".join(one.text for one in sentences).split())
            return Reply(f"The text says: {told}", tuple(sentences)) if sentences else None
        asked = analyse(chain.question)
        if asked.kind == "choice":
            return compare(asked, sides_of(asked, passages), self._reader)
        if asked.kind == "yes_no":
            return self._yes_or_no(asked, links, passages)
        sides = sides_of(asked, passages) if asked.compared else ()
        if sides and well_known(sides) and (reply := in_common(asked, sides, self._reader)):
            return reply
        end, lead, sure = chain.answered, links, _confidence(chain.worth, _OF_CHAINS)
        if end is None:
            end = self._whole(question, passages[:_PAIRED], {canonical_key(link.found.text) for link in chain.links})
            if end is None:
                return None
            named = holds(question, end.sentence.passage.topic)  # then nothing has to lead there
            lead = () if named or end.named_by is None else (end.named_by,)
            sure = _confidence(end.worth, _OF_WHOLES) * (_AFTER_A_CHAIN if links else 1.0)
            sure *= _UNHEARD if unheard_names(question, passages) else 1.0
        text, listed = all_of_list(question, end.text, end.sentence)
        return Reply(text, (*lead, *listed), sure)

    def _whole(self, question: str, passages: Sequence[ReadPassage], led: Set[str]) -> Found | None:
        """Return the answer to the whole question, read over pairs of passages and over single ones.

        Answers that overlap speak for each other; what is said in pairs counts as much as what is said alone. A passage
        without a pair has to be enough by itself, as has what pairs leave out of one: what it says alone counts for
        both, and a little less.
        led: canonical keys of what only leads towards the answer, and is none.
        """
        pairs = _told_apart(answers_in_pairs(question, self._reader, passages), led)
        alone = _told_apart(answers(question, self._reader, passages), led)
        paired = {one.sentence.passage.id for one in pairs.values()}
        best: Found | None = None
        for key, one in (alone | pairs).items():
            in_pairs, by_itself = _voices(key, pairs), _voices(key, alone)
            if one.sentence.passage.id not in paired or is_left_out(one.sentence):
                in_pairs = max(in_pairs, by_itself - _UNPAIRED)
            if best is None or in_pairs + by_itself > best.worth:
                best = replace(one, worth=in_pairs + by_itself)
        return best

    def _yes_or_no(self, asked: QuestionAnalysis, links: Sequence[Sentence], passages: Sequence[ReadPassage]) -> Reply:
        """Return what a sentence says in the question's words, else what holds of two things, else a verdict."""
        if links and (reply := _in_its_words(asked, passages, links)):
            return reply
        sides = sides_of(asked, passages) if asked.compared and _AND.search(asked.question) else ()
        if sides and well_known(sides):
            return compare(asked, sides, self._reader)
        return self._verdict(asked, links, passages)

    def _verdict(self, asked: QuestionAnalysis, links: Sequence[Sentence], passages: Sequence[ReadPassage]) -> Reply:
        """Return what a sentence says that has most words of the question and tells most, alone and in its passage.

        It seldom affirms what has a name, a figure or a denial that it lacks or has fewer times, and seldom denies what
        has none; nor does it affirm where a sentence has the question's words with another name.
        """
        words = set(stems(asked.question))

        def shared(sentence: Sentence) -> int:
            return len(words & (sentence.stems | sentence.passage.title_stems))

        likely = [max(passage.sentences, key=shared) for passage in passages[:_JUDGED]]
        verdicts = self._reader.judge(asked.question, [with_title(one.passage.title, one.text) for one in likely])
        worth = [shared(sentence) * (1 - one.not_said) for one, sentence in zip(verdicts, likely, strict=True)]
        best = worth.index(max(worth))
        deciding, page = likely[best], " ".join(one.text for one in passages[best].sentences)
        (among,) = self._reader.judge(asked.question, [with_title(deciding.passage.title, page)])
        yes, no = (verdicts[best].true + among.true) / 2, (verdicts[best].false + among.false) / 2
        verdict, told = ("yes", yes) if yes >= no else ("no", no)
        values, said = _values(asked.question), wording(asked.question, passages)
        own = deciding.passage.title_stems
        held = _counts(deciding.tokens, deciding.text) + Counter(own)
        told_of = Counter({value: count for value, count in values.items() if value not in own})
        unlikely = not values <= held if verdict == "yes" else bool(told_of) and told_of <= held
        if unlikely or (said and said[0] == f"hardly {verdict}"):
            told *= _AGAINST_ITS_VALUES
        return Reply(verdict, (*links, deciding), told)


def _in_its_words(asked: QuestionAnalysis, passages: Sequence[ReadPassage], links: Sequence[Sentence]) -> Reply | None:
    """Return what a sentence says of a question of yes or no in its words; links: the sentences that lead to it."""
    said = wording(asked.question, passages) if asked.kind == "yes_no" else None
    return Reply(said[0], (*links, said[1]), _IN_ITS_WORDS) if said and said[0] in ("yes", "no") else None


def _told_apart(found: Sequence[Found], led: Set[str]) -> dict[str, Found]:
    """Return answers by canonical key, without those of `led`."""
    return {key: one for one in found if (key := canonical_key(one.text)) not in led}


def _voices(key: str, found: Mapping[str, Found]) -> float:
    """Return the log of what answers say for one: each by how likely it is, and by the F1 of their words."""
    words = set(key.split())
    said = _FLOOR
    for other, one in found.items():
        others = set(other.split())
        said += math.exp(one.worth / _SHARPNESS) * 2 * len(words & others) / (len(words) + len(others))
    return math.log(said)


def _values(question: str) -> Counter[str]:
    """Return how often a question of yes or no has the stems of names and figures; its first word is no name.

    A denial counts as a value.
    """
    text = question[0].lower() + question[1:]
    spans = [*name_spans(text), *((figure.start, figure.end) for figure in figures_in(text))]
    words = [one for one in tokens_of(text) if any(start <= one.start < end for start, end in spans)]
    return _counts(words, question)


def _counts(words: Sequence[Token], text: str) -> Counter[str]:
    return Counter([*(one.stem for one in words if one.stem), *(["not"] if denies(text) else [])])


def _confidence(worth: float, curve: tuple[float, float]) -> float:
    """Return the token F1 to expect of an answer: a logistic curve of its worth, through what the two sets showed."""
    offset, slope = curve
    return 1 / (1 + math.exp(-offset - slope * worth))


def cited(sentences: Sequence[Sentence], graph: QuestionGraph) -> tuple[Citation, ...]:
    """Return one citation for each sentence, numbered from 1, with the facts that were read there."""
    citations = []
    for number, sentence in enumerate(dict.fromkeys(sentences), start=1):
        passage, start = sentence.passage, sentence.start
        here = Source(passage.id, start, start + len(sentence.text))
        ids = [fact.id for fact in graph.facts if fact.was_read_in(here)]
        citations.append(Citation(number, passage.id, passage.title, start, here.end, sentence.text, tuple(ids)))
    return tuple(citations)


def unheard_names(question: str, passages: Sequence[ReadPassage]) -> list[str]:
    """Return the names of which not a single word is in any sentence or title, in the question's order."""
    said = {root for passage in passages for sentence in passage.sentences for root in sentence.stems}
    said.update(root for passage in passages for root in passage.title_stems)
    names = [question[start:end] for start, end in name_spans(question)]
    return [name for name in names if stems(name) and said.isdisjoint(stems(name))]

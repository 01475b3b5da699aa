"""Answers without a language model: reads, judges or compares, and cites the sentences that support the answer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from ras_agent.contracts.records import Answer, Citation, Failure, Passage, Source, Step
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.times import without_as_of
from ras_agent.running.confidence import SUGGESTED, logistic
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.values import figures_in
from ras_agent.text.words import stem, stem_set, stems
from ras_agent.tools.offline.answerer.compare import (
    SAME,
    Reply,
    compare,
    in_common,
    sides_of,
    well_known,
)
from ras_agent.tools.offline.answerer.confidence import Signals, confidence
from ras_agent.tools.offline.answerer.likeness import least_likeness
from ras_agent.tools.offline.answerer.unmet import lacks_what_is_named
from ras_agent.tools.offline.answerer.wording import denies, is_restated, wording
from ras_agent.tools.offline.chain import (
    Chain,
    Found,
    answers,
    answers_in_pairs,
    asking_for,
    follow,
    is_left_out,
    leading_to,
    passages_of,
)
from ras_agent.tools.offline.english import EnglishOnly
from ras_agent.tools.offline.in_time import holds_then, in_its_time
from ras_agent.tools.offline.parts import in_its_part, is_inside
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import (
    MOST_READ,
    ReadPassage,
    Sentence,
    Token,
    tokens_of,
)
from ras_agent.tools.offline.reading import read as read_passages
from ras_agent.tools.offline.said import (
    all_of_list,
    nearest_sentences,
    sentences_that_say,
)

I_DO_NOT_KNOW = "I don't know: I cannot read the answer out of the passages found."
SEE_NEAREST = f"{I_DO_NOT_KNOW} The sentences cited come nearest to the question."
NOT_SURE = (
    "I am not sure: what the passages found suggest is not sure enough to be said."
)
LEAST_CONFIDENCE = 0.75
"""The default confidence below which the answerer abstains."""
_OF_BOTH = re.compile(r"\b(?:and|both|than|before|after)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"The (?P<noun>[a-z-]+) (?:is|was|were|are|has|had|will)\b")
_JUDGED = 8  # passages that are judged for a question
_PAIRED = 12  # passages from which pairs are formed
# for answers to the whole question; values from the middle of a plateau on HotpotQA's tuning half
_SHARPNESS = 0.3
_FLOOR = 0.02
_UNPAIRED = 0.7
# logistic curve from the reader's probability of a verdict to the confidence, fitted on yes-or-no questions
_OF_VERDICTS = -1.37
_VERDICT = 4.67
OF_ROWS = 0.9
"""The confidence of an answer from a table cell."""
# margins are clipped to this, in both directions
_FARTHEST = 9.0
# similarity of the question's words to the proof; below it a third of the answers are right, above it two thirds
_LEAST_LIKENESS = 0.3
_IN_ITS_WORDS = 0.95  # confidence of an answer in the question's words
# factor for a "yes" although the sentence lacks a name or figure of the question, or a "no" although it lacks none
_AGAINST_ITS_VALUES = 0.25


class OfflineAnswerer:
    """Answers questions without a language model. Thread safe.

    A small network, the reader, finds and judges answers; rules compare two things by their dates and numbers.
    """

    name = "offline"

    def __init__(
        self,
        reader: Reader,
        may_abstain: bool = True,
        least_confidence: float = LEAST_CONFIDENCE,
        language: str = "",
    ) -> None:
        """Take the reader and the limits of abstaining.

        Args:
            may_abstain: False to always give the best guess.
            least_confidence: an answer with less confidence abstains, and suggests its text only if that is more
                likely right than wrong.
            language: the language of the texts, if it is known; if it is not English, the answer only says why
                there is no answer.
        """
        self._reader = reader
        self._may_abstain = may_abstain
        self._least_confidence = least_confidence
        self._english = EnglishOnly("answerer", language)

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the answer as the passages word it; `confidence` is the probability that it is right."""
        english, failures = self._english.readable(passages)
        refusal = self._english.refusal(question)
        if failures and not english:
            refusal = refusal or failures[0].message
        if refusal:
            failed = (Failure("answerer", refusal),)
            text = f"No answer: {refusal}."
            return Answer(text, abstained=True, failures=failed, failed=refusal)
        given = {passage.id for passage in english}
        # in the order in which the steps found them, or as given if the steps found none of them
        read = [one for one in passages_of(steps).values() if one.id in given]
        if not read:
            read = list(read_passages(english[:MOST_READ]))
        reply = self.reply(question, read, steps)
        likely = None
        if reply is not None:
            likely = reply.confidence
            sure = 1.0 if likely is None else likely
            found = cited(reply.grounds, graph)
            if not self._may_abstain or (found and sure >= self._least_confidence):
                return Answer(reply.text, found, confidence=likely, failures=failures)
            if found and sure >= SUGGESTED:
                return Answer(
                    NOT_SURE,
                    found,
                    abstained=True,
                    confidence=likely,
                    failures=failures,
                    suggestion=reply.text,
                )
        near = nearest_sentences(without_as_of(question), read)
        text = SEE_NEAREST if near else I_DO_NOT_KNOW
        shown = cited(near, graph)
        return Answer(text, shown, abstained=True, confidence=likely, failures=failures)

    def reply(
        self, question: str, passages: Sequence[ReadPassage], steps: Sequence[Step]
    ) -> Reply | None:
        """Return the answer, whatever its confidence, with the sentences that support it; None if nothing answers the
        question.
        """
        asked, of_that_time = in_its_time(question, passages)
        reply = self._reply(asked, of_that_time, steps)
        if reply is None or asked == without_as_of(question):
            return reply
        if holds_then(question, reply.grounds):
            return reply
        return self._reply(question, passages, steps)

    def _reply(
        self, question: str, passages: Sequence[ReadPassage], steps: Sequence[Step]
    ) -> Reply | None:
        passages = [one for one in passages if one.sentences]
        if not passages:
            return None
        by_id = {passage.id: passage for passage in passages}
        chain = follow(question, self._reader, steps, by_id)
        links = tuple(link.found.sentence for link in chain.links)
        end = chain.end
        if end and end.rows:
            likely = OF_ROWS * math.exp(chain.worth)
            return Reply(end.text, (*links, *end.rows), likely)
        passages = [one for one in passages if not one.is_only_table]
        if not passages:
            return None
        said: Sequence[Sentence] | None = None
        for stated, led in {question: (), chain.question: links}.items():
            said = sentences_that_say(stated, passages[:_JUDGED])
            if said:
                text = " ".join(" ".join(one.text for one in said).split())
                return Reply(f"The text says: {text}", (*led, *said))
            if reply := _in_its_words(analyse(stated), passages, led):
                return reply
        if said is not None:
            return None
        asked = analyse(chain.question)
        if asked.kind == "choice":
            return compare(asked, sides_of(asked, passages), self._reader)
        if asked.kind == "yes_no":
            return self._yes_or_no(asked, links, passages)
        sides = sides_of(asked, passages) if asked.compared else ()
        if (
            sides
            and well_known(sides)
            and (reply := in_common(asked, sides, self._reader))
        ):
            return reply
        return self._open(question, chain, passages[:_PAIRED])

    def _open(
        self, question: str, chain: Chain, passages: Sequence[ReadPassage]
    ) -> Reply | None:
        """Return the answer of a chain if it is sure enough, else the answer that is read for the whole question."""
        end = chain.answered
        lead = tuple(link.found.sentence for link in chain.links)
        if end is None:
            end = self._whole(
                question,
                passages,
                {canonical_key(link.found.text) for link in chain.links},
            )
            if end is None:
                return None
            lead = leading_to(end, question, passages)
        text, listed = all_of_list(question, end.text, end.sentence)
        grounds = _with_figures(question, [*lead, *_named(listed)])
        worths = [end.worth]
        is_chained = chain.answered is not None
        if is_chained:
            worths += [link.found.worth for link in chain.links]
        margin, is_first = self._borne(question, end.text, grounds)
        if is_chained:
            last, is_first_of_last = self._borne(chain.question, end.text, grounds)
            margin = max(margin, last)
            is_first = is_first or is_first_of_last
        nouns = _asked_nouns(question, chain)
        likeness = least_likeness(question, _text_of(grounds), nouns)
        is_unlike = likeness < _LEAST_LIKENESS
        is_lacking = lacks_what_is_named(question, grounds)
        signals = Signals(
            borne=margin,
            first=float(is_first),
            likely=math.exp(min(worths)),
            chained=float(is_chained),
            of_another=float(is_lacking or is_unlike),
        )
        sure = confidence(signals)
        is_whole = not is_chained and not is_lacking and text == end.text
        if is_whole and is_restated(question, text, end.sentence.text, nouns):
            sure = max(sure, _IN_ITS_WORDS)
        return Reply(text, grounds, sure)

    def _borne(
        self, question: str, answer: str, grounds: Sequence[Sentence]
    ) -> tuple[float, bool]:
        """Return the reader's margin for an answer in its proof, and whether it is the first answer that the proof
        gives.

        The margin is that of the first span that equals, contains or is part of the answer. Only the sentences of the
        proof are read, for the question as it was asked, so an answer to another question, or one that only other parts
        of a passage give, gets a low margin.
        """
        text = _text_of(grounds)
        (spans,) = self._reader.read(question, [text])
        is_first = True
        for span in spans:
            said = text[span.start : span.end]
            sentence = next((one.text for one in grounds if said in one.text), "")
            if _are_alike(answer, in_its_part(question, said, sentence)):
                bounded = min(span.margin, _FARTHEST)
                return max(-_FARTHEST, bounded), is_first
            is_first = False
        return -_FARTHEST, False

    def _whole(
        self, question: str, passages: Sequence[ReadPassage], led: Set[str]
    ) -> Found | None:
        """Return the answer to the whole question, read over pairs of passages and single ones; None if there is no answer.

        Answers that overlap support each other; those from pairs count as much as those from single passages. The
        answers of a passage that is in no pair, or of a part that pairs leave out, count for both, slightly reduced.

        Args:
            led: canonical keys of the things that only lead to the answer.
        """
        pairs = _distinct(answers_in_pairs(question, self._reader, passages), led)
        alone = _distinct(answers(question, self._reader, passages), led)
        paired = {one.sentence.passage.id for one in pairs.values()}
        best: Found | None = None
        loudest = -math.inf
        for key, one in (alone | pairs).items():
            in_pairs = _voices(key, pairs)
            by_itself = _voices(key, alone)
            if one.sentence.passage.id not in paired or is_left_out(one.sentence):
                in_pairs = max(in_pairs, by_itself - _UNPAIRED)
            voices = in_pairs + by_itself
            if voices > loudest:
                best = one
                loudest = voices
        if best is None:
            return None
        worth = best.worth
        for one in (*alone.values(), *pairs.values()):
            if _are_alike(best.text, one.text):
                worth = max(worth, one.worth)
        return replace(best, worth=worth)

    def _yes_or_no(
        self,
        asked: QuestionAnalysis,
        links: Sequence[Sentence],
        passages: Sequence[ReadPassage],
    ) -> Reply:
        """Return the answer to a yes-or-no question: a comparison if it is about two things, else the reader's verdict."""
        same = SAME.search(asked.question)
        if same or _OF_BOTH.search(asked.question):
            sides = sides_of(asked, passages)
            if sides and (well_known(sides) or same):
                return compare(asked, sides, self._reader)
        return self._verdict(asked, links, passages)

    def _verdict(
        self,
        asked: QuestionAnalysis,
        links: Sequence[Sentence],
        passages: Sequence[ReadPassage],
    ) -> Reply:
        """Return the verdict of the sentence that has most of the question's words and is clearest about them.

        The verdict is the mean of two readings: of the sentence alone, and in its passage. A "yes" is less sure if the
        sentence lacks a name, a figure or a denial of the question, or if a sentence has the question's words with
        another name; a "no" is less sure if the sentence lacks none of these.
        """
        words = set(stems(asked.question))

        def shared(sentence: Sentence) -> int:
            held = sentence.stems | sentence.passage.title_stems
            return len(words & held)

        likely = [max(passage.sentences, key=shared) for passage in passages[:_JUDGED]]
        titled = [one.titled for one in likely]
        verdicts = self._reader.judge(asked.question, titled)
        worths: list[float] = []
        for sentence, verdict_of in zip(likely, verdicts, strict=True):
            said_there = 1 - verdict_of.not_said
            worths.append(shared(sentence) * said_there)
        clearest = worths.index(max(worths))
        deciding = likely[clearest]
        alone = verdicts[clearest]
        page = " ".join(one.text for one in deciding.passage.sentences)
        whole = with_title(deciding.passage.heading, page)
        (among,) = self._reader.judge(asked.question, [whole])
        yes = (alone.true + among.true) / 2
        no = (alone.false + among.false) / 2
        verdict = "yes" if yes >= no else "no"
        margin = max(yes, no)
        said = wording(asked.question, passages)
        is_unlikely = said is not None and said[0] == f"hardly {verdict}"
        if is_unlikely or _is_against_values(verdict, asked.question, deciding):
            margin *= _AGAINST_ITS_VALUES
        sure = logistic(_OF_VERDICTS + _VERDICT * margin)
        grounds = (*links, deciding)
        return Reply(verdict, grounds, sure)


def _named(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences; before a sentence that begins with a pronoun, also the one that names its subject.

    A passage with a title names its subject there.
    """
    for sentence in sentences:
        if not sentence.passage.topic:
            yield from _introducing(sentence)
            yield sentence.naming
        yield sentence


def _introducing(sentence: Sentence) -> Iterator[Sentence]:
    """Yield the sentence that introduces "a new bridge" before one that begins with "The bridge"."""
    definite = _DEFINITE.match(sentence.text)
    before = sentence.before
    while definite and before:
        if stem(definite["noun"]) in before.stems and not _DEFINITE.match(before.text):
            yield before
            return
        before = before.before


def _with_figures(question: str, sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Return the sentences, each after the first sentence of its passage if only that has a figure of the question.

    This applies to passages with a title, and to figures that all of the sentences lack.
    """
    text = _text_of(sentences)
    lacking: list[str] = []
    for word in question.split():
        has_digits = any(map(str.isdigit, word))
        if has_digits and not holds(text, word):
            lacking.append(word)
    grounds: list[Sentence] = []
    for sentence in sentences:
        first = sentence.passage.sentences[0]
        is_titled = sentence.passage.topic != ""
        has_figure = any(holds(first.text, one) for one in lacking)
        if is_titled and has_figure:
            grounds.append(first)
        grounds.append(sentence)
    return tuple(dict.fromkeys(grounds))


def _text_of(grounds: Sequence[Sentence]) -> str:
    sentences = [one.titled for one in grounds]
    return " ".join(sentences)


def _asked_nouns(question: str, chain: Chain) -> frozenset[str]:
    """Return the stems of the nouns for the answers, such as "town" in "which town", which a text need not repeat."""
    questions = [question]
    for link in chain.links:
        questions.append(asking_for(link.description))
    nouns: list[str] = []
    for asked in questions:
        nouns += analyse(asked).answer_noun
    return stem_set(" ".join(nouns))


def _is_against_values(verdict: str, question: str, deciding: Sentence) -> bool:
    """Return whether a sentence contradicts the verdict by its names, figures and denials.

    A "yes" is contradicted if the sentence lacks one of the question's; a "no" if it has all of them.
    """
    values = _values(question)
    own = deciding.passage.title_stems
    held = _counts(deciding.tokens, deciding.text)
    held.update(own)
    if verdict == "yes":
        is_denied = held["not"] > values["not"]
        return is_denied or not values <= held
    untitled = set(values) - own
    for value in untitled:
        if values[value] > held[value]:
            return False
    return bool(untitled)


def _are_alike(one: str, other: str) -> bool:
    """Return whether one of two answers contains the other."""
    is_part = holds(one, other)
    return is_part or holds(other, one)


def _in_its_words(
    asked: QuestionAnalysis, passages: Sequence[ReadPassage], links: Sequence[Sentence]
) -> Reply | None:
    """Return "yes" or "no" if a sentence repeats the words of a yes-or-no question and so decides it, else None.

    Args:
        links: earlier sentences, which are cited before that sentence.
    """
    if asked.kind != "yes_no":
        return None
    said = wording(asked.question, passages)
    if said is None or said[0] not in ("yes", "no"):
        return None
    return Reply(said[0], (*links, said[1]), _IN_ITS_WORDS)


def _distinct(found: Sequence[Found], led: Set[str]) -> dict[str, Found]:
    """Return the answers by canonical key, without those whose key is in `led`."""
    apart: dict[str, Found] = {}
    for one in found:
        key = canonical_key(one.text)
        if key not in led:
            apart[key] = one
    return apart


def _voices(key: str, found: Mapping[str, Found]) -> float:
    """Return the log of the support for an answer: the sum of the probabilities of all answers, each times its words'
    F1 with this one.
    """
    words = set(key.split())
    said = _FLOOR
    for other, one in found.items():
        others = set(other.split())
        likely = math.exp(one.worth / _SHARPNESS)
        f1 = 2 * len(words & others) / (len(words) + len(others))
        said += likely * f1
    return math.log(said)


def _values(question: str) -> Counter[str]:
    """Return how often a yes-or-no question has each stem of its names and figures, ignoring its first word.

    A denial counts as a value.
    """
    text = question[0].lower() + question[1:]
    spans = list(name_spans(text))
    for figure in figures_in(text):
        spans.append((figure.start, figure.end))
    words = [one for one in tokens_of(text) if is_inside(one.start, spans)]
    return _counts(words, question)


def _counts(words: Sequence[Token], text: str) -> Counter[str]:
    counts = Counter(one.stem for one in words if one.stem)
    if denies(text):
        counts["not"] = 1
    return counts


def cited(sentences: Sequence[Sentence], graph: QuestionGraph) -> tuple[Citation, ...]:
    """Return one citation for each sentence, numbered from 1, with the facts that were read there."""
    citations = []
    for number, sentence in enumerate(dict.fromkeys(sentences), start=1):
        passage = sentence.passage
        start = sentence.start
        here = Source(passage.id, start, sentence.end)
        ids = [fact.id for fact in graph.facts if fact.was_read_in(here)]
        citations.append(
            Citation(
                number,
                passage.id,
                passage.title,
                start,
                here.end,
                sentence.text,
                tuple(ids),
            )
        )
    return tuple(citations)

"""Answers with more than one name: with a list, or with sentences that give a reason, a summary or steps.

It also finds the sentences nearest to a question, which are cited if no answer is sure enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ras_agent.text.names import is_name, name_spans, names_in
from ras_agent.text.sentences import ITEM
from ras_agent.text.words import stem_set, stems, word_set
from ras_agent.tools.offline.reading import ReadPassage, Sentence, rarity

_WHY = re.compile(
    r"(?i)\W*(?:why|how come|for what reason|what (?:is|was|were) the (?:cause(?! of death)|reason)s?)\b"
)
_SUMMARY = re.compile(
    r"(?i)\W*(?:summari[sz]e|sum up|describe|outline|explain|tell me about|give (?:me )?an? (?:summary|overview))"
)
_STEPS = re.compile(
    r"(?i)\W*(?:what (?:can|may|must|should) |how (?:to|(?:do|does|can|could|may|should|would) (?:i|we|you|one)) )"
)
_BECAUSE = re.compile(
    r"(?i)\b(?:because|since|so that|in order to|due to|owing to|as a result|therefore|the reason|caused?"
    r"|died (?:of|from))\b"
)
_ASKED_SO = word_set(
    "why cause causes reason reasons summarise summarize sum describe outline explain tell overview"
)
# a heading in Markdown, a line in bold, a question, or a short line (a numbered one only between blank lines)
_HEADING = re.compile(
    r"^(?:(?P<marks>#{1,6}) .+$|(?P<bold>\*\*[^*\n]{1,100}\*\*$|\*\*[^*\n]{1,100}[?:]\*\*|[A-Z][^.!?\n]{0,100}\?$)"
    r"|[A-Z][^.!?\n]{0,60}$|(?<![^\n]\n)\d+\. [A-Z][^.!?\n]{0,60}$(?!\n[^\n]))",
    re.MULTILINE,
)
_ITEM = re.compile(ITEM)
# share of the question's words that passage and sentence must contain
_LEAST_SHARED = 0.4
_ASKED_ALIKE = 0.6  # the same for a relevant sentence, or an equal question
_MOST = 4  # most sentences of a summary
_FEWEST_WORDS = 4  # least words of a sentence that says something


def sentences_that_say(
    question: str, passages: Sequence[ReadPassage]
) -> list[Sentence] | None:
    """Return the sentences that give a reason, a summary or steps, in order; [] if no sentence is relevant.

    Return None for a question that a name or a figure answers. A date does not answer why.

    >>> sentences_that_say("Why did the mill close?", []), sentences_that_say("When did the mill close?", [])
    ([], None)
    """
    asks_why = _WHY.match(question)
    asks_for_all = _SUMMARY.match(question) is not None
    if not asks_why and not asks_for_all and not _STEPS.match(question):
        return None
    asked: set[str] = set()
    for word in question.split():
        if word.strip("?.,").lower() not in _ASKED_SO:
            asked.update(stems(word))
    if asks_why:
        return _reason(asked, passages) or _below_heading(asked, passages, True)
    return _section(asked, passages, asks_for_all)


def _reason(asked: set[str], passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the sentence that gives a reason and contains most of the question's words, not only names."""
    best: list[Sentence] = []
    most = 0.0
    least = _LEAST_SHARED * len(asked)
    for passage in passages:
        above = asked & passage.title_stems
        of_passage = asked & passage.stems
        for sentence in passage.sentences:
            own = asked & sentence.stems
            names = stem_set(" ".join(names_in(sentence.text)))
            is_reason = _BECAUSE.search(sentence.text) and not own <= names
            if not is_reason or min(len(own | above), len(of_passage)) < least:
                continue
            shared = len(own) + len(of_passage - own) / 2 + len(above) / 4
            if shared > most:
                most = shared
                best = [sentence]
    return best


def _section(
    asked: set[str], passages: Sequence[ReadPassage], asks_for_all: bool
) -> list[Sentence]:
    """Return the first sentences below the best heading in the passage with most of the asked words.

    Args:
        asks_for_all: whether a summary is asked for. If no heading fits, a summary is the passage's beginning;
            otherwise the sentences with the asked words are returned.
    """
    passage = max(passages, key=lambda one: len(asked & one.stems), default=None)
    if passage is None or len(asked & passage.stems) < _LEAST_SHARED * len(asked):
        return []
    own = asked - passage.title_stems
    below = _below_heading(own, [passage])
    if below:
        return below
    if asks_for_all:
        return _telling(passage.sentences)
    below = _below_heading(asked, [passage])
    if below:
        return below
    bearing: list[Sentence] = []
    for sentence in passage.sentences:
        shared = own & sentence.stems
        if shared and len(shared) >= _ASKED_ALIKE * len(own):
            bearing.append(sentence)
    return _telling(bearing)


def _below_heading(
    asked: set[str], passages: Sequence[ReadPassage], asks_why: bool = False
) -> list[Sentence]:
    """Return the first sentences below the heading with most of the asked words; [] if there is none.

    Args:
        asks_why: whether the heading must ask the same question why; otherwise it must not be the title.
    """
    best: list[Sentence] = []
    least = _ASKED_ALIKE * len(asked) if asks_why else 1
    for passage in passages:
        for heading in _HEADING.finditer(passage.text):
            words = stems(heading.group())
            shared = len(asked.intersection(words))
            if asks_why:
                is_like = _WHY.match(heading.group()) is not None
            else:
                is_like = not passage.title_stems.issuperset(words)
            if shared and shared >= least and is_like:
                least = shared + 1
                best = _below(heading, passage)
    return best


def _below(heading: re.Match[str], passage: ReadPassage) -> list[Sentence]:
    """Return the first sentences below a heading, up to the next heading of the same or a higher level."""
    start = heading.end()
    end = len(passage.text)
    for later in _HEADING.finditer(passage.text, start):
        if _level(later) <= _level(heading):
            end = later.start()
            break
    below = [one for one in passage.sentences if start <= one.start < end]
    return _telling(below)


def _level(heading: re.Match[str]) -> int:
    """Return a heading's level, 1 for the highest; bold lines and questions rank below Markdown's, short lines last."""
    if heading["marks"]:
        return len(heading["marks"])
    return 7 if heading["bold"] else 8


def _telling(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the first sentences that say something; headings and lists of names only if there is nothing else."""
    said = [one for one in sentences if len(one.tokens) >= _FEWEST_WORDS]
    whole: list[Sentence] = []
    for one in said:
        bare = one.text.rstrip("\"'”’*_) ")
        is_whole = bare.endswith((".", "!"))
        if is_whole or _ITEM.match(one.text):
            whole.append(one)
    return list(whole or said or sentences)[:_MOST]


_ASKS_FOR_NAMES = re.compile(
    r"(?i)\W*(?:who|whom|(?:which|what) (?!does|is|was|has)(?:people|\w{3,}(?<!s)s)) "
)
_NOTE = r"\s\([^()\n]{0,60}\)"
# the text between two names of a list, which may begin with a note on the first ("Ann Ray (chair), Bo Lind")
_BETWEEN = re.compile(
    rf"(?:{_NOTE})?(?:(?P<comma>,\s)|(?P<last>,?\sand\s(?:by\s)?(?:the\s[a-z]{{1,20}}\s)?)"
    r"|(?P<bullet>[ \t]{0,3}\n[ \t]{0,8}[-*•][ \t]{1,3}))"
)
_NOTES = re.compile(_NOTE)
_BULLETS = re.compile(r"[ \t]{0,3}\n[ \t]{0,8}[-*•][ \t]{1,3}")
_REACH = 1000  # characters before and after an answer in which its list is searched for
_LONGEST_GAP = 80  # most characters between two names of a list


def all_of_list(
    question: str, answer: str, sentence: Sentence
) -> tuple[str, tuple[Sentence, ...]]:
    """Return the whole list of names that contains an answer, and its sentences; the answer itself if it is in no
    list.

    The names of a list are joined by commas, "and" or bullets. Lists answer questions with "who", or "which" and a
    plural.
    """
    at = sentence.text.find(answer)
    if at < 0 or not is_name(answer) or not _ASKS_FOR_NAMES.match(question):
        return answer, (sentence,)
    passage = sentence.passage
    start = sentence.start + at
    end = start + len(answer)
    first = max(0, start - _REACH)
    for list_start, list_end in _lists(passage.text[first : end + _REACH]):
        begin = first + list_start
        stop = first + list_end
        if begin <= start and end <= stop:
            line = _NOTES.sub("", _BULLETS.sub(", ", passage.text[begin:stop]))
            sentences = passage.sentences
            held = [one for one in sentences if one.start < stop and begin < one.end]
            return " ".join(line.split()), tuple(held)
    return answer, (sentence,)


def _lists(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of lists of names, from left to right."""
    run: list[tuple[int, int]] = []
    joints: set[str] = set()
    for span, following in pairwise([*name_spans(text), (len(text), len(text))]):
        run.append(span)
        gap = text[span[1] : following[0]]
        joint = _BETWEEN.fullmatch(gap) if len(gap) <= _LONGEST_GAP else None
        if joint and following[0] < len(text):
            joints.add(joint.lastgroup or "")
            continue
        # two names with only a comma between are not a list, but for example a town and its country
        if len(run) > 2 or joints & {"last", "bullet"}:
            yield run[0][0], span[1]
        run = []
        joints = set()


_MOST_SHOWN = 3
_LEAST_NEAR = 0.4  # share of the weight of a question's words
_LEADS_ON = ("?", "?**", ":")  # ends of sentences to which the next sentence belongs
_ABOVE = 0.5  # weight of a word that only the headings above a sentence contain


def nearest_sentences(question: str, passages: Sequence[ReadPassage]) -> list[Sentence]:
    """Return the sentences with most of the question's words, best first; [] if no sentence has enough.

    A word that occurs in few of the passages counts for more than one that occurs in all. A sentence that is itself a
    question or ends in a colon is followed by the next sentence.
    """
    weights = rarity(stem_set(question), passages)
    needed = _LEAST_NEAR * sum(weights.values())
    near: list[tuple[float, Sentence]] = []
    for passage in passages:
        for sentence in passage.sentences:
            held = 0.0
            for word, weight in weights.items():
                if word in sentence.stems:
                    held += weight
                elif word in passage.title_stems:
                    held += weight * _ABOVE
            if held >= needed and not sentence.stems.isdisjoint(weights):
                near.append((held, sentence))
    near.sort(key=lambda one: one[0], reverse=True)
    shown: list[Sentence] = []
    for _, sentence in near[:_MOST_SHOWN]:
        shown.append(sentence)
        following = sentence.following
        if following is not None and sentence.text.endswith(_LEADS_ON):
            shown.append(following)
    return shown

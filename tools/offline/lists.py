"""A name of a list is answered with all of its names: "founded by Ann Ray, Bo Lind and Cy Falk"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ras_agent.text.names import is_name, name_spans
from ras_agent.tools.offline.reading import Sentence

_ASKS_FOR_NAMES = re.compile(
    r"\W*(?:who|whom|(?:which|what) (?!does|is|was|has)(?:people|\w{3,}(?<!s)s)) ", re.IGNORECASE
)
_NOTE = r"\s\([^()\n]{0,60}\)"
# what stands between two names of a list, behind a note on the first ("Ann Ray (chair), Bo Lind")
_BETWEEN = re.compile(
    rf"(?:{_NOTE})?(?:(?P<comma>,\s)|(?P<last>,?\sand\s(?:by\s)?(?:the\s[a-z]{{1,20}}\s)?)"
    r"|(?P<bullet>[ \t]{0,3}\n[ \t]{0,8}[-*•][ \t]{1,3}))"
)
_NOTES, _BULLETS = re.compile(_NOTE), re.compile(r"[ \t]{0,3}\n[ \t]{0,8}[-*•][ \t]{1,3}")
_REACH = 1000  # characters before and behind an answer in which its list is looked for
_LONGEST = 80  # characters between two names of a list


def all_of_list(question: str, answer: str, sentence: Sentence) -> tuple[str, tuple[Sentence, ...]]:
    """Return the whole list that an answer is a name of, and its sentences; the answer itself where it is of none.

    A list is what commas, "and" or bullets join. It is the answer to who, and to which or what of several.
    """
    at = sentence.text.find(answer)
    if at < 0 or not is_name(answer) or not _ASKS_FOR_NAMES.match(question):
        return answer, (sentence,)
    start, end = sentence.start + at, sentence.start + at + len(answer)
    text, passage = sentence.passage.text, sentence.passage
    first = max(0, start - _REACH)
    for list_start, list_end in _lists(text[first : end + _REACH]):
        if first + list_start <= start and end <= first + list_end:
            told = _NOTES.sub("", _BULLETS.sub(", ", text[first + list_start : first + list_end]))
            held = [
                one
                for one in passage.sentences
                if one.start < first + list_end and first + list_start < one.start + len(one.text)
            ]
            return " ".join(told.split()), tuple(held)
    return answer, (sentence,)


def _lists(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of lists of names, left to right."""
    run: list[tuple[int, int]] = []
    joints: set[str] = set()
    for span, following in pairwise([*name_spans(text), (len(text), len(text))]):
        run.append(span)
        gap = text[span[1] : following[0]]
        joint = _BETWEEN.fullmatch(gap) if len(gap) <= _LONGEST else None
        if joint and following[0] < len(text):
            joints.add(joint.lastgroup or "")
            continue
        # two names and a comma alone are a town and its country, or a name and what follows
        if len(run) > 2 or joints & {"last", "bullet"}:
            yield run[0][0], span[1]
        run, joints = [], set()

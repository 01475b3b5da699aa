"""A name of a list is answered with all of its names: "founded by Ann Ray, Bo Lind and Cy Falk"."""

from __future__ import annotations

import re

from ras_agent.text.names import is_name
from ras_agent.tools.offline.reading import Sentence

_ASKS_FOR_NAMES = re.compile(
    r"\W*(?:who|whom|(?:which|what) (?!does|is|was|has)(?:people|\w{3,}(?<!s)s)) ", re.IGNORECASE
)
_WORD = r"[A-Z](?:\.|[\w'’-]*+)"
# no name begins inside a word or has more words than nine, so that a text is read in linear time
_NAME = rf"(?:the\s[a-z]{{1,20}}\s)?(?<!\w){_WORD}(?:\s(?:(?:de|van|von|der|den|la|le)\s){{0,2}}{_WORD}){{0,8}}+"
_NAME += r"(?:\s\([^()\n]{0,60}+\))?+"
_LAST = rf"(?:,?\sand\s(?:by\s)?{_NAME})"
_BULLETED = rf"(?:[ \t]{{0,3}}\n[ \t]{{0,8}}[-*•][ \t]{{1,3}}{_NAME})"
# two names and a comma alone are a town and its country, or a name and what follows
_LIST = re.compile(rf"{_NAME}(?:(?:,\s{_NAME}){{0,40}}{_LAST}{{1,2}}|(?:,\s{_NAME}){{2,40}}|{_BULLETED}{{1,40}})")
_NOTE = re.compile(r"\s\([^()]{0,60}\)")
_BULLET = re.compile(r"[ \t]{0,3}\n[ \t]{0,8}[-*•][ \t]{1,3}")
_REACH = 1000  # characters before and behind an answer in which its list is looked for


def all_of_list(question: str, answer: str, sentence: Sentence) -> tuple[str, tuple[Sentence, ...]]:
    """Return the whole list that an answer is a name of, and its sentences; the answer itself where it is of none.

    A list is what commas, "and" or bullets join. It is the answer to who, and to which or what of several.
    """
    at = sentence.text.find(answer)
    if at < 0 or not is_name(answer) or not _ASKS_FOR_NAMES.match(question):
        return answer, (sentence,)
    start, end = sentence.start + at, sentence.start + at + len(answer)
    text = sentence.passage.text
    for match in _LIST.finditer(text, max(0, start - _REACH), end + _REACH):
        if match.start() <= start and end <= match.end():
            listed = _NOTE.sub("", _BULLET.sub(", ", match.group())).rstrip(".")
            held = [
                one
                for one in sentence.passage.sentences
                if one.start < match.end() and match.start() < one.start + len(one.text)
            ]
            return " ".join(listed.split()), tuple(held)
    return answer, (sentence,)

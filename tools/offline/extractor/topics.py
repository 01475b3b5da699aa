"""Finds the topic of a passage, to which its pronouns, its short names and phrases such as "the film" refer.

It also reads the facts in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ras_agent.text.names import JOINTS, name_spans
from ras_agent.text.titles import bare_title
from ras_agent.text.words import fold, word_set
from ras_agent.tools.offline import english
from ras_agent.tools.offline.extractor.words import DATE

_WORD = re.compile(r"\w+")
_DEFINED = re.compile(
    r"(?:The\s+)?(?P<name>[\"“]?[^\W_].{0,90}?)"
    r"(?=\s{2,}|,(?!\s(?:Inc|Ltd|Jr|Sr|LLC|Co)\b)|\s(?:is|was|are|were|has|had|refers|who|also|formerly)\s)(?P<rest>.*)",
    re.DOTALL,
)
HONORIFICS = word_set(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess president saint pope mayor captain"
    " inspector sergeant judge councillor cllr rev reverend"
)
"""Titles of respect before a person's name."""
ROLES = english.words("answers")["person"]
"""Nouns for persons."""
_PERSON = re.compile(r"\b(?:he|she|his|her|born)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """Holds the topic of a passage."""

    label: str
    """The entity's name; "" for an untitled passage."""
    words: tuple[str, ...]
    """The folded words in the first part of its name."""
    person: bool
    """Whether the passage is about a person."""
    aliases: frozenset[tuple[str, ...]] = frozenset()
    """Its other names in the passage, as folded words."""

    def same(self, name: str) -> bool:
        """Return whether `name` is a name of the topic, the last part of one ("Hetfield"), or a person's first name."""
        words = _words(name)
        if not words or words == self.words or words in self.aliases:
            return words != ()
        if not JOINTS.isdisjoint(self.words) or words[0].isdigit():
            return False  # "Guam" is not the battle of Guam
        size = len(words)
        return words == self.words[-size:] or (
            self.person and words == self.words[:size]
        )

    def resolved(self, name: str) -> str:
        """Return the topic's label for a name of the topic; return any other name unchanged."""
        if self.same(name):
            return self.label
        return name

    def called(self, name: str) -> Topic:
        """Return the topic with one more name."""
        aliases = self.aliases | {_words(name)}
        return replace(self, aliases=aliases)


def topic_of(title: str, text: str) -> Topic:
    """Return the topic of a passage, named as in its text: "Leeds, Alabama" is kept only if the text has it in full."""
    label = bare_title(title)
    first = label.split(", ")[0]
    if label not in text and first in text:
        label = first
    return Topic(label, _words(first), _PERSON.search(text) is not None)


def defined_name(sentence: str, topic: Topic) -> int:
    """Return where the name at the beginning of a passage's first sentence ends; 0 if it is not a fuller name of the
    topic.

    "Ulf Dietrich Merbold is a German physicist", "Onika Tanya Maraj, known as Nicki Minaj, is a rapper".
    """
    found = _DEFINED.match(sentence)
    if found is None or not topic.words:
        return 0
    name = found["name"].rstrip(" ,")
    for word in _WORD.findall(name):
        is_written_as_name = word[0].isupper() or word[0].isdigit()
        if not is_written_as_name and word.lower() not in JOINTS:
            return 0
    own = set(topic.words)
    words = set(_words(name))
    is_renamed = topic.person and (
        not own.isdisjoint(words) or topic.label in found["rest"]
    )
    if not own <= words and not is_renamed:
        return 0
    return found.start("name") + len(name)


def _words(name: str) -> tuple[str, ...]:
    """Return folded words without a title of respect at the beginning: "Lord Petre" is "Petre"."""
    words = tuple(_WORD.findall(fold(name)))
    if len(words) > 1 and words[0] in HONORIFICS:
        return words[1:]
    return words


ALIAS = "is also known as"
"""The predicate between an entity and another of its names."""
LINKED = "is linked to"
"""The predicate between two things that a text names together without stating their relation."""

_BRACKETS = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)|[\[{]([^\[\]{}]*)[\]}]")
_LIFE = re.compile(
    rf"(?P<birth>{DATE})\s*(?:[^()–;]{{0,40}}?)[–-]\s*(?:[^()–;\d]{{0,30}}?)(?P<death>{DATE})$"
)
_YEARS = re.compile(r"(?:c\. ?)?(?P<birth>\d{4})\s?[–-]\s?(?P<death>\d{4})$")
_YEAR = re.compile(r"(?:1\d{3}|20\d{2})(?:\s?[–-]\s?(?:\d{2,4}|present))?$")
_EVENT = re.compile(
    rf"\b(?P<what>born|died|founded|established|released)\s*(?:on |in |c\. )?(?P<when>{DATE})"
)
_ALIAS = re.compile(
    r"\b(?:also|formerly|previously|commonly|better|often|originally|or|aka|a\.k\.a\.|nicknamed|abbreviated|known)"
    r"(?: known| called| named)?(?: as)? (?P<name>[^,;]{1,80})"
)
_SHORTEST_LIFE = 15


def without_asides(sentence: str) -> tuple[str, list[tuple[int, str]]]:
    """Return the sentence without brackets, and the text in each round bracket with the offset of the bracket.

    Brackets are replaced by spaces, so that offsets stay valid.
    """
    asides = [
        (match.start(), match[1]) for match in _BRACKETS.finditer(sentence) if match[1]
    ]
    return _BRACKETS.sub(lambda match: " " * len(match.group()), sentence), asides


def facts_in(
    aside: str, subject: str, person: bool = True
) -> Iterator[tuple[str, str, str]]:
    """Yield the facts in a bracket after `subject`: dates of life, a year, other names, names.

    Args:
        person: whether `subject` is known to be a person; two dates that are far apart count as dates of life in
            any case.
    """
    text = aside.strip(" ;,\"“”'")
    for predicate, object_ in _said_in(text, person):
        is_unequal = predicate == "is" and not _may_be(subject, object_)
        yield subject, LINKED if is_unequal else predicate, object_


def _may_be(subject: str, name: str) -> bool:
    """Return whether a name in brackets may be that of the words before it: "clerk (Ms Ellery)", not "load test
    (Ann)"."""
    is_role = subject.split()[-1].lower() in ROLES
    is_titled = name.split()[0].lower().rstrip(".") in HONORIFICS
    return not subject.islower() or is_role or is_titled


def _said_in(text: str, person: bool) -> Iterator[tuple[str, str]]:
    life = _LIFE.search(text) or _YEARS.match(text)
    if life:
        is_of_somebody = person or _is_long(life["birth"], life["death"])
        yield "was born on" if is_of_somebody else "began on", life["birth"]
        yield "died on" if is_of_somebody else "ended on", life["death"]
        return
    if _YEAR.match(text):
        yield "is dated", text
        return
    has_fact = False
    for event in _EVENT.finditer(text):
        has_fact = True
        verb = "died" if event["what"] == "died" else f"was {event['what']}"
        yield f"{verb} on", event["when"]
    for alias in _ALIAS.finditer(text):
        has_fact = True
        yield ALIAS, alias["name"].strip(" \"“”'")
    if text.isupper() and text.isalpha():
        has_fact = True
        yield ALIAS, text
    if has_fact:
        return
    for start, end in name_spans(text):
        words_before = text[:start].replace(",", " ").split()
        yield " ".join(words_before[-4:]) or "is", text[start:end]


def _is_long(birth: str, death: str) -> bool:
    """Return whether two dates are as far apart as those of a life."""
    first = re.search(r"\d{4}", birth)
    last = re.search(r"\d{4}", death)
    if first is None or last is None:
        return False
    return int(last[0]) - int(first[0]) >= _SHORTEST_LIFE

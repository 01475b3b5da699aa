"""What a passage is about: the entity that its pronouns, its short names and "the film" stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ras_agent.text.names import JOINTS, name_spans
from ras_agent.text.titles import bare_title
from ras_agent.text.words import MONTHS, fold, word_set
from ras_agent.tools.offline.extractor.tokens import DATE

_WORD = re.compile(r"\w+")
_DEFINED = re.compile(
    r"(?:The\s+)?(?P<name>[\"“]?[^\W_].{0,90}?)"
    r"(?=\s{2,}|,(?!\s(?:Inc|Ltd|Jr|Sr|LLC|Co)\b)|\s(?:is|was|are|were|has|had|refers|who|also|formerly)\s)(?P<rest>.*)",
    re.DOTALL,
)
_HONORIFICS = word_set(
    """mr mrs ms miss dr prof professor sir dame lord lady king queen prince princess president senator judge general
    colonel captain major admiral lieutenant sergeant field marshal reverend rev father brother sister saint st pope
    bishop emperor empress sheikh count countess duke duchess baron baroness"""
)
_LONGEST_NAME = 14
_PERSON = re.compile(r"\b(?:he|she|his|her|born)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """label: the entity's name, "" for an untitled passage. words: the folded words of its name's first part.

    person: whether the passage speaks of somebody. aliases: folded other names that the passage gives it.
    """

    label: str
    words: tuple[str, ...]
    person: bool
    aliases: frozenset[tuple[str, ...]] = frozenset()

    def same(self, name: str) -> bool:
        """Return whether `name` is a name of the topic or its last part ("Hetfield"), or a person's first name."""
        words = _words(name)
        if not words or not self.words:
            return False
        if words == self.words or words in self.aliases:
            return True
        if not JOINTS.isdisjoint(self.words) or words[0].isdigit():
            return False  # "Guam" is not the battle of Guam
        size = len(words)
        return words == self.words[-size:] or (self.person and words == self.words[:size])

    def resolved(self, name: str) -> str:
        """Return the topic's label for a name of the topic, any other name as it is."""
        return self.label if self.same(name) else name

    def called(self, name: str) -> Topic:
        """Return the topic with one more name."""
        return replace(self, aliases=self.aliases | {_words(name)})


def topic_of(title: str, text: str) -> Topic:
    """Return the topic of a passage, named as its text names it.

    "Leeds, Alabama" whole only where the text has it so.
    """
    label = bare_title(title)
    first = label.split(", ")[0]
    if first != label and label not in text and first in text:
        label = first
    return Topic(label, _words(first), _PERSON.search(text) is not None)


def defined_name(sentence: str, topic: Topic) -> int:
    """Return where the name ends that a passage's first sentence begins with, if it names the topic more fully.

    0 if not.

    "Ulf Dietrich Merbold is a German physicist", "Onika Tanya Maraj, known as Nicki Minaj, is a rapper".
    """
    found = _DEFINED.match(sentence)
    if found is None or not topic.words:
        return 0
    name = found["name"].rstrip(" ,")
    words = _words(name)
    if len(words) > _LONGEST_NAME or not all(_of_a_name(word) for word in name.split()):
        return 0
    fuller = set(topic.words) <= set(words)
    renamed = topic.person and (not set(topic.words).isdisjoint(words) or topic.label in found["rest"])
    return found.start("name") + len(name) if fuller or renamed else 0


def _of_a_name(word: str) -> bool:
    bare = word.strip("\"“”'‘’:.,-–&")
    return not bare or bare[0].isupper() or bare[0].isdigit() or bare.lower() in JOINTS


def _words(name: str) -> tuple[str, ...]:
    """Return folded words without a title of respect in front: "Lord Petre" is "Petre"."""
    words = tuple(_WORD.findall(fold(name)))
    while len(words) > 1 and words[0] in _HONORIFICS:
        words = words[1:]
    return words


ALIAS = "is also known as"
"""The predicate between an entity and another name of it."""

_BRACKETS = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)|[\[{]([^\[\]{}]*)[\]}]")
_LIFE = re.compile(rf"(?P<birth>{DATE})\s*(?:[^()–;]{{0,40}}?)[–-]\s*(?:[^()–;\d]{{0,30}}?)(?P<death>{DATE})$")
_LIFE_YEARS = re.compile(r"(?:c\. ?)?(?P<birth>\d{4})\s?[–-]\s?(?P<death>\d{4})$")
_BORN = re.compile(rf"\b(?P<what>born|died|founded|established|released|b\.|d\.)\s*(?:on |in |c\. )?(?P<when>{DATE})")
_BORN_AS = re.compile(r"\bborn (?P<name>[^\d;,]{3,60})")
_STARTS_WITH_DATE = re.compile(rf"(?:{DATE}|{'|'.join(month.capitalize() for month in MONTHS)})")
_PLACE = re.compile(r"\b(?P<what>born|died)\b[^;]*?\b(?:in|at) (?P<place>[A-Z][^;]*)")
_ALIAS = re.compile(
    r"(?:\balso|\bformerly|\bpreviously|\bcommonly|\bbetter|\boften|\boriginally|\bnow|\bor|\baka|\ba\.k\.a\.|\bnicknamed"
    r"|\babbreviated|\bshortened to|\bstylized|\bstylised|\btypeset|\bknown)(?: known| called| named| styled)?"
    r"(?: locally| simply)?(?: as| to)? (?P<name>[^,;]{1,80})"
)
_YEAR = re.compile(r"(?:1\d{3}|20\d{2})(?:\s?[–-]\s?(?:\d{2,4}|present))?$")
_MEASURE = re.compile(r"[~$€£]?\d[\d.,]*\s?\S{1,12}(?:\s\S{1,12})?$")
_SHORTEST_LIFE = 15
_VERBS = {"born": "was born on", "b.": "was born on", "died": "died on", "d.": "died on"}


@dataclass(frozen=True, slots=True)
class Aside:
    """Bracketed text; `start` is where its bracket opens in the sentence."""

    start: int
    text: str


def without_asides(sentence: str) -> tuple[str, list[Aside]]:
    """Return the sentence with blanks for its bracketed parts, so that offsets stay, and those in round brackets."""
    asides = [Aside(match.start(), match[1]) for match in _BRACKETS.finditer(sentence) if match[1]]
    return _BRACKETS.sub(lambda match: " " * len(match.group()), sentence), asides


def facts_in(aside: str, subject: str, person: bool = True) -> Iterator[tuple[str, str, str]]:
    """Yield facts about `subject`, which the bracket follows: dates of life, other names, a year, a measure, roles.

    person: whether it is known to be somebody; two dates far apart are a life in any case.
    """
    text = aside.strip(" ;,\"“”'")
    life = _LIFE.search(text) or _LIFE_YEARS.match(text)
    if life:
        alive = person or _years(life["birth"], life["death"]) >= _SHORTEST_LIFE
        yield subject, "was born on" if alive else "began on", life["birth"]
        yield subject, "died on" if alive else "ended on", life["death"]
        return
    if _YEAR.match(text):
        yield subject, "is dated", text
        return
    if _MEASURE.match(text):
        yield subject, "measures", text
        return
    read = False
    for match in _BORN.finditer(text):
        yield subject, _VERBS.get(match["what"], f"was {match['what']} in"), match["when"]
        read = True
    for match in _PLACE.finditer(text):
        yield subject, f"{'was born' if match['what'] == 'born' else 'died'} in", match["place"].strip()
        read = True
    born_as = _BORN_AS.search(text)
    if born_as and born_as["name"][0].isupper() and not _STARTS_WITH_DATE.match(born_as["name"]):
        yield subject, "was born as", born_as["name"].strip()
        read = True
    for match in _ALIAS.finditer(text):
        yield subject, ALIAS, match["name"].strip(" \"“”'")
        read = True
    if read:
        return
    if text.isupper() and " " not in text and text.isalpha():
        yield subject, ALIAS, text
        return
    for part in re.split(r"[,;]\s*", text):
        words = part.split()
        if 0 < len(words) <= 5 and words[-1] not in ("born", "died") and part[0].isalpha() and part.isascii():
            yield subject, "is", part.strip(" \"“”'")
        else:
            for start, end in name_spans(part):
                yield subject, " ".join(part[:start].split()[-4:]) or "is", part[start:end]


def _years(start: str, end: str) -> int:
    """Return the years between two dates; 0 where one of them has no year."""
    first, last = re.search(r"\d{4}", start), re.search(r"\d{4}", end)
    return int(last[0]) - int(first[0]) if first and last else 0

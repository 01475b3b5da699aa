"""What a passage is about: the entity that its pronouns, its short names and "the film" stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ras_agent.text.names import JOINTS
from ras_agent.text.titles import bare_title
from ras_agent.text.words import fold, word_set

__all__ = ["Topic", "defined_name", "topic_of"]

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
        """Whether `name` is a name of the topic or its last part ("Hetfield"), or a person's first name."""
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
        """The topic's label for a name of the topic, any other name as it is."""
        return self.label if self.same(name) else name

    def called(self, name: str) -> Topic:
        """The topic with one more name."""
        return replace(self, aliases=self.aliases | {_words(name)})


def topic_of(title: str, text: str) -> Topic:
    """The topic of a passage, named as its text names it: "Leeds, Alabama" whole only where the text has it so."""
    label = bare_title(title)
    first = label.split(", ")[0]
    if first != label and label not in text and first in text:
        label = first
    return Topic(label, _words(first), _PERSON.search(text) is not None)


def defined_name(sentence: str, topic: Topic) -> int:
    """Where the name ends that a passage's first sentence begins with, if it names the topic more fully; 0 if not.

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
    """Folded words without a title of respect in front: "Lord Petre" is "Petre"."""
    words = tuple(_WORD.findall(fold(name)))
    while len(words) > 1 and words[0] in _HONORIFICS:
        words = words[1:]
    return words

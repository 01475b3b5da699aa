"""Whose clause is being read, and which of its words lead to the next object."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Frame"]

_LONGEST_PREDICATE = 10


@dataclass(slots=True)
class Frame:
    """Whose clause it is, and what its predicates are made of.

    prefix: words between the subject and its verb ("population"). direct: the verb's object. near: the last phrase
    after a preposition, with it, where that is a common noun. until_comma: the clause ends at the next comma.
    """

    subject: str
    prefix: list[str] = field(default_factory=list)
    verb: str = ""
    direct: str = ""
    near: str = ""
    copula: bool = False
    until_comma: bool = False

    def predicate(self, preposition: str, *, near: bool = True) -> str:
        """The words that lead to an object; the longest lose words in the middle, where they say least."""
        parts = [*self.prefix, self.verb, self.direct, self.near if near else "", preposition]
        words = " ".join(parts).split()
        if len(words) > _LONGEST_PREDICATE:
            head = " ".join([*self.prefix[-1:], self.verb]).split()[:4]
            words = head + words[len(head) - _LONGEST_PREDICATE :]
        return " ".join(words)

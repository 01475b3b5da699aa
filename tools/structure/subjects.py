"""Who or what a clause is about: its subject, found by the verb that follows it and told apart from what stands before.

"In 1999, his wife Ann, a nurse from Leeds, moved": between the introduction and the apposition stands the subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.tools.structure.objects import Fact
from ras_agent.tools.structure.phrases import Chunk, NounPhrase
from ras_agent.tools.structure.topics import Topic

__all__ = ["Subject", "subject_of"]

_GENERIC = frozenset({"the", "this", "that", "these"})
_TOPICAL = frozenset({"his", "her", "its", "their"})
_LONGEST_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Subject:
    """label: the node. prefix: words of the subject that lead to its objects. also: further subjects after "and".

    Chunks `first` up to `last` are the subject, `verb` its verb; between `last` and `verb` stand appositions. facts:
    what the subject's own words tell ("his wife Ann").
    """

    label: str
    prefix: tuple[str, ...]
    first: int
    last: int
    verb: int
    also: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


def subject_of(chunks: Sequence[Chunk], start: int, topic: Topic) -> Subject | None:
    """The subject of the clause that begins at chunk `start`; None if no verb heads it."""
    places = range(start + 1, len(chunks))
    verb = next((at for at in places if _heads(chunks, at, start)), None)
    if verb is None:
        verb = next((at for at in places if _resumes(chunks, at)), None)
    if verb is None:
        return None
    segments = _segments(chunks, start, verb)
    nominal = [segment for segment in segments if chunks[segment[0]].np is not None]
    if not nominal:
        return None
    first, last = _chosen(chunks, segments, nominal)
    return _read(chunks, first, last, verb, topic)


def _heads(chunks: Sequence[Chunk], at: int, start: int) -> bool:
    """Whether a chunk is the verb of the main clause: finite, outside relative clauses, no participle of a noun."""
    group = chunks[at].vg
    if group is None or not group.finite:
        return False
    for back in range(at - 1, start - 1, -1):  # "which | the band | released"
        if chunks[back].kind == "rel":
            return False
        if chunks[back].vg is not None or chunks[back].text == ",":
            break
    if not group.bare:
        return True
    after = chunks[at + 1].text if at + 1 < len(chunks) else ""
    return chunks[at - 1].kind == "np" and after not in ("by", "as")


def _resumes(chunks: Sequence[Chunk], at: int) -> bool:
    """Whether a past form after a comma goes on with a clause: "Bo Day, a lawyer, | married | Ann Lee"."""
    group, after = chunks[at].vg, chunks[at + 1].np if at + 1 < len(chunks) else None
    past = group is not None and group.finite and group.bare
    return past and chunks[at - 1].text == "," and after is not None and after.tag != "date"


def _segments(chunks: Sequence[Chunk], start: int, verb: int) -> list[tuple[int, int]]:
    """The stretches between the commas before the verb."""
    segments, first = [], start
    for at in range(start, verb + 1):
        if at == verb or chunks[at].text == ",":
            if at > first:
                segments.append((first, at))
            first = at + 1
        elif at > first and chunks[at].kind == chunks[at - 1].kind == "np" and chunks[first].kind != "np":
            segments.append((first, at))  # "As a boy | he": two phrases side by side
            first = at
    return segments


def _chosen(
    chunks: Sequence[Chunk], segments: list[tuple[int, int]], nominal: list[tuple[int, int]]
) -> tuple[int, int]:
    """The stretch that is the subject: a pronoun; the first one, or after an introduction the last with an article."""
    phrases = [(segment, phrase) for segment in nominal if (phrase := chunks[segment[0]].np) is not None]
    for segment, phrase in phrases:
        if phrase.tag == "pronoun" and segment != nominal[0]:
            return segment
    opening = phrases[0][1]
    timing = opening.tag == "date" or opening.text[:1].isdigit() or (opening.opener == "" and opening.tag == "number")
    introduced = segments[0] != nominal[0] or (timing and len(nominal) > 1)
    if introduced:
        later = phrases[1:] if timing and len(phrases) > 1 and segments[0] == nominal[0] else phrases
        return next((one for one, phrase in reversed(later) if phrase.opener not in ("a", "an")), later[-1][0])
    last, closing = phrases[-1]
    if len(phrases) == 2 and last[1] - last[0] == 1 and closing.text == closing.name and not opening.name:
        return last  # "Its singer, Ann Lee, was": the name is the subject
    return nominal[0]


def _read(chunks: Sequence[Chunk], first: int, last: int, verb: int, topic: Topic) -> Subject:
    phrase = chunks[first].np
    assert phrase is not None
    label, prefix, facts = _label(phrase, topic)
    also: list[str] = []
    words: list[str] = []
    joined = False
    for at in range(first + 1, last):
        chunk = chunks[at]
        if chunk.kind == "conj":
            joined = True
        elif chunk.np is not None and joined and chunk.np.name:
            also.append(topic.label if topic.same(chunk.np.name) else chunk.np.name)
            if chunk.np.description:
                facts.append((also[-1], "is", chunk.np.description))
        elif chunk.kind != "mark" and not joined:
            words.append(chunk.text)
    of = next((chunks[at].np for at in range(first + 1, last) if chunks[at].np is not None), None)
    if of is not None and of.name and chunks[first + 1].text == "of" and not phrase.name and phrase.tag == "noun":
        label = topic.label if topic.same(of.name) else of.name
        prefix, words = [phrase.text], [f"of {of.description}".strip(), *words[2:]]
    elif of is not None and of.name and label == topic.label and not joined:
        lead = " ".join([*prefix, *(word for word in words if word != of.text)])
        facts.append((label, lead, of.name))
    before = [chunks[at].np for at in range(first) if chunks[at].text != ","]
    if first >= 2 and chunks[first - 1].text == "," and (described := before[-1] if before else None):
        if not described.name and described.tag == "noun" and phrase.name and described.opener in _TOPICAL:
            facts.append((topic.label, described.text, label))
        elif not described.name and described.tag == "noun" and phrase.name and first == 2:
            facts.append((label, "is", described.text))
    leading = " ".join([*prefix, *words]).split()[:_LONGEST_PREFIX]
    return Subject(label, (" ".join(leading),) if leading else (), first, last, verb, tuple(also), tuple(facts))


def _label(phrase: NounPhrase, topic: Topic) -> tuple[str, list[str], list[Fact]]:
    """The node that a subject's first phrase names, the words it leaves for the predicate, and its own facts."""
    own = topic.label or phrase.text
    if phrase.tag == "pronoun":
        return own, [phrase.text.lower()] if phrase.text.lower() == "there" else [], []
    if phrase.owner:
        common = phrase.owner.islower()
        owner = own if common or topic.same(phrase.owner) else phrase.owner
        if phrase.name and phrase.description:
            return phrase.name, [], [(owner, phrase.description, phrase.name)]
        if phrase.name:
            return phrase.text, [], []
        return owner, [phrase.description], []
    if phrase.opener in _TOPICAL and topic.label:
        if phrase.name and phrase.description:
            return phrase.name, [], [(own, phrase.description, phrase.name)]
        return own, [phrase.text], []
    if topic.same(phrase.text):
        return own, [], []
    if phrase.name:
        name = own if topic.same(phrase.name) else phrase.name
        return name, [], [(name, "is", phrase.description)] if phrase.description else []
    if not topic.label or phrase.inner:
        return phrase.text, [], []
    generic = phrase.opener in _GENERIC and phrase.words == 1
    return own, [] if generic else [phrase.text], []

"""From tagged tokens to chunks: noun phrases, verb groups, and the small words between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ras_agent.tools.offline.extractor.noun_phrases import NounPhrase, noun_phrase, noun_phrase_end
from ras_agent.tools.offline.extractor.tokens import Tag, Token

__all__ = ["Chunk", "ChunkKind", "VerbGroup", "chunked"]

ChunkKind = Literal["np", "vg", "prep", "conj", "sub", "rel", "mark"]

_AUXILIARY: frozenset[Tag] = frozenset({"be", "have", "do", "modal"})
_MAIN: frozenset[Tag] = frozenset({"verb", "participle", "gerund"})
_DASHES = frozenset("–—-")


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb with its auxiliaries, adverbs and infinitives.

    finite: it can head a clause. copula: a form of "be" alone. bare: one participle or gerund without auxiliary.
    """

    text: str
    finite: bool
    copula: bool
    bare: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a sentence: characters `start` to `end`."""

    kind: ChunkKind
    text: str
    start: int
    end: int
    np: NounPhrase | None = None
    vg: VerbGroup | None = None


def chunked(tokens: list[Token], sentence: str) -> list[Chunk]:
    """The chunks of a sentence, in order; adverbs outside verb groups and noun phrases are left out."""
    chunks: list[Chunk] = []
    at = 0
    while at < len(tokens):
        end = noun_phrase_end(tokens, at)
        if end > at:
            phrase = noun_phrase(tokens[at:end], sentence)
            chunks.append(Chunk("np", phrase.text, tokens[at].start, tokens[end - 1].end, np=phrase))
            at = end
            continue
        end = _verb_group_end(tokens, at)
        if end > at:
            chunks.append(_verb_group(tokens[at:end], sentence))
            at = end
            continue
        token = tokens[at]
        if token.tag in ("prep", "to"):
            chunks.append(Chunk("prep", token.low, token.start, token.end))
        elif token.tag in ("conj", "sub", "rel", "mark"):
            low = "," if token.text in _DASHES else token.low
            chunks.append(Chunk(token.tag, low, token.start, token.end))
        elif token.tag == "'s":
            chunks.append(Chunk("mark", ",", token.start, token.end))
        at += 1
    return chunks


def _verb_group_end(tokens: list[Token], start: int) -> int:
    """Where the verb group at `start` ends; `start` if there is none."""
    at, main = start, False
    while at < len(tokens):
        tag = tokens[at].tag
        following = tokens[at + 1].tag if at + 1 < len(tokens) else "mark"
        if tag in _AUXILIARY:
            if main:
                break
        elif tag in _MAIN:
            if main:
                break
            main = True
        elif tag == "to":
            if following not in _AUXILIARY | {"verb"}:
                break
            main = False
        elif tag != "adverb" or not (following in _MAIN | _AUXILIARY or (following == "to" and main)):
            break
        at += 1
    while at > start and tokens[at - 1].tag in ("adverb", "to"):
        at -= 1
    return at


def _verb_group(tokens: list[Token], sentence: str) -> Chunk:
    start, end = tokens[0].start, tokens[-1].end
    verbs = [token for token in tokens if token.tag != "adverb"]
    bare = len(verbs) == 1 and verbs[0].tag in ("participle", "gerund")
    finite = verbs[0].tag in _AUXILIARY | {"verb"} or (bare and verbs[0].tag == "participle")
    if verbs[0].low in ("being", "having", "been", "be"):
        finite = False
    copula = all(token.tag == "be" for token in verbs)
    text = " ".join(sentence[start:end].split())
    return Chunk("vg", text, start, end, vg=VerbGroup(text, finite, copula, bare))

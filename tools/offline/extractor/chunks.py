"""From tagged tokens to chunks: noun phrases, verb groups, and the small words between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ras_agent.tools.offline.extractor import lexicon
from ras_agent.tools.offline.extractor.tokens import Tag, Token

ChunkKind = Literal["np", "vg", "prep", "conj", "sub", "rel", "mark"]

_AUXILIARY: frozenset[Tag] = frozenset({"be", "have", "do", "modal"})
_MAIN: frozenset[Tag] = frozenset({"verb", "participle", "gerund"})
_DASHES = frozenset("–—-")


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """Holds a verb with its auxiliaries, adverbs and infinitives.

    finite: it can head a clause. copula: a form of "be" alone. bare: one participle or gerund without auxiliary.
    """

    text: str
    finite: bool
    copula: bool
    bare: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """Holds a piece of a sentence: characters `start` to `end`."""

    kind: ChunkKind
    text: str
    start: int
    end: int
    np: NounPhrase | None = None
    vg: VerbGroup | None = None


def chunked(tokens: list[Token], sentence: str) -> list[Chunk]:
    """Return the chunks of a sentence, in order; adverbs outside verb groups and noun phrases are left out."""
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
    """Return where the verb group at `start` ends; `start` if there is none."""
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


_NOMINAL: frozenset[Tag] = frozenset({"noun", "name", "title", "date", "number"})
_VERBAL: frozenset[Tag] = frozenset({"participle", "gerund"})
_OPENERS: frozenset[Tag] = frozenset({"det", "poss"})
_NAMES: frozenset[Tag] = frozenset({"name", "title"})
_ADJECTIVE = re.compile(r"(?:al|ive|ous|ic|ent|ant|ary|ful|less|able|ible|ish|ese|ian|an|est|er|ern|th|st|nd|rd)$")
# nouns that describe as adjectives do: "a film and television director"
_MEDIA = frozenset({"film", "television", "tv", "stage", "radio", "theatre", "theater", "music", "video", "opera"})
_DATED = frozenset({"in", "since", "until", "by", "from", "during", "around", "circa", "to", "till"})


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Holds a noun phrase in its parts, all as written: "the band's" + "American" "singer" + "Ann Lee".

    text: all of it without the article. name: the name or title it ends in. description: what is before that name.
    owner: what is before "'s". inner: a name that it begins with or holds. opener: the folded article, possessive
    or determiner; empty without one.
    """

    text: str
    opener: str
    owner: str
    description: str
    name: str
    inner: tuple[str, ...]
    tag: Tag

    @property
    def words(self) -> int:
        return len(self.text.split())


def noun_phrase_end(tokens: Sequence[Token], start: int) -> int:
    """Return where the noun phrase at `start` ends; `start` if there is none."""
    first = tokens[start]
    if first.tag == "pronoun" or (first.tag == "date" and start and tokens[start - 1].low in _DATED):
        return start + 1
    end = start
    while end < len(tokens) and _belongs(tokens, end, start):
        end += 1
    if any(token.tag in _NOMINAL for token in tokens[start:end]) or first.tag == "det":
        return end  # an article without a noun, "those who", is a phrase too: it must not open the next one
    return start


def _belongs(tokens: Sequence[Token], at: int, start: int) -> bool:
    """Return whether the token at `at` goes on with the noun phrase that begins at `start`."""
    token = tokens[at]
    before = tokens[at - 1] if at > start else None
    following = tokens[at + 1].tag if at + 1 < len(tokens) else "mark"
    if token.tag in _NOMINAL:
        return True
    if token.tag in _OPENERS:
        return before is None or before.tag in _OPENERS
    if token.tag in _VERBAL:
        return _attributive(tokens, at, start)
    if before is None:
        return False
    if token.tag == "'s":
        return before.tag in _NOMINAL and following in _NOMINAL | _VERBAL | {"adverb"}
    if token.tag == "adverb":
        return before.tag in _OPENERS | {"'s"} and following in _VERBAL | {"noun"}
    if token.tag == "conj":
        return _joins_adjectives(tokens, at)
    return token.text == "," and before.tag == "noun" and _describes(before) and _adjective_then_noun(tokens, at + 1)


def _attributive(tokens: Sequence[Token], at: int, start: int) -> bool:
    """Return if a participle or gerund is before the noun it describes: "an animated film", "pro wrestling show"."""
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if following is None or following.tag not in ("noun", "name", "title", "participle", "gerund"):
        # "the following": a noun of its own after an article
        return bool(at > start and tokens[at - 1].tag in _OPENERS and tokens[at].tag == "gerund")
    if at == start:
        return at > 0 and tokens[at - 1].low == "of" and tokens[at].tag == "gerund" and not _common(tokens[at].low)
    before = tokens[at - 1]
    if before.tag in _OPENERS or before.tag in ("'s", "number", "adverb", "date", "conj"):
        return following.tag != "name" or before.tag != "number"
    if following.tag != "noun":
        return False
    if tokens[at].tag == "gerund" and before.tag == "name" and tokens[start].low in ("a", "an"):
        return all(token.tag != "noun" for token in tokens[start:at])
    return bool(_ADJECTIVE.search(before.low)) and before.tag in ("noun", "name")


def _common(gerund: str) -> bool:
    """Return whether it belongs to one of the commonest verbs: "making" does, "flowering" does not."""
    root = gerund.removesuffix("ing")
    return any(base in lexicon.VERBS for base in (root, root + "e", root[:-1]))


def _joins_adjectives(tokens: Sequence[Token], at: int) -> bool:
    """Return whether "and" is between two adjectives of one noun: "second and final single"."""
    if at + 2 >= len(tokens) or tokens[at].low not in ("and", "or"):
        return False
    before, first = tokens[at - 1], tokens[at + 1]
    if before.low in _MEDIA:
        return first.low in _MEDIA and tokens[at + 2].tag == "noun"
    alone = at < 2 or tokens[at - 2].tag != "noun"  # in "a rock musical and ..." the adjective is a noun
    return alone and before.tag in ("noun", "number") and _describes(before) and _adjective_then_noun(tokens, at + 1)


def _adjective_then_noun(tokens: Sequence[Token], at: int) -> bool:
    return (
        at + 1 < len(tokens)
        and tokens[at].tag in ("noun", "number")
        and _describes(tokens[at])
        and tokens[at + 1].tag == "noun"
    )


def _describes(token: Token) -> bool:
    """Return whether a word looks like an adjective or an ordinal."""
    return token.tag == "number" or _ADJECTIVE.search(token.low) is not None


def noun_phrase(tokens: Sequence[Token], sentence: str) -> NounPhrase:
    """Return the phrase that these tokens of the sentence are."""
    body = list(tokens)
    opener = ""
    while body and body[0].tag in _OPENERS:
        opener = body.pop(0).low
    genitive = max((at for at in range(1, len(body) - 1) if body[at].tag == "'s"), default=None)
    owner, head = ([], body) if genitive is None else (body[:genitive], body[genitive + 1 :])
    at = len(head)
    while at > 0 and head[at - 1].tag in _NAMES:
        at -= 1
    if any(token.tag in _NAMES for token in head) and all(token.tag in _NOMINAL - {"noun"} for token in head):
        at = 0  # "UEFA Euro 1992", "1996 Summer Olympics"
    name, described = _text(head[at:], sentence), _text(head[:at], sentence)
    inner = tuple(token.text for token in head[:at] if token.tag in _NAMES)
    tag: Tag = "pronoun" if not body else "name" if name and at == 0 and len(head) > 1 else body[-1].tag
    return NounPhrase(_text(body, sentence) or opener, opener, _text(owner, sentence), described, name, inner, tag)


def _text(part: Sequence[Token], sentence: str) -> str:
    """Return the text of the tokens; quotation marks round a title stay where other words are next to them."""
    if not part:
        return ""
    start, end = part[0].start, part[-1].end
    if len(part) > 1 and part[0].tag == "title":
        start = max(sentence.rfind('"', 0, start), sentence.rfind("“", 0, start), 0)
    if len(part) > 1 and part[-1].tag == "title":
        end = min(at for at in (sentence.find('"', end), sentence.find("”", end), len(sentence)) if at >= 0) + 1
    return " ".join(sentence[start:end].split())

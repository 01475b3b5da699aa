"""Tags the words of a sentence, each with a letter for its part of speech, and finds phrases by patterns of these
letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.text.names import name_spans
from ras_agent.text.words import MONTHS
from ras_agent.tools.offline import english

_MONTH = "(?:" + "|".join(month.capitalize() for month in MONTHS) + ")"
_YEAR = r"(?:1\d{3}|20\d{2})"
_ORDINAL = r"(?:\d{1,2}(?:st|nd|rd|th)|first|second|third|\w{1,12}th)"
DATE = (
    rf"(?:{_MONTH}\s+\d{{1,2}},?\s+{_YEAR}|\d{{1,2}}\s+{_MONTH},?\s+{_YEAR}|{_MONTH},?\s+{_YEAR}|{_MONTH}\s+\d{{1,2}}"
    rf"|\d{{1,2}}\s+{_MONTH}|(?:(?:early|mid|late)[-\s]+)?(?:the\s+)?(?:{_YEAR}s|{_ORDINAL}[-\s]centur(?:y|ies))"
    rf"|{_YEAR}(?:[–/-]\d{{2,4}})?|\d{{1,4}}\s+(?:AD|BC|BCE|CE))(?!\w)(?![.,]\d)"
)
"""The pattern of a date, a year, a decade or a century."""
_NAMED_AFTER = "|".join(
    word.capitalize() for word in sorted(english.words("things")["named_after"])
)
_FIXED = re.compile(
    rf"\b(?P<D>{DATE})|(?P<G>(?:(?<=s)['’]|['’]s)(?=\s)(?!\s(?:{_NAMED_AFTER})\b))"
    r"|(?P<F>(?<![^\W_])[-−]?\d+(?:\.\d+)?\s?°\s?[CF]\b)"
)
_QUOTED = re.compile(r"[\"“]\s*([^\"“”]{1,90}?)\s*[\"”]")
# matches "Safety comes first," but not "Oh, What a Night!"
_SPEECH = re.compile(r"(?=.*[,.!?]$).*(?<![^\W_])[^\W\d_A-Z][^\W\d_]{3,}", re.DOTALL)
_FIGURE = re.compile(
    r"(?<![^\W_])(?<!\d\.)(?:(?<!\S)[-−])?(?:[$€£¥]|US\$)?\d[\d,]*(?:\.\d+)?(?:[–/-]\d[\d,]*(?:\.\d+)?)?%?(?![-–]\w)"
    r"(?:\s(?:million|billion|trillion|thousand|hundred))?(?:\s?(?:km2|sq|km|mi|m|ft|kg|cm|mm|mph|percent|ha))?\b%?"
    r"(?![^\W_]|[,.]\d)"
)
_AUXILIARY = "is|are|was|were|has|have|had|do|does|did|ca|wo|could|would|should"
_WORD = re.compile(
    rf"(?i:\bno longer\b|\bnot only\b|\b(?:{_AUXILIARY})(?=n['’]t\b)|n['’]t\b)"
    r"|(?:\d{1,3}(?:,\d{3})+(?!\d)|[^\W_]+)(?:[-–'’./&][^\W_]+)*(?:(?<=\b[A-Z])\.)?|[^\w\s\"“”]"
)
_ADJECTIVE = re.compile(
    r".*(?:al|ive|ous|ic|ent|ant|ary|ful|less|able|ible|ish|ese|ian|an|est|er|ern|\d(?:th|st|nd|rd)|[-–]\w+(?:ed|ing))"
)
_LEADING = re.compile(r"(?:(?:for|of|from|to|in|on|at|by|with|and) )+")
_DENIALS = {"no longer": "n", "n’t": "n", "not only": "y"}
_AFTER_VERBS = frozenset({"in", "at", "with", "as", "to", "on", "from", "into", "for"})
_LONGEST_CLAUSE = 60  # in words


@dataclass(frozen=True, slots=True)
class Token:
    """Holds a word, or a span that counts as one word; `text` is characters `start` to `end` of the sentence."""

    text: str
    start: int
    end: int
    tag: str
    """E name, Q title in quotation marks, D date, F figure, N noun or any other word, J noun that looks like an
    adjective, G "'s", x participle or regular past, g gerund, v other verb. For the letters of closed classes see
    data/english.toml; "n" negates a verb.
    """

    @property
    def low(self) -> str:
        """Return the word in lower case."""
        return self.text.lower()


def _tagged(sentence: str, titles: re.Pattern[str] | None, subject: int) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    for start, end, tag in [
        *sorted(_fixed(sentence, titles, subject)),
        (len(sentence), len(sentence), ""),
    ]:
        for match in _WORD.finditer(sentence, at, start):
            tokens.append(
                Token(match.group(), *match.span(), _tag(match.group().lower(), tokens))
            )
        tokens.append(Token(sentence[start:end], start, end, tag))
        at = end
    return _with_rare_verbs(tokens[:-1])


def _fixed(
    sentence: str, titles: re.Pattern[str] | None, subject: int
) -> Iterator[tuple[int, int, str]]:
    """Yield the spans found without grammar, which do not overlap: names, titles, dates, figures, genitive endings."""
    taken = bytearray(len(sentence))

    def free(start: int, end: int) -> bool:
        is_free = not any(taken[start:end])
        if is_free:
            taken[start:end] = b"\x01" * (end - start)
        return is_free

    if subject and free(0, subject):
        yield 0, subject, "E"
    for match in _QUOTED.finditer(sentence):
        if free(*match.span()):
            yield (*match.span(1), "," if _SPEECH.match(match[1]) else "Q")
    names = list(_names(sentence, taken))
    whole = [match.span() for match in titles.finditer(sentence)] if titles else []
    spans = [
        (*one, "E")
        for one in whole
        if not any(a < one[0] < b or a < one[1] < b for a, b in names)
    ]
    spans += [
        (*match.span(), str(match.lastgroup)) for match in _FIXED.finditer(sentence)
    ]
    spans += [(*name, "E") for name in names]
    spans += [(*match.span(), "F") for match in _FIGURE.finditer(sentence)]
    yield from (span for span in spans if free(*span[:2]))


def _names(sentence: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the spans of names, without dates, and without a first word that is capitalised only for its position."""
    bare = "".join(
        "," if used else char for char, used in zip(sentence, taken, strict=True)
    )
    # replaced by commas, which separate names and keep the offsets
    bare = _FIXED.sub(lambda match: "," * len(match.group()), bare)
    first = len(bare) - len(bare.lstrip(" ,\"'“"))
    for start, end in name_spans(bare):
        word, _, rest = bare[start:end].partition(" ")
        if start == first and (
            word.lower() in english.KNOWN or word.endswith(("ed", "ing", "ly"))
        ):
            start = end - len(_LEADING.sub("", rest))
        if any(map(str.isalpha, bare[start:end])):
            yield start, end


def _tag(word: str, before: Sequence[Token]) -> str:
    tags = _tags(before, len(before))
    previous = before[-1].low if before else ""
    closed = english.CLOSED.get(word) or _DENIALS.get(word)
    if not closed and not word[0].isalnum():
        return ","
    if closed:
        return "r" if word == "that" and tags.endswith(tuple("NJEQF,p")) else closed
    if tags.rstrip("yn").endswith(("a", "t")):
        return "v" if word in english.VERBS or not word.endswith("s") else "N"
    if word in english.PAST:
        return "v"
    if word in english.PARTICIPLES or (
        word.endswith("ed") and "-" not in word and word not in english.NOUNS
    ):
        return "x"
    if word.endswith("ing") and "-" not in word and word not in english.NOUNS:
        return "g"
    if word.endswith("ly") and word not in english.NOUNS:
        return "y"
    clause = re.split("[,csr]", tags)[-1]
    opened = not set("vbwa").isdisjoint(clause)
    if before and english.is_third_person(word):
        if tags[-1] in "royn," or (tags[-1] in "NEQD" and not opened):
            return "v"
    elif word in english.VERBS and (
        (previous.endswith("s") and tags[-1] in "NE" and not opened)
        or previous in english.PLURAL_SUBJECTS
    ):
        return "v"
    return "J" if _ADJECTIVE.fullmatch(word) else "N"


def _tags(tokens: Sequence[Token], at: int) -> str:
    """Return the letters of the tokens before `at`, as far back as a clause may reach."""
    return "".join(token.tag for token in tokens[max(0, at - _LONGEST_CLAUSE) : at])


def _with_rare_verbs(tokens: list[Token]) -> list[Token]:
    """Return tokens with further verbs, recognised only by the words around them: "The film reunites Nolan with
    ..."."""
    for at in range(1, len(tokens) - 1):
        token = tokens[at]
        before = tokens[at - 1].tag
        after = tokens[at + 1]
        # "and flows into"
        leads = (
            after.low in _AFTER_VERBS
            and before == "c"
            and english.is_third_person(token.low)
        )
        if (
            token.tag == "N"
            and token.text.endswith("s")
            and (after.tag in "dhEQ" or after.low == "that" or leads)
        ):
            clause = re.split("[,csr]", _tags(tokens, at))[-1]
            if before == "c" or (
                before in "NJEQoyn" and set("vbwa").isdisjoint(clause)
            ):
                tokens[at] = Token(token.text, token.start, token.end, "v")
    return tokens


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Holds the parts of a noun phrase as written: "the band's" + "American" "singer" + "Ann Lee"."""

    text: str
    """The whole phrase without the article."""
    opener: str
    """The article, possessive or determiner in lower case; "" without one."""
    owner: str
    """The words before "'s"."""
    description: str
    """The words before that name."""
    name: str
    """The name or title at its end."""
    inner: tuple[str, ...]
    """The names in its description."""
    tag: str
    """The letter of its last word; E for a name of several words, o for a pronoun."""

    @property
    def words(self) -> int:
        """Return the number of words."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class Chunk:
    """Holds a piece of a sentence: characters `start` to `end`."""

    kind: str
    """"np" noun phrase, "vg" verb with its auxiliaries, otherwise the letter of the word: p, c, s, r or a comma. For a
    verb, finite: it can head a clause.
    """
    text: str
    start: int
    end: int
    np: NounPhrase | None = None
    finite: bool = False
    copula: bool = False
    """It is only a form of "be"."""
    bare: bool = False
    """It is one participle without an auxiliary."""


# a participle is part of a noun phrase between its opener and a noun ("an animated film"), "and" between adjectives
_PHRASES = re.compile(
    r"(?P<np>o|(?<=p)D|[dh]*(?:[NJEQDF]|(?<=[dhGFDy])[xg](?=[NJEQxg])|(?<=J)[xg](?=[NJ])|(?<=[dh])g|(?<=[dhG])y(?=[xgNJ])|(?<=[NJEQDF])G(?=[NJEQDFxgy])"
    r"|(?<=[JF])c(?=J[NJ])|(?<=J),(?=J[NJ]))+|[dh]+)"
    r"|(?P<vg>n?(?:[bwa][yn]*)*[vxg](?:[yn]*t(?:[bwa][yn]*)*[vxg])*|n?(?:[bwa][yn]*)+(?:t(?:[bwa][yn]*)*[vxg])*"
    r"|n?t(?:[bwa][yn]*)*[vxg])"
    r"|(?P<other>[ptcsrn,G])"
)


def chunked(
    sentence: str, titles: re.Pattern[str] | None = None, subject: int = 0
) -> list[Chunk]:
    """Return the chunks of a sentence, in order; adverbs outside verb groups and noun phrases are left out.

    A match of `titles` counts as a name unless it would cut another name in two, and so do the first `subject`
    characters.
    """
    tokens = _tagged(sentence, titles, subject)
    phrases = _PHRASES.finditer("".join(token.tag for token in tokens))
    return [
        _chunk(tokens[slice(*match.span())], str(match.lastgroup), sentence)
        for match in phrases
    ]


def _chunk(tokens: Sequence[Token], kind: str, sentence: str) -> Chunk:
    start = tokens[0].start
    end = tokens[-1].end
    if kind == "np":
        phrase = _noun_phrase(tokens, sentence)
        return Chunk("np", phrase.text, start, end, phrase)
    if kind == "vg":
        end = next(token.end for token in reversed(tokens) if token.tag != "y")
        verbs = "".join(token.tag for token in tokens if token.tag not in "yn")
        first = next(token.low for token in tokens if token.tag != "n")
        finite = (verbs[0] in "bwav" or verbs == "x") and first not in (
            "being",
            "having",
            "been",
            "be",
        )
        text = " ".join(sentence[start:end].split())
        return Chunk(
            "vg",
            text,
            start,
            end,
            finite=finite,
            copula=set(verbs) == {"b"} and "n" not in {token.tag for token in tokens},
            bare=verbs in ("x", "g"),
        )
    (token,) = tokens
    is_speech = token.tag == "," and len(token.text) > 1
    if token.tag == "G" or token.text in "–—-" or is_speech:
        return Chunk(",", ",", start, end)
    return Chunk({"t": "p", "n": "p"}.get(token.tag, token.tag), token.low, start, end)


def _noun_phrase(tokens: Sequence[Token], sentence: str) -> NounPhrase:
    body = list(tokens)
    opener = ""
    while body and body[0].tag in "dh":
        opener = body.pop(0).low
    genitive = max(
        (at for at in range(1, len(body) - 1) if body[at].tag == "G"), default=None
    )
    owner, head = (
        ([], body) if genitive is None else (body[:genitive], body[genitive + 1 :])
    )
    tags = "".join(token.tag for token in head)
    at = len(tags.rstrip("EQ"))
    if at and set(tags) <= set("EQDF") and not {"E", "Q"}.isdisjoint(tags):
        at = 0  # "UEFA Euro 1992", "1996 Summer Olympics"
    name = _text(head[at:], sentence)
    described = _text(head[:at], sentence)
    inner = tuple(token.text for token in head[:at] if token.tag in "EQ")
    tag = (
        "o" if not body else "E" if name and at == 0 and len(head) > 1 else body[-1].tag
    )
    return NounPhrase(
        _text(body, sentence) or opener,
        opener,
        _text(owner, sentence),
        described,
        name,
        inner,
        tag,
    )


def _text(part: Sequence[Token], sentence: str) -> str:
    """Return the text of the tokens without quotation marks, since one of a pair may be outside."""
    return (
        " ".join(re.sub('["“”]', "", sentence[part[0].start : part[-1].end]).split())
        if part
        else ""
    )

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
    rf"(?:{_YEAR}[-./]\d{{1,2}}[-./]\d{{1,2}}|\d{{1,2}}[-./]\d{{1,2}}[-./]{_YEAR}"
    rf"|{_MONTH}\s+\d{{1,2}},?\s+{_YEAR}|\d{{1,2}}\s+{_MONTH},?\s+{_YEAR}|{_MONTH},?\s+{_YEAR}|{_MONTH}\s+\d{{1,2}}"
    rf"|\d{{1,2}}\s+{_MONTH}|(?:(?:early|mid|late)[-\s]+)?(?:the\s+)?(?:{_YEAR}s|{_ORDINAL}[-\s]centur(?:y|ies))"
    rf"|{_YEAR}(?:[–/-]\d{{2,4}})?|\d{{1,4}}\s+(?:AD|BC|BCE|CE))(?!\w)(?![.,]\d)"
)
"""The pattern of a date, a year, a decade or a century."""
CLOCK = r"\d{1,2}(?:[.:]\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.)(?: (?:[ECMP][SD]?T|GMT|BST|UTC)\b)?"
"""The pattern of a time of the day with its half: "7.00 pm"."""
_DAYS = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:days?)?"
# "Mon–Fri", and the day of "From Monday Harvest Kitchen cooks", which is of no name
_WEEKDAY = (
    rf"{_DAYS}\s?(?:[–-]|to|and)\s?{_DAYS}|(?:(?<=From )|(?<=On )|(?<=Until )){_DAYS}"
)
_NAMED_AFTER = "|".join(
    word.capitalize() for word in sorted(english.words("things")["named_after"])
)
_FIXED = re.compile(
    rf"\b(?P<D>{DATE}|{CLOCK}(?!\w)|(?:{_WEEKDAY})\b)|(?P<y>{_DAYS},?(?= {DATE}))"
    rf"|(?P<G>(?:(?<=s)['’]|['’]s)(?=\s)(?!\s(?:{_NAMED_AFTER})\b))"
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
_TAKEN = "\0"
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


def _tagged(sentence: str, titles: re.Pattern[str], subject: int) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    fixed = sorted(_fixed(sentence, titles, subject))
    for start, end, tag in [*fixed, (len(sentence), len(sentence), "")]:
        for match in _WORD.finditer(sentence, at, start):
            word = match.group()
            tokens.append(Token(word, *match.span(), _tag(word.lower(), tokens)))
        tokens.append(Token(sentence[start:end], start, end, tag))
        at = end
    return _with_rare_verbs(tokens[:-1])


def _fixed(
    sentence: str, titles: re.Pattern[str], subject: int
) -> Iterator[tuple[int, int, str]]:
    """Yield the spans found without grammar, which do not overlap: names, titles, dates, figures, genitive endings."""
    left = sentence

    def free(start: int, end: int) -> bool:
        nonlocal left
        is_free = _TAKEN not in left[start:end]
        if is_free:
            left = left[:start] + _TAKEN * (end - start) + left[end:]
        return is_free

    if subject and free(0, subject):
        yield 0, subject, "E"
    for match in _QUOTED.finditer(sentence):
        if free(*match.span()):
            tag = "," if _SPEECH.match(match[1]) else "Q"
            yield (*match.span(1), tag)
    names = list(_names(left))
    spans: list[tuple[int, int, str]] = []
    for match in titles.finditer(sentence):
        is_name = _is_whole(match.start(), names) and _is_whole(match.end(), names)
        if is_name:
            spans.append((*match.span(), "E"))
    for match in _FIXED.finditer(sentence):
        spans.append((*match.span(), str(match.lastgroup)))
    for start, end in names:
        spans.append((start, end, "E"))
    for match in _FIGURE.finditer(sentence):
        spans.append((*match.span(), "F"))
    for start, end, tag in spans:
        if free(start, end):
            yield start, end, tag


def _is_whole(place: int, names: Sequence[tuple[int, int]]) -> bool:
    """Return whether no name would be cut in two at a place."""
    inside = (start < place < end for start, end in names)
    return not any(inside)


def _names(left: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of names, without dates, and without a first word that is capitalised only for its position.

    Args:
        left: the sentence, with _TAKEN in place of the characters of other spans.
    """
    # commas separate names and keep the offsets
    bare = _FIXED.sub(_commas, left.replace(_TAKEN, ","))
    first = len(bare) - len(bare.lstrip(" ,\"'“"))
    for start, end in name_spans(bare):
        word, _, rest = bare[start:end].partition(" ")
        is_name = word.lower() not in english.KNOWN
        if word.lower() not in english.NOUNS and word.endswith(("ed", "ing", "ly")):
            is_name = False
        if start == first and not is_name:
            start = end - len(_LEADING.sub("", rest))
        name = bare[start:end]
        if any(map(str.isalpha, name)):
            yield start, end


def _commas(match: re.Match[str]) -> str:
    return "," * len(match.group())


def _tag(word: str, before: Sequence[Token]) -> str:
    closed = english.CLOSED.get(word) or _DENIALS.get(word)
    tags = _tags(before[-_LONGEST_CLAUSE:])
    if word == "that" and tags.endswith(tuple("NJEQF,p")):
        return "r"
    if closed:
        return closed
    if not word[0].isalnum():
        return ","
    if tags.rstrip("yn").endswith(("a", "t")):
        return "v" if word in english.VERBS or not word.endswith("s") else "N"
    if word in english.PAST:
        return "v"
    if word in english.PARTICIPLES:
        return "x"
    if word not in english.NOUNS:
        is_compound = "-" in word
        for ending, letter in _ENDINGS.items():
            if word.endswith(ending) and (not is_compound or letter == "y"):
                return letter
    if before and _is_verb_here(word, before[-1], tags):
        return "v"
    return "J" if _ADJECTIVE.fullmatch(word) else "N"


_ENDINGS = {"ed": "x", "ing": "g", "ly": "y"}


def _is_verb_here(word: str, previous: Token, tags: str) -> bool:
    """Return whether a word that may be a verb is a verb here, given the words before it."""
    is_first = not _has_verb(tags)
    if english.is_third_person(word):
        return previous.tag in "royn," or (previous.tag in "NEQD" and is_first)
    if word not in english.VERBS:
        return False
    is_plural = previous.low.endswith("s") and previous.tag in "NE"
    return (is_plural and is_first) or previous.low in english.PLURAL_SUBJECTS


def _has_verb(tags: str) -> bool:
    """Return whether the clause at the end of these letters has a verb."""
    *_, clause = re.split("[,csr]", tags)
    return not _VERBAL.isdisjoint(clause)


_VERBAL = frozenset("vbwa")


def _with_rare_verbs(tokens: list[Token]) -> list[Token]:
    """Return tokens with further verbs, recognised only by the words around them: "The film reunites Nolan with
    ..."."""
    for at in range(1, len(tokens) - 1):
        token = tokens[at]
        if token.tag == "N" and token.text.endswith("s"):
            before = tokens[max(0, at - _LONGEST_CLAUSE) : at]
            if _is_rare_verb(token, before, tokens[at + 1]):
                tokens[at] = Token(token.text, token.start, token.end, "v")
    return tokens


def _is_rare_verb(token: Token, before: Sequence[Token], after: Token) -> bool:
    is_after_and = before[-1].tag == "c"
    # "and flows into"
    leads = after.low in _AFTER_VERBS and english.is_third_person(token.low)
    has_object = after.tag in "dhEQ" or after.low == "that"
    if is_after_and:
        return has_object or leads
    is_first = not _has_verb(_tags(before))
    return has_object and before[-1].tag in "NJEQoyn" and is_first


def _tags(tokens: Sequence[Token]) -> str:
    letters = [token.tag for token in tokens]
    return "".join(letters)


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Holds the parts of a noun phrase as written: "the band's" + "American" "singer" + "Ann Lee"."""

    text: str
    """The whole phrase without the article."""
    opener: str
    """The article, possessive or determiner in lower case, or ""."""
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
    """"np" noun phrase, "vg" verb with its auxiliaries, otherwise the letter of the word: p, c, s, r or a comma.
    `finite` says whether a verb can head a clause.
    """
    text: str
    start: int
    end: int
    np: NounPhrase | None = None
    finite: bool = False
    copula: bool = False
    """Whether the verb is only a form of "be"."""
    bare: bool = False
    """Whether the verb is one participle without an auxiliary."""


# a participle is part of a noun phrase between its opener and a noun ("an animated film"), "and" between adjectives
_PHRASES = re.compile(
    r"(?P<np>o|(?<=p)D|[dh]*(?:[NJEQDF]|(?<=[dhGFDy])[xg](?=[NJEQxg])|(?<=J)[xg](?=[NJ])|(?<=[dh])g|(?<=[dhG])y(?=[xgNJ])|(?<=[NJEQDF])G(?=[NJEQDFxgy])"
    r"|(?<=[JF])c(?=J[NJ])|(?<=J),(?=J[NJ]))+|[dh]+)"
    r"|(?P<vg>n?(?:[bwa][yn]*)*[vxg](?:[yn]*t(?:[bwa][yn]*)*[vxg])*|n?(?:[bwa][yn]*)+(?:t(?:[bwa][yn]*)*[vxg])*"
    r"|n?t(?:[bwa][yn]*)*[vxg])"
    r"|(?P<other>[ptcsrn,G])"
)


NO_TITLES = re.compile(r"(?!)")


def chunked(
    sentence: str, titles: re.Pattern[str] = NO_TITLES, subject: int = 0
) -> list[Chunk]:
    """Return the chunks of a sentence, in order; adverbs outside verb groups and noun phrases are left out.

    A match of `titles` counts as a name unless it would cut another name in two, and so do the first `subject`
    characters.
    """
    tokens = _tagged(sentence, titles, subject)
    tags = _tags(tokens)
    chunks: list[Chunk] = []
    for match in _PHRASES.finditer(tags):
        words = tokens[match.start() : match.end()]
        chunks.append(_chunk(words, str(match.lastgroup), sentence))
    return chunks


def _chunk(tokens: Sequence[Token], kind: str, sentence: str) -> Chunk:
    first = tokens[0]
    end = tokens[-1].end
    if kind == "np":
        phrase = _noun_phrase(tokens, sentence)
        return Chunk("np", phrase.text, first.start, end, phrase)
    if kind == "vg":
        return _verb_group(tokens, sentence)
    is_speech = first.tag == "," and len(first.text) > 1
    if first.tag == "G" or first.text in "–—-" or is_speech:
        return Chunk(",", ",", first.start, end)
    kind = "p" if first.tag in "tn" else first.tag
    return Chunk(kind, first.low, first.start, end)


def _verb_group(tokens: Sequence[Token], sentence: str) -> Chunk:
    said = [token for token in tokens if token.tag != "y"]
    verbs = [token for token in said if token.tag != "n"]
    start = tokens[0].start
    end = said[-1].end
    tags = _tags(verbs)
    is_finite = tags[0] in "bwav" or tags == "x"
    return Chunk(
        "vg",
        " ".join(sentence[start:end].split()),
        start,
        end,
        finite=is_finite and verbs[0].low not in _NOT_FINITE,
        copula=set(tags) == {"b"} and verbs == said,
        bare=tags in ("x", "g"),
    )


_NOT_FINITE = frozenset({"being", "having", "been", "be"})


def _noun_phrase(tokens: Sequence[Token], sentence: str) -> NounPhrase:
    body = list(tokens)
    opener = ""
    while body and body[0].tag in "dh":
        opener = body.pop(0).low
    head = body
    owner: list[Token] = []
    for at in range(1, len(body) - 1):
        if body[at].tag == "G":
            owner = body[:at]
            head = body[at + 1 :]
    tags = _tags(head)
    at = len(tags.rstrip("EQ"))
    if _NAME_WITH_DATE.fullmatch(tags):
        at = 0  # "UEFA Euro 1992", "1996 Summer Olympics"
    name = _text(head[at:], sentence)
    inner = tuple(token.text for token in head[:at] if token.tag in "EQ")
    tag = body[-1].tag if body else "o"
    if name and at == 0 and len(head) > 1:
        tag = "E"
    return NounPhrase(
        text=_text(body, sentence) or opener,
        opener=opener,
        owner=_text(owner, sentence),
        description=_text(head[:at], sentence),
        name=name,
        inner=inner,
        tag=tag,
    )


_NAME_WITH_DATE = re.compile("[DF]*[EQ][EQDF]*")


def _text(part: Sequence[Token], sentence: str) -> str:
    """Return the text of the tokens without quotation marks, since one of a pair may be outside."""
    if not part:
        return ""
    written = sentence[part[0].start : part[-1].end]
    return " ".join(_QUOTES.sub("", written).split())


_QUOTES = re.compile('["“”]')

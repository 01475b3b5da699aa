"""Splits a text into terms: its words and figures, each with other forms that mean the same.

The tables here list forms of words in several languages, and of numbers. The form of a figure is "#" and its
exact value, that of a month is "@" and its number, so neither can equal a word.

>>> [sorted(term.forms) for term in terms_of("2006-08-23")]
[['#2006'], ['#8', '@8'], ['#23']]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from ras_agent.text.normal_form import normal_form
from ras_agent.text.short_cache import cached_if_short
from ras_agent.text.words import FUNCTION_WORDS, fold, stem, word_set

# ---- the forms, as tables

HONORIFICS = word_set(
    """mr mrs ms miss mx dr prof professor sir dame madam rev reverend hon herr frau fraulein don dona senor senora
    senorita sr sra monsieur madame mademoiselle mme mlle signor signora"""
)
"""Forms of address, which may stand before a name in one place and be left out in another."""

_MONTHS = """
    january jan janvier januar enero janeiro gennaio januari, february feb fevrier februar febrero fevereiro
    febbraio februari, march mar mars marz marzo marco maart, april apr avril abril aprile, may mai mayo maio maggio
    mei, june jun juin juni junio junho giugno, july jul juillet juli julio julho luglio, august aug aout agosto
    augustus, september sep sept septembre septiembre setembro settembre, october oct octobre oktober okt octubre
    outubro ottobre, november nov novembre noviembre novembro, december dec decembre dezember dez diciembre dezembro
    dicembre
"""
_ONES = """
    zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen,
    sixteen, seventeen, eighteen, nineteen
"""
_ORDINALS = """
    zeroth, first, second twice, third thrice, fourth, fifth, sixth, seventh, eighth, ninth, tenth, eleventh,
    twelfth, thirteenth, fourteenth, fifteenth, sixteenth, seventeenth, eighteenth, nineteenth
"""
_TENS = ", , twenty, thirty, forty, fifty, sixty, seventy, eighty, ninety"
_TENTHS = ", , twentieth, thirtieth, fortieth, fiftieth, sixtieth, seventieth, eightieth, ninetieth"
_SCALES = {
    "dozen": 12,
    "hundred": 10**2,
    **dict.fromkeys(("thousand", "tausend"), 10**3),
    **dict.fromkeys(
        (
            "million",
            "millions",
            "millionen",
            "millon",
            "millones",
            "milhao",
            "milhoes",
            "milioni",
        ),
        10**6,
    ),
    **dict.fromkeys(
        ("billion", "billions", "milliard", "milliards", "milliarde", "milliarden"),
        10**9,
    ),
    **dict.fromkeys(("trillion", "trillions"), 10**12),
    "lakh": 10**5,
    "crore": 10**7,
}
_SCALE_SIGNS = {**dict.fromkeys("万萬만", 10**4), **dict.fromkeys("億亿억", 10**8)}
"""Scales, such as ten thousand, in scripts without spaces: the first character after a number."""
_SHORT_SCALES = {
    **dict.fromkeys(("k", "mil", "mille"), 10**3),
    **dict.fromkeys(("m", "mn", "mio"), 10**6),
    **dict.fromkeys(("b", "bn", "mrd"), 10**9),
    "tn": 10**12,
}
"""Scales that may also mean something else, such as metres, so that the number without the scale counts too."""

# words that mean the same: units and their short forms; countries and peoples with different first letters
_SAME = """
    km kilometre kilometer kilometres kilometers, m metre meter metres meters, cm centimetre centimeter centimetres
    centimeters, mm millimetre millimeter millimetres millimeters, mi mile miles, ft foot feet, kg kilogram
    kilogramme kilograms kilogrammes, lb lbs pound pounds, ha hectare hectares, mph mile miles, hr hour hours, usa
    us america american americans, uk britain british, england english, scotland scottish scots, wales welsh,
    ireland irish, france french, spain spanish, netherlands dutch holland, denmark danish, sweden swedish, finland
    finnish, poland polish, turkey turkish, greece greek, switzerland swiss, norway norwegian, iceland icelandic,
    czech czechia, flanders flemish, peru peruvian, china chinese, cyprus cypriot, philippines filipino, thailand
    thai, ukraine ukrainian
"""
_SIGN_WORDS = {
    "%": "percent per cent",
    "$": "dollar usd",
    "€": "euro eur",
    "£": "pound gbp",
    "¥": "yen",
    "°": "degre celsiu fahrenheit",  # stems
}
_JOINED = {
    re.compile(r"\bUnited States(?: of America)?\b"): "USA",
    re.compile(r"\b(?:United Kingdom|Great Britain)\b"): "UK",
}
_DOTTED = re.compile(r"\b(?:[A-Z]\.){2,}(?!\w)")
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i"}
)
_SIGNS = str.maketrans(
    {"٫": ".", "٬": ",", "’": "'", "−": "-", "–": "-", "—": "-", "\u202f": " "}
)


def _rows(listed: str) -> list[list[str]]:
    rows = listed.split(",")
    return list(map(str.split, rows))


def _numbered(*tables: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for table in tables:
        for number, row in enumerate(_rows(table)):
            numbers |= dict.fromkeys(row, number)
    return numbers


_MONTH_OF = {word: number + 1 for word, number in _numbered(_MONTHS).items()}
_SMALL = _numbered(_ONES, _ORDINALS) | {
    word: 10 * number for word, number in _numbered(_TENS, _TENTHS).items()
}
_SAME_AS = {word: row[0] for row in _rows(_SAME) for word in row}
_ROMAN = re.compile(r"(?=[IVX]{2})(X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_ONES = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")

# ---- reading

_SMALL_WORD = "|".join(sorted(_SMALL, key=len, reverse=True))
_TOKEN = re.compile(
    r"(?P<date>\d{1,4}([-/.])\d{1,2}\2\d{1,4}(?!\d))"
    r"|(?P<years>\d{4}-\d{2}(?![\d-]))"
    r"|(?P<minus>(?<![^\s(])-)?(?P<number>\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,']\d+)*)(?:(?:st|nd|rd|th|s)(?![^\W\d_]))?"
    rf"|(?P<counted>\b(?:{_SMALL_WORD}|hundred)(?:(?: and |[ -])(?:{_SMALL_WORD}|hundred))*\b)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)",
    re.IGNORECASE,
)
_SCALE = re.compile(r"[ -]?([^\W\d_]+)")
_GROUPS = re.compile(r"\d{1,3}([.,' ])\d{3}(?:\1\d{3})*")
_FRACTION = re.compile(r"(\d+(?:[.,']\d{3})*)[.,](\d+)")
_DIGITS = re.compile(r"\d+")
_POSSESSIVE = re.compile(r"'s?(?!\w)")
_ELISION = re.compile(
    r"(?:l|d|qu|j|n|s|c|m|t|dell|nell|all|un)'(?=\w{2})", re.IGNORECASE
)
_VERBS_TOO = word_set("may march mar mars")
_INDEFINITE = "one"
# letters; an "s" at the end of "this" or "has" is not a plural
_LONGEST_WITHOUT_PLURAL = 4


@dataclass(frozen=True, slots=True)
class Term:
    """Represents a word or a figure of a text."""

    text: str
    """as the text writes it"""
    forms: frozenset[str]
    """the spellings that mean the same; two terms with a common form are equal in meaning"""
    word: str = ""
    """in lower case without accents; "" for a figure"""

    @property
    def is_figure(self) -> bool:
        """Tell whether the term is a number or a part of a date."""
        return not self.word

    @property
    def is_empty(self) -> bool:
        """Tell whether the term has no meaning by itself, as "us", but not "US"."""
        if self.is_figure:
            return self.text.lower() == _INDEFINITE
        is_short_form = len(self.text) > 1 and self.text.isupper()
        return self.word in FUNCTION_WORDS and not is_short_form

    @property
    def is_address(self) -> bool:
        """Tell whether the term is a form of address, such as "Mrs"."""
        return self.word in HONORIFICS


@cached_if_short(8192)
def terms_of(text: str) -> tuple[Term, ...]:
    """Return the terms of a text in order, including those without meaning.

    >>> [term.text for term in terms_of("Dr. Bell's 1.8 million U.S. dollars in May")]
    ['Dr', 'Bell', '1.8 million', 'US', 'dollars', 'in', 'May']
    """
    prepared = _prepared(text)
    return tuple(_terms(prepared))


def sign_words(text: str) -> frozenset[str]:
    """Return the words that stand for the signs in a text, such as "percent" for "%"."""
    found: list[str] = []
    for sign, words in _SIGN_WORDS.items():
        if sign in text:
            found += words.split()
    return frozenset(found)


def plain_letters(text: str) -> str:
    """Return a text in lower case, without accents and without strokes through letters."""
    low = fold(text)
    if low.isascii():
        return low
    return low.translate(_PLAIN_LETTERS)


def _prepared(text: str) -> str:
    plain = normal_form("NFKC", text).translate(_SIGNS)
    plain = _DOTTED.sub(_without_dots, plain)
    for pattern, short in _JOINED.items():
        plain = pattern.sub(short, plain)
    return _POSSESSIVE.sub("", plain)


def _without_dots(match: re.Match[str]) -> str:
    letters = match[0].replace(".", "")
    return f"{letters} "


def _terms(text: str) -> Iterator[Term]:
    position = 0
    while match := _TOKEN.search(text, position):
        position = match.end()
        kind = match.lastgroup
        token = match[0]
        if kind == "word":
            yield _word(_ELISION.sub("", token))
        elif kind == "date":
            yield from map(_part_of_date, _DIGITS.findall(token))
        elif kind == "years":
            yield from _years(token)
        else:
            if kind == "counted":
                values = {_count(token)}
            else:
                values = _values(match["number"])
            if match["minus"]:
                values = {-value for value in values}
            scale = _SCALE.match(text, position)
            factors = _factors(scale[1]) if scale else ()
            if scale and factors:
                if scale[1][0] not in _SCALE_SIGNS:
                    position = scale.end()
                else:
                    position = scale.start(1) + 1
                values = {value * factor for value in values for factor in factors}
            words = {token.lower()} if kind == "counted" else set()
            yield Term(
                text[match.start() : position],
                frozenset(words.union(map(_figure, values))),
            )


@cached_if_short(65536)
def _word(token: str) -> Term:
    word = plain_letters(token).replace("'", "")
    month = _MONTH_OF.get(word)
    if month and (token[0].isupper() or word not in _VERBS_TOO):
        return Term(token, frozenset({f"@{month}", word}))
    roman = _ROMAN.fullmatch(token)
    if roman:
        number = 10 * len(roman[1]) + _ROMAN_ONES.index(roman[2])
        return Term(token, frozenset({_figure(Decimal(number)), word}))
    forms = {word, stem(word), _SAME_AS.get(word, word)}
    if len(word) > _LONGEST_WITHOUT_PLURAL:
        forms.add(word.removesuffix("s"))
    return Term(token, frozenset(forms), word)


def _part_of_date(digits: str) -> Term:
    number = Decimal(digits)
    forms = {_figure(number)}
    if 1 <= number <= 12:
        forms.add(f"@{number}")
    return Term(digits, frozenset(forms))


def _years(token: str) -> Iterator[Term]:
    """Yield both numbers of a text such as "2008-09". The second may be a year or a month."""
    first, _, second = token.partition("-")
    year = _figure(Decimal(first))
    yield Term(first, frozenset({year}))
    later = _part_of_date(second)
    second_year = _figure(Decimal(first[:2] + second))
    yield Term(second, later.forms | {second_year})


def _values(number: str) -> set[Decimal]:
    """Return the possible values of a number in digits. A comma or full stop may separate thousands or a fraction."""
    parts = _DIGITS.findall(number)
    groups = _GROUPS.fullmatch(number)
    fraction = _FRACTION.fullmatch(number)
    if groups or len(parts) == 1:
        values = {Decimal("".join(parts))}
    else:
        values = set()
    if fraction:
        whole = "".join(_DIGITS.findall(fraction[1]))
        values.add(Decimal(f"{whole}.{fraction[2]}"))
    if not values or (groups and groups[1] == " "):
        values.update(map(Decimal, parts))
    return values


def _factors(word: str) -> tuple[int, ...]:
    if word[0] in _SCALE_SIGNS:
        return (_SCALE_SIGNS[word[0]],)
    low = plain_letters(word)
    if low in _SHORT_SCALES:
        return _SHORT_SCALES[low], 1
    if low in _SCALES:
        return (_SCALES[low],)
    return ()


def _count(words: str) -> Decimal:
    """Return the value of a number below a thousand written in words."""
    total = 0
    for word in re.split(r"[ -]", words.lower()):
        if word == "hundred":
            total = max(total, 1) * 100
        else:
            total += _SMALL.get(word, 0)
    return Decimal(total)


def _figure(value: Decimal) -> str:
    written = f"{value:f}"
    if "." in written:
        return f"#{written.rstrip('0').rstrip('.')}"
    return f"#{written}"

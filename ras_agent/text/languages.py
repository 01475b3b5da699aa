"""Names languages, and recognises the probable language of a text by its function words or its script."""

from __future__ import annotations

import re

from ras_agent.text.words import word_set

ENGLISH = "english"

CODES = {
    **{
        "ar": "arabic",
        "hy": "armenian",
        "eu": "basque",
        "ca": "catalan",
        "zh": "chinese",
        "da": "danish",
    },
    **{
        "nl": "dutch",
        "en": ENGLISH,
        "fi": "finnish",
        "fr": "french",
        "de": "german",
        "el": "greek",
        "hi": "hindi",
    },
    **{
        "hu": "hungarian",
        "id": "indonesian",
        "ga": "irish",
        "it": "italian",
        "ja": "japanese",
        "ko": "korean",
    },
    **{
        "lt": "lithuanian",
        "ne": "nepali",
        "no": "norwegian",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
    },
    **{
        "sr": "serbian",
        "es": "spanish",
        "sv": "swedish",
        "ta": "tamil",
        "th": "thai",
        "tr": "turkish",
    },
    "yi": "yiddish",
}
"""The name of each language that an index may have, by its code. `none` is for texts in several languages."""

NO_LANGUAGE = "none"
WITHOUT_STEMS = frozenset({"chinese", "japanese", "korean", "thai", NO_LANGUAGE})
"""Languages whose words are indexed without stemming, or as pairs of characters."""


def language_name(spec: str) -> str:
    """Return the English name, in lower case, of a language that is given by name or code ("de").

    Raises ValueError for an unknown language.
    """
    known = {*CODES.values(), NO_LANGUAGE}
    given = spec.strip().lower()
    name = CODES.get(given, given)
    if name not in known:
        raise ValueError(
            f"unknown language {spec!r}; known: {', '.join(sorted(known))}"
        )
    return name


_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 400
# without words that English has too: "die", "was", "an", "in", "me", "son"
_OWN_WORDS = {
    "german": word_set(
        """wer wo wie wann warum welche welcher welches welchem wessen wem wurde wurden ist sind der das den dem des ein
        eine einer eines einem einen und oder nicht von mit für auf aus bei nach zum zur durch über unter ihr sein seine
        als auch sich im vom hatte haben gibt heißt geboren"""
    ),
    "french": word_set(
        """qui que quoi quel quelle quels quelles où quand comment pourquoi est sont était été dans le la les des du une
        et ou avec sur par au aux ce cette ces il elle nous vous ils elles ne pas qu née naquit"""
    ),
    "spanish": word_set(
        """quién quiénes qué cuál cuáles dónde cuándo cómo porqué es está fue eran el los las del una unos y con por su
        sus al como más pero nació"""
    ),
    "italian": word_set(
        """chi che cosa quale quali dove quando come perché è sono stato stata il lo gli della dello delle degli dei del
        nel nella una e con di da al alla nato nata"""
    ),
    "portuguese": word_set(
        """quem qual quais onde quando como é são foi foram o os da das dos uma e com em no na nos nas ao pelo pela não
        nasceu"""
    ),
    "dutch": word_set(
        """wie waar wanneer hoe waarom welke werd zijn het een van en met voor op uit bij naar door over niet ook
        geboren"""
    ),
    "swedish": word_set(
        "vem vad var när hur varför vilken vilket är och att det som en ett för på av med till född"
    ),
    "polish": word_set(
        "kto co gdzie kiedy jak dlaczego jest był była się nie na do z w i oraz który która"
    ),
}
_ASKING = {
    name: word_set(listed)
    for name, listed in {
        "german": "wer wo wann wie warum welche welcher welches welchem wessen wem",
        "french": "qui où quand comment pourquoi quel quelle quels quelles",
        "spanish": "quién quiénes qué cuál cuáles dónde cuándo cómo",
        "italian": "chi dove quale quali",
        "portuguese": "quem qual quais onde",
        "dutch": "wie waar wanneer hoe welke",
        "swedish": "vem vad när hur vilken vilket",
        "polish": "kto gdzie kiedy dlaczego",
    }.items()
}
_ENGLISH_WORDS = word_set(
    """the of and to is are were what which who whom whose where when why how did does do has have had that this these
    with from by for at on as it its his her their he she they or not be been being between"""
)
_SCRIPTS = (
    ("japanese", re.compile(r"[\u3041-\u30ff]")),
    ("chinese", re.compile(r"[\u3400-\u9fff]")),
    ("korean", re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]")),
    ("russian", re.compile(r"[\u0400-\u04ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
    ("thai", re.compile(r"[\u0e00-\u0e7f]")),
)
# each English word among foreign letters raises the limit, since the letters may be a name in an English sentence
_SIGNS = 0.5
_LETTERS_OF_A_WORD = 20


def foreign_language(text: str) -> str:
    """Return the probable language of a text, in lower case; "" for English and in case of doubt.

    A text in a script of several languages gets the most common of them. Foreign names in an English text do
    not count.

    >>> foreign_language("Wo wurde Frau Müller geboren?"), foreign_language("Who directed La vie en rose?")
    ('german', '')
    """
    written = _WORD.findall(text)[:_MOST_WORDS]
    first = written[0].lower() if written else ""
    # capitalised words may be names; the first word always has a capital
    words = [first, *filter(str.islower, written[1:])]
    english = sum(word in _ENGLISH_WORDS for word in words)
    letters = sum(map(str.isalpha, text))
    for name, script in _SCRIPTS:
        if len(script.findall(text)) > max(
            _SIGNS * letters, _LETTERS_OF_A_WORD * english
        ):
            return name
    counts = {}
    for name, own_words in _OWN_WORDS.items():
        counts[name] = sum(word in own_words for word in words)
    best = max(counts, key=lambda name: counts[name])
    asks = [name for name, asking in _ASKING.items() if first in asking]
    if asks and not english:
        return best if best in asks else asks[0]
    count = counts[best]
    if count >= 2 and count > 4 * english and count * 6 >= len(written):
        return best
    return ""

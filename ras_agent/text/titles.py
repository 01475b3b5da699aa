"""Handles titles: of encyclopaedia pages, made from file names, and written by programs."""

from __future__ import annotations

import re
from html import unescape

# the look-behind matches white space only once, so in linear time
_DISAMBIGUATOR = re.compile(r"(?<!\s)\s*+\([^()]*+\)$")

# titles that programs write if the author gave no title
_NAMELESS = re.compile(
    r"(?:untitled|no title|title|unknown|anonymous|unspecified|none|null|blank|unbenannt\w*+|ohne titel|sans titre|"
    r"sin t[ií]tulo|senza titolo|sem t[ií]tulo|naamloos|без названия|无标题|無題|"
    r"(?:new |microsoft |word |scanned |untitled )*+(?:document[eo]?|dokument|scan|spreadsheet|workbook)|"
    r"(?:microsoft )?powerpoint|(?:new |microsoft |powerpoint[ -])*+pr[eäé]senta(?:tion|ción|zione)(?: powerpoint)?|"
    r"microsoft word|(?:slide|folie|page|diapositive|layout|sheet) ?\d++|about:blank)[\s\d_.-]*+",
    re.IGNORECASE,
)
_PROGRAM = re.compile(
    r"(?:microsoft (?:office )?)?(?:word|powerpoint|excel|publisher|visio|print) - ",
    re.IGNORECASE,
)
_PATH = re.compile(r"[a-z]:\\|\\\\|/|file:|https?://", re.IGNORECASE)
_FILE = re.compile(
    r"\.(?:docx?|dot[xm]?|docm|rtf|odt|odp|ods|pptx?|pps[xm]?|xls[xm]?|pdf|indd|qx[dp]|tex|dvi|ps|eps|wpd|pub|html?|tmp)$",
    re.IGNORECASE,
)
# a suffix by which an index distinguishes files of the same name
_APART = re.compile(r"~[0-9a-f]{6}$")


def bare_title(title: str) -> str:
    """Return a title without a final note in parentheses and with HTML references resolved.

    >>> bare_title("Alien (film)"), bare_title("Will &amp; Grace")
    ('Alien', 'Will & Grace')
    """
    plain = unescaped(title).strip()
    return _DISAMBIGUATOR.sub("", plain) or plain


def file_title(name: str) -> str:
    """Return a title made from the name of a file: without folder and suffix, with spaces for underscores.

    >>> file_title("notes/Alexander_Graham_Bell.txt")
    'Alexander Graham Bell'
    """
    stem = file_stem(name)
    return stem.replace("_", " ").strip()


def file_stem(name: str) -> str:
    """Return the name of a file without its folder, its suffix, and the hash that an index adds to distinguish
    equal names.
    """
    _, _, last = name.rpartition("/")
    stem, _, _ = last.rpartition(".")
    bare = _APART.sub("", stem or last)
    return bare.strip()


def is_of_file(title: str, name: str) -> bool:
    """Tell whether a title is only the name of its file."""
    return title in (file_title(name), file_stem(name))


def is_title(title: str) -> bool:
    """Tell whether a title names a document's subject, instead of being the default of a program.

    >>> is_title("1984"), is_title("Microsoft Word - draft.docx"), is_title("(Untitled 2)")
    (True, False, False)
    """
    bare = title.strip(" \t()[]<>{}\"'*_-.")
    if not any(map(str.isalnum, bare)):
        return False
    if _NAMELESS.fullmatch(bare) or _PROGRAM.match(bare):
        return False
    return not _PATH.match(bare) and not _FILE.search(title.strip())


def with_title(title: str, text: str) -> str:
    """Return a text with its title in front, which often names the person or place that the text calls "he" or
    "the city".
    """
    if title:
        return f"{title}. {text}"
    return text


def unescaped(title: str) -> str:
    """Return a title with its HTML references replaced by the characters that they stand for.

    >>> unescaped("Q&#38;A")
    'Q&A'
    """
    try:
        return unescape(title)
    # a numeric reference of thousands of digits is not a character
    except ValueError:
        return title

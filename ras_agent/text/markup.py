"""Markup in a text that is not ours, made inert: a page that shows it as Markdown or HTML loads nothing from elsewhere.

A model that has read a hostile passage may write an image whose address holds what it was told not to tell; whoever
renders the answer sends it there. Links stay, since a person has to follow them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_IMAGE = re.compile(r"(?<!!)!++(?=\[(?:[^\[\]]*\]\(\s*<?([^\s<>()]+))?)")
_LINKED = ("](", "][", "]:")
# a tag loads something by an attribute, or is script or style; a name of a type, as in List<String>, has none. What has
# not ended within some letters, which takes linear time, or at the text's end, which may not be the page's, is a tag
_TAG = re.compile(
    r"<(?!https?://[^\s<>=]*>)(?=/?(?:script|style)(?![a-z])|/?[a-z](?:[^\s/>]{0,40}(?:[\s/]|\Z)|[^\s/>]{41}))",
    re.IGNORECASE,
)
_BEGINNING = re.compile(r"(?<!!)!++(?:\[|$)|<(?:[a-zA-Z/]|$)")


def inert_markup(text: str, sources: Collection[str] = ()) -> str:
    """Return a text in which images are links and tags that could load something have a look-alike of their bracket.

    sources: an image stays whose whole address stands in one of them.

    >>> inert_markup("Leith ![x](https://elsewhere.example/?q=secret) <img src='//elsewhere.example'> List<String> !")
    "Leith [x](https://elsewhere.example/?q=secret) ‹img src='//elsewhere.example'> List<String> !"
    >>> inert_markup("![map](https://maps.example/leith.png)", ["A map: https://maps.example/leith.png"])
    '![map](https://maps.example/leith.png)'
    """

    def inert(image: re.Match[str]) -> str:
        address = image[1]
        return "!" if address is not None and any(address in source for source in sources) else ""

    if "![" in text and any(mark in text for mark in _LINKED):  # without a link, as in vec![1, 2], it is no image
        text = _IMAGE.sub(inert, text)
    return _TAG.sub("‹", text)


def markup_start(text: str, start: int = 0) -> int:
    """Return the place from `start` on behind which more text may tell that it is markup; the length for none."""
    beginning = _BEGINNING.search(text, start)
    return beginning.start() if beginning else len(text)

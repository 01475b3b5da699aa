"""Decodes web pages and chapters of books: by their byte order mark, as UTF-8, or by the encoding that they declare.

The names of encodings are those of the WHATWG Encoding Standard, in which ISO-8859-1 means Windows-1252.
"""

from __future__ import annotations

import codecs

from ras_agent.tools.index.text_files import CONVERT, NotText, check_text

# byte order marks; XML without one begins with "<", which is written with a NUL in UTF-16
_STARTS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
# in the standard, these encodings have more characters than Python's codecs of the same names
_WIDER = {
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "gbk": "gb18030",
}
_ESCAPES = (b"\x1b$", b"\x1b(")
# Python's name; its bytes are ASCII, and therefore valid UTF-8
_STATEFUL = "iso2022_jp"


def decoded_page(data: bytes) -> str:
    """Return the text of a page's bytes.

    Raises NotText for bytes that are neither UTF-8 nor in the encoding that the page declares, and for bytes that are
    not text.
    """
    text = _decoded(data)
    check_text(text)
    return text


def _decoded(data: bytes) -> str:
    for start, encoding in _STARTS:
        if data.startswith(start):
            return data.decode(encoding, "replace")
    has_escapes = any(escape in data for escape in _ESCAPES)
    if has_escapes and _declared(data) == _STATEFUL:
        return data.decode(_STATEFUL, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        declared = _declared(data)
        if not declared:
            raise NotText(
                f"neither UTF-8 nor the encoding that it declares: byte 0x{data[error.start]:02x} at {error.start:,}; "
                f"{CONVERT}"
            ) from error
        return data.decode(declared, "replace")


def _declared(data: bytes) -> str:
    """Return Python's name for the encoding that a page declares; "" for UTF-8 or if no known encoding is declared."""
    import webencodings
    from bs4.dammit import EncodingDetector

    label = EncodingDetector.find_declared_encoding(
        data, is_html=True, search_entire_document=False
    )
    found = webencodings.lookup(label or "")
    if (
        found is None
        or found.name.startswith("utf-")
        or found.name in ("replacement", "x-user-defined")
    ):
        return ""
    return _WIDER.get(found.name) or codecs.lookup(found.codec_info.name).name

"""Reads e-mails in files: the words of the writer and, separately, the words that they quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import Any, cast

from ras_agent.tools.index.text_files import Converted, NotText, check_text

_INTRODUCES = re.compile(
    r"(?i)(?:on .{4,200} wrote:|am .{4,200} schrieb .{0,100}:|le .{4,200} a écrit ?:"
    r"|-{2,20}\s*(?:original message|forwarded message|ursprüngliche nachricht)\s*-{2,20})"
)
# "On Monday, Ada Finn" above "<ada@finn.example> wrote:"
_BEGINS_INTRODUCTION = re.compile(r"(?i)(?:on|am|le) .{4,200}")
# the headers that Outlook writes above an earlier mail
_SENDER = re.compile(r"\*?(?:From|Von|De|Da|Van|Från|Fra)\s?:\*? .{1,200}")
_SENT = re.compile(
    r"\*?(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado(?: el)?|Inviato|Verzonden|Skickat|Sendt)\s?:\*? .{1,200}"
)
_MOST_HEADERS = 3  # how many lines after the sender are examined
_SIGNATURE = "-- "
_LONGEST_HEADER = 10_000
"""The maximum number of characters that are read of a header: the library's parser is very slow for long ones."""
_HEADERS = ("from", "to", "cc", "date", "message-id", "in-reply-to", "list-id")


class _ShortHeaders(policy.EmailPolicy):
    """Reads mails as the standard library's policy does, but only the beginning of each header."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Return a header's value."""
        return super().header_fetch_parse(name, value[:_LONGEST_HEADER])


def read_mail(data: bytes, from_html: Callable[[bytes], Converted]) -> Converted:
    """Return the e-mail in a file: the writer's own words and, without quotation marks, the earlier mails that it
    quotes.

    Raises NotText for a file that is not an e-mail, and any error of `from_html`.

    Args:
        from_html: converts a page, for a mail that has only HTML.
    """
    parser = BytesParser(EmailMessage, policy=_ShortHeaders())
    message = cast(EmailMessage, parser.parsebytes(data))
    about = _headers(message)
    if not about:
        raise NotText("not an e-mail: it has neither sender nor date")
    body = message.get_body(preferencelist=("plain", "html"))
    found = Converted("")
    if body is not None:
        found = Converted(_content(body))
        if body.get_content_type() == "text/html":
            found = from_html(found.text.encode())
    check_text(found.text)
    own, quoted = _parted(found.text)
    names = [
        part.get_filename() or part.get_content_type()
        for part in message.iter_attachments()
    ]
    if not (own or quoted or names):
        raise NotText("holds no text", empty=True)
    return Converted(
        text=own,
        title=str(message.get("subject", "")).strip(),
        metadata=about,
        left_out=found.left_out,
        quoted=quoted,
        attachments=tuple(names),
    )


def _headers(message: EmailMessage) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for name in _HEADERS:
        value = message.get(name)
        if value is not None and str(value).strip():
            about[name] = " ".join(str(value).split())
    try:
        written = parsedate_to_datetime(about.get("date", ""))
    except (TypeError, ValueError):  # the date is kept as written
        return about
    about["date"] = written.isoformat()
    return about


def _content(part: Any) -> str:
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError) as error:
        raise NotText(
            f"its text is in an encoding that is not known: {error}"
        ) from error


def _parted(text: str) -> tuple[str, str]:
    """Return the own words of a mail, without its signature, and its quotations, which may be below the signature."""
    own: list[str] = []
    quoted: list[str] = []
    rest_is_quoted = False
    is_signature = False
    lines = text.splitlines()
    introduced = 0  # lines of an introduction that are left
    for number, line in enumerate(lines):
        if line == _SIGNATURE:
            is_signature = True
        bare = line.strip()
        if introduced == 0:
            introduced = _introduction(lines[number : number + 2])
        is_marked = introduced > 0 and bare.startswith("-")
        if is_marked or _is_of_earlier_mail(lines[number : number + 1 + _MOST_HEADERS]):
            rest_is_quoted = True
        if line.startswith(">") or rest_is_quoted or introduced:
            quoted.append(line.lstrip("> "))
        elif not is_signature:
            own.append(line)
        introduced = max(0, introduced - 1)
    return "\n".join(own).strip(), "\n".join(quoted).strip()


def _introduction(lines: Sequence[str]) -> int:
    """Return how many of these lines introduce the quotation below: 1, 2 if the introduction is broken, or 0."""
    first = lines[0].strip()
    if _INTRODUCES.fullmatch(first):
        return 1
    if len(lines) < 2 or not _BEGINS_INTRODUCTION.fullmatch(first):
        return 0
    second = lines[1].strip()
    if _INTRODUCES.fullmatch(f"{first} {second}"):
        return 2
    return 0


def _is_of_earlier_mail(lines: Sequence[str]) -> bool:
    """Return whether lines begin with the headers of an earlier mail."""
    sender, *others = map(str.strip, lines)
    if not _SENDER.fullmatch(sender):
        return False
    return any(map(_SENT.fullmatch, others))

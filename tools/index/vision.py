"""Describes pictures that are files by a vision model that the user chooses; no model is built in."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Any

from ras_agent.contracts.errors import RasError
from ras_agent.running.calling import StillRunning, call
from ras_agent.running.recent import RecentResults
from ras_agent.tools.index.text_files import (
    Convert,
    Converted,
    FileContent,
    NotText,
    OnRead,
)

PICTURES = {
    ".png": ("image/png", b"\x89PNG"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".webp": ("image/webp", b"RIFF"),
}
"""The media type of a picture and its first bytes, by suffix."""
_LARGEST = 8 * 2**20
_LONGEST_REPLY = 1000  # tokens
_SECONDS = 120.0
_WISH = (
    "Write down all text in this picture, word by word. Then say in plain sentences what it shows: things, names, "
    "figures, and of a chart or table each value with its label. Say nothing that is not in the picture."
)


class Vision:
    """Describes pictures by a chat model such as openai:gpt-4o-mini; each picture once, even if a strict run reads it
    twice.
    """

    def __init__(self, model: str) -> None:
        """Take the name of the model."""
        self._model = model
        self.name = model.partition(":")[2]
        self._recent = RecentResults[str, str](1000)

    def describe(self, kind: str, data: bytes) -> str:
        """Return the text of a picture of the media type `kind`. Raises NotText, whose message contains no API key."""
        key = sha256(data).hexdigest()
        (text,) = self._recent.of(
            [key], lambda _: [_described(self._model, kind, data)]
        )
        return text


def with_vision(vision: Vision, convert: Convert) -> Convert:
    """Return a conversion in which a model describes pictures; other files are converted by `convert`.

    The conversion raises NotText for a file that is not a picture or is too large, and if the model returns no
    text.
    """

    def read(path: FileContent, on_read: OnRead) -> Converted:
        suffix = path.suffix.lower()
        if suffix not in PICTURES:
            return convert(path, on_read)
        kind, begin = PICTURES[suffix]
        data = path.read_bytes()
        on_read(len(data))
        if not data.startswith(begin):
            raise NotText(
                f"is not a {suffix} picture, as its name says; save it again as {suffix}"
            )
        if len(data) > _LARGEST:
            raise NotText(f"has more than {_LARGEST // 2**20} MB; save it smaller")
        text = vision.describe(kind, data)
        return Converted(text, metadata={"vision": vision.name})

    return read


def _described(model: str, kind: str, data: bytes) -> str:
    """Return a model's description of a picture. Raises NotText, whose message contains no API key."""
    from langchain_core.messages import HumanMessage

    from ras_agent.tools.chat.secrets import without_secrets

    encoded = b64encode(data).decode()
    picture = {"url": f"data:{kind};base64,{encoded}"}
    parts: list[str | dict[Any, Any]] = [
        {"type": "text", "text": _WISH},
        {"type": "image_url", "image_url": picture},
    ]
    chat = None
    try:
        chat = _model(model)
        message = HumanMessage(parts)
        reply = call(chat, "invoke", [message], within=_SECONDS)
    except (StillRunning, TimeoutError) as error:
        raise NotText(
            f"--vision gave no description within {_SECONDS:.0f} s; index again"
        ) from error
    except Exception as error:  # each provider has different errors
        said = " ".join(f"{error}".split())[:300]
        why = without_secrets(said, chat)
        name = "" if isinstance(error, RasError) else f"{type(error).__name__}: "
        raise NotText(
            f"--vision failed ({name}{why}); correct the model or its server, and index again"
        ) from None
    text = str(getattr(reply, "text", "") or "").strip()
    if not text:
        raise NotText(
            "--vision described nothing: the model gave no text; name a model that can read pictures"
        )
    return text


@cache
def _model(spec: str) -> Any:
    from ras_agent.tools.chat.models import build_chat_model

    return build_chat_model(spec, timeout=_SECONDS, max_tokens=_LONGEST_REPLY)

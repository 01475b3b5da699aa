"""Replies kept on disk, so that a run can be replayed without its models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.prompts import Turn
from ras_agent.tools.spread.kept_rows import Rows
from ras_agent.tools.spread.rows import open_rows

__all__ = ["REPLY_COLUMNS", "KeptReply", "ReplyCache"]

REPLY_COLUMNS = ("key", "request", "reply")


class ReplyCache:
    """Hash of a model's parameters and the messages -> reply; in one SQLite file, or elsewhere (see `open_rows`).

    Each operation is a transaction: safe between threads, processes and event loops, and a killed run leaves no half a
    reply. What was put is there after the process is killed; only the machine's own end may cost the last few. The
    first reply for a key stays, so two runs at once replay the same afterwards. The file holds prompts and replies in
    plain text, and no credentials.
    """

    def __init__(self, path: str | Path) -> None:
        """Makes the file and its folders where there are none. Raises SettingsError for a file of another kind."""
        self.path = Path(path)
        self.rows = open_rows(path, REPLY_COLUMNS, "replies")

    def get(self, parameters: Mapping[str, Any], turns: Sequence[Turn]) -> dict[str, Any] | None:
        """The reply kept for a request, or None."""
        return self.place_of(parameters, turns).get()

    def put(self, parameters: Mapping[str, Any], turns: Sequence[Turn], reply: Mapping[str, Any]) -> None:
        """Keep a reply, a mapping of JSON values."""
        self.place_of(parameters, turns).put(reply)

    def place_of(self, parameters: Mapping[str, Any], turns: Sequence[Turn]) -> KeptReply:
        """Where a request's reply is kept, or will be."""
        return KeptReply(self.rows, *_request(parameters, turns))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class KeptReply:
    """The place of one request's reply. `key` is its hash, `request` its JSON for a reader."""

    rows: Rows
    key: str
    request: str

    def get(self) -> dict[str, Any] | None:
        """The reply, or None."""
        row = self.rows.get(self.key)
        return json.loads(row[2]) if row else None

    def put(self, reply: Mapping[str, Any]) -> None:
        """Keep a reply, a mapping of JSON values."""
        self.rows.put((self.key, self.request, json.dumps(dict(reply))))


def _request(parameters: Mapping[str, Any], turns: Sequence[Turn]) -> tuple[str, str]:
    """The key of a request, and the request as JSON for a reader."""
    messages = [[turn.role, turn.text] for turn in turns]
    request = json.dumps({"parameters": dict(parameters), "messages": messages}, sort_keys=True, default=str)
    return hashlib.sha256(request.encode()).hexdigest(), request

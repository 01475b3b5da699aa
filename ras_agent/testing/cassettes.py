"""Records the model calls of a test once, and replays them without any model.

    with Cassette(Path("bell.jsonl")) as cassette:  # Cassette(path, record=True) asks the models, and writes the file
        agent = create_ras_agent(index="my.index", llm="openai:gpt-4o-mini", settings=cassette.settings)
        assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"

A cassette is a text file with a request and its reply on each line, so that a review shows each change of a prompt or
a reply. ras_agent.testing.plugin has a pytest fixture for cassettes.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.chat.cache import ReplyCache
from ras_agent.tools.store.durable import replace_file


class Cassette:
    """Records or replays model calls in a file, inside a `with` statement."""

    settings: Settings
    """for agents and roles with calls that are recorded or replayed; `settings.model_copy(update=...)` adds other
    settings"""

    def __init__(self, path: Path, *, record: bool = False) -> None:
        """Take the file's path. With `record`, models are called, and the file is written if the block ends
        without an error.
        """
        self.path = path
        self.record = record

    def __enter__(self) -> Self:
        """Prepare `settings`, and read the file unless calls are recorded.

        Raises:
            SettingsError: if there is no file to replay, or a line is not a recorded call.
        """
        if not self.record and not self.path.is_file():
            remedy = "record it where the models can be asked: pytest --record, or Cassette(path, record=True)"
            raise SettingsError(f"the cassette {self.path} does not exist; {remedy}")
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        replies = Path(self._folder.name) / "replies.sqlite"
        self._replies = ReplyCache(replies)
        self.settings = Settings(cache=replies, replay=not self.record)
        if not self.record:
            self._read()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write the recorded calls, sorted by hop, role and text. Write nothing if the block raised an error.

        Text that is not Unicode becomes "?".
        """
        with self._folder:
            if not self.record or kind is not None:
                return
            calls = self._replies.recordings()
            calls.sort(
                key=lambda call: (
                    call["hop"],
                    call["role"],
                    json.dumps(call["messages"], sort_keys=True),
                )
            )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = [
                json.dumps(call, ensure_ascii=False, sort_keys=True) + "\n"
                for call in calls
            ]
            replace_file(self.path, "".join(lines).encode("utf-8", "replace"))

    def _read(self) -> None:
        for number, line in enumerate(self.path.read_text("utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                self._replies.record(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                wrong = f"{self.path} line {number}: no recorded call ({type(error).__name__}: {error})"
                raise SettingsError(f"{wrong}; record the cassette again") from error

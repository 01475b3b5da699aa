"""Prompts are text files of chat turns with `{{name}}` placeholders.

    --- extends plan          (optional first line)
    --- system
    You plan ...
    --- user
    Question: {{question}}

A file without any `---` line is one user turn. A file that extends another adds its system text to that prompt's, and
puts its other turns, usually worked examples, before the last one. A user's folder overrides the packaged files by
name, also where another file extends them: pass `directory`, or set RAS_AGENT_PROMPTS.

Turns are parted before values are filled in, and values are filled in once: no value can add a turn or a placeholder.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ras_agent.errors import PromptError

__all__ = ["DIRECTORY_VARIABLE", "Prompt", "Turn", "fragment", "load", "prompt_names", "render"]

DIRECTORY_VARIABLE = "RAS_AGENT_PROMPTS"

Role = Literal["system", "user", "assistant"]
_PACKAGED = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_HEADER = re.compile(r"^--- (?:(system|user|assistant)|extends ([a-z0-9-]+))[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as read from its file, placeholders and all."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(name for turn in self.turns for name in _PLACEHOLDER.findall(turn.text))

    def fill(self, **variables: str) -> tuple[Turn, ...]:
        """The turns with their placeholders filled, those left empty dropped.

        Raises PromptError for a variable that the prompt does not have, and for one that was not given.
        """
        for problem, culprits in (
            ("needs", self.variables - variables.keys()),
            ("has no variable", variables.keys() - self.variables),
        ):
            if culprits:
                named, known = (", ".join(sorted(names)) or "none" for names in (culprits, self.variables))
                raise PromptError(f"prompt {self.name!r} {problem} {named}; its variables: {known}")
        filled = (
            Turn(turn.role, _PLACEHOLDER.sub(lambda match: variables[match[1]], turn.text).strip())
            for turn in self.turns
        )
        return tuple(turn for turn in filled if turn.text)


def load(name: str, directory: str | Path | None = None) -> Prompt:
    """The prompt called `name`. Raises PromptError if there is none, or its file cannot be understood."""
    return Prompt(name, _turns(name, _folders(directory), seen=()))


def render(name: str, /, *, directory: str | Path | None = None, **variables: str) -> tuple[Turn, ...]:
    """`load` and `fill` in one: the turns of a prompt with its placeholders filled."""
    return load(name, directory).fill(**variables)


def fragment(name: str, directory: str | Path | None = None) -> str:
    """The text of a one-turn prompt without placeholders, for use as a variable of another."""
    return "\n\n".join(turn.text for turn in render(name, directory=directory))


def prompt_names(directory: str | Path | None = None) -> tuple[str, ...]:
    """All prompts there are, a user's own included."""
    return tuple(sorted({path.stem for folder in _folders(directory) for path in folder.glob("*.txt")}))


def _folders(directory: str | Path | None) -> tuple[Path, ...]:
    """Where to look, in order."""
    own = directory or os.environ.get(DIRECTORY_VARIABLE)
    if not own:
        return (_PACKAGED,)
    folder = Path(own)
    if not folder.is_dir():
        raise PromptError(f"the prompts folder {str(folder)!r} does not exist")
    return (folder, _PACKAGED)


def _turns(name: str, folders: tuple[Path, ...], seen: tuple[str, ...]) -> tuple[Turn, ...]:
    if name in seen:
        raise PromptError(f"prompts extend each other in a circle: {' -> '.join((*seen, name))}")
    path = _find(name, folders)
    base, turns = _parse(path, path.read_text(encoding="utf-8"))
    if base is None:
        return turns
    extended = _turns(base, folders, (*seen, name))
    if all(turn.role == "system" for turn in extended):
        raise PromptError(f"{path} extends {base!r}, which has no user turn to put its own before")
    return _extend(extended, turns)


def _find(name: str, folders: tuple[Path, ...]) -> Path:
    for folder in folders:
        path = folder / f"{name}.txt"
        if _NAME.fullmatch(name) and path.is_file():
            return path
    known = sorted({path.stem for folder in folders for path in folder.glob("*.txt")})
    raise PromptError(f"unknown prompt {name!r}; known: {', '.join(known)}")


def _parse(path: Path, text: str) -> tuple[str | None, tuple[Turn, ...]]:
    """The prompt that a file extends, or None, and its own turns."""
    headers = list(_HEADER.finditer(text))
    if not headers:
        return None, (Turn("user", text.strip()),)
    if text[: headers[0].start()].strip():
        raise PromptError(f"{path} line 1: expected '--- system', '--- user', '--- assistant' or '--- extends <name>'")
    base: str | None = None
    turns: list[Turn] = []
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        body = text[header.end() : following.start() if following else len(text)].strip()
        if header[1]:
            turns.append(Turn(cast(Role, header[1]), body))
            continue
        if header is not headers[0] or body:
            line = text.count("\n", 0, header.start()) + 1
            raise PromptError(f"{path} line {line}: 'extends' stands alone in front of all turns")
        base = header[2]
    return base, tuple(turns)


def _extend(base: tuple[Turn, ...], turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    system = "\n\n".join(turn.text for turn in (*base, *turns) if turn.role == "system")
    *opening, last = (turn for turn in base if turn.role != "system")
    added = (turn for turn in turns if turn.role != "system")
    return (*((Turn("system", system),) if system else ()), *opening, *added, last)

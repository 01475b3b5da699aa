"""Reads prompts: text files of chat turns with `{{name}}` placeholders.

    --- extends plan          (optional first line)
    --- system
    You plan ...
    --- user
    Question: {{question}}

A file without any `---` line is one user turn. A file that extends another adds its system text to that
prompt's, and puts its other turns, usually worked examples, before that prompt's last turn. Files in a user's
folder (`directory`, or RAS_AGENT_PROMPTS) replace packaged files of the same name, also where another file
extends them.

`{{SUBQ}}`, `{{FACT}}` and the like are the marks of ras_agent.contracts.marks, filled in when the file is read. Turns are
split before values are filled in, and values are filled in once, so no value can add a turn or a placeholder. A
line that consists only of a placeholder is removed if its value is empty.

A file that replaces no packaged prompt, or has a placeholder that the packaged one does not have, is an error.
Otherwise nobody would notice that it is not used.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self, cast

from ras_agent.contracts.errors import PromptError
from ras_agent.contracts.marks import PLACEHOLDERS

DIRECTORY_VARIABLE = "RAS_AGENT_PROMPTS"

THOUGHTS_KEY = "reasoning_content"
"""The key of the model's thoughts in a message, as used by DeepSeek, vLLM and others."""

Role = Literal["system", "user", "assistant", "tool"]
_PACKAGED = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_HEADER = re.compile(
    r"^--- (?:(system|user|assistant)|extends ([a-z0-9-]+))[ \t]*$", re.MULTILINE
)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PLACEHOLDER_LINE = re.compile(r"^\{\{(\w+)\}\}\n", re.MULTILINE)
_FEW_SHOT = "-few-shot"
_OPTIONAL = {"task": "", "history": "plan-", "problem": "repair", "schema": "triples"}
"""Placeholders that a user's prompt may leave out, each with the beginning of the names of such prompts."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Holds a model's call of a tool."""

    name: str
    arguments: dict[str, Any]
    """A JSON object, as the model wrote it."""
    id: str = ""
    """Matches the call with its answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Holds a message of a chat."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    """The calls in an assistant's turn, or the one that a tool's turn answers."""
    thoughts: str = ""
    """The model's thoughts before an assistant's turn, if the server sends them separately from the text."""

    def to_message(self, *, arguments_as_text: bool = True) -> dict[str, Any]:
        """Return the turn as a message of OpenAI's protocol, with `thoughts` under THOUGHTS_KEY.

        Args:
            arguments_as_text: whether a call's arguments are JSON text, as in the protocol, or the object itself.
        """
        message: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.role == "tool":
            answered = self.calls[0]
            return message | {"tool_call_id": answered.id, "name": answered.name}
        calls = []
        for call in self.calls:
            arguments: Any = call.arguments
            if arguments_as_text:
                arguments = json.dumps(arguments, ensure_ascii=False)
            function = {"name": call.name, "arguments": arguments}
            calls.append({"id": call.id, "type": "function", "function": function})
        if calls:
            message["tool_calls"] = calls
        if self.thoughts:
            message[THOUGHTS_KEY] = self.thoughts
        return message

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> Self:
        """Return the turn that `to_message` wrote. Raises LookupError, TypeError or ValueError for another form."""
        role = message["role"]
        text = message["content"]
        if role == "tool":
            answered = ToolCall(message["name"], {}, message["tool_call_id"])
            return cls(role, text, (answered,))
        calls = []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            calls.append(ToolCall(function["name"], arguments, call["id"]))
        return cls(role, text, tuple(calls), message.get(THOUGHTS_KEY, ""))


@dataclass(frozen=True, slots=True)
class Prompt:
    """Holds a prompt as its file contains it, with placeholders."""

    name: str
    turns: tuple[Turn, ...]

    @property
    def variables(self) -> frozenset[str]:
        """Return the names of the placeholders."""
        return _variables(self.turns)

    def versions(self) -> Iterator[Self]:
        """Yield the prompt with all its worked examples, then without the first one, and so on, down to no
        examples.
        """
        yield self
        first = 1 if self.turns[0].role == "system" else 0
        shorter = self.turns
        while len(shorter) > first + 2:
            shorter = shorter[:first] + shorter[first + 2 :]
            yield replace(self, turns=shorter)

    def fill(self, **variables: str) -> tuple[Turn, ...]:
        """Return the turns with their placeholders filled in. Turns that are then empty are left out.

        Raises:
            PromptError: for a placeholder without a value, and for a non-empty value without a placeholder.
        """
        placeholders = self.variables
        if missing := placeholders - variables.keys():
            raise PromptError(
                f"the prompt {self.name!r} shows {_name_list(missing)}, for which there is no value here: leave it out; "
                f"the prompt can show {_name_list(variables)}"
            )
        unseen = variables.keys() - placeholders
        if unseen := set(filter(variables.get, unseen)):
            shown = _name_list(placeholders, "no value at all")
            raise PromptError(
                f"the prompt {self.name!r} does not show {_name_list(unseen)}; it shows {shown}: "
                "add the missing placeholders to it"
            )

        def value_of(match: re.Match[str]) -> str:
            return variables[match[1]]

        def line_of(match: re.Match[str]) -> str:
            if not variables[match[1]]:
                return ""
            return match[0]

        turns = []
        for turn in self.turns:
            text = _PLACEHOLDER_LINE.sub(line_of, turn.text)
            filled = _PLACEHOLDER.sub(value_of, text).strip()
            if filled:
                turns.append(Turn(turn.role, filled))
        return tuple(turns)


@lru_cache(maxsize=128)
def _variables(turns: tuple[Turn, ...]) -> frozenset[str]:
    names: set[str] = set()
    for turn in turns:
        names.update(_PLACEHOLDER.findall(turn.text))
    return frozenset(names)


def load(
    name: str, directory: str | Path | None = None, *, few_shot: bool = False
) -> Prompt:
    """Load the prompt with this name.

    Args:
        directory: a folder with files that override the packaged ones.
        few_shot: whether to load its variant with worked examples, `<name>-few-shot`.

    Raises:
        PromptError: if there is no such prompt, or its file cannot be parsed.
    """
    folders = _folders(directory)
    # otherwise it is one of the caller's own prompts
    if len(folders) > 1 and (_PACKAGED / f"{name}.txt").is_file():
        _check_own(folders[0])
    if few_shot:
        plain = name
        name = name + _FEW_SHOT
        if name not in _names(folders):
            raise PromptError(
                f"the prompt {plain!r} has no worked examples: write {name}.txt in your folder of prompts, "
                "or leave few_shot out"
            )
    return Prompt(name, _turns(name, folders, including=()))


def render(
    name: str, /, *, directory: str | Path | None = None, **variables: str
) -> tuple[Turn, ...]:
    """Return the turns of a prompt with their placeholders filled in: `load` and `fill` in one."""
    prompt = load(name, directory)
    return prompt.fill(**variables)


def fragment(name: str, directory: str | Path | None = None) -> str:
    """Return the text of the prompt `name`, which is a part of other prompts and has no placeholders."""
    turns = render(name, directory=directory)
    return "\n\n".join(turn.text for turn in turns)


def prompt_names(directory: str | Path | None = None) -> tuple[str, ...]:
    """Return the names of all prompts, including a user's own."""
    return _names(_folders(directory))


def _folders(directory: str | Path | None) -> tuple[Path, ...]:
    """Return the folders to search, in order. Raises PromptError if the user's folder does not exist."""
    override = directory or os.environ.get(DIRECTORY_VARIABLE)
    if not override:
        return (_PACKAGED,)
    folder = Path(override)
    if not folder.is_dir():
        raise PromptError(
            f"the prompts folder {str(folder)!r} does not exist: correct the path, or create it"
        )
    return (folder, _PACKAGED)


def _check_own(folder: Path) -> None:
    """Raise PromptError if a file in a user's folder replaces no packaged prompt, or has other placeholders
    than it.

    A file may leave out only the placeholders in the list of optional ones.
    """
    packaged = _names((_PACKAGED,))
    files = {}
    bases: set[str] = set()
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        files[path] = text
        for header in _HEADER.finditer(text):
            bases.add(header[2])
    for path, text in files.items():
        name = path.stem.removesuffix(_FEW_SHOT)
        if name in packaged:
            _check_placeholders(path, name, text)
        elif path.stem not in bases:
            suggestion = ""
            stem = path.stem.casefold()
            for near in difflib.get_close_matches(stem, packaged, n=1):
                suggestion = f"did you mean {near}.txt? "
            raise PromptError(
                f"{path}: there is no prompt {path.stem!r}; {suggestion}Known: {', '.join(packaged)}"
            )


def _check_placeholders(path: Path, name: str, text: str) -> None:
    """Raise PromptError if the file's placeholders differ from those of the packaged prompt `name`."""
    variables = _variables(_turns(name, (_PACKAGED,), including=()))
    for placeholder in _PLACEHOLDER.finditer(text):
        if placeholder[1] in variables or placeholder[1] in PLACEHOLDERS:
            continue
        line = text.count("\n", 0, placeholder.start()) + 1
        shown = _name_list(variables, "no value")
        raise PromptError(
            f"{path} line {line}: the prompt {name!r} has no value for {placeholder[0]}; it can show "
            f"{shown}, and the marks {_name_list(PLACEHOLDERS)}"
        )
    shown_here = _variables(_turns(path.stem, (path.parent, _PACKAGED), including=()))
    missing = set(variables - shown_here)
    for variable, start in _OPTIONAL.items():
        if name.startswith(start):
            missing.discard(variable)
    if missing:
        raise PromptError(
            f"{path}: the prompt does not show {_name_list(missing)}, which has a value in every run; add it, as "
            f"{name}.txt of the package shows it"
        )


def _name_list(placeholders: Iterable[str], nothing: str = "nothing") -> str:
    names = sorted(placeholders)
    return ", ".join(map("{{{{{}}}}}".format, names)) or nothing


def _names(folders: tuple[Path, ...]) -> tuple[str, ...]:
    names: set[str] = set()
    for folder in folders:
        names.update(path.stem for path in folder.glob("*.txt"))
    return tuple(sorted(names))


def _turns(
    name: str, folders: tuple[Path, ...], including: tuple[str, ...]
) -> tuple[Turn, ...]:
    chain = (*including, name)
    if name in including:
        raise PromptError(
            f"prompts extend each other in a circle: {' -> '.join(chain)}; remove one '--- extends' line"
        )
    path = _find(name, folders)
    text = path.read_text(encoding="utf-8")
    marked = _PLACEHOLDER.sub(lambda match: PLACEHOLDERS.get(match[1], match[0]), text)
    base, turns = _parse(path, marked)
    if base is None:
        return turns
    extended = _turns(base, folders, chain)
    if not _messages(extended):
        raise PromptError(
            f"{path} extends {base!r}, which has no user turn: extend another prompt, or write all turns"
        )
    return _extend(extended, turns)


def _find(name: str, folders: tuple[Path, ...]) -> Path:
    for folder in folders:
        path = folder / f"{name}.txt"
        if _NAME.fullmatch(name) and path.is_file():
            return path
    raise PromptError(f"unknown prompt {name!r}; known: {', '.join(_names(folders))}")


def _parse(path: Path, text: str) -> tuple[str | None, tuple[Turn, ...]]:
    """Return the name of the prompt that a file extends, or None, and the file's own turns."""
    before, *rest = _HEADER.split(text)
    if not rest:
        return None, (Turn("user", before.strip()),)
    if before.strip():
        raise PromptError(
            f"{path} line 1: expected '--- system', '--- user', '--- assistant' or '--- extends <name>'"
        )
    base: str | None = None
    turns: list[Turn] = []
    # for each header: its role, the name that it extends, and the text after it
    for role, name, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if role:
            turns.append(Turn(cast(Role, role), body.strip()))
        elif base or turns or body.strip():
            raise PromptError(
                f"{path}: '--- extends {name}' stands in front of all turns, on the first line; move it"
            )
        base = name or base
    return base, tuple(turns)


def _extend(base: tuple[Turn, ...], turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    *opening, last = _messages(base)
    extended = [*opening, *_messages(turns), last]
    system = _texts((*base, *turns), "system")
    if system:
        extended.insert(0, Turn("system", "\n\n".join(system)))
    return tuple(extended)


def _messages(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns other than system turns."""
    return [turn for turn in turns if turn.role != "system"]


def _texts(turns: Iterable[Turn], role: Role) -> list[str]:
    return [turn.text for turn in turns if turn.role == role]


def examples_in(turns: Sequence[Turn]) -> list[str]:
    """Return the assistant's replies in a prompt's worked examples."""
    return _texts(turns, "assistant")

"""Writes manifests of runs. A manifest records, before the first question, everything that the run's figures
depend on.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import ras_agent
from ras_agent.contracts.records import JSON
from ras_agent.eval.question import Question
from ras_agent.prompts import load, prompt_names

SCHEMA = "ras-agent/run"
VERSION = 1

_PACKAGES = (
    "ras-agent",
    "langgraph",
    "langchain-core",
    "langchain",
    "langchain-openai",
    "PyStemmer",
    "numpy",
    "torch",
)
# these may differ between the sittings of a run
VERSIONS = ("packages", "python", "git_commit")
# keys that older manifests lack
_LATER = frozenset({"knowledge_graph"})
_CIRCUMSTANCES = frozenset(
    {"name", "data", "corpus", "index", *VERSIONS, "started", "resumed"}
)


class RunDescription(TypedDict):
    """Describes a task and an agent in a manifest."""

    name: str
    benchmark: str
    data: str
    data_sha256: str | None
    corpus: NotRequired[str | None]
    """The file of the passages, if they did not come with the questions."""
    index: NotRequired[str | None]
    """The index of the passages, if they did not come with the questions."""
    corpus_sha256: str | None
    graph: str
    """"ras", "ircot", "single-shot" ..., or "none" without a loop."""
    roles: Mapping[str, str]
    limits: JSON
    metrics: Sequence[str]
    seed: NotRequired[int]
    retrieval_only: NotRequired[bool]
    settings: NotRequired[JSON]
    """How models are asked, such as temperature and style."""
    variant: NotRequired[JSON]
    """What a study changed, such as {"ablation": "no_triples"}."""
    knowledge_graph: NotRequired[str | None]
    """The fingerprint of the graph that is searched."""


def manifest_of(
    questions: Sequence[Question],
    described: RunDescription,
    prompts_dir: str | Path | None = None,
) -> JSON:
    """Return the manifest of a run of `questions`.

    `prompts_dir` is the folder of prompts that replace the packaged ones.
    """
    empty = {"settings": {}, "seed": 0, "retrieval_only": False, "variant": {}}
    known: JSON = dict(described)
    for key in _LATER:
        if not known.get(key):
            known.pop(key, None)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        **empty,
        **known,
        "questions": len(questions),
        "questions_sha256": _questions_sha256(questions),
        "prompts": prompt_hashes(prompts_dir),
        **versions(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between two manifests that would change results, each as "key: ... there, ...
    here".

    Nested keys are written as "limits.k". Packages, the commit, the time and the path of the data are ignored,
    because a run may be finished on another machine; its manifest then lists such changes under "resumed".
    """
    there = _flat(_as_json(before))
    here = _flat(_as_json(now))
    listed = []
    for key in sorted(there.keys() | here.keys()):
        if (
            key.partition(".")[0] not in _CIRCUMSTANCES
            and not (key in _LATER and key not in there)
            and there.get(key, _ABSENT) != here.get(key, _ABSENT)
        ):
            listed.append(f"{key}: {_text(there, key)} there, {_text(here, key)} here")
    return listed


def apart_from_role(
    manifest: Mapping[str, Any], other: Mapping[str, Any], role: str
) -> list[str]:
    """Return the differences between two runs, except the model or rule of `role`.

    They can be in other roles and their prompts, the retriever, settings, limits, corpus and graph.
    """
    apart = []
    for line in differences(manifest, other):
        if _is_apart(line, role):
            apart.append(line)
    return apart


_SYSTEM = ("roles.", "limits.", "settings.", "graph:", "retrieval_only:")
_SEARCHED = ("corpus_sha256:", "knowledge_graph:")
_PROMPTS = {
    "planner": ("plan", "react", "subq-", "followup", "next-sentence"),
    "answerer": ("answer", "may-", "must-", "corag-answer", "reader"),
    "extractor": ("triples", "text2triple", "mentions"),
}
"""The beginnings of the names of each role's prompts."""


def _is_apart(difference: str, role: str) -> bool:
    if difference.startswith(f"roles.{role}:"):
        return False
    if role == "planner" and difference.startswith("settings.dialect:"):
        return False
    if difference.startswith((*_SYSTEM, *_SEARCHED)):
        return True
    prompt = difference.removeprefix("prompts.")
    own = _PROMPTS.get(role, ())
    return prompt != difference and not prompt.startswith(own)


def file_sha256(path: str | Path) -> str:
    r"""Return the SHA-256 of a file's content in hexadecimal.

    Line ends count as "\n", and blank lines at the end of the file are ignored.
    """
    digest = hashlib.sha256()
    ends = 0
    with Path(path).open("rb") as file:
        for line in file:
            plain = line.replace(b"\r\n", b"\n")
            if plain == b"\n":
                ends += 1
                continue
            digest.update(b"\n" * ends + plain)
            ends = 0
    return digest.hexdigest()


def prompt_hashes(directory: str | Path | None = None) -> dict[str, str]:
    """Return the SHA-256 of each prompt by name. Prompts in `directory` replace the packaged ones, or are added
    to them.
    """
    hashes = {}
    for name in prompt_names(directory):
        hashes[name] = hashlib.sha256(
            json.dumps(
                [[turn.role, turn.text] for turn in load(name, directory).turns]
            ).encode()
        ).hexdigest()
    return hashes


def git_commit() -> str | None:
    """Return the commit of the checkout that this package runs from, with "+changes" if tracked files were
    changed.

    Return None for an installed package, or if git cannot be run.
    """
    folder = Path(ras_agent.__file__).resolve().parent
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    if commit and changed:
        return f"{commit}+changes"
    return commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        process = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()


def versions() -> JSON:
    """Return the versions of the running code: packages, Python and the commit."""
    packages = {"ras-agent": ras_agent.__version__}
    for package in _PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "packages": packages,
        "python": platform.python_version(),
        "git_commit": git_commit(),
    }


def _questions_sha256(questions: Iterable[Question]) -> str:
    listed = []
    for question in questions:
        listed.append([question.id, question.question, list(question.answers)])
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


_ABSENT = object()


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(json.dumps(dict(value), default=str))
    return parsed


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            flat |= _flat(item, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = item
    return flat


def _text(values: Mapping[str, Any], key: str) -> str:
    text = "absent"
    if key in values:
        text = json.dumps(values[key], ensure_ascii=False)
    if len(text) <= 80:
        return text
    return f"{text[:79]}…"

"""Every package that an extra brings may be used by an Apache-2.0 package, and has a version that was tried.

By the metadata of the installed packages.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_FOR_USERS = {"dev", "docs", "mutants"}
APART = {
    "mauve": "mauve-text is under the GPL: it is in no other extra, and MAUVE is computed only where it is asked for"
}

PERMISSIVE = re.compile(
    r"\b(MIT|MIT-0|0?BSD|Apache|PSF|Python Software Foundation|ISC|Zlib|BSL|CC0|HPND|Unlicense)"
)
RECIPROCAL = re.compile(
    r"\b(A?GPL|LGPL|GNU|MPL|Mozilla|EPL|CDDL|SSPL|BUSL)", re.IGNORECASE
)
ALLOWED = {
    "psycopg": "LGPL-3.0: imported unchanged as a library, which its licence leaves to programs of any licence",
    "psycopg-binary": "LGPL-3.0: as psycopg",
    "psycopg-pool": "LGPL-3.0: as psycopg",
    "certifi": "MPL-2.0: holds for its own files, which are used unchanged",
    "orjson": "MPL-2.0 for one of its files; langgraph-sdk brings it",
    "tqdm": "MPL-2.0 for some of its files; huggingface-hub and others bring it",
}
"""Packages whose licence asks for something in return, and why they may be used."""


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _closure(requirements: list[str]) -> tuple[set[str], set[str]]:
    """Return the packages that requirements bring, with all that these bring: the installed ones, and the others."""
    installed, missing = set[str](), set[str]()
    done = set[tuple[str, str]]()
    waiting = [(requirement, "") for requirement in requirements]
    while waiting:
        text, extra = waiting.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate(
            {"extra": extra}
        ):
            continue
        name = _key(requirement.name)
        if name == _key(PROJECT["name"]):
            more = [
                (line, "")
                for own in requirement.extras
                for line in PROJECT["optional-dependencies"][own]
            ]
            waiting += more
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            missing.add(name)
            continue
        installed.add(name)
        for wanted in ("", *requirement.extras):
            if (name, wanted) not in done:
                done.add((name, wanted))
                waiting += [(line, wanted) for line in needs]
    return installed, missing


def _licence(name: str) -> str:
    """Return the licence in a package's metadata: its expression, else its classifiers, else a first line."""
    said = metadata.metadata(name)
    classifiers = [
        line
        for line in said.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    return (
        said.get("License-Expression")
        or "; ".join(classifiers)
        or (said.get("License") or "").partition("\n")[0]
    )


def _requirements(*left_out: str) -> list[str]:
    extras = PROJECT["optional-dependencies"]
    return [
        *PROJECT["dependencies"],
        *(line for name in extras if name not in left_out for line in extras[name]),
    ]


def test_no_extra_brings_a_licence_that_asks_for_something_in_return_unless_it_is_listed() -> (
    None
):
    installed, _ = _closure(_requirements(*NOT_FOR_USERS, *APART))
    licences = {name: _licence(name) for name in sorted(installed)}
    assert {
        name: said
        for name, said in licences.items()
        if RECIPROCAL.search(said) and name not in ALLOWED
    } == {}
    assert {
        name: said
        for name, said in licences.items()
        if not PERMISSIVE.search(said) and name not in ALLOWED
    } == {}


def test_what_is_listed_is_still_brought_and_still_asks_for_it() -> None:
    installed, missing = _closure(_requirements(*NOT_FOR_USERS, *APART))
    for name in ALLOWED:
        assert name in installed | missing
        assert name in missing or RECIPROCAL.search(_licence(name)), (
            f"{name} need not be listed any more"
        )


def test_an_extra_that_is_apart_is_in_no_other() -> None:
    for name, lines in PROJECT["optional-dependencies"].items():
        if name not in NOT_FOR_USERS:
            own = {
                extra
                for line in lines
                for extra in Requirement(line).extras
                if "ras-agent" in line
            }
            assert own & set(APART) == set(), name


def test_where_everything_is_installed_everything_is_looked_at() -> None:
    _, missing = _closure(_requirements(*NOT_FOR_USERS, *APART))
    # these need a graphics processor or are large, and no test of CI needs them
    unseen = missing - {"vllm", "faiss-gpu-cu12", "datasets", "inspect-ai", "neo4j"}
    if unseen:
        pytest.skip(
            f"needs all extras: pip install 'ras-agent[dev]', which brings {', '.join(sorted(unseen))}"
        )


@pytest.mark.parametrize(
    "extra",
    [name for name in PROJECT["optional-dependencies"] if name not in NOT_FOR_USERS],
)
def test_only_two_extras_bring_faiss_and_never_both(extra: str) -> None:
    def brings(name: str) -> set[str]:
        lines = PROJECT["optional-dependencies"][name]
        own = {_key(Requirement(line).name) for line in lines}
        return own.union(
            *(
                brings(other)
                for line in lines
                if "ras-agent[" in line
                for other in Requirement(line).extras
            )
        )

    assert brings(extra) & {"faiss-cpu", "faiss-gpu-cu12"} == (
        {"faiss-gpu-cu12"}
        if extra == "gpu"
        else {"faiss-cpu"}
        if extra in ("faiss", "all")
        else set()
    )


# ---- versions that were tried together

LINE = re.compile(r"[A-Za-z0-9][\w.-]*==\d[\w.]*")
TRIED = [
    line
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_constraints_are_names_and_versions_alone() -> None:
    assert [line for line in TRIED if not LINE.fullmatch(line)] == []


def test_constraints_have_what_core_and_extras_bring_in_versions_that_the_project_takes() -> (
    None
):
    tried = {
        _key(name): version
        for name, _, version in (line.partition("==") for line in TRIED)
    }
    installed, _ = _closure(_requirements("mutants"))
    assert sorted(installed - tried.keys()) == []
    own = map(Requirement, _requirements("mutants"))
    ranges = {_key(one.name): one.specifier for one in own if _key(one.name) in tried}
    assert {
        name
        for name, specifier in ranges.items()
        if not specifier.contains(tried[name])
    } == set()

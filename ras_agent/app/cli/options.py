"""Defines the exit codes, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ras_agent.config.address import Address, place_of
from ras_agent.contracts.errors import SettingsError

if TYPE_CHECKING:
    from ras_agent.config.settings import Settings


def read_place(text: str) -> Path | Address:
    """Parse the place of an index or a cache: a path, or the address of a database.

    Raises:
        BadParameter: for an invalid address. The message does not quote it, because it may contain a password.
    """
    try:
        return place_of(text)
    except SettingsError as error:
        raise typer.BadParameter(str(error)) from None


DONE = 0
ERROR = 1
USAGE = 2
INCOMPLETE = 3
UNANSWERED = 4
INTERRUPTED = 130

EXIT_CODES = (
    "Exit codes: 0 done; 1 error; 2 wrong usage; 3 done, but `ask` found no answer in the text, "
    "`index` or `structure` could not read all of its input, or a question of `eval` failed; "
    "4 `ask` has no answer because a model cannot be asked, its answerer failed or a limit refused its call; "
    "130 interrupted."
)

data_option = partial(typer.Option, rich_help_panel="Questions and corpus")
run_option = partial(typer.Option, rich_help_panel="The run")
varied_option = partial(typer.Option, rich_help_panel="What is varied")
"""Declare options of evaluations, each in one panel of the help."""

Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel="Retrieval",
        help="Search the bundled sample instead of an index.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Compacting = Annotated[
    Literal["now", "later"],
    typer.Option(
        "--compact",
        help="When deleted text is erased from the files of the index: now, or by a later command.",
    ),
]
RunPlace = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of an evaluation run.")
]
AsJSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
IndexFolder = Annotated[
    Path,
    typer.Argument(parser=read_place, metavar="PLACE", help="The index."),
]
PricesFile = Annotated[
    Path | None,
    typer.Option(
        hidden=True,
        help='Your prices per million tokens: {"model": {"input": 1, "output": 2}}.',
    ),
]
Engine = Annotated[
    str,
    run_option(
        hidden=True,
        help="Where the work is done: in this process (here), in several processes, or on a Ray cluster (ray).",
    ),
]
Workers = Annotated[
    int | None,
    run_option(
        hidden=True,
        min=1,
        help="Number of workers of --engine. If not set, one per core.",
    ),
]
RayAddress = Annotated[
    str | None,
    run_option(
        hidden=True,
        help="Address of a Ray cluster. If not set, RAY_ADDRESS, or a cluster that is started here.",
    ),
]


def check_index(sample: bool, settings: Settings) -> None:
    """Raise BadParameter if a search needs an index, and neither --index nor --sample names one."""
    if not sample and settings.needs_index:
        raise typer.BadParameter(
            "there is no index to search: give --index PATH, or --sample to try the bundled one"
        )


def offline_note(role_names: Mapping[str, str]) -> str:
    """Return a line that names the offline roles, and how to give them a model; "" if no role is offline.

    `role_names` has the component in each role.
    """
    offline = [
        role for role, name in role_names.items() if name.partition(":")[0] == "offline"
    ]
    if len(offline) == len(role_names):
        return "offline mode: no LLM configured (ras-agent doctor shows how to add one)"
    return (
        f"offline {' and '.join(offline)}: no LLM configured (--{offline[0]} or --llm adds one)"
        if offline
        else ""
    )

"""Makes the tables of trainings. Each row is trained and scored for each seed, and the tables are written after
each row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeVar

from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.contracts.records import JSON
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.report.markdown import markdown_table
from ras_agent.tools.store.card import write_card
from ras_agent.tools.store.durable import replace_file
from ras_agent.train.processes import process_count
from ras_agent.train.ranges import COUNT, SEED, check_ranges

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Card = Mapping[str, Any]
"""The figures of a trained row: `scores` by metric, each with its `mean`, `costs` by name, and the `result` of
`fit`."""


Changes = Mapping[str, Any]
TEXT: Changes = {"encoder": "none", "graph_tokens": 0}
"""The options of a model that reads only text."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Describes a row of a table by the training that it needs."""

    name: str
    """The name in the first column."""
    changes: Changes = field(default_factory=dict)
    """The options that differ from the command's."""


Row = TypeVar("Row", bound=TableRow)


@dataclass(frozen=True, kw_only=True)
class TablesOptions:
    """Holds the options of tables. A configuration class inherits from it and from a training's class, so it
    has no slots.
    """

    tables: tuple[str, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the trainings, instead of --seed."""
    rows: tuple[int, ...] = ()
    """Numbers of the rows, from 1; if not set, all."""

    def check_tables(self, known: Iterable[str]) -> None:
        """Raise UnknownName for a table that is not among `known`, and SettingsError if there is no table or no
        seed.
        """
        check_ranges(self, {"seeds": SEED, "rows": COUNT})
        for name in self.tables:
            if name not in known:
                raise UnknownName("table", name, tuple(known))
        if not self.seeds or not self.tables:
            raise SettingsError(
                "--tables and --seeds must not be empty: name at least one table and one seed"
            )

    def chosen(self, known: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
        """Return the rows of the named tables whose numbers are chosen."""
        tables: dict[str, list[Row]] = {}
        for table in self.tables:
            tables[table] = []
            for number, row in enumerate(known[table], 1):
                if not self.rows or number in self.rows:
                    tables[table].append(row)
        return tables

    def options_for(self, training: type[DataclassInstance]) -> dict[str, Any]:
        """Return the options for a training, taken from those of the command. `training` is the class of the
        training's options.
        """
        options: dict[str, Any] = {}
        for option in fields(training):
            if option.init:
                options[option.name] = getattr(self, option.name)
        return options


def fill_tables(
    out: Path,
    name: str,
    data: Path,
    seeds: Sequence[int],
    tables: Mapping[str, Sequence[Row]],
    card_of: Callable[[str, Row, int], Card],
) -> JSON:
    """Train and score all rows, write tables.md and tables.json into `out`, and return their figures.

    Args:
        out: The folder of the tables.
        name: The benchmark, whose metrics are shown.
        data: The file of the questions.
        seeds: The seeds of each row's trainings.
        tables: The rows of each table, by its name.
        card_of: Trains and scores a row of the named table with a seed, and returns a card with the scores.

    Raises:
        SettingsError: If it is called under torchrun.
    """
    if process_count() > 1:
        raise SettingsError(
            "tables are made by one process: run one command for each processor, with its own --rows and --out"
        )
    out.mkdir(parents=True, exist_ok=True)
    figures: JSON = {"benchmark": name, "data": data.name, "seeds": list(seeds)}
    for table, rows in tables.items():
        figures[table] = {}
        for row in rows:
            of_row = _figures([card_of(table, row, seed) for seed in seeds])
            figures[table][row.name] = of_row
            print(json.dumps({"table": table, "row": row.name, **of_row}), flush=True)
            write_card(out / "tables.json", figures)
    text = _as_markdown(figures, tables, benchmark(name).metrics)
    replace_file(out / "tables.md", text.encode())
    print(text)
    return figures


def slug(name: str) -> str:
    """Return the name of a row as the name of a folder.

    >>> slug("LoRA, graph token (G-Retriever)")
    'lora-graph-token-g-retriever'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")


def _figures(cards: Sequence[Card]) -> JSON:
    """Return the scores of each metric and each cost, both by seed, and the steps of the trainings."""
    scores: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    steps = []
    for card in cards:
        steps.append(card.get("result", {}).get("steps", 0))
        for name, score in card["scores"].items():
            scores.setdefault(name, []).append(score["mean"])
        for name, cost in card.get("costs", {}).items():
            costs.setdefault(name, []).append(cost)
    return {"scores": scores, "costs": costs, "steps": steps}


def _as_markdown(figures: JSON, tables: Iterable[str], metrics: Sequence[str]) -> str:
    seeds = ", ".join(map(str, figures["seeds"]))
    text = f"{figures['benchmark']}, {figures['data']}, seeds {seeds}\n"
    for table in tables:
        measured = dict[str, None]()
        costs = dict[str, None]()
        for of_row in figures[table].values():
            measured |= dict.fromkeys(of_row["scores"])
            costs |= dict.fromkeys(of_row["costs"])
        shown = [name for name in metrics if name in measured]
        lines = []
        for name, of_row in figures[table].items():
            cells = [_cell(of_row["scores"].get(metric, ())) for metric in shown]
            cells += [_cost(of_row["costs"].get(cost, ())) for cost in costs]
            lines.append([name, *cells])
        header = [table, *shown, *costs]
        text += f"\n{table}\n\n{markdown_table(header, lines)}\n"
    return text


def _cell(scores: Sequence[float]) -> str:
    if not scores:
        return ""
    spread = ""
    if len(scores) > 1:
        spread = f" ± {stdev(scores):.3f}"
    return f"{fmean(scores):.3f}{spread}"


def _cost(costs: Sequence[float]) -> str:
    if not costs:
        return ""
    return f"{fmean(costs):.4g}"

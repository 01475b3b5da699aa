"""Writes a run's results as a table, with a row for each question and a column for each score."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from ras_agent.eval.formats.exported import Exported, write_text
from ras_agent.eval.formats.registry import Format, registered
from ras_agent.eval.formats.verl import write_parquet
from ras_agent.eval.run.result import table_rows


def _write_csv(run: Exported, path: Path) -> Sequence[Path]:
    rows = table_rows(run.results)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return write_text(path, stream.getvalue())


def _write_parquet(run: Exported, path: Path) -> Sequence[Path]:
    return write_parquet(path, table_rows(run.results), every_column=True)


CSV = registered(
    Format(name="csv", title="a table of results", write_results=_write_csv)
)
PARQUET = registered(
    Format(
        name="parquet",
        title="a table of results in Parquet",
        write_results=_write_parquet,
    )
)

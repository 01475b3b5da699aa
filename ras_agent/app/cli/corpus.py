"""Implements `ras-agent corpus`, which writes the passages that come with a benchmark's questions as a corpus
to index.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.terminal import inert, quantity

if TYPE_CHECKING:
    from ras_agent.contracts.records import Passage


def corpus(
    *,
    benchmark: Annotated[
        str, typer.Argument(metavar="SET", help="The set, such as hotpotqa or musique.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The set's own file of questions.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The file to write, one passage a line."),
    ],
) -> None:
    """Write the passages of a benchmark's questions, each once, for `ras-agent index`.

    The union of the questions' contexts is the corpus that papers search:
    HotpotQA, 2WikiMultihopQA and MuSiQue are published with ten to twenty
    passages per question, and without a corpus.
    """
    from ras_agent.eval.benchmarks import benchmark as find_benchmark
    from ras_agent.tools.store.durable import replace_file

    passages = find_benchmark(benchmark).corpus(file)
    lines = [_line(passage) for passage in passages]
    replace_file(out, "".join(lines).encode())
    count = quantity(len(passages), "passage")
    typer.echo(f"{inert(str(out))}: {count}")


def _line(passage: Passage) -> str:
    record = {"id": passage.id, "title": passage.title, "text": passage.text}
    return json.dumps(record, ensure_ascii=False) + "\n"

"""Implements `ras-agent eval-cost`, which compares the costs of extraction from a whole corpus and from each
question's passages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli.options import AsJSON, PricesFile, RunPlace, read_place
from ras_agent.app.cli.terminal import print_json, print_line, quantity, screen
from ras_agent.contracts.errors import SettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.config.address import Address
    from ras_agent.contracts.records import Passage
    from ras_agent.eval.run.index_cost import CostComparison, ReadingCost
    from ras_agent.eval.run.prices import Price


def eval_cost(
    *,
    run: RunPlace,
    corpus: Annotated[
        Path,
        typer.Option(
            help="The passages that the run searched, JSON Lines of id, text, title."
        ),
    ],
    triple_cache: Annotated[
        Path | None,
        typer.Option(
            parser=read_place,
            metavar="PLACE",
            help="Count the tokens of the calls that are stored there for this corpus.",
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            help="The extractor whose calls are counted, as `structure` takes it."
        ),
    ] = None,
    prices: PricesFile = None,
    model: Annotated[
        str | None,
        typer.Option(help="The model that extracts, by its name in the price table."),
    ] = None,
    output_ratio: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Output tokens for each token of text, if no calls were counted.",
        ),
    ] = 1.0,
    as_json: AsJSON = False,
) -> None:
    """Compare the cost of extraction: the corpus once, or each question's passages.

    Tokens are measured if a model read passages in the run or into a triple
    cache; otherwise they are estimated from the lengths of the texts.
    """
    from ras_agent.eval.formats import load_passages
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.eval.run.index_cost import compare, published_ranges
    from ras_agent.eval.run.prices import load_prices

    if (triple_cache is None) != (extractor is None):
        raise typer.BadParameter(
            "--triple-cache and --extractor go together: give both, or neither"
        )
    passages = load_passages(corpus)
    results = list(RunFolder(run).results())
    ids = {passage.id for passage in passages}
    # a run that names its gold passages by title names its retrieved passages by title too
    by_title = any(
        result.retrieved and ids.isdisjoint(result.retrieved) for result in results
    )
    by_name = {
        passage.title if by_title else passage.id: passage for passage in passages
    }
    measured = (
        _measure_reading(passages, triple_cache, extractor)
        if triple_cache and extractor
        else None
    )
    comparison = compare(
        results, by_name, measured, output_ratio=output_ratio, by_title=by_title
    )
    price = load_prices(prices).of(model) if model else None
    if model and price is None:
        raise SettingsError(
            f"the price table has no model {model!r}; add it to the file given with --prices"
        )
    ranges = published_ranges(passages)
    if as_json:
        costs = (
            {name: getattr(comparison, name).cost(price) for name in _ROWS}
            if price
            else None
        )
        print_json(
            {**comparison.to_dict(), "cost": costs, "published_usd": ranges}, indent=2
        )
    else:
        _show(screen(), comparison, price, ranges)


_ROWS = {
    "static": "the whole corpus, once",
    "per_question": "a question's passages",
    "all_questions": "all questions, each read anew",
    "distinct_passages": "all questions, with a triple cache",
}


def _measure_reading(
    passages: list[Passage], place: Path | Address, spec: str
) -> ReadingCost:
    from ras_agent.config.settings import load_settings
    from ras_agent.eval.run.index_cost import mean_passage
    from ras_agent.graphs.resolve import extractor_from_settings
    from ras_agent.tools.structure.cache import TripleCache, facts_key

    if isinstance(place, Path) and not place.is_file():
        raise SettingsError(
            f"the triple cache {place} does not exist: make it with `ras-agent structure`"
        )
    fingerprint = getattr(
        extractor_from_settings(load_settings(None, {}, {"triple_cache": place}), spec),
        "fingerprint",
        "",
    )
    cache = TripleCache(place)
    stored = [cache.get(facts_key(fingerprint, passage)) for passage in passages]
    calls = [facts.calls for facts in stored if facts is not None]
    if not calls:
        raise SettingsError(
            f"{place} holds no facts that {spec} read in this corpus: run `ras-agent structure` first"
        )
    return mean_passage(calls)


def _show(
    console: Console,
    comparison: CostComparison,
    price: Price | None,
    ranges: dict[str, Any],
) -> None:
    from rich.table import Table

    table = Table(
        "extracted from",
        "passages",
        "calls",
        "tokens in",
        "tokens out",
        box=None,
        header_style="dim",
    )
    if price:
        table.add_column("cost")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, label in _ROWS.items():
        reading: ReadingCost = getattr(comparison, name)
        figures = (
            reading.passages,
            reading.calls,
            reading.input_tokens,
            reading.output_tokens,
        )
        cost = [f"{reading.cost(price):,.4f}"] if price else []
        table.add_row(
            label,
            *(
                f"{figure:,.0f}" if figure >= 100 else f"{figure:,.1f}"
                for figure in figures
            ),
            *cost,
        )
    console.print(table)
    how = (
        "measured by calls that were made"
        if comparison.static.measured
        else "estimated from the texts' lengths"
    )
    note = f"{quantity(comparison.questions, 'question')} · tokens {how}"
    if comparison.break_even:
        note += f" · the corpus pays off after {quantity(comparison.break_even, 'question')} without a triple cache"
    print_line(console, note, "dim")
    others = ", ".join(
        f"{name} {low:,.2f} to {high:,.2f} USD" for name, (low, high) in ranges.items()
    )
    print_line(
        console, f"extraction of this corpus at published rates: {others}", "dim"
    )

"""Computes the cost of model calls from the user's table of prices.

No prices are built in, because they change and differ by contract. The file is JSON, `model -> {"input",
"output", "cached"}` per million tokens, all in one currency. Keys that begin with "_" are notes.
eval/run/prices.json is such a file without any model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import SettingsError

_KINDS = ("input", "output", "cached")
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """Holds the price of a million tokens."""

    input: float
    output: float
    cached: float
    """The price of a million input tokens that the endpoint had cached."""

    def cost(
        self, input_tokens: int, output_tokens: int, cached_tokens: int = 0
    ) -> float:
        """Return the cost of tokens. `cached_tokens` are a part of `input_tokens`."""
        fresh = max(0, input_tokens - cached_tokens)
        return (
            fresh * self.input
            + cached_tokens * self.cached
            + output_tokens * self.output
        ) / _MILLION


@dataclass(frozen=True, slots=True)
class Tokens:
    """Counts the tokens of model calls.

    Replayed calls count too, because without cached replies the run would cost that much.
    """

    calls: int = 0
    input: int = 0
    """All input tokens, including `cached` ones, as endpoints report them."""
    output: int = 0
    cached: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.calls + other.calls,
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Holds a sum in the currency of the price table, and the models that are missing in it because they have
    no price.
    """

    total: float = 0.0
    unpriced: tuple[str, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.total + other.total,
            tuple(dict.fromkeys(self.unpriced + other.unpriced)),
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """Holds a table of prices. A model is looked up by its whole name, else by the part after its provider or
    endpoint.
    """

    table: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model: str) -> Price | None:
        """Return the price of `model`, such as "gpt-x", "openai:gpt-x" or "vllm:http://host/v1#x"; None if unknown."""
        bare = model.rpartition("#")[2] if "#" in model else model.partition(":")[2]
        return self.table.get(model) or self.table.get(bare)


def load_prices(path: str | Path | None = None) -> Prices:
    """Read the table of prices in a file; without a file, return an empty table.

    Raises:
        SettingsError: the file is not a table of prices.
    """
    if path is None:
        return Prices()
    text = Path(path).read_text("utf-8")
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{path}: not JSON ({error}); correct the file") from error
    if not isinstance(data, dict):
        raise SettingsError(
            f'{path}: expected {{"model": {{"input": 0, "output": 0}}}}, found {type(data).__name__}'
        )
    return Prices(
        {
            model: _price(entry, f"{path}: {model}")
            for model, entry in data.items()
            if model[:1] != "_"
        }
    )


def _price(entry: Any, where: str) -> Price:
    if (
        not isinstance(entry, dict)
        or not {"input", "output"} <= entry.keys()
        or entry.keys() - set(_KINDS)
    ):
        raise SettingsError(
            f"{where}: expected input, output and perhaps cached, per million tokens; found {entry!r}"
        )
    for kind, value in entry.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise SettingsError(
                f"{where}: {kind}: expected a price of 0 or more, found {value!r}"
            )
    prices = {"cached": entry["input"], **entry}
    return Price(**{kind: float(prices[kind]) for kind in _KINDS})


def cost_of(tokens: Mapping[str, Tokens], prices: Prices) -> Cost:
    """Return the cost of the tokens of all models."""
    total = Cost()
    for model, used in tokens.items():
        price = prices.of(model)
        if price is None:
            total += Cost(unpriced=(model,))
            continue
        total += Cost(price.cost(used.input, used.output, used.cached))
    return total


def model_tokens(usage: Mapping[str, Any]) -> dict[str, Tokens]:
    """Return the tokens of each model from a result's `usage` (see ras_agent.eval.run.result.token_use)."""
    tokens = {}
    for model, used in (usage.get("by_model") or {}).items():
        tokens[model] = Tokens(
            used.get("calls", 0),
            used.get("input_tokens", 0),
            used.get("output_tokens", 0),
            used.get("cached_tokens", 0),
        )
    return tokens

"""The cost of calls, by a table that the user keeps."""

from pathlib import Path

import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.run.prices import (
    Cost,
    Price,
    Prices,
    Tokens,
    cost_of,
    load_prices,
    model_tokens,
)

PRICES = Prices(
    {"small": Price(1.0, 4.0, 0.25), "openai:large": Price(10.0, 40.0, 10.0)}
)


def test_the_table_that_is_shipped_holds_no_price() -> None:
    assert load_prices() == Prices({})


def test_input_cached_input_and_output_have_a_price_each() -> None:
    # 600,000 fresh at 1, 400,000 cached at 0.25, 200,000 out at 4 per million
    assert cost_of({"small": Tokens(5, 1_000_000, 200_000, 400_000)}, PRICES) == Cost(
        0.6 + 0.1 + 0.8
    )


def test_a_model_without_a_price_has_an_unknown_cost_and_is_named() -> None:
    used = {"small": Tokens(1, 1_000_000), "other": Tokens(1, 1_000_000)}
    assert cost_of(used, PRICES) == Cost(1.0, ("other",))


@pytest.mark.parametrize(
    ("model", "input_price"),
    [
        ("small", 1.0),
        ("openai:small", 1.0),
        ("vllm:http://host:8000/v1#small", 1.0),
        ("openai:large", 10.0),
    ],
)
def test_a_model_is_found_by_its_name_with_or_without_its_provider(
    model: str, input_price: float
) -> None:
    price = PRICES.of(model)
    assert price is not None
    assert price.input == input_price


def test_a_name_that_only_resembles_another_is_not_found() -> None:
    assert PRICES.of("large") is None
    assert PRICES.of("smaller") is None


def test_a_table_is_read_and_cached_costs_as_much_as_input_where_nothing_is_said(
    tmp_path: Path,
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(
        '{"_": "a note", "m": {"input": 2, "output": 8}, "n": {"input": 2, "output": 8, "cached": 0.5}}'
    )
    assert load_prices(path) == Prices(
        {"m": Price(2.0, 8.0, 2.0), "n": Price(2.0, 8.0, 0.5)}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "found list"),
        ('{"m": {"input": 1}}', "m: expected input, output and perhaps cached"),
        (
            '{"m": {"input": 1, "output": 2, "cache": 3}}',
            "m: expected input, output and perhaps cached",
        ),
        (
            '{"m": {"input": "1", "output": 2}}',
            "m: input: expected a price of 0 or more, found '1'",
        ),
        (
            '{"m": {"input": 1, "output": -2}}',
            "m: output: expected a price of 0 or more, found -2",
        ),
        (
            '{"m": {"input": NaN, "output": 2}}',
            "m: input: expected a price of 0 or more, found nan",
        ),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_prices(path)


def test_the_tokens_of_each_model_are_read_from_a_results_usage() -> None:
    counts = {
        "calls": 2,
        "replayed": 0,
        "input_tokens": 30,
        "output_tokens": 7,
        "cached_tokens": 10,
    }
    assert model_tokens({"calls": 2, "by_model": {"m": counts}}) == {
        "m": Tokens(2, 30, 7, 10)
    }
    assert model_tokens({"calls": 0}) == {}

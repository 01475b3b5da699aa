"""Names of facts: their keys and ids."""

import pytest

from ras_agent.contracts import records
from ras_agent.contracts.records import Triple


def test_the_names_of_a_short_fact_are_computed_once_and_those_of_a_long_one_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[tuple[str, str, str]] = []

    def fact_id(key: tuple[str, str, str]) -> str:
        computed.append(key)
        return "t1"

    monkeypatch.setattr(records, "fact_id", fact_id)
    monkeypatch.setattr(records, "_names", records._Names())
    short, long = (
        Triple("The Leith", "flows through", "Edinburgh"),
        Triple("Bell", "said", "hello " * 100),
    )
    assert [fact.id for fact in (short, short, long, long)] == ["t1"] * 4
    assert [key[0] for key in computed] == ["leith", "bell", "bell"]
    assert short.key == ("leith", "flows through", "edinburgh")


def test_names_of_more_facts_than_are_kept_are_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = records._Names()
    monkeypatch.setattr(records, "_names", names)
    monkeypatch.setattr(records._Names, "_MOST", 2)
    facts = [Triple(subject, "is", "a name") for subject in ("one", "two", "three")]
    assert [fact.key[0] for fact in facts] == ["one", "two", "three"]
    assert list(names) == [("three", "is", "a name")]

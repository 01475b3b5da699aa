"""Filters: which passages they admit, and how a wrong one is reported."""

import re

import pytest

from ras_agent.config.filters import Filter, read_filter, read_metadata, takes_filter
from ras_agent.contracts.errors import FilterError
from ras_agent.contracts.records import Passage

PASSAGE = Passage(
    "docs/a.md#2",
    "text",
    "A title",
    "docs/a.md",
    {
        "team": "x",
        "year": 2019,
        "tags": ["red", "blue"],
        "open": True,
        "share": 0.5,
        "day": "2024-02-01",
        "days": ["1999-12-31", "2024-02-01"],
        "id": "other",
        "none": None,
    },
)


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"team": "x"},
        {"team": ["x", "y"]},
        {"year": 2019},
        {"year": "2019"},
        {"tags": "blue"},
        {"tags": ["green", "red"]},
        {"open": True},
        {"open": "true"},
        {"share": 0.5},
        {"team": "x", "year": [2019, 2020]},
        [{"tags": "red"}, {"tags": "blue"}],
        {"id": "docs/a.md#2"},
        {"id": "docs/*"},
        {"document_id": ["b.md", "docs/a*"]},
        {"title": "A title"},
        {"team": {"in": ["x", "y"]}, "year": {"not": [2018, 2020]}},
        {"year": {"before": 2020, "after": "2018-12-31"}},
        {"share": {"after": 0.4}},
        {"day": {"before": "2024-03", "after": "2024-01-31"}},
        {"day": {"after": "2024-02-01T01:00:00+02:00"}},
        {"day": {"exists": True}, "colour": {"exists": "false", "not": "red"}},
        {"tags": {"not": "green"}, "id": {"not": "docs/b*"}},
        {"days": {"before": 2000}},
    ],
    ids=str,
)
def test_a_filter_admits_a_passage_that_has_one_of_the_values_under_each_key(
    given: object,
) -> None:
    assert Filter.of(given).matches(PASSAGE)


@pytest.mark.parametrize(
    "given",
    [
        {"team": "X"},
        {"team": "x*"},
        {"team": "x", "year": 2020},
        {"colour": "red"},
        {"open": 1},
        {"open": "True"},
        {"none": "None"},
        {"none": "null"},
        {"id": "other"},
        {"id": "a.md*"},
        {"title": "A*"},
        {"tags": "['red', 'blue']"},
        [{"team": "x"}, {"team": "y"}],
        {"team": {"not": ["x", "y"]}},
        {"tags": {"not": "red"}},
        {"id": {"not": "docs/*"}},
        {"year": {"before": 2019}},
        {"year": {"after": 2019}},
        {"share": {"before": "2024-01-01"}},
        {"team": {"before": 7}},
        {"colour": {"after": 0}},
        {"open": {"after": 0}},
        {"none": {"exists": True}},
        {"day": {"exists": False}},
        {"day": {"before": "2024-02-01"}},
        {"day": {"after": "2023", "before": "2024"}},
    ],
    ids=str,
)
def test_a_filter_leaves_out_every_other_passage(given: object) -> None:
    assert not Filter.of(given).matches(PASSAGE)


def test_one_is_another_filter_than_true() -> None:
    assert Filter.of({"open": True}) != Filter.of({"open": 1})
    assert Filter.of({"year": 2019}) == Filter.of({"year": "2019"})


def test_both_admits_what_each_admits_and_a_filter_cannot_be_widened() -> None:
    bound = Filter.of({"team": "x"})
    assert not bound.both(Filter.of({"team": "y"})).matches(PASSAGE)
    assert not bound.both(Filter.of({"team": ["y", "z"]})).matches(PASSAGE)
    assert bound.both(Filter.of({"team": ["x", "y"]}), Filter()).matches(PASSAGE)
    assert (
        str(bound.both(Filter.of({"year": [2019, 2020]})))
        == "team = x, year = 2019 or 2020"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "team=x",
            """a filter must be a JSON object such as {"team": "x"}, got 'team=x'""",
        ),
        (7, 'a filter must be a JSON object such as {"team": "x"}, got 7'),
        (
            {"team": []},
            "filter key 'team' has no value: give it one, or leave the key out",
        ),
        (
            {"team": None},
            "filter key 'team' must be compared with a text, a number, true or false, or a list of",
        ),
        (
            {"team": {"$ne": "x"}},
            "filter key 'team': unknown comparison '$ne'; known: before, after, until, in, not and exists",
        ),
        (
            {"team": {}},
            "filter key 'team' has an empty object instead of a comparison; known: before, after",
        ),
        (
            {"team": {"not": {"in": "x"}}},
            "filter key 'team' must be compared with a text, a number, true or false, or a list of",
        ),
        (
            {"day": {"before": "soon"}},
            "filter key 'day': 'before' takes a number or a date such as 2024-01-31, got 'soon'",
        ),
        (
            {"day": {"after": [1, 2]}},
            "filter key 'day': 'after' takes a number or a date",
        ),
        (
            {"day": {"after": True}},
            "filter key 'day': 'after' takes a number or a date",
        ),
        (
            {"day": {"exists": "yes"}},
            "filter key 'day': 'exists' must be true or false, got 'yes'",
        ),
        (
            {"id": {"after": 1}},
            "filter key 'id': 'after' works only for fields of the metadata",
        ),
        (
            {"team": ["x", ["y"]]},
            "filter key 'team' must be compared with a text, a number, true or false, or a list of",
        ),
        ({7: "x"}, "a filter's keys have to be texts, got 7"),
        (
            {"n": [1, 1 << 64]},
            "filter key 'n': the number 18446744073709551616 is too large: give one of at most 64 bits",
        ),
        ({"": "x"}, "a filter's keys have to be texts, got ''"),
        (
            {"a\ud800": "x"},
            r"filter key 'a\ud800' has a character that databases cannot store (NUL or a lone surrogate): remove it",
        ),
    ],
)
def test_a_wrong_filter_is_an_error_that_shows_it(given: object, message: str) -> None:
    with pytest.raises(FilterError, match=re.escape(message)):
        Filter.of(given)


def test_the_command_line_s_filters_are_any_of_by_key() -> None:
    assert read_filter(["team=x", "year=2019", "team=y", "url=a=b"]) == {
        "team": ["x", "y"],
        "year": ["2019"],
        "url": ["a=b"],
    }
    tests = ["day.before=2024", "day.after=2023", "team.not=x", "team.not=y", "a.b=c"]
    assert read_filter([*tests, "day=2023-05-01", '{"open": {"exists": true}}']) == {
        "day": {"before": "2024", "after": "2023", "in": ["2023-05-01"]},
        "team": {"not": ["x", "y"]},
        "a.b": ["c"],
        "open": {"exists": True},
    }
    for twice in (["day.before=1", "day.before=2"], ['{"a": ']):
        with pytest.raises(FilterError, match=r"two values for 'before'|is not JSON"):
            read_filter(twice)
    for wrong in ("team", "=x", ""):
        with pytest.raises(FilterError, match="expected key=value, such as team=x"):
            read_filter([wrong])


def test_a_retriever_takes_a_filter_by_a_parameter_of_that_name_or_by_any() -> None:
    class Plain:
        def retrieve(self, query: str, k: int = 5) -> list[object]:
            return []

    class Named(Plain):
        def retrieve(
            self, query: str, k: int = 5, *, filter: object = None
        ) -> list[object]:
            return []

    class Open(Plain):
        def retrieve(self, query: str, k: int = 5, **options: object) -> list[object]:
            return []

    assert [takes_filter(one()) for one in (Plain, Named, Open)] == [False, True, True]


class TestMetadataOfDocuments:
    def test_texts_of_the_command_line_are_fields_and_a_repeated_key_is_a_list(
        self,
    ) -> None:
        assert read_metadata(["team=sales", "year=2024", "year=2025"]) == {
            "team": "sales",
            "year": ["2024", "2025"],
        }

    def test_an_object_stays_as_it_is_and_other_collections_become_lists(self) -> None:
        assert read_metadata({"team": "sales", "year": 2024, "open": True}) == {
            "team": "sales",
            "year": 2024,
            "open": True,
        }
        assert read_metadata({"year": (2024, 2025)}) == {"year": [2024, 2025]}

    def test_nothing_and_an_empty_text_take_a_field_away(self) -> None:
        assert read_metadata({"team": None, "year": ""}) == {"team": None, "year": None}

    @pytest.mark.parametrize("metadata", ["team=sales", 7, None, [{"team": "sales"}]])
    def test_what_is_no_object_is_refused(self, metadata: object) -> None:
        with pytest.raises(FilterError, match="metadata must be a JSON object"):
            read_metadata(metadata)

    @pytest.mark.parametrize(
        "value",
        [{"nested": 1}, [], [None], float("nan"), "half a character \ud800"],
        ids=[
            "object",
            "empty list",
            "list of nothing",
            "no number",
            "half a character",
        ],
    )
    def test_a_value_that_no_filter_could_compare_is_refused(
        self, value: object
    ) -> None:
        with pytest.raises(FilterError):
            read_metadata({"team": value})

    def test_a_field_that_passages_have_themselves_is_refused(self) -> None:
        with pytest.raises(FilterError, match="choose another name"):
            read_metadata({"title": "mine"})

from ras_agent.text.figures import figures_in


def told(text: str) -> list[tuple[str, str]]:
    return [(text[figure.start : figure.end], figure.kind) for figure in figures_in(text)]


def test_dates_are_found_whole() -> None:
    text = "Born on 6 March 1937, crowned in May 1962, died February 3, 1999."
    assert told(text) == [("6 March 1937", "date"), ("May 1962", "date"), ("February 3, 1999", "date")]


def test_years_decades_and_centuries_are_told_apart() -> None:
    text = "Built in 1712, painted in the early 1970s, rebuilt in the 19th century."
    assert told(text) == [("1712", "year"), ("early 1970s", "decade"), ("19th century", "century")]


def test_numbers_keep_their_unit() -> None:
    assert told("It is 8 km long and cost $150 million for 22,513 people.") == [
        ("8 km", "number"),
        ("$150 million", "number"),
        ("22,513", "number"),
    ]


def test_later_dates_have_a_greater_order() -> None:
    early, late = (figures_in(text)[0].order for text in ("3 February 1945", "21 July 1945"))
    assert 1945 <= early < late < 1946


def test_number_words_and_scales_count() -> None:
    assert [figure.order for figure in figures_in("three acts, 1.5 million copies, twice")] == [3.0, 1.5e6, 2.0]


def test_a_table_of_numbers_gives_each_once_in_order() -> None:
    table = " ".join(f"{year} 3 May {year + 1}" for year in range(1700, 2000))
    assert told(table) == [
        found for year in range(1700, 2000) for found in ((str(year), "year"), (f"3 May {year + 1}", "date"))
    ]

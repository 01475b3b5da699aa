"""Lines state triples in the forms that models make up, without the marks that they were asked for."""

import pytest

from ras_agent.tools.structure.triple_lines import read_lines, unmarked

ABC, DEF = ("a", "b", "c"), ("d", "e", "f")


@pytest.mark.parametrize(
    "text",
    [
        "a | b | c\nd | e | f",
        "(a | b | c)\n(d | e | f)",
        "(a | b | c), (d | e | f)",
        "Facts: (a | b | c)\nAlso (d | e | f), I think.",
        "<triple>a | b | c</triple>\n<triple>d | e | f</triple>",
        "| a | b | c |\n| d | e | f |",
        "a -> b -> c\nd --> e → f",
        "('a', 'b', 'c')\n(\"d\", \"e\", \"f\")",
        "('a', 'b', 'c'), ('d', 'e', 'f')",
        "(a, b, c)\n(d, e, f)",
        "<S> a <P> b <O> c\n<s>d<p>e<o>f",
        "<S> a <P> b <O> c <S> d <P> e <O> f",
        "S> a\nP> b\nO> c\nS> d P> e O> f",
        "S> a P> b O> c\n- (S> d, P> e; O> f)",
        "Subject: a, Predicate: b, Object: c\n**Subject:** d; **Predicate:** e; **Object:** f",
        "Subject: a | Predicate: b | Object: c\nHead: d | Relation: e | Tail: f",
        "Subject: a\nPredicate: b\nObject: c\n\n- S: d\n- P: e\n- O: f",
        "1. a | b | c\n[2] d | e | f",
        "* `a` | b | c;\n> **d** | _e_ | f.",
    ],
)
def test_the_same_two_triples_in_many_forms(text: str) -> None:
    found = read_lines(text)
    assert found.triples == [ABC, DEF]
    assert found.others == []


@pytest.mark.parametrize(
    "text",
    [
        "| Who | Does | What |\n|-----|:----:|------|\n| a | b | c |\n| d | e | f |",
        "Who | Does | What\n--- | --- | ---\na | b | c\nd | e | f",
        "Subject | Predicate | Object\na | b | c\nd | e | f",
        "| Fact | Subject | Predicate | Object |\n|---|---|---|---|\n| 1 | a | b | c |\n| 2 | d | e | f |",
    ],
)
def test_a_tables_head_and_rule_state_nothing_and_are_not_left_over(text: str) -> None:
    found = read_lines(text)
    assert (found.triples, found.others) == ([ABC, DEF], [])


def test_the_head_of_a_table_without_rows_is_no_triple() -> None:
    assert read_lines("Who | Does | What\n---|---|---").triples == []


def test_above_a_line_of_dashes_without_bars_stands_no_head() -> None:
    assert read_lines("a | b | c\n-----\nd | e | f").triples == [ABC, DEF]


def test_a_column_of_words_in_front_is_no_number_of_a_row() -> None:
    found = read_lines("| x | a | b | c |")
    assert (found.triples, found.others) == ([], ["| x | a | b | c |"])


@pytest.mark.parametrize(
    ("line", "triple"),
    [
        ("`Bell` | `was born in` | `Edinburgh`", ("Bell", "was born in", "Edinburgh")),
        (
            "- __Bell__ -> was born in -> __Edinburgh__",
            ("Bell", "was born in", "Edinburgh"),
        ),
        ("**Bell | was born in | Edinburgh**", ("Bell", "was born in", "Edinburgh")),
        (
            "“Bell” | *was born in* | ** Edinburgh **",
            ("Bell", "was born in", "Edinburgh"),
        ),
        (
            "Edith | says | `yes` or `no` to you",
            ("Edith", "says", "`yes` or `no` to you"),
        ),
        (r"AC\|DC | plays | rock", ("AC|DC", "plays", "rock")),
        (r"(AC\|DC | plays | rock)", ("AC|DC", "plays", "rock")),
        (
            "(Bell (the inventor) | lived in | Boston)",
            ("Bell (the inventor)", "lived in", "Boston"),
        ),
    ],
)
def test_quotes_and_markup_around_a_whole_field_are_left_out(
    line: str, triple: tuple[str, str, str]
) -> None:
    assert read_lines(line).triples == [triple]


def test_a_field_is_unmarked_as_often_as_it_is_marked_but_keeps_marks_around_its_parts() -> (
    None
):
    assert unmarked(' **_"a  b"_** ') == "a b"
    assert unmarked("“a”") == "a"
    assert unmarked('"a" and "b"') == '"a" and "b"'
    assert unmarked('" a "') == "a"


def test_lines_with_a_label_each_make_a_triple_across_blank_lines() -> None:
    found = read_lines(
        "Subject: a\n\nPredicate: b\n\nObject: c\nSubject: d\nPredicate: e\nObject: f"
    )
    assert (found.triples, found.others) == ([ABC, DEF], [])


@pytest.mark.parametrize("between", ["and so on", "\nand so on"])
def test_lines_with_a_label_each_that_are_parted_by_another_are_left_over(
    between: str,
) -> None:
    found = read_lines(f"Subject: a\nPredicate: b\n{between}\nObject: c")
    assert (found.triples, found.others) == (
        [],
        ["Subject: a", "Predicate: b", "and so on", "Object: c"],
    )


def test_a_line_with_two_marks_is_no_field_of_one() -> None:
    found = read_lines("S> a P> b\nP> c\nO> d")
    assert (found.triples, found.others) == ([], ["S> a P> b", "P> c", "O> d"])


def test_labels_at_the_end_of_which_one_is_missing_are_left_over() -> None:
    found = read_lines("a | b | c\nSubject: d\nPredicate: e")
    assert (found.triples, found.others) == ([ABC], ["Subject: d", "Predicate: e"])


def test_a_label_without_a_field_is_left_over() -> None:
    found = read_lines("Subject:\nPredicate: b\nObject: c")
    assert (found.triples, found.others) == (
        [],
        ["Subject:", "Predicate: b", "Object: c"],
    )


@pytest.mark.parametrize(
    "form",
    [
        "{} | b | c",
        "a | {} | c",
        "a | b | {}",
        "Subject: {}\nPredicate: b\nObject: c",
        "(a, b, {})",
    ],
)
def test_a_field_has_a_thousand_characters_at_most(form: str) -> None:
    longest, longer = form.format("x" * 1000), form.format("x" * 1001)
    assert len(read_lines(longest).triples) == 1
    assert read_lines(longer).triples == []
    assert "\n".join(read_lines(longer).others) == longer


@pytest.mark.parametrize(
    "line",
    [
        "Bell was born in Edinburgh.",
        "a | b",
        "a | b | c | d",
        "a -> b",
        "a -> b -> c | d",
        "(a | b | c",  # cut off
        "(Rome, Paris, London)",  # only names
        "(Rome, the city, of seven hills)",
        "Subject: a, Object: c, Predicate: b",
        "Note | this is | not a fact",
        "The passage | says | nothing",
        "subject -> predicate -> object",
        "a | ... | c",
        "S> a P> b",
        "S> a O> b P> c",
        "x S> a P> b O> c",
        "S> a | P> b O> c",
    ],
)
def test_what_states_no_triple_is_left_over(line: str) -> None:
    found = read_lines(f"a | b | c\n{line}\nd | e | f")
    assert (found.triples, found.others) == ([ABC, DEF], [line])


@pytest.mark.parametrize(
    "text", ["a | b | c\nd | e | f", "a | b | c\nSubject: d\nPredicate: e\nObject: f"]
)
def test_the_last_line_of_a_text_that_was_cut_off_states_nothing(text: str) -> None:
    assert read_lines(text).triples == [ABC, DEF]
    found = read_lines(text, cut_off=True)
    assert (found.triples, found.others) == ([ABC], text.split("\n")[1:])


def test_blank_lines_and_rules_are_not_left_over() -> None:
    assert read_lines("a | b | c\n\n  \n-----\n=====").others == []

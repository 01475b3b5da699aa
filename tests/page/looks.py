"""The rules of a page for everybody's eyes and fingers, measured in the browser by WCAG 2.2's rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Browser = Any  # the class of tests/conftest.py

# Text against its background: 4.5 to 1, or 3 to 1 for large text (1.4.3). Dimmed text is not there to be read.
_PALE = """(() => {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const rgba = (css) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = css; pen.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = (top, under) => [0, 1, 2].map((n) => top[n] * top[3] + under[n] * (1 - top[3])).concat(1)
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x)
    return (a + 0.05) / (b + 0.05)
  }
  const behind = (element) => {
    const layers = []
    const box = element.closest('.node:not(.minor)')?.querySelector('rect:not(.ring)')
    if (box) layers.push(rgba(getComputedStyle(box).fill))
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor))
    const dark = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1]
    return layers.reverse().reduce((under, top) => over(top, under), dark)
  }
  const found = new Map()
  const check = (element, text, colour) => {
    if (!text.trim() || !element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) return
    const box = element.getBoundingClientRect()
    if (!box.width || element.closest('.unseen, .off, .dim, :disabled, mark')) return
    const style = getComputedStyle(element)
    let alpha = 1
    for (let at = element; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity)
    const under = behind(element)
    const top = rgba(colour ?? (element instanceof SVGElement ? style.fill : style.color))
    const sharp = ratio(over([...top.slice(0, 3), top[3] * alpha], under), under)
    const size = parseFloat(style.fontSize)
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5
    if (sharp < least) found.set(`${text.trim().slice(0, 30)} ${sharp.toFixed(2)}`, true)
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const parent = walk.currentNode.parentElement
    if (!parent.closest('script, style, noscript, title, option, datalist')) check(parent, walk.currentNode.data)
  }
  for (const field of document.querySelectorAll('[placeholder]')) {
    check(field, field.placeholder, getComputedStyle(field, '::placeholder').color)
  }
  return [...found.keys()]
})()"""

# Something to press is 24 by 24 pixels at least (2.5.8), but for links in a line of text and shapes of a drawing.
_PRESSED = (
    "button, summary, select, input:not([type=checkbox]), label:has([type=checkbox])"
)
_SMALL = f"""[...document.querySelectorAll('{_PRESSED}')]
  .filter((one) => one.checkVisibility({{ visibilityProperty: true }}) && !one.closest('.unseen'))
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
  .map(([one, box]) => `${{one.id || one.textContent.trim().slice(0, 20)}} ${{box.width | 0}}x${{box.height | 0}}`)"""


def pale(page: Browser) -> list[str]:
    """Return the texts of a page that are too pale to read, each with its contrast."""
    found: list[str] = page.ask(_PALE)
    return found


def small(page: Browser) -> list[str]:
    """Return the elements that are too small to be pressed by a finger, with its size."""
    found: list[str] = page.ask(_SMALL)
    return found


@contextmanager
def screen(
    page: Browser,
    wide: int = 1280,
    high: int = 900,
    *,
    dark: bool = False,
    media: str = "",
) -> Iterator[None]:
    """Show the page on a screen of that size and colour scheme, without motion."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.send(
        "Emulation.setDeviceMetricsOverride",
        width=wide,
        height=high,
        deviceScaleFactor=1,
        mobile=wide < 600,
    )
    page.send("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
    try:
        yield
    finally:
        page.send("Emulation.setEmulatedMedia", media="", features=[])
        page.send("Emulation.clearDeviceMetricsOverride")


def told(page: Browser) -> list[tuple[str, str]]:
    """Return role and name of everything that a screen reader finds in a page."""
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    seen = [node for node in nodes if not node["ignored"]]
    return [
        (node["role"]["value"], " ".join(node.get("name", {}).get("value", "").split()))
        for node in seen
    ]

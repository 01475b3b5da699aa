"""What the docs site adds to the pages of this folder: the README as its first page, and lists of parameters.

Pages link into the repository (`../graphs/nodes.py`), where they are read too. The site has no such files: there, such
a link becomes the path alone.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from textwrap import dedent
from typing import Any

from griffe import Extension, Object
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_OUTSIDE = re.compile(r"^(?:\.\./)+")
_SECTION = re.compile(
    r"^(Args|Attributes|Raises|Returns|Yields):\n((?:(?:    .*)?\n)*(?:    .*)?)",
    re.MULTILINE,
)
_ITEM = re.compile(r"^([\w.]+(?:, [\w.]+)*): ", re.MULTILINE)
_PARAMETER = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*): ", re.MULTILINE)


class Parameters(Extension):
    """Shows a docstring's sections in Google's style, and its lines of the form `name: text`, as lists."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None and not obj.is_module:
            text = _SECTION.sub(_with_list, obj.docstring.value)
            obj.docstring.value = text
            if _PARAMETER.search(text):
                obj.docstring.value = _as_list(text)


def _with_list(section: re.Match[str]) -> str:
    """Return a section as its name and a list of its items."""
    items = _ITEM.sub(r"- `\1`: ", dedent(section[2]))
    return f"**{section[1]}**\n\n{items}"


def _as_list(text: str) -> str:
    """Return the text with each of its parameters as an item, which ends before the next line at the margin."""
    lines: list[str] = []
    in_item = False
    for line in text.splitlines():
        if _PARAMETER.match(line):
            lines += [] if in_item else [""]
            lines.append(_PARAMETER.sub(r"- `\1`: ", line))
            in_item = True
        elif in_item and line and not line.startswith(" "):
            lines += ["", line]
            in_item = False
        else:
            lines.append(line)
    return "\n".join(lines)


def on_config(config: Any) -> Any:
    """Put the pages of a folder in place of `folder/*` in the table of contents."""
    docs = Path(config["docs_dir"])
    config["nav"] = [
        {
            title: [
                f"{target[:-1]}{page.name}"
                for page in sorted(docs.glob(f"{target}.md"))
            ]
        }
        if isinstance(target, str) and target.endswith("/*")
        else entry
        for entry in config["nav"]
        for title, target in (
            entry.items() if isinstance(entry, dict) else [("", entry)]
        )
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the README and the other pages of the root, which link into docs/, as pages of the site."""
    for name, target in (
        ("README.md", "index.md"),
        ("SECURITY.md", "security.md"),
        ("CHANGELOG.md", "changelog.md"),
    ):
        text = (ROOT / name).read_text("utf-8")
        text = (
            text.replace("](docs/", "](")
            .replace('src="docs/', 'src="')
            .replace("](SECURITY.md", "](security.md")
        )
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Replace each link to a file that is not on the site by the file's path."""
    here = PurePosixPath(page.file.src_uri).parent

    def shown(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path or target.startswith("mailto:"):
            return match[0]
        if path.endswith("SECURITY.md") or path.endswith("CHANGELOG.md"):
            up = "../" * len(here.parts)
            return f"[{text}]({up}{PurePosixPath(path).name.lower()}{'#' + anchor if anchor else ''})"
        depth = len(_OUTSIDE.match(path)[0]) // 3 if _OUTSIDE.match(path) else 0  # type: ignore[index]
        outside = depth > len(here.parts)
        if outside or (
            page.file.src_uri == "index.md" and files.get_file_from_path(path) is None
        ):
            plain = _OUTSIDE.sub("", path)
            return f"`{plain}`" if text.strip("`") == plain else f"{text} (`{plain}`)"
        return match[0]

    return _LINK.sub(shown, markdown)

"""Provides retrieval-and-structuring agents for questions that need several hops.

The public names are listed in __init__.pyi and imported when they are first used, so that `import ras_agent`
does not load langgraph (about a second).
"""

import ast
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    alias.name: node.module
    for node in ast.parse(get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]  # it reads the stub


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ras_agent' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""What records are as JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["JSON"]

JSON = dict[str, Any]

"""Reads and writes cards: the JSON that describes the weights in a folder, and how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import WeightsError
from ras_agent.contracts.records import JSON
from ras_agent.tools.store.durable import replace_file


def write_card(path: Path, card: Mapping[str, Any]) -> None:
    """Write a card. Values without a JSON type are written as text."""
    text = json.dumps(card, indent=2, ensure_ascii=False, default=str)
    replace_file(path, f"{text}\n".encode("utf-8", "replace"))


def read_card(path: Path, form: str, version: int, command: str) -> JSON:
    """Return the card of weights whose `format` is "ras-agent " and `form`.

    Raises WeightsError if it is missing, damaged or has another format or version.

    Args:
        command: makes such a folder.
    """
    try:
        card = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(
            f"{path} is missing: there is no {form} in this folder; {command} makes one"
        ) from error
    except (OSError, ValueError) as error:
        raise WeightsError(
            f"{path}: no readable {form} ({error}): train it again"
        ) from error
    expected = (f"ras-agent {form}", version)
    if (
        not isinstance(card, dict)
        or (card.get("format"), card.get("version")) != expected
    ):
        raise WeightsError(
            f"{path}: expected 'ras-agent {form}' version {version}: train it again"
        )
    return card

"""Experiments: a page each (question, command, table, decision), with its program where it is no product."""

import os
from pathlib import Path


def child_environment() -> dict[str, str]:
    """Return the environment for a program of lab/ that another one starts: it finds lab/, which is not installed."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}

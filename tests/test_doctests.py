"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import ras_agent


def modules_with_examples() -> list[str]:
    names = []
    for module in pkgutil.walk_packages(ras_agent.__path__, "ras_agent."):
        spec = find_spec(module.name)
        if spec is None or spec.origin is None:
            continue
        if ">>> " in Path(spec.origin).read_text("utf-8"):
            names.append(module.name)
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_give_what_they_say(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0

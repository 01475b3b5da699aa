"""Titles as names."""

import pytest

from ras_agent.titles import bare_title


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("Alien (film)", "Alien"),
        ("Will &amp; Grace", "Will & Grace"),
        ("(What's the Story)", "(What's the Story)"),
        ("f(x)", "f"),
        (" Leeds ", "Leeds"),
        ("", ""),
    ],
)
def test_a_bare_title_has_no_disambiguator(title: str, bare: str) -> None:
    assert bare_title(title) == bare

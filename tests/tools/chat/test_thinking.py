"""What a reasoning model thinks aloud is no part of its reply."""

import pytest

from ras_agent.tools.chat.thinking import without_thinking


@pytest.mark.parametrize(
    ("reply", "visible"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("<Thinking>a</Thinking>b", "b"),
        ("a</think>b", "b"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>a <think>b</think> c</think>d", "d"),
        ("<think>never closed", ""),
        ("b<think>c", "b"),
        ("", ""),
    ],
)
def test_what_is_left(reply: str, visible: str) -> None:
    assert without_thinking(reply) == visible

"""Caches of the results of short texts."""

from ras_agent.text.short_cache import LONGEST_CACHED, cached_if_short


def test_what_a_short_text_gives_is_computed_once_and_what_a_long_one_gives_each_time() -> (
    None
):
    asked = []

    @cached_if_short(8)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "x" * LONGEST_CACHED, "x" * (LONGEST_CACHED + 1)
    assert [length(text) for text in (short, short, long, long)] == [500, 500, 501, 501]
    assert asked == [short, long, long]

"""Results used last are held up to a bound, and missing ones are computed at once."""

from ras_agent.running.recent import RecentResults, forget_recent_results


def test_what_is_not_held_is_computed_in_one_call_each_key_once() -> None:
    calls: list[list[str]] = []

    def lengths(keys: list[str]) -> list[int]:
        calls.append(keys)
        return list(map(len, keys))

    recent: RecentResults[str, int] = RecentResults(10)
    assert recent.of(["a", "bb", "a"], lengths) == [1, 2, 1]
    assert recent.of(["bb", "ccc"], lengths) == [2, 3]
    assert recent.of([], lengths) == []
    assert calls == [["a", "bb"], ["ccc"]]


def test_the_results_used_longest_ago_are_given_up_beyond_the_bound() -> None:
    recent: RecentResults[str, str] = RecentResults(12, len)
    first, second = (
        recent.of([key], lambda keys: ["12345" + one for one in keys])[0]
        for key in "ab"
    )
    assert recent.of(["a"], _nothing)[0] is first  # now used later than the second
    recent.of(["c"], lambda keys: ["12345c"])
    assert recent.of(["a"], _nothing)[0] is first
    assert recent.of(["b"], lambda keys: ["another"])[0] is not second


def test_a_result_beyond_the_bound_is_returned_and_not_held() -> None:
    recent: RecentResults[str, str] = RecentResults(3, len)
    assert recent.of(["a"], lambda keys: ["four"]) == ["four"]
    assert recent.of(["a"], lambda keys: ["five"]) == ["five"]


def test_of_two_results_of_one_key_the_first_stays() -> None:
    recent: RecentResults[str, list[int]] = RecentResults(2)

    def late(
        keys: list[str],
    ) -> list[list[int]]:  # as if another thread had been faster
        recent.of(["a"], lambda keys: [[1]])
        return [[2] for _ in keys]

    assert recent.of(["a"], late) == [[1]]


def _nothing(keys: list[str]) -> list[str]:
    raise AssertionError(f"{keys} are held")


def test_what_is_forgotten_is_computed_again() -> None:
    recent: RecentResults[str, str] = RecentResults(10)
    assert recent.of(["a"], lambda keys: ["first"]) == ["first"]
    forget_recent_results()
    assert recent.of(["a"], lambda keys: ["second"]) == ["second"]

import threading
from dataclasses import asdict

import pytest

from ras_agent.contracts.errors import BudgetExceeded
from ras_agent.contracts.records import Call, Failure
from ras_agent.running.budget import (
    Ledger,
    Limits,
    current_ledger,
    metered,
    record_call,
)


def call(tokens: int = 0) -> Call:
    return Call(
        "planner",
        1,
        "test-model",
        input_tokens=tokens - tokens // 2,
        output_tokens=tokens // 2,
    )


@pytest.mark.parametrize(
    "name",
    [
        "max_hops",
        "k",
        "max_parallel",
        "max_facts",
        "max_llm_calls",
        "max_tokens",
        "max_seconds",
    ],
)
def test_a_limit_must_be_positive(name):
    with pytest.raises(ValueError, match=rf"Limits\.{name} must be positive, got 0"):
        Limits(**{name: 0})


@pytest.mark.parametrize(
    "name",
    [
        "max_hops",
        "k",
        "max_parallel",
        "max_facts",
        "max_llm_calls",
        "max_tokens",
        "max_seconds",
    ],
)
def test_one_is_a_limit(name):
    assert getattr(Limits(**{name: 1}), name) == 1


def test_half_a_second_is_a_limit():
    assert Limits(max_seconds=0.5).loop_seconds == 0.375


def test_five_hops_of_five_passages_are_the_default_and_no_limit_of_calls_tokens_or_seconds():
    assert asdict(Limits()) == {
        "max_hops": 5,
        "k": 5,
        "max_parallel": 3,
        "max_facts": 400,
        "max_llm_calls": None,
        "max_tokens": None,
        "max_seconds": None,
        "stop_on_repeat": True,
        "stop_on_no_new_facts": True,
    }
    ledger = Ledger()
    assert (ledger.role, ledger.hop, ledger.calls, ledger.refused) == ("", 0, [], None)


def test_what_the_next_call_would_pass_counts_one_call_for_the_answer():
    ledger = Ledger("planner", limits=Limits(max_llm_calls=2))
    assert ledger.exceeded() is None
    ledger.admit()
    assert ledger.exceeded() == "max_llm_calls"
    assert ledger.exceeded(keep_for_answer=0) is None


def test_each_call_that_ends_gives_one_place_back():
    ledger = Ledger("extractor", limits=Limits(max_llm_calls=4))
    for _ in range(3):
        ledger.admit()
    ledger.record(call())
    ledger.release()  # one call is recorded and one is under way
    ledger.admit()
    with pytest.raises(BudgetExceeded):
        ledger.admit()


def test_without_limits_every_call_is_admitted():
    ledger = Ledger()
    for _ in range(100):
        ledger.admit()
        ledger.record(call(10_000))
    assert len(ledger.calls) == 100


def test_the_last_call_is_reserved_for_the_answerer():
    ledger = Ledger("planner", limits=Limits(max_llm_calls=2), earlier=(call(),))
    with pytest.raises(BudgetExceeded, match="max_llm_calls = 2 is used up"):
        ledger.admit()
    assert ledger.refused == "max_llm_calls"
    ledger.role = "answerer"
    ledger.admit()
    with pytest.raises(BudgetExceeded):
        ledger.admit()


def test_tokens_of_earlier_nodes_count():
    ledger = Ledger("planner", limits=Limits(max_tokens=100), earlier=(call(60),))
    ledger.admit()
    ledger.record(call(40))
    with pytest.raises(BudgetExceeded, match="max_tokens = 100 is used up"):
        ledger.admit()


def test_seconds_count_from_the_runs_start(monkeypatch):
    monkeypatch.setattr("ras_agent.running.budget.monotonic", lambda: 10.0)
    Ledger("planner", limits=Limits(max_seconds=8), started=5.0).admit()
    with pytest.raises(BudgetExceeded, match="max_seconds = 8 is used up"):
        Ledger("planner", limits=Limits(max_seconds=8), started=4.0).admit()


@pytest.mark.parametrize(
    ("limits", "loop"),
    [(Limits(max_seconds=3), 2.25), (Limits(max_seconds=600), 540.0), (Limits(), None)],
)
def test_a_quarter_of_the_seconds_but_a_minute_at_most_is_reserved_for_the_answer(
    limits, loop
):
    assert limits.loop_seconds == loop


def test_the_answerer_has_the_quarter_of_the_tokens_that_is_reserved_for_it_and_no_more():
    limits = Limits(max_tokens=200)
    with pytest.raises(BudgetExceeded, match="max_tokens = 200 is used up"):
        Ledger("planner", limits=limits, earlier=(call(150),)).admit()
    assert Ledger("answerer", limits=limits, earlier=(call(150),)).tokens_left() == 50
    with pytest.raises(BudgetExceeded):
        Ledger("answerer", limits=limits, earlier=(call(200),)).admit()


def test_a_call_that_may_pass_the_tokens_gets_a_shorter_reply_or_is_refused():
    ledger = Ledger("answerer", limits=Limits(max_tokens=1000))
    assert ledger.admit(prompt=600, reply=300) == 300
    with pytest.raises(BudgetExceeded):  # the first may still use them all
        ledger.admit(prompt=60, reply=300)
    ledger.record(call(650), 900)
    assert ledger.admit(prompt=200, reply=300) == 150
    ledger.release(350)
    assert ledger.tokens_left() == 350


def test_a_reply_that_is_cut_short_has_64_tokens_or_the_call_is_not_made():
    limits = Limits(max_tokens=1000)
    assert Ledger("answerer", limits=limits).admit(prompt=936, reply=300) == 64
    with pytest.raises(BudgetExceeded, match="max_tokens = 1000 is used up"):
        Ledger("answerer", limits=limits).admit(prompt=937, reply=300)


def test_a_reply_that_wants_less_than_64_tokens_has_them_all_or_the_call_is_not_made():
    limits = Limits(max_tokens=1000)
    assert Ledger("answerer", limits=limits).admit(prompt=990, reply=10) == 10
    with pytest.raises(BudgetExceeded):
        Ledger("answerer", limits=limits).admit(prompt=991, reply=10)


def test_the_last_token_can_be_used():
    ledger = Ledger("answerer", limits=Limits(max_tokens=200), earlier=(call(199),))
    assert ledger.exceeded() is None
    assert ledger.admit(prompt=1) == 0
    assert ledger.exceeded() == "max_tokens"


def test_a_call_of_unknown_size_reserves_no_tokens_and_gives_none_back():
    ledger = Ledger("answerer", limits=Limits(max_tokens=100))
    assert (ledger.admit(), ledger.admit()) == (0, 0)
    assert ledger.tokens_left() == 100
    ledger.release()
    assert ledger.tokens_left() == 100
    ledger.record(call(40))
    assert ledger.tokens_left() == 60


def test_a_call_under_way_holds_its_place():
    ledger = Ledger("extractor", limits=Limits(max_llm_calls=2))
    ledger.admit()
    with pytest.raises(BudgetExceeded):
        ledger.admit()


def test_a_call_that_came_to_nothing_gives_its_place_back():
    ledger = Ledger("extractor", limits=Limits(max_llm_calls=2))
    ledger.admit()
    ledger.release()
    ledger.admit()


def test_many_threads_are_admitted_no_more_often_than_the_limit():
    ledger, admitted = Ledger("extractor", limits=Limits(max_llm_calls=11)), []

    def work():
        for _ in range(10):
            try:
                ledger.admit()
            except BudgetExceeded:
                return
            admitted.append(1)
            ledger.record(call())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(admitted), len(ledger.calls)) == (10, 10)


def test_outside_a_run_there_is_a_ledger_without_limits():
    assert current_ledger().limits == Limits()
    ledger = Ledger("planner")
    with metered(ledger):
        assert current_ledger() is ledger
    assert current_ledger() is not ledger


def test_a_call_that_was_made_without_asking_counts_for_the_next():
    ledger = Ledger("planner", hop=2, limits=Limits(max_llm_calls=2))
    with metered(ledger):
        record_call("mine", 9, 1, seconds=0.5)
    assert ledger.calls == [
        Call("planner", 2, "mine", input_tokens=9, output_tokens=1, seconds=0.5)
    ]
    with pytest.raises(BudgetExceeded):
        ledger.admit()


def test_a_call_of_which_only_the_model_is_known_has_no_tokens_and_took_no_time():
    with metered(Ledger("planner", hop=1)) as ledger:
        record_call("mine")
    assert ledger.calls == [
        Call("planner", 1, "mine", input_tokens=0, output_tokens=0, seconds=0.0)
    ]


def test_outside_a_run_a_call_is_counted_nowhere():
    record_call("mine", 9, 1)
    assert current_ledger().calls == []


def test_a_note_is_a_failure_of_the_role_and_hop_that_is_told_once():
    ledger = Ledger("planner", hop=3)
    ledger.note("not all facts were shown")
    ledger.note("not all facts were shown")
    ledger.note("the reply was cut off")
    assert ledger.notes == [
        Failure("planner", "not all facts were shown", 3),
        Failure("planner", "the reply was cut off", 3),
    ]

"""Attacks on everything that reads text, with texts that a pattern with a mistake reads in quadratic time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.answer.forms import answer_part
from ras_agent.tools.offline.question import analyse
from tests.faults.attack import Attack
from tests.faults.attack_texts import TEXTS, AttackText, texts_against
from tests.faults.text_readers import READERS, TextReader, patterns_of

SHORT, LONG, LONGEST = 10_000, 80_000, 1_000_000
MOST_GROWTH = 24  # of the time, where the text grows 8 times: 8 is linear, 64 quadratic
QUICK, UNMEASURABLE = 0.002, 0.05  # seconds
GIVEN_UP = 10.0  # seconds of processor time


@pytest.mark.parametrize("name", READERS)
def test_reading(attack: Attack, name: str) -> None:
    """Texts of 10 kB to 1 MB are read in linear time"""
    reader = READERS[name]
    texts = dict.fromkeys(TEXTS)
    for module in reader.modules.split():
        for pattern in patterns_of(module):
            texts.update(dict.fromkeys(texts_against(pattern)))
    for text in attack.random.sample(list(texts), len(attack.times(len(texts) // 4))):
        # an accident of a busy machine does not come three times
        attack.expect(any(_is_linear(reader, text) for _ in range(3)), f"{text!r}")


def _is_linear(reader: TextReader, text: AttackText) -> bool:
    """Return whether the time grows with the text; up to 1 MB where that is a matter of milliseconds."""
    long = _seconds(reader.read, text.of(LONG))
    if long < QUICK:
        return _seconds(reader.read, text.of(LONGEST)) < UNMEASURABLE * LONGEST / LONG
    if long < UNMEASURABLE or long < MOST_GROWTH * _seconds(
        reader.read, text.of(SHORT)
    ):
        return True
    # an alternative that a short text does not reach may cost a step, from where the time is linear again
    further = _seconds(reader.read, text.of(4 * LONG))
    return further < min(8 * long, GIVEN_UP)


def _seconds(read: Callable[[str], object], text: str) -> float:
    """Return the processor time that reading takes; 10 seconds where it is given up."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, GIVEN_UP)
    started = time.process_time()
    try:
        read(text)
    except TimeoutError:
        return GIVEN_UP
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return time.process_time() - started


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (sentence_spans, f"Contents {'.' * 20_000}7\n"),
        (
            lambda text: answer_part(text, prose=False),
            "\n" * 50_000 + "Answer: x [1]" + "\n" * 50_000 + ">",
        ),
        (analyse, f'Who wrote "{" " * 5000}'),
        (READERS["streamed answer"].read, "Answer: x [1]" + "\n" * 3000),
        (READERS["fanout_share"].read, "1" * 80_000),
    ],
    ids=["dots", "newlines", "quote", "streamed newlines", "digits"],
)
def test_texts_that_took_minutes(
    attack: Attack, read: Callable[[str], object], text: str
) -> None:
    """Texts that once took minutes take less than a second"""
    attack.expect(min(_seconds(read, text) for _ in range(3)) < 1, repr(text[:40]))

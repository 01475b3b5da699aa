"""Attacks on everything that reads text: texts that a pattern with a mistake reads in quadratic time, and marks."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

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
    for text in attack.random.sample(list(texts), len(attack.times(len(texts)))):
        attack.expect(_is_linear(reader, text), f"{text!r}")


def _is_linear(reader: TextReader, text: AttackText) -> bool:
    """Return whether the time grows with the text; up to 1 MB where that is a matter of milliseconds."""
    long = _seconds(reader.read, text.of(LONG))
    if long < QUICK:
        return _seconds(reader.read, text.of(LONGEST)) < UNMEASURABLE * LONGEST / LONG
    if long < UNMEASURABLE or long < MOST_GROWTH * _seconds(reader.read, text.of(SHORT)):
        return True
    # an accident of a busy machine does not come three times
    shorter, longer = ([_seconds(reader.read, text.of(length)) for _ in range(3)] for length in (SHORT, LONG))
    return min(longer) < MOST_GROWTH * min(shorter)


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

"""Turns facts with fewer than three fields, which small models write, into sentences for the offline extractor.

(S> Big Stone Gap | P> is set in a town of Virginia)     Big Stone Gap is set in a town of Virginia.
["Big Stone Gap", "is set in Virginia"]                  Big Stone Gap is set in Virginia.
(Big Stone Gap, is set in Virginia)                      Big Stone Gap is set in Virginia.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from ras_agent.contracts.marks import FIELDS
from ras_agent.contracts.records import Passage, Triple
from ras_agent.running.protocols import Extractor
from ras_agent.text.words import word_set
from ras_agent.tools.roles import resolve_extractor
from ras_agent.tools.structure.parse_triples import ParsedTriples

_S, _P, _O = (re.escape(str(mark)) for mark in FIELDS)
_BEGIN = re.compile(rf"\b{_S}|</?triple>", re.IGNORECASE)
_PART = re.compile(rf"\||\b{_P}|\b{_O}|\"\s*[,:]\s*\"", re.IGNORECASE)
_NAMES = word_set("subject predicate object head relation tail fact")
_LIKE_A_FACT = re.compile(r"\||<triple>|^\W*\(.+,.+\)\W*$", re.IGNORECASE)
_AROUND = " \t()[]{}<>\"'`*,;.:-"
_FEWEST_WORDS = 3


def mended(parsed: ParsedTriples) -> ParsedTriples:
    """Return the parsed facts, and in addition the facts in lines that lack a field. Other lines remain leftovers.

    A line that was cut off is not read.
    """
    broken = parsed.broken
    lines = []
    for line in parsed.leftovers:
        like_a_fact = line in broken or _LIKE_A_FACT.search(line)
        if like_a_fact and line != parsed.cut:
            lines.append(line)
    facts: list[Triple] = []
    read: set[str] = set()
    for line in dict.fromkeys(lines):
        for sentence in sentences_in(line):
            stated = _reader().extract([Passage("", sentence)]).triples
            facts += (replace(fact, sources=()) for fact in stated)
            if stated:
                read.add(line)
    others = tuple(line for line in parsed.leftovers if line not in read)
    return ParsedTriples(
        triples=tuple(dict.fromkeys([*parsed.triples, *facts])),
        leftovers=others,
        cut=parsed.cut,
    )


def sentences_in(line: str) -> list[str]:
    """Return the sentences that a line of facts forms without its marks.

    >>> sentences_in("(S> Ada | P> lived in London), (S> Bell | P> invented the telephone)")
    ['Ada lived in London.', 'Bell invented the telephone.']
    """
    sentences = []
    for fact in _BEGIN.split(line):
        parts = _PART.split(fact)
        if len(parts) == 1:
            parts = fact.split(",", 1)
        words: list[str] = []
        for part in parts:
            field = part.strip(_AROUND)
            if field.lower() not in _NAMES:
                words += field.split()
        if len(words) >= _FEWEST_WORDS:
            sentences.append(f"{' '.join(words)}.")
    return sentences


@cache
def _reader() -> Extractor:
    return resolve_extractor("offline")

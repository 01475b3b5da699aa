"""Worlds of invented names in two or three plain sentences without titles: what the offline mode says of them.

    python -m lab.untitled --part looked-at --seed 1
    python -m lab.untitled --part scored --seed 1

Each world is drawn from a template: its texts, a question and the right answer. The templates of `looked-at` were used
to find faults; those of `scored` were written afterwards, in other words, and asked once.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ras_agent import create_ras_agent

_FIRST = [
    "Ilse",
    "Tomas",
    "Greta",
    "Bo",
    "Petra",
    "Jonas",
    "Freya",
    "Henrik",
    "Anna",
    "Karl",
    "Ebba",
    "Lise",
    "Oskar",
    "Mirela",
    "Dov",
    "Halina",
]
_LAST = [
    "Marrow",
    "Quill",
    "Ashby",
    "Tellis",
    "Halloran",
    "Weld",
    "Nordlys",
    "Dahl",
    "Berg",
    "Lund",
    "Thorsen",
    "Fairlie",
    "Crane",
    "Vossen",
    "Okafor",
]
_TOWNS = [
    "Dunmere",
    "Brennhaven",
    "Varn",
    "Pellis",
    "Hallin",
    "Ostrell",
    "Quenne",
    "Saltmark",
    "Tarnby",
    "Kelso",
    "Orvik",
    "Lindau",
    "Merrow",
]
_RIVERS = ["Ister", "Wenn", "Tolva", "Aune", "Marsk", "Drell", "Sorva", "Olt"]
_BUILDINGS = ("Gannet Tower", "Opal Hall", "Kestrel Bridge", "Linden House", "Amber Gate", "Heron Library")
_THINGS = ("tide clock", "salt lamp", "wind harp", "glass plough", "rope engine", "steam organ", "sand compass")
_COUNTRIES = ("Norway", "Sweden", "Denmark", "Portugal", "Austria", "Hungary", "Poland")


@dataclass(frozen=True)
class World:
    """Texts without titles, a question over them, and its answer."""

    texts: list[str]
    question: str
    answer: str


class _Names:
    """Draws names; two that are drawn together differ."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def people(self) -> list[str]:
        firsts = self._random.sample(_FIRST, 2)
        lasts = self._random.sample(_LAST, 2)
        return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]

    def two(self, names: tuple[str, ...] | list[str]) -> list[str]:
        return self._random.sample(names, 2)

    def years(self) -> list[int]:
        return self._random.sample(range(1880, 1990), 2)


def looked_at(seed: int) -> Iterator[World]:
    """Yield thirty worlds from the templates that faults were found with."""
    draw = _Names(seed)
    for number in range(3):
        same = number % 2 == 0
        yield from _compared(draw, same)
        yield from _chains(draw)


def _compared(draw: _Names, same: bool) -> Iterator[World]:
    one, other = draw.two(_BUILDINGS)
    ann, bo = draw.people()
    second = ann if same else bo
    verdict = "yes" if same else "no"
    yield World(
        [f"{one} was designed by {ann}.", f"{other} was designed by {second}."],
        f"Were {one} and {other} designed by the same architect?",
        verdict,
    )
    varn, orvik = draw.two(_TOWNS)
    yield World(
        [
            f"{one} stands in {varn}. It was built by {ann} in 1911.",
            f"{other} stands in {orvik}. It was built by {second}.",
        ],
        f"Were {one} and {other} built by the same person?",
        verdict,
    )
    norway, sweden = draw.two(_COUNTRIES)
    yield World(
        [f"{ann} was born in {norway}. {bo} was born in {norway if same else sweden}."],
        f"Were {ann} and {bo} born in the same country?",
        verdict,
    )
    early, late = draw.years()
    older, younger = (ann, bo) if early < late else (bo, ann)
    dated = [f"{ann} was born on 3 May {early}.", f"{bo} was born on 4 June {late}."]
    yield World(dated, f"Who was born earlier, {ann} or {bo}?", older)
    yield World([" ".join(dated)], f"Which of them is younger, {ann} or {bo}?", younger)
    higher = one if early > late else other
    yield World(
        [f"{one} is {early} metres high.", f"{other} is {late} metres high."],
        f"Which is higher, {one} or {other}?",
        higher,
    )


def _chains(draw: _Names) -> Iterator[World]:
    ann, bo = draw.people()
    varn, orvik = draw.two(_TOWNS)
    river = draw.two(_RIVERS)[0]
    thing = draw.two(_THINGS)[0]
    building = draw.two(_BUILDINGS)[0]
    yield World(
        [
            f"The {thing} was invented by {ann}.",
            f"{ann} was born in {varn}.",
            f"The river {river} flows through {varn}.",
        ],
        f"Which river flows through the city where the inventor of the {thing} was born?",
        river,
    )
    yield World(
        [f"{ann} invented the {thing}. He was born in {varn}."], f"Where was the inventor of the {thing} born?", varn
    )
    yield World(
        [f"{building} stands in {varn}. It was founded by {ann}.", f"The mayor of {varn} is {bo}."],
        f"Who is the mayor of the town where {building} stands?",
        bo,
    )
    yield World(
        [f"{ann} is a painter from {varn}. She founded {building}.", f"{bo} is a baker from {orvik}."],
        f"Which town does the founder of {building} come from?",
        varn,
    )


def scored(seed: int) -> Iterator[World]:
    """Yield thirty worlds from templates in other words."""
    draw = _Names(seed)
    for number in range(3):
        same = number % 2 == 1
        yield from _compared_in_other_words(draw, same)
        yield from _chains_in_other_words(draw)


def _compared_in_other_words(draw: _Names, same: bool) -> Iterator[World]:
    one, other = draw.two(_BUILDINGS)
    ann, bo = draw.people()
    second = ann if same else bo
    verdict = "yes" if same else "no"
    yield World(
        [f"{ann} founded {one}.", f"The founder of {other} is {second}."],
        f"Do {one} and {other} have the same founder?",
        verdict,
    )
    varn, orvik = draw.two(_TOWNS)
    yield World(
        [f"{one} can be found in {varn}.", f"{other} can be found in {varn if same else orvik}."],
        f"Are {one} and {other} located in the same town?",
        verdict,
    )
    norway, sweden = draw.two(_COUNTRIES)
    yield World(
        [f"{ann} comes from {norway}; {ann} is a potter. {bo} comes from {norway if same else sweden}."],
        f"Do {ann} and {bo} come from the same country?",
        verdict,
    )
    early, late = draw.years()
    first = one if early < late else other
    yield World(
        [f"{one} opened in {early}.", f"{other} opened in {late}."], f"Which opened first, {one} or {other}?", first
    )
    longer = one if early > late else other
    yield World(
        [f"{one} has {early} rooms. {other} has {late} rooms."], f"Which has more rooms, {one} or {other}?", longer
    )


def _chains_in_other_words(draw: _Names) -> Iterator[World]:
    ann, bo = draw.people()
    varn, orvik = draw.two(_TOWNS)
    river = draw.two(_RIVERS)[0]
    thing = draw.two(_THINGS)[0]
    building = draw.two(_BUILDINGS)[0]
    yield World(
        [f"{ann} built the first {thing}.", f"{ann} grew up in {varn}.", f"{varn} lies on the {river}."],
        f"On which river does the town lie where the builder of the first {thing} grew up?",
        river,
    )
    yield World(
        [f"The {thing} is an invention of {ann}, a smith from {varn}."],
        f"From which town is the inventor of the {thing}?",
        varn,
    )
    yield World(
        [f"{building} belongs to {ann}.", f"{ann} is married to {bo}."],
        f"To whom is the owner of {building} married?",
        bo,
    )
    yield World(
        [f"{building} is in {varn}.", f"The harbour of {varn} was opened by {ann}."],
        f"Who opened the harbour of the town where {building} is?",
        ann,
    )
    yield World(
        [f"{ann} wrote about the {thing}. She lives in {varn}.", f"{bo} lives in {orvik}."],
        f"Where does the author live who wrote about the {thing}?",
        varn,
    )


def outcome(world: World) -> str:
    """Return whether the offline mode is right, unsaid or wrong."""
    out = create_ras_agent(index=world.texts).invoke({"question": world.question})
    told = out["answer"].lower()
    if out["abstained"]:
        return "unsaid"
    wanted = world.answer.lower()
    is_right = told == wanted if wanted in ("yes", "no") else wanted in told
    return "right" if is_right else "wrong"


def main() -> None:
    """Ask and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["looked-at", "scored"], default="looked-at", help="which templates")
    parser.add_argument("--seed", type=int, default=1, help="of the names (1)")
    parser.add_argument("--show", action="store_true", help="print each question that is not answered rightly")
    options = parser.parse_args()
    worlds = scored(options.seed) if options.part == "scored" else looked_at(options.seed)
    counts: Counter[str] = Counter()
    for world in worlds:
        found = outcome(world)
        counts[found] += 1
        if options.show and found != "right":
            print(f"{found}: {' '.join(world.texts)} {world.question} ({world.answer})")
    print(", ".join(f"{counts[name]} {name}" for name in ("right", "unsaid", "wrong")))


if __name__ == "__main__":
    main()

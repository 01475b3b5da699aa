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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

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
_BUILDINGS = (
    "Gannet Tower",
    "Opal Hall",
    "Kestrel Bridge",
    "Linden House",
    "Amber Gate",
    "Heron Library",
)
_THINGS = (
    "tide clock",
    "salt lamp",
    "wind harp",
    "glass plough",
    "rope engine",
    "steam organ",
    "sand compass",
)
_COUNTRIES = ("Norway", "Sweden", "Denmark", "Portugal", "Austria", "Hungary", "Poland")


@dataclass(frozen=True)
class World:
    """Texts without titles, a question over them, and its answer."""

    texts: list[str]
    question: str
    answer: str


class _Template(NamedTuple):
    """Texts, a question and an answer in which names in braces stand for what is drawn."""

    texts: tuple[str, ...]
    question: str
    answer: str


_COMPARED_LOOKED_AT = (
    _Template(
        ("{one} was designed by {ann}.", "{other} was designed by {second}."),
        "Were {one} and {other} designed by the same architect?",
        "{verdict}",
    ),
    _Template(
        (
            "{one} stands in {varn}. It was built by {ann} in 1911.",
            "{other} stands in {orvik}. It was built by {second}.",
        ),
        "Were {one} and {other} built by the same person?",
        "{verdict}",
    ),
    _Template(
        ("{ann} was born in {norway}. {bo} was born in {other_country}.",),
        "Were {ann} and {bo} born in the same country?",
        "{verdict}",
    ),
    _Template(
        ("{ann} was born on 3 May {early}.", "{bo} was born on 4 June {late}."),
        "Who was born earlier, {ann} or {bo}?",
        "{older}",
    ),
    _Template(
        ("{ann} was born on 3 May {early}. {bo} was born on 4 June {late}.",),
        "Which of them is younger, {ann} or {bo}?",
        "{younger}",
    ),
    _Template(
        ("{one} is {early} metres high.", "{other} is {late} metres high."),
        "Which is higher, {one} or {other}?",
        "{more}",
    ),
)
_CHAINS_LOOKED_AT = (
    _Template(
        (
            "The {thing} was invented by {ann}.",
            "{ann} was born in {varn}.",
            "The river {river} flows through {varn}.",
        ),
        "Which river flows through the city where the inventor of the {thing} was born?",
        "{river}",
    ),
    _Template(
        ("{ann} invented the {thing}. He was born in {varn}.",),
        "Where was the inventor of the {thing} born?",
        "{varn}",
    ),
    _Template(
        (
            "{building} stands in {varn}. It was founded by {ann}.",
            "The mayor of {varn} is {bo}.",
        ),
        "Who is the mayor of the town where {building} stands?",
        "{bo}",
    ),
    _Template(
        (
            "{ann} is a painter from {varn}. She founded {building}.",
            "{bo} is a baker from {orvik}.",
        ),
        "Which town does the founder of {building} come from?",
        "{varn}",
    ),
)
_COMPARED_SCORED = (
    _Template(
        ("{ann} founded {one}.", "The founder of {other} is {second}."),
        "Do {one} and {other} have the same founder?",
        "{verdict}",
    ),
    _Template(
        ("{one} can be found in {varn}.", "{other} can be found in {other_town}."),
        "Are {one} and {other} located in the same town?",
        "{verdict}",
    ),
    _Template(
        (
            "{ann} comes from {norway}; {ann} is a potter. {bo} comes from {other_country}.",
        ),
        "Do {ann} and {bo} come from the same country?",
        "{verdict}",
    ),
    _Template(
        ("{one} opened in {early}.", "{other} opened in {late}."),
        "Which opened first, {one} or {other}?",
        "{first}",
    ),
    _Template(
        ("{one} has {early} rooms. {other} has {late} rooms.",),
        "Which has more rooms, {one} or {other}?",
        "{more}",
    ),
)
_CHAINS_SCORED = (
    _Template(
        (
            "{ann} built the first {thing}.",
            "{ann} grew up in {varn}.",
            "{varn} lies on the {river}.",
        ),
        "On which river does the town lie where the builder of the first {thing} grew up?",
        "{river}",
    ),
    _Template(
        ("The {thing} is an invention of {ann}, a smith from {varn}.",),
        "From which town is the inventor of the {thing}?",
        "{varn}",
    ),
    _Template(
        ("{building} belongs to {ann}.", "{ann} is married to {bo}."),
        "To whom is the owner of {building} married?",
        "{bo}",
    ),
    _Template(
        ("{building} is in {varn}.", "The harbour of {varn} was opened by {ann}."),
        "Who opened the harbour of the town where {building} is?",
        "{ann}",
    ),
    _Template(
        (
            "{ann} wrote about the {thing}. She lives in {varn}.",
            "{bo} lives in {orvik}.",
        ),
        "Where does the author live who wrote about the {thing}?",
        "{varn}",
    ),
)


def worlds(part: str, seed: int) -> Iterator[World]:
    """Yield thirty worlds from the templates of a part, "looked-at" or "scored"."""
    draw = random.Random(seed)
    is_scored = part == "scored"
    compared = _COMPARED_SCORED if is_scored else _COMPARED_LOOKED_AT
    chains = _CHAINS_SCORED if is_scored else _CHAINS_LOOKED_AT
    for number in range(3):
        same = (number % 2 == 1) is is_scored
        yield from _filled(compared, _two_things(draw, same))
        yield from _filled(chains, _one_thing(draw))


def _filled(
    templates: Iterable[_Template], names: Mapping[str, str]
) -> Iterator[World]:
    for template in templates:
        texts = [text.format_map(names) for text in template.texts]
        yield World(
            texts=texts,
            question=template.question.format_map(names),
            answer=template.answer.format_map(names),
        )


def _people(draw: random.Random) -> list[str]:
    """Return two people who share no name."""
    firsts = draw.sample(_FIRST, 2)
    lasts = draw.sample(_LAST, 2)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def _two_things(draw: random.Random, same: bool) -> dict[str, str]:
    """Return the names of two buildings and two people. same: whether what is asked is the same for both."""
    one, other = draw.sample(_BUILDINGS, 2)
    ann, bo = _people(draw)
    varn, orvik = draw.sample(_TOWNS, 2)
    norway, sweden = draw.sample(_COUNTRIES, 2)
    early, late = draw.sample(range(1880, 1990), 2)
    names = {
        "one": one,
        "other": other,
        "ann": ann,
        "bo": bo,
        "varn": varn,
        "orvik": orvik,
        "norway": norway,
    }
    names |= {"early": str(early), "late": str(late)}
    if same:
        names |= {
            "second": ann,
            "other_town": varn,
            "other_country": norway,
            "verdict": "yes",
        }
    else:
        names |= {
            "second": bo,
            "other_town": orvik,
            "other_country": sweden,
            "verdict": "no",
        }
    if early < late:
        names |= {"older": ann, "younger": bo, "first": one, "more": other}
    else:
        names |= {"older": bo, "younger": ann, "first": other, "more": one}
    return names


def _one_thing(draw: random.Random) -> dict[str, str]:
    """Return the names that a chain leads over."""
    ann, bo = _people(draw)
    varn, orvik = draw.sample(_TOWNS, 2)
    river, _ = draw.sample(_RIVERS, 2)
    thing, _ = draw.sample(_THINGS, 2)
    building, _ = draw.sample(_BUILDINGS, 2)
    return {
        "ann": ann,
        "bo": bo,
        "varn": varn,
        "orvik": orvik,
        "river": river,
        "thing": thing,
        "building": building,
    }


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--part",
        choices=["looked-at", "scored"],
        default="looked-at",
        help="which templates",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the names (1)")
    parser.add_argument(
        "--show",
        action="store_true",
        help="print each question that is not answered rightly",
    )
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for world in worlds(options.part, options.seed):
        found = outcome(world)
        counts[found] += 1
        if options.show and found != "right":
            print(f"{found}: {' '.join(world.texts)} {world.question} ({world.answer})")
    print(", ".join(f"{counts[name]} {name}" for name in ("right", "unsaid", "wrong")))


if __name__ == "__main__":
    main()

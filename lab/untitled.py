"""Worlds of invented names in two or three plain sentences without titles: the answers of the offline mode about them.

    python -m lab.untitled --part looked-at --seed 1
    python -m lab.untitled --part scored --seed 1
    python -m lab.untitled --part second --seed 1
    python -m lab.untitled --part third --seed 9
    python -m lab.untitled --part fourth --seed 13

Each world is drawn from a template of untitled.json: its texts, a question and the right answer. The templates of
`looked-at` were used to find faults; those of `scored`, and later those of `second`, `third` and `fourth` with names of
their own, were written afterwards, in other words, and asked once.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent import create_ras_agent

_WORLDS = 30
_TEMPLATES: dict[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class World:
    """Texts without titles, a question over them, and its answer."""

    texts: list[str]
    question: str
    answer: str


Template = Mapping[str, Any]
"""Has texts, a question and an answer in which names in braces stand for what is drawn"""


def worlds(part: str, seed: int) -> Iterator[World]:
    """Yield thirty worlds from the templates of a part, such as "looked-at" or "scored"."""
    draw = random.Random(seed)
    chosen = _TEMPLATES["parts"][part]
    words = _TEMPLATES["names"][chosen["names"]]
    compared = chosen["compared"]
    chains = chosen["chains"]
    rounds = _WORLDS // (len(compared) + len(chains))
    for number in range(rounds):
        same = (number % 2 == 1) is (part != "looked-at")
        yield from _filled(compared, _two_things(draw, words, same))
        yield from _filled(chains, _one_thing(draw, words))


def _filled(templates: Iterable[Template], names: Mapping[str, str]) -> Iterator[World]:
    for template in templates:
        texts = [text.format_map(names) for text in template["texts"]]
        yield World(
            texts=texts,
            question=template["question"].format_map(names),
            answer=template["answer"].format_map(names),
        )


def _people(draw: random.Random, words: Mapping[str, list[str]]) -> list[str]:
    """Return two people who share no name."""
    firsts = draw.sample(words["first"], 2)
    lasts = draw.sample(words["last"], 2)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def _two_things(
    draw: random.Random, words: Mapping[str, list[str]], same: bool
) -> dict[str, str]:
    """Return the names of two buildings and two people. same: whether the asked value is the same for both."""
    one, other = draw.sample(words["buildings"], 2)
    ann, bo = _people(draw, words)
    varn, orvik = draw.sample(words["towns"], 2)
    norway, sweden = draw.sample(words["countries"], 2)
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
    names["before"] = "yes" if early < late else "no"
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


def _one_thing(draw: random.Random, words: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the names that a chain leads over."""
    ann, bo = _people(draw, words)
    varn, orvik = draw.sample(words["towns"], 2)
    names = {"ann": ann, "bo": bo, "varn": varn, "orvik": orvik}
    for kind in ("rivers", "things", "buildings"):
        name, _ = draw.sample(words[kind], 2)
        names[kind.removesuffix("s")] = name
    # drawn apart, so that the worlds of the earlier parts stay as they are
    more = random.Random(ann)
    year = more.randrange(1880, 1980)
    names |= {"early": str(year), "late": str(year + 7)}
    for kind in ("jobs", "ships"):
        names[kind.removesuffix("s")] = more.choice(words[kind])
    return names


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
        choices=sorted(_TEMPLATES["parts"]),
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

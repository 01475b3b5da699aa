"""Make small sets in the forms of SceneGraphs and WebQSP, to go from a benchmark to a trained model without them.

    python -m lab.graphqa_sets --out made --scenes 300 --people 300 --seed 0

OUT/scenes has sceneGraphs.json and made.csv (benchmark scenegraphs), OUT/webqsp has train.jsonl and test.jsonl
(graphqa-webqsp). The same seed makes the same bytes. Names are invented, questions follow a few templates and every
answer is in the graph: a score on them says that the way works and nothing about the sets whose form they have.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from ras_agent.running.program import run_program
from ras_agent.tools.store.durable import replace_file
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, SEED, check_ranges

_THINGS = (
    *("cup", "table", "lamp", "chair", "dog", "cat", "window", "plate"),
    *("book", "sofa", "bottle", "clock", "door", "shelf", "ball", "pillow"),
)
_COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "orange")
_SIZES = ("small", "large", "tall", "round")
_RELATIONS = ("to the left of", "to the right of", "on", "under", "behind", "near")
_SYLLABLES = ["ba", "ke", "li", "mo", "nu", "ra", "so", "ti", "va", "ze", "do", "fi"]
_CLOSED = 4  # the words that answer closed questions
_JOBS = ["painter", "singer", "judge", "pilot", "chemist", "poet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSets:
    """Options. scenes, people: how many questions there are of each set; a fifth of the people is for the test.

    closed: the answer is one of four words, a colour or a job, and the graph has no other of them, so that only the
        graph decides, whatever is asked.
    """

    out: Path
    scenes: int = 300
    people: int = 300
    closed: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(self, {"scenes": COUNT, "people": COUNT, "seed": SEED})


def make(config: MadeSets) -> None:
    """Write both sets."""
    for folder in ("scenes", "webqsp"):
        (config.out / folder).mkdir(parents=True, exist_ok=True)
    graphs, rows = {}, []
    for number in range(config.scenes):
        graph, question, answer, full = _scene(
            random.Random(f"{config.seed} scene {number}"), closed=config.closed
        )
        graphs[str(number)] = graph
        rows.append((number, str(number), question, answer, full))
    replace_file(config.out / "scenes/sceneGraphs.json", json.dumps(graphs).encode())
    table = StringIO()
    header = ("q_id", "image_id", "question", "answer", "full_answer")
    csv.writer(table, lineterminator="\n").writerows([header, *rows])
    replace_file(config.out / "scenes/made.csv", table.getvalue().encode())
    people = [
        _person(
            number,
            random.Random(f"{config.seed} person {number}"),
            closed=config.closed,
        )
        for number in range(config.people)
    ]
    test = config.people // 5
    for part, records in (("test", people[:test]), ("train", people[test:])):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        replace_file(config.out / f"webqsp/{part}.jsonl", lines.encode())


def _scene(
    rng: random.Random, *, closed: bool = False
) -> tuple[dict[str, Any], str, str, str]:
    """Return a scene graph in GQA's form, and a question about it with its answer and the answer in a sentence."""
    things = rng.sample(_THINGS, rng.randint(4, 7) if closed else rng.randint(6, 12))
    objects: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(things):
        attributes = [rng.choice(_COLOURS), *rng.sample(_SIZES, rng.randint(0, 1))]
        box = {side: rng.randrange(20, 400, 95 if closed else 1) for side in "xywh"}
        objects[str(number)] = {
            "name": name,
            "attributes": attributes,
            **box,
            "relations": [],
        }
    # each name is there once, so that a question means one object
    for number in range(1, len(things)):
        other = rng.randrange(number)
        relation = {"name": rng.choice(_RELATIONS), "object": str(other)}
        objects[str(number)]["relations"].append(relation)
    asked = rng.randrange(1, len(things))
    name, [relation] = things[asked], objects[str(asked)]["relations"]
    if closed:
        for number in range(len(things)):
            words = _COLOURS[:_CLOSED] if number == asked else _SIZES
            objects[str(number)]["attributes"] = [rng.choice(words)]
    if closed or rng.random() < 0.5:
        colour = objects[str(asked)]["attributes"][0]
        return (
            {"objects": objects},
            f"What color is the {name}?",
            colour,
            f"The {name} is {colour}.",
        )
    target, text = things[int(relation["object"])], relation["name"]
    return (
        {"objects": objects},
        f"What is the {name} {text}?",
        target,
        f"The {name} is {text} the {target}.",
    )


def _person(number: int, rng: random.Random, *, closed: bool = False) -> dict[str, Any]:
    """Return a question about a person in RoG's form, over a graph of some people, their towns and countries."""
    names = list(_names(rng, 24))
    people, towns, countries = names[:12], names[12:20], names[20:]
    country_of = {town: rng.choice(countries) for town in towns}
    graph = [
        [town, "location.location.containedby", country]
        for town, country in country_of.items()
    ]
    facts: dict[str, dict[str, list[str]]] = {}
    for place, person in enumerate(people):
        facts[person] = {
            "people.person.place_of_birth": [rng.choice(towns)],
            "people.person.profession": rng.sample(_JOBS, rng.randint(1, 2)),
            "people.person.spouse_s": [rng.choice(people)],
        }
        if closed:
            facts[person]["people.person.profession"] = (
                [rng.choice(_JOBS[:_CLOSED])] if not place else []
            )
        graph += [
            [person, relation, end]
            for relation, ends in facts[person].items()
            for end in ends
        ]
    rng.shuffle(graph)
    asked, own = people[0], facts[people[0]]
    town = own["people.person.place_of_birth"]
    kinds = [
        (f"where was {asked} born", town),
        (f"what did {asked} do for a living", own["people.person.profession"]),
        (f"who is {asked} married to", own["people.person.spouse_s"]),
        (f"what country was {asked} born in", [country_of[town[0]]]),
    ]
    question, answers = kinds[1 if closed else number % len(kinds)]
    return {"id": f"made-{number}", "question": question, "answer": answers, "q_entity": [asked],
            "a_entity": answers, "graph": graph}  # fmt: skip


def _names(rng: random.Random, count: int) -> Iterator[str]:
    """Yield different invented names."""
    seen = set[str]()
    while len(seen) < count:
        name = "".join(rng.choices(_SYLLABLES, k=3)).capitalize()
        if name not in seen:
            seen.add(name)
            yield name


def main() -> None:
    make(config_from(MadeSets, __doc__))


if __name__ == "__main__":
    run_program(main)

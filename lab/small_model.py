"""SmolLM2-135M in every role and loop: the replies that are understood, the support of its facts and citations, its cost.

    python -m lab.small_model run OUT --server http://127.0.0.1:8080/v1#smollm2 --hotpotqa FOLDER
    python -m lab.small_model table OUT

`run` asks each row the questions of the bundled sample and of HotpotQA, all rows question by question, so that one that
ended early has as many of each. The same command goes on; replies are kept in OUT/replies. `table` reads the runs of
OUT; a reply that an earlier row had counts with the seconds that it took there. FOLDER has questions.jsonl and
corpus.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ras_agent import (
    Settings,
    create_ircot_agent,
    create_ras_agent,
    create_react_agent,
    create_single_shot_agent,
)
from ras_agent.app.sample import sample_passages
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics.answers import token_f1
from ras_agent.graphs.agent import Agent
from ras_agent.text.words import content_words

MODEL = "model"
ROLES = ("planner", "extractor", "answerer")
LOOPS: Mapping[str, Callable[..., Agent]] = {
    "ras": create_ras_agent,
    "react": create_react_agent,
    "ircot": create_ircot_agent,
    "single-shot": create_single_shot_agent,
}
SETTINGS: Mapping[str, Any] = {
    "k": 1,
    "max_hops": 2,
    "context_window": 2048,
    "answer_tokens": 64,
    "in_flight": 1,
    "timeout": 600.0,
    "temperature": 0.0,
}
"""What every row has, so that a run ends on one core."""


@dataclass(frozen=True, slots=True)
class Row:
    """A loop, and the roles that the model has in it; the others are offline."""

    name: str
    loop: str
    roles: tuple[str, ...]


ROWS = (
    Row("offline", "ras", ()),
    Row("planner", "ras", ("planner",)),
    Row("extractor", "ras", ("extractor",)),
    Row("answerer", "ras", ("answerer",)),
    Row("ras", "ras", ROLES),
    Row("react", "react", ROLES),
    Row("ircot", "ircot", ROLES),
    Row("single-shot", "single-shot", ROLES),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A set of questions over a corpus."""

    name: str
    questions: tuple[dict[str, Any], ...]
    passages: tuple[Passage, ...]


def tasks(hotpotqa: Path | None, limit: int) -> list[Task]:
    """Return the sample, and HotpotQA's first questions where its folder is given."""
    sample = (files("ras_agent.data") / "sample_questions.jsonl").read_text("utf-8")
    made = [
        Task(
            "sample",
            tuple(map(json.loads, sample.splitlines()))[:limit],
            tuple(sample_passages()),
        )
    ]
    if hotpotqa:
        corpus = map(
            json.loads, (hotpotqa / "corpus.jsonl").read_text("utf-8").splitlines()
        )
        passages = tuple(
            Passage(str(one["id"]), one["text"], one["title"]) for one in corpus
        )
        lines = (hotpotqa / "questions.jsonl").read_text("utf-8").splitlines()
        made.append(Task("hotpotqa", tuple(map(json.loads, lines[:limit])), passages))
    return made


def run(
    out: Path, server: str, of: Sequence[Task], rows: Sequence[Row], until: float
) -> None:
    """Ask the questions that are not asked yet, each question of all rows, until a time."""
    out.mkdir(parents=True, exist_ok=True)
    done = {(line["row"], line["task"], line["id"]) for line in results(out)}

    agents: dict[tuple[str, str], Agent] = {}

    def agent(row: Row, task: Task) -> Agent:
        if known := agents.get((row.name, task.name)):
            return known
        settings = Settings(**SETTINGS, cache=out / "replies")
        roles = {
            role: f"vllm:{server}" if role in row.roles else "offline" for role in ROLES
        }
        if row.loop == "ircot":
            del roles["extractor"]
        made = LOOPS[row.loop](index=task.passages, settings=settings, **roles)
        agents[row.name, task.name] = made
        return made

    for number in range(max(len(task.questions) for task in of)):
        for task in of:
            for question in task.questions[number : number + 1]:
                for row in rows:
                    if (
                        row.name,
                        task.name,
                        question["id"],
                    ) in done or time.time() > until:
                        continue
                    line = {
                        "row": row.name,
                        "task": task.name,
                        **asked(agent(row, task), question),
                    }
                    with (out / "results.jsonl").open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    print(
                        *(line[name] for name in ("row", "task", "id", "answer")),
                        flush=True,
                    )


def asked(agent: Agent, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a run of one question, and an error that ended it."""
    begun = time.monotonic()
    try:
        out: dict[str, Any] = dict(agent.invoke({"question": question["question"]}))
    except Exception as error:  # counted in the table
        out = {"answer": "", "error": repr(error)}
    names = (
        "answer",
        "abstained",
        "failed",
        "grounded",
        "citations",
        "failures",
        "stop_reason",
        "usage",
        "error",
    )
    kept = {name: out[name] for name in names if name in out}
    hits = [hit["passage_id"] for step in out.get("steps", ()) for hit in step["hits"]]
    texts = {one: out["passages"][one] for one in dict.fromkeys(hits)} if hits else {}
    subqueries = [step["subquery"] for step in out.get("steps", ())]
    facts = out.get("graph", {}).get("facts", [])
    golds = {
        "id": question["id"],
        "answers": question["answers"],
        "seconds": time.monotonic() - begun,
    }
    everything = {
        **golds,
        **kept,
        "subqueries": subqueries,
        "passages": texts,
        "facts": facts,
    }
    plain: dict[str, Any] = json.loads(json.dumps(everything))
    return plain


def results(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a folder's results."""
    path = out / "results.jsonl"
    if path.exists():
        yield from map(json.loads, path.read_text("utf-8").splitlines())


# ---- the table


def stands_in(words: str, text: str) -> bool:
    """Return whether all content words of a phrase, or all its words where it has no content words, are words of a text."""
    wanted = content_words(words) or words.casefold().split()
    return set(wanted) <= {*content_words(text), *text.casefold().split()}


def planned(line: Mapping[str, Any]) -> tuple[int, int]:
    """Return at how many hops the model was asked for a plan, and at how many no reply stated one."""
    turns = {
        call["hop"]
        for call in line["usage"]["calls"]
        if call["role"] in ("planner", "reasoner")
    }
    of_planner = [
        one for one in line["failures"] if one["role"] in ("planner", "reasoner")
    ]
    lost = {one["hop"] for one in of_planner if one["message"].startswith("ParseError")}
    return len(turns), len(turns & lost)


def read(line: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many passages the run has found, and in how many a fact was read whose ends stand in it."""
    good = set()
    for fact in line["facts"]:
        for source in fact["sources"]:
            passage = line["passages"].get(source["passage_id"])
            text = f"{passage['title']} {passage['text']}" if passage else ""
            if stands_in(fact["subject"], text) and stands_in(fact["object"], text):
                good.add(source["passage_id"])
    return len(line["passages"]), len(good)


def borne(line: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many citations an answer has that is no yes or no, and how many quote it."""
    answer = line["answer"]
    if line.get("abstained") or not answer or answer.casefold() in ("yes", "no"):
        return 0, 0
    quotes = [f"{one['title']} {one['quote']}" for one in line["citations"]]
    return len(quotes), sum(stands_in(answer, quote) for quote in quotes)


def share(pairs: Sequence[tuple[int, int]], *, lost: bool = False) -> str:
    """Return the second numbers' sum of the first numbers' sum, or the rest of it."""
    of = sum(pair[0] for pair in pairs)
    part = sum(pair[1] for pair in pairs)
    return f"{of - part if lost else part}/{of}" if of else "-"


def table(out: Path) -> Iterator[str]:
    """Yield the lines of a table: a row, a task, and the means of its questions."""
    lines = list(results(out))
    took = seconds_of(lines)
    head = (
        "row",
        "set",
        "questions",
        "plans understood",
        "passages with a fact in them",
        "citations borne",
    )
    costs = ("failures", "tokens in / out", "s", "abstained", "F1")
    yield f"| {' | '.join((*head, *costs))} |"
    yield "|---" * len(head + costs) + "|"
    for task in dict.fromkeys(line["task"] for line in lines):
        for row in ROWS:
            of = [
                line
                for line in lines
                if (line["row"], line["task"]) == (row.name, task)
            ]
            if of:
                yield f"| {row.name} | {task} | {' | '.join(cells(of, row, took))} |"


def seconds_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the seconds that each reply took when it was written, by its key."""
    calls = [
        call for line in lines if "usage" in line for call in line["usage"]["calls"]
    ]
    return {
        call["key"]: call["seconds"]
        for call in calls
        if "key" in call and not call["replayed"]
    }


def spent(line: Mapping[str, Any], took: Mapping[str, float]) -> float:
    """Return the seconds of a run, with those of the replies that another run had before it."""
    seconds = float(line["seconds"])
    for call in line["usage"]["calls"]:
        if call["replayed"]:
            seconds += took.get(call["key"], 0.0)
    return seconds


def cells(
    of: Sequence[Mapping[str, Any]], row: Row, took: Mapping[str, float]
) -> list[str]:
    """Return the cells of one row."""
    whole = [line for line in of if "usage" in line]
    inputs = sum(line["usage"]["input_tokens"] for line in whole) / len(of)
    outputs = sum(line["usage"]["output_tokens"] for line in whole) / len(of)
    right = [
        0.0 if line.get("abstained") else token_f1(line["answer"], line["answers"])
        for line in of
    ]
    return [
        str(len(of)),
        share([planned(line) for line in whole], lost=True),
        "-" if row.loop == "ircot" else share([read(line) for line in whole]),
        share([borne(line) for line in whole]),
        f"{sum(len(line['failures']) for line in whole) / len(of):.1f}",
        f"{inputs:.0f} / {outputs:.0f}",
        f"{sum(spent(line, took) for line in whole) / len(of):.0f}",
        str(sum(bool(line.get("abstained")) for line in of)),
        f"{sum(right) / len(of):.3f}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("out", type=Path, help="the folder of the runs")
    parser.add_argument(
        "--server", default="", help="the model, as http://host:port/v1#name"
    )
    parser.add_argument(
        "--hotpotqa",
        type=Path,
        help="a folder of questions.jsonl and corpus.jsonl; else the sample",
    )
    parser.add_argument(
        "--limit", type=int, default=30, help="most questions of each set (30)"
    )
    parser.add_argument("--rows", default="", help="names between semicolons; else all")
    parser.add_argument("--set", default="", help="sample or hotpotqa; else both")
    parser.add_argument(
        "--minutes", type=float, default=1e6, help="after which no question is begun"
    )
    options = parser.parse_args(arguments)
    if options.do == "table":
        print("\n".join(table(options.out)))
        return
    names = options.rows.split(";") if options.rows else [row.name for row in ROWS]
    rows = [row for row in ROWS if row.name in names]
    until = time.time() + 60 * options.minutes
    sets = [
        task
        for task in tasks(options.hotpotqa, options.limit)
        if options.set in ("", task.name)
    ]
    run(options.out, options.server, sets, rows, until)


if __name__ == "__main__":
    main()

"""TimeQA's human questions over their own articles: with the time of the question, and without it.

    python -m lab.timed --data timeqa_train/easy.jsonl.gz --part report --limit 160
    python -m lab.timed --data ... --shard 0 --shards 4    # one of four processes that share the questions

A question such as "Who owned the house from 1811 to 1827?" is asked as it is, with `as_of` set to the middle of its time,
and without any time. Questions of even articles are for choosing, the others are reported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any
from zlib import crc32

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics import token_f1
from ras_agent.running.program import run_program
from ras_agent.text.values import figures_in

_TIME = re.compile(
    r",? (?:from|between|in|during|before|after|since|until|by|on) (?:the )?(?:(?:early|late|mid) )?(?=\w* ?\d)[^?]*(?=\?)"
)


def main() -> None:
    """Ask each question in the three ways and print the mean F1 of each."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.timed", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=("choose", "report"), default="choose")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--shards", type=int, default=1)
    options = parser.parse_args()
    scores: dict[str, list[float]] = {}
    with gzip.open(options.data, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    asked = 0
    for row in rows:
        article = row["idx"].partition("#")[0]
        is_reported = crc32(article.encode()) % 2 == 1
        question = row["question"]
        time = _TIME.search(question)
        dates = [one for one in figures_in(question) if one.is_date]
        if is_reported != (options.part == "report") or not row["targets"]:
            continue
        if time is None or not dates:
            continue
        middle = sum(one.order for one in dates) / len(dates)
        bare = question[: time.start()] + question[time.end() :]
        asked += 1
        if asked > options.limit:
            break
        if asked % options.shards != options.shard:
            continue
        agent = create_ras_agent(index=_passages(row))
        ways: dict[str, Any] = {
            "as it is": {"question": question},
            "as_of": {"question": bare, "as_of": str(int(middle))},
            "no time": {"question": bare},
        }
        for name, inputs in ways.items():
            out = agent.invoke(inputs)
            said = out["answer"] if not out["abstained"] else out["suggestion"]
            for kind, text in ((name, said), (f"{name}, said", out["answer"])):
                scores.setdefault(kind, []).append(token_f1(text, row["targets"]))
        print(json.dumps({name: values[-1] for name, values in scores.items()}))
    for name, values in scores.items():
        print(f"{name:16} F1 {100 * sum(values) / len(values):5.1f} of {len(values)}")


def _passages(row: dict[str, Any]) -> list[Passage]:
    passages = []
    for number, paragraph in enumerate(row["paragraphs"]):
        text = re.sub(r" ([,.;:)’'])", r"\1", paragraph["text"]).strip()
        title = row["idx"].partition("#")[0].removeprefix("/wiki/").replace("_", " ")
        passages.append(Passage(f"{number}", text, title, document_id="article"))
    return passages


if __name__ == "__main__":
    run_program(main)

"""Reads recorded rollouts of R1-Searcher as its dialect, and plays some of them through the loop.

python -m lab.dialects FOLDER                  # of r1searcher_*.jsonl, with gen_text_store and pred_ans in each line
python -m lab.dialects FOLDER --loop 50        # and 50 rollouts of each file through the whole loop

What a turn says is judged by the recording harness's own rule: a search is what stands between the last opening token
and the first closing one, the answer is its `pred_ans`. A turn is read twice, with its closing tag and without it, as a
stop string cuts it off. "misread" is a turn whose action or words differ; white space and quotes around all do not
count.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel

from ras_agent import Limits, Passage, Settings, create_ras_agent
from ras_agent.program import run_program
from ras_agent.tools.plan.dialects import R1_SEARCHER
from ras_agent.tools.plan.dialogue_planner import DialoguePlanner

_DOCUMENTS = re.compile(r"\s*<\|begin_of_documents\|>.*?<\|end_of_documents\|>\s*", re.DOTALL)
_END = "<|end_of_query|>"
_CUT = ", cut by a stop string"
_COUNTED = (
    *("turns", "turns: subq", "turns: sufficient", "understood", "misread", f"understood{_CUT}", f"misread{_CUT}"),
    *("loop: rollouts", "loop: as recorded"),
)


def main() -> None:
    """Print the counts of each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--loop", type=int, default=0, help="rollouts of each file that are played through the loop")
    arguments = parser.parse_args()
    for file in sorted(arguments.folder.glob("r1searcher_*.jsonl")):
        rollouts = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        counts = sum((turn_counts(*turn) for rollout in rollouts for turn in recorded_turns(rollout)), Counter[str]())
        for rollout in rollouts[: arguments.loop]:
            counts["loop: rollouts"] += 1
            counts["loop: as recorded"] += plays_as_recorded(rollout)
        print(file.name, json.dumps({name: counts[name] for name in _COUNTED}))


def recorded_turns(rollout: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each turn of the model's with its action, by the harness's rule: "subq" or "sufficient", and the words."""
    *searches, last = _DOCUMENTS.split(rollout["gen_text_store"])
    for turn in searches:
        yield turn, "subq", turn.partition(_END)[0].rpartition("<|begin_of_query|>")[2]
    yield last, "sufficient", rollout["pred_ans"]


def turn_counts(turn: str, action: str, words: str) -> Counter[str]:
    """Count a turn, whether it is understood with and without its end, and whether it is misread."""
    counts = Counter({"turns": 1, f"turns: {action}": 1})
    for name, text in (("", turn), (_CUT, turn.removesuffix(_END).removesuffix("</answer>"))):
        reading = R1_SEARCHER.read(text, False, "")
        counts[f"understood{name}"] += reading is not None
        if reading is not None:
            plan = reading.plan
            counts[f"misread{name}"] += (plan.action, _bare(plan.subquery or plan.answer)) != (action, _bare(words))
    return counts


def _bare(words: str) -> str:
    return " ".join(words.split()).strip('" ')


def plays_as_recorded(rollout: dict[str, Any]) -> bool:
    """Play the recorded turns through the loop, and tell whether it searches and ends as they say.

    The index holds the documents that the rollout was shown.
    """
    turns = list(recorded_turns(rollout))
    shown = re.findall(r"^\(\d+\)(.+)$", rollout["gen_text_store"], re.MULTILINE)
    model = FakeListChatModel(responses=[turn.removesuffix(_END).removesuffix("</answer>") for turn, _, _ in turns])
    agent = create_ras_agent(
        index=[Passage(f"p{n}", text, text[:40]) for n, text in enumerate(dict.fromkeys(shown))] or ["No document."],
        planner=DialoguePlanner(model, R1_SEARCHER),
        limits=Limits(max_hops=20, stop_on_repeat=False, stop_on_no_new_facts=False),
        settings=Settings(extractor="offline", answerer="offline"),
    )
    out = agent.invoke({"question": rollout["question"]})
    plans = [(plan["action"], _bare(plan.get("answer", "") or plan["subquery"])) for plan in out["plans"]]
    recorded = [(action, _bare(words)) for _, action, words in turns]
    if recorded[0][0] == "sufficient":  # an answer has to rest on evidence: the loop searches first
        return bool(out["steps"]) and plans[0][0] == "subq"
    return plans == recorded


if __name__ == "__main__":
    run_program(main)

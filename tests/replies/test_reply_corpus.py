"""Replies in the manner of many models, each labelled by hand with its right reading, and how many are read so.

Each line of the four files here is one reply: the family of models that writes so, the reply, its
right reading, and a note. "unreadable" means that it is right to ask again. `set` names the use of a reply: the parsers were
adapted to those "tuned on"; those "held back" were written and labelled at the same time, and not looked at meanwhile;
those of an "attack" were written afterwards, in search of replies that the parsers misunderstand, which were then mended.
"real, small" was written by no hand: SmolLM2-135M-Instruct (Apache-2.0) replied so to the prompts of this package,
mostly over the bundled sample, and only the readings are ours.

    python -m tests.replies.test_reply_corpus        # prints the table of docs/models.md, and the replies that are
    not understood
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import UNKNOWN, ends_chain
from ras_agent.contracts.records import Passage
from ras_agent.tools.answer.citations import NumberedEvidence
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.call import Reply
from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm_reasoner import first_new_sentence
from ras_agent.tools.structure.llm import problem_of
from ras_agent.tools.structure.parse_triples import parse_triples

UNREADABLE = "unreadable"
SETS = ("tuned on", "held back", "attack", "second attack", "real, small")
THOUGHTS = ("Bell was born in Edinburgh.",)
QUESTIONS = {
    "boolean": "Bell was born in Edinburgh.",
    "choice": "Which river flows through Edinburgh?\nA) Clyde\nB) Water of Leith\nC) Tay",
}
EVIDENCE = NumberedEvidence(
    (
        Passage("1", "Bell was born in Edinburgh.", "Bell"),
        Passage("2", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
        Passage("3", "The Clyde flows through Glasgow.", "Clyde"),
    )
)
MARKS_OF_ACTIONS = {
    "subq": "[SUBQ]",
    "sufficient": "[SUFFICIENT]",
    "no_retrieval": "[NO_RETRIEVAL]",
}


def plan(line: dict[str, Any]) -> tuple[object, object]:
    try:
        read = parse_plan(line["reply"])
    except ParseError:
        return UNREADABLE, line["reads"]
    return f"{MARKS_OF_ACTIONS[read.action]} {read.subquery}".rstrip(), line["reads"]


def sentence(line: dict[str, Any]) -> tuple[object, object]:
    read = first_new_sentence(line["reply"], THOUGHTS)
    return (read, ends_chain(read)) if read else UNREADABLE, (
        UNREADABLE if line["reads"] == UNREADABLE else (line["reads"], line["ends"])
    )


def triples(line: dict[str, Any]) -> tuple[object, object]:
    parsed = parse_triples(line["reply"])
    read = [
        f"{fact.subject} | {fact.predicate} | {fact.object}"
        for fact in dict.fromkeys(parsed.triples)
    ]
    asks_again = bool(problem_of(parsed, line["reply"]))
    return UNREADABLE if asks_again and (
        not read or read != line["reads"]
    ) else read, line["reads"]


def answer(line: dict[str, Any]) -> tuple[object, object]:
    answerer = LLMAnswerer(FakeListChatModel(responses=[]), style=line["style"])
    read, problem = answerer._read(
        Reply(line["reply"]), QUESTIONS.get(line["style"], "Which river?"), EVIDENCE
    )
    text = str(UNKNOWN) if read.abstained else read.text
    cited = (
        [int(citation.passage_id) for citation in read.citations]
        if line["cites"]
        else []
    )
    return UNREADABLE if problem else (text, cited), (
        UNREADABLE if line["reads"] == UNREADABLE else (line["reads"], line["cites"])
    )


KINDS: dict[str, Callable[[dict[str, Any]], tuple[object, object]]] = {
    "plans": plan,
    "sentences": sentence,
    "triples": triples,
    "answers": answer,
}


def lines(kind: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / f"{kind}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def judged(kind: str) -> list[tuple[str, dict[str, Any], object]]:
    """Return each reply's verdict: "understood", "asked again" although it is readable, or "misunderstood"."""
    verdicts = []
    for line in lines(kind):
        read, right = KINDS[kind](line)
        verdict = (
            "understood"
            if read == right
            else "asked again"
            if read == UNREADABLE
            else "misunderstood"
        )
        verdicts.append((verdict, line, read))
    return verdicts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("among", SETS)
def test_nearly_every_reply_is_understood_and_none_misunderstood(
    kind: str, among: str
) -> None:
    verdicts = Counter(
        verdict for verdict, line, _ in judged(kind) if line["set"] == among
    )
    assert verdicts["misunderstood"] == 0
    assert verdicts["understood"] / verdicts.total() >= 0.97


def test_there_are_enough_replies_of_many_families() -> None:
    written = [line for kind in KINDS for line in lines(kind)]
    assert len(written) >= 400
    assert len({line["family"] for line in written}) >= 9
    for kind in KINDS:
        of_kind = lines(kind)
        assert sum(line["set"] != "tuned on" for line in of_kind) >= len(of_kind) / 4
        assert len({(line["reply"], line.get("style")) for line in of_kind}) == len(
            of_kind
        )


def main() -> None:
    print(
        "| replies | set | number | understood | asked again | misunderstood |\n|---|---|---:|---:|---:|---:|"
    )
    for kind in KINDS:
        for among in SETS:
            found = [one for one in judged(kind) if one[1]["set"] == among]
            counts = Counter(verdict for verdict, _, _ in found)
            shares = " | ".join(
                f"{counts[verdict] / len(found):.1%}"
                for verdict in ("understood", "asked again", "misunderstood")
            )
            print(f"| {kind} | {among} | {len(found)} | {shares} |")
    for kind in KINDS:
        for verdict, line, read in judged(kind):
            if verdict != "understood":
                print(
                    f"{kind} {verdict}: {line['reply']!r}\n    {read!r} instead of {line['reads']!r} {line['note']}"
                )


if __name__ == "__main__":
    main()

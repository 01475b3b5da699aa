"""Measure how well `Citation.supported` tells right answers from wrong ones. See lab/answers-borne.md.

    python -m lab.answers_borne swaps DATA/reading/nq_swap_train.jsonl
    python -m lab.answers_borne swaps DATA/suites/confiqa_mc.jsonl
    python -m lab.answers_borne verdicts DATA/reading/fever_symmetric_dev.jsonl
    python -m lab.answers_borne claims DATA/reading/wice/claim_dev.jsonl
    python -m lab.answers_borne replies smol.jsonl DATA/hotpotqa/questions.jsonl

`replies` is a file of recorded calls, a line each with `request` and `reply`.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel

from ras_agent.eval.metrics.answers import holds, token_f1
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.support import is_grounded, texts_to_judge, with_support
from ras_agent.records import Answer, Citation, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import names_in
from ras_agent.text.overlap import support
from ras_agent.tools.answer.citations import NumberedEvidence
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.offline.roles import offline_judge

_MOST_F1 = 0.5  # token F1 from which a reply is taken for right
_TAG = re.compile(r"</?[A-Z][^>]*>")
_PASSAGE = re.compile(r"<passage>\n\[\d+\] (?P<title>[^\n]*)\n(?P<text>.*?)\n</passage>", re.DOTALL)
_FACT = re.compile(r"^\[\d+\] \(S> (.*?) \| P> (.*?) \| O> (.*)\)$", re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.*)$", re.MULTILINE)

Row = tuple[str, bool, bool | None]
"""The kind of a case, whether the answer is borne, and what `supported` says"""


def main() -> None:
    """Print a table: how many of each kind are supported, not, or unclear; then precision and recall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=COMMANDS, help="what is measured")
    parser.add_argument("files", nargs="+", help="the set, or the recorded calls and their questions")
    parser.add_argument("--verbose", action="store_true", help="print each reply, and what it cites")
    arguments = parser.parse_args()
    rows = list(COMMANDS[arguments.kind](*arguments.files, **({"verbose": True} if arguments.verbose else {})))
    kinds = Counter(rows)
    for kind, borne in dict.fromkeys((kind, borne) for kind, borne, _ in rows):
        counts = [kinds[kind, borne, said] for said in (True, False, None)]
        print(f"{kind:28} right {borne!s:5}  supported {counts[0]}, not {counts[1]}, unclear {counts[2]}")
    said_so = [borne for _, borne, said in rows if said is True]
    right = [said for _, borne, said in rows if borne]
    print(f"precision {sum(said_so)}/{len(said_so)} = {sum(said_so) / max(1, len(said_so)):.3f}")
    print(f"recall {right.count(True)}/{len(right)} = {right.count(True) / max(1, len(right)):.3f}")


def swaps(path: str) -> Iterator[Row]:
    """Yield for each question its answer, that of another question, another name of the text, and its own elsewhere."""
    records = _records(path)
    for number, record in enumerate(records):
        other = records[(number + 1) % len(records)]
        text, question, answer = _plain(record["context"]), record["question"], record["answer"]
        if not holds(text, [answer]):
            continue
        yield "its own", True, _supported(question, answer, text)
        if not holds(text, [other["answer"]]):
            yield "of another question", False, _supported(question, other["answer"], text)
        elsewhere = _plain(other["context"])
        if not holds(elsewhere, [answer]):
            yield "its own, cited elsewhere", False, _supported(question, answer, elsewhere)


def near(path: str) -> Iterator[Row]:
    """Yield for each question another name of its text."""
    for record in _records(path):
        text, question, answer = _plain(record["context"]), record["question"], record["answer"]
        asked = canonical_key(question)
        names = [name for name in names_in(text) if canonical_key(name) not in asked and not holds(answer, [name])]
        if holds(text, [answer]) and names:
            yield "another name of the text", False, _supported(question, names[len(names) // 2], text)


def verdicts(path: str) -> Iterator[Row]:
    """Yield for each claim what is right, and what is wrong."""
    for record in _records(path):
        for answer in ("Yes", "No"):
            right = (answer == "Yes") == (record["label"] == "SUPPORTS")
            yield answer, right, _supported(record["claim"], answer, record["evidence"])


def claims(path: str) -> Iterator[Row]:
    """Yield for each claim whether its sentences of evidence bear it; of one without, those that share most words."""
    for record in _records(path):
        sentences, label = record["evidence"], record["label"]
        chosen = record["supporting_sentences"][0] if record["supporting_sentences"] else []
        if not chosen:
            ranked = sorted(range(len(sentences)), key=lambda n: -support(sentences[n], [record["claim"]]))
            chosen = sorted(ranked[:2])
        texts = [sentences[number] for number in chosen]
        yield label, label == "supported", _together(record["claim"], texts)


def replies(path: str, questions: str, verbose: bool = False) -> Iterator[Row]:
    """Yield for each recorded reply of an answerer that is an answer whether it is right, and whether it is borne."""
    golds = {record["question"]: record["answers"] for record in _records(questions)}
    seen = set()
    for record in _records(path):
        case = _recorded(record)
        if case is None or case in seen or case[0] not in golds:
            continue
        seen.add(case)
        question, prompt, reply = case
        answer = _answered(question, prompt, reply)
        if answer.abstained:
            continue
        gold = golds[question]
        closed = canonical_key(gold[0]) in ("yes", "no")
        right = _is_right(question, answer.text, gold[0])
        states = [one.supported for one in answer.citations]
        said = True if True in states else None if None in states else False
        if verbose:
            print(f"{right!s:5} {said!s:5} {question} => {answer.text!r} (gold {gold})")
            for one in answer.citations:
                print("        ", one.supported, one.title, "|", one.quote[:200])
        yield ("yes or no" if closed else "open"), right, said


COMMANDS: dict[str, Callable[..., Iterator[Row]]] = {
    "swaps": swaps,
    "near": near,
    "verdicts": verdicts,
    "claims": claims,
    "replies": replies,
}


def _recorded(record: dict[str, Any]) -> tuple[str, str, str] | None:
    turns = record["request"].get("messages") or [{"content": ""}]
    prompt, reply = turns[-1]["content"], record["reply"]
    first = str(turns[0]["content"])
    if not reply or not first.startswith(("You answer questions", "You read numbered texts")):
        return None
    if prompt.startswith("Your reply could not be used"):
        prompt = turns[-3]["content"]
    asked = _QUESTION.findall(prompt)
    return (asked[-1].strip(), prompt, reply) if asked else None


def _answered(question: str, prompt: str, reply: str) -> Answer:
    passages = [
        Passage(f"p{number}", found["text"], found["title"]) for number, found in enumerate(_PASSAGE.finditer(prompt))
    ]
    facts = []
    for number, (subject, predicate, target) in enumerate(_FACT.findall(prompt)):
        text = f"{subject} {predicate} {target}."
        home = max(passages, key=lambda one: support(one.text, [subject, target]), default=None)
        if home is None or support(f"{home.title} {home.text}", [subject, target]) < 2:
            home = Passage(f"f{number}", text, subject)
        facts.append(Triple(subject, predicate, target, (Source(home.id),)))
    unshown = [Passage(f.sources[0].passage_id, f"{f.subject} {f.predicate} {f.object}.", f.subject) for f in facts]
    graph = QuestionGraph(tuple(facts))
    known = {one.id: one for one in [*unshown, *passages]}
    model = FakeListChatModel(responses=[reply])
    answer = LLMAnswerer(model).answer(question, graph, passages, ())
    return _marked(question, answer, known, graph)


def _is_right(question: str, answer: str, gold: str) -> bool:
    """Return whether an answer is right: it begins with the gold yes or no, else it has or nearly is the gold answer.

    One that names both things of a choice is not.
    """
    if canonical_key(gold) in ("yes", "no"):
        return canonical_key(answer).split()[:1] == [canonical_key(gold)]
    if " or " in question:
        return token_f1(answer, [gold]) >= _MOST_F1
    return token_f1(answer, [gold]) >= _MOST_F1 or holds(answer, [gold])


def _supported(question: str, answer: str, text: str) -> bool | None:
    passage = Passage("p", text)
    citations = NumberedEvidence((passage,)).citations((1,), answer, question)
    marked = _marked(question, Answer(answer, citations), {"p": passage}, QuestionGraph())
    return marked.citations[0].supported


def _together(claim: str, texts: Sequence[str]) -> bool | None:
    passages = {str(number): Passage(str(number), text) for number, text in enumerate(texts)}
    citations = tuple(
        Citation(number, one.id, "", 0, len(one.text), one.text) for number, one in enumerate(passages.values(), 1)
    )
    marked = _marked("What is said?", Answer(claim, citations), passages, QuestionGraph())
    return is_grounded(marked)


def _marked(question: str, answer: Answer, passages: dict[str, Passage], graph: QuestionGraph) -> Answer:
    texts = texts_to_judge(question, answer, passages)
    judged = offline_judge().judge(question, texts) if texts else ()
    return with_support(question, answer, passages, graph.by_id, judged)


def _plain(text: str) -> str:
    return " ".join(_TAG.sub(" ", text).split())


def _records(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()

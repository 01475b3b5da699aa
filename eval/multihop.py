"""Score an agent on a multi-hop question set over one corpus.

    python -m ras_agent.eval.multihop --corpus corpus.jsonl --questions questions.jsonl --graph ras --out ras.jsonl

prints EM, F1, recall and time, and writes one JSON line a question. `--against other.jsonl` adds a paired bootstrap
of the F1 difference to an earlier run, `--baselines` two trivial systems to put the figures beside. Recall@k of a run
of several hops ranks passages by hop, then by rank within the hop; `union` is what all hops together found.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ras_agent.budget import Limits
from ras_agent.eval.metrics import all_recalled_at, exact_match, normalise_answer, recall_at, token_f1
from ras_agent.eval.questions import Question, load_passages, load_questions
from ras_agent.eval.significance import paired_bootstrap
from ras_agent.records import Passage

if TYPE_CHECKING:
    from ras_agent.graphs.assembly import Agent
    from ras_agent.tools.index.store import PassageIndex

__all__ = ["Outcome", "build_agent", "main", "run", "summary", "table"]

Respond = Callable[[str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question's result; scores in 0..1."""

    id: str
    question: str
    answers: tuple[str, ...]
    prediction: str
    abstained: bool
    em: float
    f1: float
    recall_2: float
    recall_5: float
    all_5: float
    union_recall: float
    union_all: float
    union_size: int
    hops: int
    stop_reason: str
    seconds: float
    failures: int

    @property
    def closed(self) -> bool:
        """A yes/no question."""
        return normalise_answer(self.answers[0]) in {"yes", "no"}


def build_agent(graph: str, index: PassageIndex, *, retriever: str, roles: str, limits: Limits) -> Respond:
    """An agent over `index` as a function from a question to the agent's final output."""
    import ras_agent

    builders: dict[str, Callable[..., Agent]] = {
        "ras": ras_agent.create_ras_agent,
        "ircot": ras_agent.create_ircot_agent,
        "single-shot": ras_agent.create_single_shot_agent,
    }
    named: dict[str, Any] = {"retriever": retriever, "index": index, "answerer": roles, "limits": limits}
    if graph == "ras" or graph == "ircot":
        named["planner"] = roles
    agent = builders[graph](**named)
    return lambda question: dict(agent.invoke({"question": question}))


def run(
    respond: Respond, questions: Iterable[Question], *, report: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Ask every question, one after the other."""
    outcomes = []
    for question in questions:
        began = time.perf_counter()
        out = respond(question.question)
        outcome = _outcome(question, out, time.perf_counter() - began)
        outcomes.append(outcome)
        if report:
            report(outcome)
    return outcomes


def _outcome(question: Question, out: dict[str, Any], seconds: float) -> Outcome:
    passages = out["passages"].values()
    ranked = [passage["title" if question.by_title else "id"] for passage in passages]
    gold = question.supporting
    return Outcome(
        id=question.id,
        question=question.question,
        answers=question.answers,
        prediction=out["answer"],
        abstained=bool(out.get("abstained")),
        em=exact_match(out["answer"], question.answers),
        f1=token_f1(out["answer"], question.answers),
        recall_2=recall_at(2, ranked, gold),
        recall_5=recall_at(5, ranked, gold),
        all_5=all_recalled_at(5, ranked, gold),
        union_recall=recall_at(len(ranked), ranked, gold),
        union_all=all_recalled_at(len(ranked), ranked, gold),
        union_size=len(ranked),
        hops=len(out["steps"]),
        stop_reason=out["stop_reason"],
        seconds=seconds,
        failures=len(out["failures"]),
    )


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Means over the outcomes; shares in percent, seconds in seconds."""
    spans = [outcome for outcome in outcomes if not outcome.closed]
    closed = [outcome for outcome in outcomes if outcome.closed]

    def percent(name: str, rows: Sequence[Outcome]) -> float:
        return 100 * fmean(getattr(row, name) for row in rows) if rows else float("nan")

    return {
        "questions": len(outcomes),
        "EM": percent("em", outcomes),
        "F1": percent("f1", outcomes),
        "yes/no n": len(closed),
        "yes/no EM": percent("em", closed),
        "span n": len(spans),
        "span EM": percent("em", spans),
        "span F1": percent("f1", spans),
        "R@2": percent("recall_2", outcomes),
        "R@5": percent("recall_5", outcomes),
        "all@5": percent("all_5", outcomes),
        "union R": percent("union_recall", outcomes),
        "union all": percent("union_all", outcomes),
        "union size": fmean(outcome.union_size for outcome in outcomes),
        "hops": fmean(outcome.hops for outcome in outcomes),
        "abstained": percent("abstained", outcomes),
        "seconds": fmean(outcome.seconds for outcome in outcomes),
    }


def table(rows: dict[str, dict[str, float]]) -> str:
    """A Markdown table, one system a row."""
    columns = list(next(iter(rows.values())))
    lines = ["| system | " + " | ".join(columns) + " |", "|" + "---|" * (len(columns) + 1)]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[column]:.4g}" for column in columns) + " |")
    return "\n".join(lines)


def _baselines(index: PassageIndex, k: int) -> dict[str, Respond]:
    """Two systems that know nothing: always "yes"; the title of BM25's best passage."""
    bm25 = index.retriever("bm25")

    def respond(answer: Callable[[list[Passage]], str]) -> Respond:
        def inner(question: str) -> dict[str, Any]:
            found = [hit.passage for hit in bm25.retrieve(question, k)]
            return {
                "answer": answer(found),
                "passages": {passage.id: passage.to_dict() for passage in found},
                "steps": [question],
                "stop_reason": "single_shot",
                "failures": [],
            }

        return inner

    return {
        'always "yes"': respond(lambda found: "yes"),
        "top BM25 title": respond(lambda found: found[0].title if found else ""),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m ras_agent.eval.multihop", description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--corpus", type=Path, help="JSON Lines of passages, indexed in memory for BM25")
    source.add_argument(
        "--index", type=Path, help="an index that `ras-agent index` made, for dense and hybrid retrieval"
    )
    parser.add_argument("--questions", required=True, type=Path)
    parser.add_argument("--first", type=int, default=1, help="first question's line, from 1")
    parser.add_argument("--last", type=int, default=None, help="last question's line")
    parser.add_argument("--graph", choices=("ras", "ircot", "single-shot"), default="ras")
    parser.add_argument("--retriever", default="bm25")
    parser.add_argument("--roles", default="offline", help="planner and answerer, as --planner takes it")
    parser.add_argument("--max-hops", type=int, default=Limits().max_hops)
    parser.add_argument("--k", type=int, default=Limits().k)
    parser.add_argument("--out", type=Path, help="JSON Lines, one question a line")
    parser.add_argument("--against", type=Path, help="an earlier --out of the same questions")
    parser.add_argument("--baselines", action="store_true")
    options = parser.parse_args(arguments)

    from ras_agent.tools.index.store import PassageIndex

    index = PassageIndex.open(options.index) if options.index else PassageIndex.in_memory(load_passages(options.corpus))
    questions = load_questions(options.questions)[options.first - 1 : options.last]
    respond = build_agent(
        options.graph,
        index,
        retriever=options.retriever,
        roles=options.roles,
        limits=Limits(max_hops=options.max_hops, k=options.k),
    )
    outcomes = run(respond, questions)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in outcomes), "utf-8")
    rows = {f"{options.graph} {options.retriever} {options.roles}": summary(outcomes)}
    if options.baselines:
        rows |= {name: summary(run(ask, questions)) for name, ask in _baselines(index, options.k).items()}
    print(table(rows))
    if options.against:
        _print_difference(outcomes, options.against)


def _print_difference(outcomes: Sequence[Outcome], path: Path) -> None:
    earlier = {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}
    pairs = [(row.f1, earlier[row.id]["f1"]) for row in outcomes]
    difference = paired_bootstrap([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    print(
        f"F1 difference to {path.name}: {100 * difference.mean:+.1f} "
        f"(95 % interval {100 * difference.low:+.1f} to {100 * difference.high:+.1f}, p = {difference.p_value:.4f})"
    )


if __name__ == "__main__":
    main()

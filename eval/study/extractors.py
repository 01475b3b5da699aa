"""Compares extractors (RAS, Table 3): their triples with gold triples, their speed, and the scores of the loop
with each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ModelCallError, SettingsError
from ras_agent.contracts.marks import OBJECT, PREDICATE, SUBJECT
from ras_agent.contracts.records import JSON, Passage, RefusedFacts, Usage
from ras_agent.eval.benchmarks import Benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.report.figures import numbered
from ras_agent.eval.report.markdown import markdown_table, percent
from ras_agent.eval.run.agent import AnswerQuestion, EvalAgent
from ras_agent.eval.run.result import Result, estimates
from ras_agent.eval.run.summarise import summed_usage
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import Design, Shown, extended
from ras_agent.eval.study.tables import side_by_side
from ras_agent.graphs.resolve import role_options, role_specs
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, metered
from ras_agent.running.calling import acall
from ras_agent.running.protocols import Extractor
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.roles import resolve_extractor, role_name

_ROUGE = (
    ("triple_rouge1", "triple_rouge2", "triple_rougel")
    if find_spec("rouge_score")
    else ()
)
_KINDS = ("triple", "triple_ends", "triple_soft")
_PARTS = ("precision", "recall", "f1")
_MARKS = re.compile(rf"^\({SUBJECT} | \| {PREDICATE} | \| {OBJECT} |\)$", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def _read(record: QuestionRecord) -> Question:
    """Return a question from a record with `text` and `triples`, and optional `id` and `title` (the heading of
    the text).

    Annotations written by models also contain lists of two or four parts. These are left out, and counted as
    `unusable`.
    """
    items = record.items("triples")
    triples = []
    for item in items:
        if isinstance(item, list) and len(item) == 3:
            triples.append(item)
    usable = replace(record, data={**record.data, "triples": triples})
    return Question(
        id=record.identity,
        question=record.text("text"),
        answers=(),
        metadata={
            "triples": usable.triples("triples"),
            "unusable": len(items) - len(triples),
            "title": record.text("title", default=""),
        },
    )


GOLD_TRIPLES = Benchmark(
    name="gold-triples",
    title="texts with gold triples",
    source="write one JSON object a line: text, triples (lists of subject, predicate, object); optional id, title",
    read=_read,
    metrics=(*map("_".join, product(_KINDS, _PARTS)), *_ROUGE),
)


def extraction_answerer(extractor: Extractor) -> AnswerQuestion:
    """Return an async function that lets the extractor read a question's text with its title.

    Its output has the triples, and the failures if there are any.
    """

    async def ask(question: Question) -> Mapping[str, Any]:
        passage = Passage(
            question.id, question.question, str(question.metadata.get("title", ""))
        )
        with metered(Ledger(role="extractor", hop=1)) as ledger:
            extraction = await acall(extractor, "extract", [passage], "")
        unread = []
        for failure in extraction.failures:
            if not isinstance(failure, RefusedFacts):
                unread.append(failure.message)
        if unread and not extraction.triples:
            raise ModelCallError("; ".join(unread))
        return {
            "answer": "\n".join(map(str, extraction.triples)),
            "graph": QuestionGraph(extraction.triples).to_dict(),
            "passages": {},
            "steps": [],
            "usage": Usage(tuple(ledger.calls)).to_dict(),
            "failures": [failure.to_dict() for failure in extraction.failures],
            "stop_reason": "extraction",
        }

    return ask


def bare_triples(answer: str) -> str:
    """Return the words of triples without the marks between their parts."""
    return _MARKS.sub(" ", answer)


def counted_tokens(text: str) -> int:
    """Return the number of words and punctuation marks, so that extractors with different tokenisers are
    compared equally.
    """
    return len(_TOKEN.findall(text))


def extractors_design(
    task: Task | None,
    settings: Settings,
    *,
    extractors: Sequence[str] = (),
    gold: Sequence[Path] = (),
    gold_limit: int | None = None,
    concurrency: int = 32,
) -> Design:
    """Return a design with a run of each extractor over each gold file and, with a task, of the agent with each
    extractor.

    Args:
        task: The questions; None to use only gold files.
        settings: The settings of the agent.
        extractors: The extractors.
        gold: Files of texts with gold triples.
        gold_limit: The maximum number of texts read from each file.
        concurrency: The number of passages or questions at the same time.

    Raises:
        SettingsError: If there is neither a gold file nor a task.
    """
    if task is None and not gold:
        raise SettingsError(
            "there is nothing to read: give --gold, texts with gold triples, or a benchmark with --data, or both"
        )
    specs = tuple(dict.fromkeys(extractors)) or (
        role_specs(settings).get("extractor", "offline"),
    )
    names = {spec: role_name(spec) for spec in specs}
    runs: list[tuple[Task, EvalAgent]] = []
    alone: dict[str, dict[str, str]] = {}
    unusable: dict[str, int] = {}
    for path in gold:
        texts = _texts(path, gold_limit)
        label = numbered(path.stem, alone)
        alone[label] = {}
        unusable[label] = sum(
            question.metadata["unusable"] for question in texts.questions
        )
        for spec in specs:
            agent = _extraction(spec, names[spec], settings, label, concurrency)
            alone[label][names[spec]] = agent.name
            runs.append((texts, agent))
    within: dict[str, str] = {}
    if task is not None:
        scored = task.scored_by(extended(task.metrics, "answer_in_facts"))
        for spec in specs:
            name = f"{names[spec]} in the loop"
            within[names[spec]] = name
            own = settings.model_copy(update={"extractor": spec})
            agent = EvalAgent(name, own, variant={"extractor": names[spec]})
            runs.append((scored, agent))
    show = partial(
        _show,
        alone=alone,
        within=within,
        unusable=unusable,
        concurrency=concurrency,
        metrics=extended(task.metrics[:2], "answer_in_facts") if task else (),
    )
    headline = "triple_soft_f1"
    if task:
        headline = task.benchmark.headline
    return Design(
        "extractors", tuple(runs), show, headline, next(iter(within.values()), "")
    )


def _texts(path: Path, limit: int | None) -> Task:
    questions = GOLD_TRIPLES.load(path, limit=limit)
    return Task(GOLD_TRIPLES, path, questions, PassageIndex.in_memory([]), "")


def _extraction(
    spec: str,
    extractor: str,
    settings: Settings,
    label: str,
    concurrency: int,
) -> EvalAgent:
    def make(task: Task, settings: Settings) -> AnswerQuestion:
        return extraction_answerer(resolve_extractor(spec, role_options(settings)))

    return EvalAgent(
        f"{extractor} on {label}",
        settings,
        traces=False,
        make=make,
        graph="none",
        # speed depends on the number of concurrent texts, so a run can only be resumed with the same number
        variant={"extractor": extractor, "texts": label, "concurrency": concurrency},
        only_roles={"extractor": extractor},
    )


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    alone: Mapping[str, Mapping[str, str]],
    within: Mapping[str, str],
    unusable: Mapping[str, int],
    concurrency: int,
    metrics: Sequence[str],
) -> Shown:
    parts: list[str] = []
    figures: JSON = {"gold": {}}
    for label, scores in alone.items():
        rows = {}
        for extractor, name in scores.items():
            rows[extractor] = _measure_reading(runs[name], concurrency)
        figures["gold"][label] = rows
        parts.append(
            f"## {label}: triples against gold ones, %\n\n{_gold_table(rows)}\n"
        )
        if unusable[label]:
            parts.append(
                f"{unusable[label]} gold items that do not have three parts are left out.\n"
            )
    if within:
        base = next(iter(within.values()))
        inside = side_by_side(
            {name: runs[name] for name in within.values()}, metrics, metrics[0], base
        )
        figures["loop"] = inside.figures
        parts.append(f"## In the loop\n\n{inside.markdown}")
    return Shown("\n".join(parts), figures)


def _measure_reading(results: Sequence[Result], concurrency: int) -> JSON:
    """Return the scores, and the tokens per second of all simultaneous readings together."""
    at_once = max(1, min(concurrency, len(results)))
    spent = sum(result.seconds + result.queued for result in results)
    seconds = spent / at_once
    fresh = not any(result.usage.get("replayed") for result in results)

    def pace(tokens: int) -> float | None:
        # a replayed call took no time, so there is no speed
        if seconds and fresh:
            return tokens / seconds
        return None

    scores: JSON = dict.fromkeys(GOLD_TRIPLES.metrics)
    for metric, score in estimates(results, GOLD_TRIPLES.metrics).items():
        scores[metric] = asdict(score)
    read = sum(counted_tokens(result.question) for result in results)
    written = sum(counted_tokens(bare_triples(result.answer)) for result in results)
    usage = summed_usage(results)
    return {
        "texts": len(results),
        "errors": sum(result.error is not None for result in results),
        "triples": sum(len(result.answer.splitlines()) for result in results),
        "scores": scores,
        "read_tokens_a_second": pace(read),
        "written_tokens_a_second": pace(written),
        "model_tokens": {
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
        },
    }


def _gold_table(rows: Mapping[str, JSON]) -> str:
    head = ["extractor", "texts", "triples", *(f"{kind} P / R / F1" for kind in ("exact", "ends", "soft")),
            "ROUGE-1 / 2 / L", "tokens/s read", "tokens/s written", "errors"]  # fmt: skip
    lines = []
    for extractor, row in rows.items():
        cells = []
        for kind in _KINDS:
            parts = [_mean(row["scores"][f"{kind}_{part}"]) for part in _PARTS]
            cells.append(" / ".join(parts))
        paces = []
        for name in ("read_tokens_a_second", "written_tokens_a_second"):
            paces.append(f"{row[name]:,.0f}" if row[name] else "–")
        rouge = " / ".join(_mean(row["scores"][name]) for name in _ROUGE) or "–"
        lines.append(
            [
                extractor,
                str(row["texts"]),
                str(row["triples"]),
                *cells,
                rouge,
                *paces,
                str(row["errors"]),
            ]
        )
    return markdown_table(head, lines)


def _mean(score: JSON | None) -> str:
    if score:
        return percent(score["mean"])
    return percent(None)

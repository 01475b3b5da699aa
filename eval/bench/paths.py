"""Measures instances of LEGO-GraphRAG's modules on a question set over a knowledge base: quality and time.

    python -m ras_agent.eval.bench.paths --kb pq2h_kb.jsonl --questions pq2h.jsonl --instances 0-3,15 --sample 150

prints a table. Quality as in the paper (section 5.1): the answers against the entities of the subgraph, of the
filtered paths, and of the paths that are kept; precision and recall are means over questions, F1 their harmonic mean,
HR the share of questions with an answer among the entities. HR@1, ours, is the share whose best path ends in an answer.
Questions start from the entities that the set names. Times are processor time; models that are elsewhere cost none.
With --out an instance that has its line there is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from ras_agent.errors import IngestError
from ras_agent.eval.benchmarks.pathquestion import PATHQUESTION, of_part, read_knowledge_base
from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.eval.question import Question
from ras_agent.program import run_program
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.subgraph.composition import INSTANCES, CompositionError, parse_composition
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.paths import Path as GraphPath
from ras_agent.tools.subgraph.paths import PathLimits
from ras_agent.tools.subgraph.pipeline import FoundPaths, PathFinder, PathSettings
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers


@dataclass(frozen=True, slots=True)
class ModuleScore:
    """Scores one module over all questions: precision, recall, f1, hr in 0..1; milliseconds, entities per question."""

    precision: float
    recall: float
    f1: float
    hr: float
    milliseconds: float
    entities: float


@dataclass(frozen=True, slots=True)
class InstanceScore:
    """Scores an instance.

    hr_at_1: share of questions whose best path ends in an answer. paths: kept per question. truncated: questions with
    more candidate paths than the limit."""

    composition: str
    questions: int
    subgraph: ModuleScore
    filtering: ModuleScore
    refinement: ModuleScore
    hr_at_1: float
    paths: float
    truncated: int
    failures: int


def evaluate(finder: PathFinder, questions: Sequence[Question]) -> InstanceScore:
    """Run one composition over `questions`, which name their entities. Raises ValueError without questions."""
    if not questions:
        raise ValueError("there are no questions to score")
    _asked(finder, questions[0])  # what is loaded and prepared once is no question's time
    found = [_asked(finder, question) for question in questions]
    gold = [set(map(canonical_key, question.answers)) for question in questions]
    stages = [
        [one.subgraph.nodes.tolist() for one in found],
        [_nodes(one.candidates) for one in found],
        [_nodes(ranked.path for ranked in one.paths) for one in found],
    ]
    modules = [
        _module(finder.graph, nodes, gold, [one.seconds[place] for one in found]) for place, nodes in enumerate(stages)
    ]
    ends = [
        bool(one.paths) and canonical_key(finder.graph.nodes[one.paths[0].path.end]) in wanted
        for one, wanted in zip(found, gold, strict=True)
    ]
    return InstanceScore(
        str(finder.composition),
        len(questions),
        modules[0],
        modules[1],
        modules[2],
        hr_at_1=fmean(ends),
        paths=fmean(len(one.paths) for one in found),
        truncated=sum(one.truncated for one in found),
        failures=sum(len(one.failures) for one in found),
    )


def numbers_in(text: str) -> list[str]:
    """Read a list of compositions such as "0-3,8,ppr>beam:st>st"; a range is of instances. Raises CompositionError."""
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, dash, high = part.partition("-")
        if dash and low.isdecimal() and high.isdecimal():
            if int(high) >= len(INSTANCES) or int(low) > int(high):
                raise CompositionError(f"{part!r} is no range of instances: Table 4 has 0 to {len(INSTANCES) - 1}")
            found += map(str, range(int(low), int(high) + 1))
        else:
            parse_composition(part)
            found.append(part)
    return found


def table(rows: Sequence[tuple[str, InstanceScore]]) -> str:
    """Format a Markdown table: recall and F1 in percent, times in milliseconds per question."""
    head = "| no. | composition | subgraph R | F1 | ms | paths R | F1 | ms | paths kept: HR | R | F1 | HR@1 | ms |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for name, score in rows:
        first, second, third = score.subgraph, score.filtering, score.refinement
        cells = [
            name if name.isdecimal() else "",
            f"`{score.composition}`",
            *(f"{100 * first.recall:.1f}", f"{100 * first.f1:.2f}", f"{first.milliseconds:.1f}"),
            *(f"{100 * second.recall:.1f}", f"{100 * second.f1:.2f}", f"{second.milliseconds:.1f}"),
            *(f"{100 * third.hr:.1f}", f"{100 * third.recall:.1f}", f"{100 * third.f1:.1f}"),
            *(f"{100 * score.hr_at_1:.1f}", f"{third.milliseconds:.1f}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench.paths", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kb", type=Path, required=True, help="triples, a line each: tabs between, or a JSON list")
    parser.add_argument("--questions", type=Path, required=True, help="PathQuestion, or any set that names entities")
    parser.add_argument("--instances", default="0-3,8-10,15,16", help="numbers, ranges, composition strings")
    parser.add_argument("--part", default="test", choices=("train", "dev", "test"), help="of the split by entity")
    parser.add_argument("--sample", type=int, default=0, help="so many questions, drawn by --seed; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-ent", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=4, help="edges of a path")
    parser.add_argument("--wording", choices=("facts", "relations"), default="facts", help="what scorers read")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--path-encoder", help="folder of a fine-tuned encoder, for st-ft")
    parser.add_argument("--reranker", help="a cross-encoder's name or folder, for rerank")
    parser.add_argument("--llm", help="a chat model, for llm")
    parser.add_argument("--tuned-llm", help="a chat model, for llm-ft")
    parser.add_argument("--out", type=Path, help="JSON Lines of scores, an instance each; resumes")
    given = parser.parse_args(arguments)
    graph = Graph.from_triples(read_knowledge_base(given.kb))
    if not len(graph.edges):
        raise IngestError(f"{given.kb} holds no triples: a line each, tabs between its three parts, or a JSON list")
    questions = of_part(PATHQUESTION.load(given.questions), given.part)
    if given.sample and given.sample < len(questions):
        questions = Random(given.seed).sample(questions, given.sample)
    models = ScorerModels(given.embedder, given.path_encoder, given.reranker, given.llm, given.tuned_llm)
    scorers = Scorers(models)  # one for all, so that vectors are made once
    settings = PathSettings(
        Extraction(max_ent=given.max_ent), limits=PathLimits(longest=given.longest), wording=given.wording
    )
    asked = {name: str(value) for name, value in sorted(vars(given).items()) if name not in ("out", "instances")}
    known, rows = _earlier(given.out, asked), []
    for name in numbers_in(given.instances):
        started = time.perf_counter()
        score = known.get(name)
        if score is None:
            score = evaluate(PathFinder(graph, name, scorers, settings, time.process_time), questions)
            _keep(given.out, asked, name, score)
            print(f"{score.composition}: {time.perf_counter() - started:.0f} s", flush=True)
        rows.append((name, score))
    print(f"\n{len(questions)} questions of {given.questions.name} ({given.part}), {len(graph.edges)} triples\n")
    print(table(rows))


def _keep(out: Path | None, asked: dict[str, str], name: str, score: InstanceScore) -> None:
    if out is not None:
        with out.open("a", encoding="utf-8") as file:  # a line end first: the last line may have been cut off
            file.write("\n" + json.dumps({"instance": name, "asked": asked, "score": asdict(score)}) + "\n")


def _earlier(out: Path | None, asked: dict[str, str]) -> dict[str, InstanceScore]:
    """Read the scores of earlier calls with the same options, by instance; a line that was cut off is ignored."""
    found: dict[str, InstanceScore] = {}
    for line in out.read_text("utf-8").splitlines() if out is not None and out.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["asked"] == asked:  # with other options or another file it is another score
            modules = {part: ModuleScore(**row["score"][part]) for part in ("subgraph", "filtering", "refinement")}
            found[row["instance"]] = InstanceScore(**{**row["score"], **modules})
    return found


def _asked(finder: PathFinder, question: Question) -> FoundPaths:
    entities = question.metadata.get("question_entities") or ()
    starts = [node for node in map(finder.graph.find, entities) if node is not None]
    return finder.find(question.question, starts)


def _nodes(paths: Iterable[GraphPath]) -> list[int]:
    return sorted({node for path in paths for node in path.nodes})


def _module(
    graph: Graph, found: Sequence[Sequence[int]], gold: Sequence[set[str]], seconds: Sequence[float]
) -> ModuleScore:
    scores: list[SetScore] = []
    for nodes, wanted in zip(found, gold, strict=True):
        scores.append(set_score((canonical_key(graph.nodes[node]) for node in nodes), wanted))
    precision, recall = fmean(one.precision for one in scores), fmean(one.recall for one in scores)
    return ModuleScore(
        precision,
        recall,
        2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        fmean(one.recall > 0 for one in scores),
        1000 * fmean(seconds),
        fmean(map(len, found)),
    )


if __name__ == "__main__":
    run_program(main)

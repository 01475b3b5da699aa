"""Measures instances of LEGO-GraphRAG on a question set: quality and time of its modules, and of the answers.

    python -m lab.paths --kb pq2h_kb.jsonl --questions pq2h.jsonl --instances 0-3,15 --sample 150
    python -m lab.paths --set webqsp --questions test.jsonl --instances 0,16 --top-k 8,16,32,64
    python -m lab.paths ... --answerer vllm:http://host:8000/v1#name --shots 0,1,3

print tables. Without --kb each question is asked over the graph that comes with it, as the paper's four sets have them.
Quality as in the paper (section 5.1): the answers against the entities of the subgraph, of the filtered paths, and of
the paths that are kept; precision and recall are means over questions, F1 their harmonic mean, HR the share of
questions with an answer among the entities. HR@1 of paths, ours, is the share whose best path ends in an answer. With
--answerer a model answers from the paths, and HR@1 and F1 are those of its answers: by canonical key, and ("substring")
by the rule of the published code, where an answer is right that has a gold answer in it.
Questions start from the entities that the set names. Times are processor time; models that are elsewhere cost none.
With --out an instance that has its line there is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from random import Random

from lab.path_answers import GenerationScore, PathReader
from lab.path_scores import FinderOf, InstanceScore, ModuleScore, evaluate
from ras_agent.errors import IngestError, SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.benchmarks.pathquestion import (
    PATHQUESTION,
    of_part,
    read_knowledge_base,
)
from ras_agent.eval.question import Question
from ras_agent.program import run_program
from ras_agent.tools.subgraph.composition import (
    INSTANCES,
    CompositionError,
    parse_composition,
)
from ras_agent.tools.subgraph.extract import Extraction
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.paths import PathLimits
from ras_agent.tools.subgraph.pipeline import PathFinder, PathSettings
from ras_agent.tools.subgraph.scorers.llm import MOST_TOKENS
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers


def numbers_in(text: str) -> list[str]:
    """Read a list of compositions such as "0-3,8,ppr>beam:st>st"; a range is of instances. Raises CompositionError."""
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, dash, high = part.partition("-")
        if dash and low.isdecimal() and high.isdecimal():
            if int(high) >= len(INSTANCES) or int(low) > int(high):
                raise CompositionError(
                    f"{part!r} is no range of instances: Table 4 has 0 to {len(INSTANCES) - 1}"
                )
            found += map(str, range(int(low), int(high) + 1))
        else:
            parse_composition(part)
            found.append(part)
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """Names an instance with how many paths it keeps, and has its score."""

    instance: str
    top_k: int
    score: InstanceScore


def table(rows: Sequence[Row]) -> str:
    """Format a Markdown table: recall and F1 in percent, times in milliseconds per question."""
    head = "| no. | composition | kept | subgraph R | F1 | ms | paths R | F1 | ms | paths kept: HR | R | F1 | HR@1 | ms |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for row in rows:
        score = row.score
        first, second, third = score.subgraph, score.filtering, score.refinement
        cells = [
            *_named(row),
            *(
                f"{100 * first.recall:.1f}",
                f"{100 * first.f1:.2f}",
                f"{first.milliseconds:.1f}",
            ),
            *(
                f"{100 * second.recall:.1f}",
                f"{100 * second.f1:.2f}",
                f"{second.milliseconds:.1f}",
            ),
            *(
                f"{100 * third.hr:.1f}",
                f"{100 * third.recall:.1f}",
                f"{100 * third.f1:.1f}",
            ),
            *(f"{100 * score.hr_at_1:.1f}", f"{third.milliseconds:.1f}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def answer_table(rows: Sequence[Row]) -> str:
    """Format the answers' scores as a Markdown table, in percent; "" where nothing was answered."""
    head = "| no. | composition | kept | shots | answers: HR@1 | HR | P | R | F1 | substring HR@1 | F1 | s | failed |"
    lines = []
    for row in rows:
        for shots, score in row.score.generation.items():
            ours = (score.hr_at_1, score.hr, score.precision, score.recall, score.f1)
            parts = (*ours, score.substring_hr_at_1, score.substring_f1)
            shown = [f"{100 * part:.1f}" for part in parts]
            cells = [
                *_named(row),
                shots,
                *shown,
                f"{score.seconds:.2f}",
                str(score.failures),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return (
        "\n".join([head, "|" + "---|" * (head.count("|") - 1), *lines]) if lines else ""
    )


def _named(row: Row) -> list[str]:
    return [
        row.instance if row.instance.isdecimal() else "",
        f"`{row.score.composition}`",
        str(row.top_k),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.paths", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--kb",
        type=Path,
        help="triples, a line each: tabs between, or a JSON list; one for all",
    )
    parser.add_argument(
        "--questions", type=Path, required=True, help="a file of the set"
    )
    parser.add_argument(
        "--set",
        default="pathquestion",
        help="pathquestion, webqsp, cwq, grailqa, webquestions, ...",
    )
    parser.add_argument(
        "--instances",
        default="0-3,8-10,15,16",
        help="numbers, ranges, composition strings",
    )
    parser.add_argument(
        "--part",
        choices=("train", "dev", "test", "all"),
        help="of the split by entity; PathQuestion's test, else all",
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=0,
        help="so many questions, drawn by --seed; 0 for all",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-ent", type=int, default=2000)
    parser.add_argument(
        "--window",
        type=int,
        default=24,
        help="edges that a scorer keeps of the subgraph",
    )
    parser.add_argument("--longest", type=int, default=4, help="edges of a path")
    parser.add_argument("--width", type=int, default=128, help="of the beam")
    parser.add_argument(
        "--top-k",
        default="64",
        help="paths that are kept; several numbers make a row each",
    )
    parser.add_argument(
        "--wording",
        choices=("facts", "relations"),
        default="facts",
        help="what scorers read",
    )
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument(
        "--path-encoder", help="folder of a fine-tuned encoder, for st-ft"
    )
    parser.add_argument(
        "--reranker", help="a cross-encoder's name or folder, for rerank"
    )
    parser.add_argument("--llm", help="a chat model, for llm")
    parser.add_argument(
        "--tuned-llm",
        help="a chat model, or graphllm:FOLDER of train.paths.scorer, for llm-ft",
    )
    parser.add_argument(
        "--answerer",
        help="answers from the paths: offline, or a chat model such as vllm:URL#name",
    )
    parser.add_argument(
        "--shots",
        default="0",
        help="worked examples in its prompt; several numbers make a row each",
    )
    parser.add_argument(
        "--concurrency",
        type=int,
        default=8,
        help="calls of the answerer at the same time",
    )
    parser.add_argument(
        "--out", type=Path, help="JSON Lines of scores, an instance each; resumes"
    )
    given = parser.parse_args(arguments)
    questions = _questions(given)
    shared = _shared_graph(given.kb)
    models = ScorerModels(
        given.embedder,
        given.path_encoder,
        given.reranker,
        given.llm,
        _tuned(given.tuned_llm),
    )
    scorers = Scorers(models)  # one for all, so that vectors are made once
    readers = (
        [PathReader(given.answerer, shots) for shots in _numbers(given.shots)]
        if given.answerer
        else []
    )
    asked = {
        name: str(value)
        for name, value in sorted(vars(given).items())
        if name not in _NOT_ASKED
    }
    known = _earlier(given.out, asked)
    rows: list[Row] = []
    for name, top_k in product(numbers_in(given.instances), _numbers(given.top_k)):
        settings = PathSettings(
            Extraction(max_ent=given.max_ent),
            window=given.window,
            limits=PathLimits(longest=given.longest, width=given.width),
            top_k=top_k,
            wording=given.wording,
        )
        started = time.perf_counter()
        score = known.get((name, top_k))
        if score is None:
            finder_of = _finders(shared, name, scorers, settings)
            score = evaluate(finder_of, questions, readers, given.concurrency)
            _keep(given.out, asked, Row(name, top_k, score))
            print(
                f"{score.composition}: {time.perf_counter() - started:.0f} s",
                flush=True,
            )
        rows.append(Row(name, top_k, score))
    over = f"{len(shared.edges)} triples" if shared else "each over its own graph"
    print(
        f"\n{len(questions)} questions of {given.questions.name} ({given.part}), {over}\n"
    )
    print("\n\n".join(filter(None, (table(rows), answer_table(rows)))))


def _tuned(spec: str | None) -> object:
    """Return the chat model of a folder that ras_agent.train.paths.scorer wrote; another spec as it is."""
    name, colon, folder = (spec or "").partition(":")
    if name != "graphllm" or not colon:
        return spec
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    return GraphLLMChat.in_folder(folder, max_tokens=MOST_TOKENS)


_NOT_ASKED = frozenset({"out", "instances", "top_k", "concurrency"})
"""Options that say where results go, how fast they come, or which there are; others make another score."""


def _questions(given: argparse.Namespace) -> list[Question]:
    """Return the questions that are asked; sets `given.part` where the user has not."""
    given.part = given.part or ("test" if given.set == PATHQUESTION.name else "all")
    questions = benchmark(given.set).load(given.questions)
    if given.part != "all":
        questions = of_part(questions, given.part)
    if given.sample and given.sample < len(questions):
        questions = Random(given.seed).sample(questions, given.sample)
    if given.kb is None and not any(question.graph.edges for question in questions):
        raise IngestError(
            f"{given.questions}: its questions bring no graphs; give the knowledge base with --kb"
        )
    return questions


def _shared_graph(path: Path | None) -> Graph | None:
    """Return the graph of a knowledge base for all questions; None where each has its own."""
    if path is None:
        return None
    graph = Graph.from_triples(read_knowledge_base(path))
    if not len(graph.edges):
        raise IngestError(
            f"{path} holds no triples: a line each, tabs between its three parts, or a JSON list"
        )
    return graph


def _finders(
    shared: Graph | None, name: str, scorers: Scorers, settings: PathSettings
) -> FinderOf:
    """Return what gives each question its finder: the same for all, or one over the question's own graph."""
    if shared is not None:
        finder = PathFinder(shared, name, scorers, settings, time.process_time)
        return lambda _: finder

    def own(question: Question) -> PathFinder:
        graph = Graph.from_triples(question.graph.triples())
        _ = graph.adjacency, graph.incident  # making the graph is not a module's time
        return PathFinder(graph, name, scorers, settings, time.process_time)

    return own


def _numbers(text: str) -> list[int]:
    """Read "8,16,32". Raises SettingsError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise SettingsError(
            f"expected whole numbers with commas between, as in 8,16,32, got {text!r}"
        )
    return list(map(int, parts))


def _keep(out: Path | None, asked: dict[str, str], row: Row) -> None:
    if out is not None:
        line = {
            "instance": row.instance,
            "top_k": row.top_k,
            "asked": asked,
            "score": asdict(row.score),
        }
        with out.open(
            "a", encoding="utf-8"
        ) as file:  # a line end first: the last line may have been cut off
            file.write("\n" + json.dumps(line) + "\n")


def _earlier(
    out: Path | None, asked: dict[str, str]
) -> dict[tuple[str, int], InstanceScore]:
    """Read the scores of earlier calls with the same options, by instance; a line that was cut off is ignored."""
    found: dict[tuple[str, int], InstanceScore] = {}
    for line in (
        out.read_text("utf-8").splitlines() if out is not None and out.exists() else ()
    ):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        # with other options or another file it is another score
        if row["asked"] == asked:
            score = row["score"]
            modules = {
                part: ModuleScore(**score[part])
                for part in ("subgraph", "filtering", "refinement")
            }
            generation = {
                shots: GenerationScore(**one)
                for shots, one in score["generation"].items()
            }
            found[row["instance"], row["top_k"]] = InstanceScore(
                **{**score, **modules, "generation": generation}
            )
    return found


if __name__ == "__main__":
    run_program(main)

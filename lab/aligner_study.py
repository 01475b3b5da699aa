"""Show what pruning by an aligner leaves: answers against facts, by steps of training and by number of seed nodes.

    python -m lab.aligner_study --samples pq2h-aligner.jsonl --out aligner-study

Trains once for each of `seeds`, in OUT/seed-N (the same command goes on where it was stopped), and writes tables.md and
tables.json. By steps (the paper's "align degree"): on the part "dev", which also chooses each training's weights. By
seed nodes and by facts: once on the part "test", beside pruning by the cosine of question and node, by PCST, and by the
cosine of the reasoning and the node, which knows the answer and is what the aligner learns from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import SettingsError
from ras_agent.eval.report.markdown import markdown_table
from ras_agent.program import run_program
from ras_agent.protocols import Embedder
from ras_agent.records import JSON, Triple
from ras_agent.tools.store.durable import replace_file
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.pcst import PCSTFinder, PCSTSettings
from ras_agent.tools.subgraph.scoring import Scored
from ras_agent.train.aligner.measure import (
    Kept,
    Scores,
    kept_by_seeds,
    measure_kept,
    scores_of,
)
from ras_agent.train.aligner.samples import AlignerSample, read_samples
from ras_agent.train.aligner.train import (
    AlignerTrainingConfig,
    aligned_graphs,
    new_aligner,
    of_part,
    spread_out,
    train_on,
)
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, SEED, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.aligner import AlignedGraph
    from ras_agent.tools.graph_tokens.features import GraphVectors

_PCST = {"paper's WebQSP": PCSTSettings(), "K = 10": PCSTSettings(nodes=10, edges=10)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignerStudyConfig(AlignerTrainingConfig):
    """Says how to train, as AlignerTrainingConfig does.

    seeds: of the trainings, in place of `seed`. n_facts: to how many facts graphs are pruned.
    """

    seeds: tuple[int, ...] = (0, 1, 2)
    n_facts: tuple[int, ...] = (5, 10, 20, 40)

    def __post_init__(self) -> None:
        AlignerTrainingConfig.__post_init__(self)
        check_ranges(self, {"seeds": SEED, "n_facts": COUNT})
        if not self.seeds:
            raise SettingsError("--seeds names at least one")


def kept_by_number(
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
    scores: Scores,
    most: int,
) -> Kept:
    """Measure what is kept of graphs that are pruned to `most` facts, the best first as `GraphAligner.best` has it."""
    from ras_agent.tools.graph_tokens.aligner import fact_places

    fact_numbers = []
    for example, row in zip(examples, scores, strict=True):
        places = fact_places(example.graph, row)
        fact_numbers.append(np.lexsort(places[::-1])[:most])
    return measure_kept(samples, fact_numbers)


def likeness_of(
    examples: Sequence[AlignedGraph], *, reasoning: bool = False
) -> list[Floats]:
    """Return the cosines of each graph's nodes with its question, or with its reasoning, which knows the answer."""
    return [
        example.graph.nodes @ (example.reasoning if reasoning else example.question)
        for example in examples
    ]


def study(config: AlignerStudyConfig, embedder: Embedder | None = None) -> JSON:
    """Train, measure, write the tables, and return their figures."""
    samples = read_samples(config.samples)
    parts = {part: of_part(samples, part) for part in ("train", "dev", "test")}
    parts["dev"] = spread_out(parts["dev"], config.judged)
    if not all(parts.values()):
        raise SettingsError(
            f"{config.samples} has to have samples of the parts train, dev and test"
        )
    trainings = [_training(config, seed) for seed in config.seeds]
    first = new_aligner(trainings[0], embedder)
    vectors = aligned_graphs(
        first, [sample for part in parts.values() for sample in part]
    )
    bounds = np.cumsum([len(part) for part in parts.values()])
    learned, dev, test = (
        vectors[: bounds[0]],
        vectors[bounds[0] : bounds[1]],
        vectors[bounds[1] :],
    )
    by_step: dict[int, list[Mapping[str, float]]] = {}
    trained: list[Sequence[Floats]] = []
    for training in trainings:
        aligner = new_aligner(training, first.embedder)
        by_step.setdefault(0, []).append(
            _measured(parts["dev"], dev, scores_of(aligner, dev), config.n_seeds)
        )
        result = train_on(aligner, learned, parts["dev"], dev, training)
        for step, found in _validations(training):
            by_step.setdefault(step, []).append(found)
        trained.append(scores_of(aligner, test))
        print(
            f"seed {training.seed}: {result.steps} steps, best at {result.best_step}",
            flush=True,
        )
    asked = parts["test"]
    rows: dict[str, list[Sequence[Floats]]] = {
        "aligner": trained,
        "cosine with the question": [likeness_of(test)],
        "cosine with the reasoning": [likeness_of(test, reasoning=True)],
    }
    figures: JSON = {
        "samples": config.samples.name,
        "questions": {part: len(of) for part, of in parts.items()},
        "facts": {
            part: fmean(len(one.facts) for one in of) for part, of in parts.items()
        },
        "seeds": list(config.seeds),
        "by_step": {
            str(step): _spreads(found) for step, found in sorted(by_step.items())
        },
        "by_seeds": {
            name: {
                str(n): _spread_of(
                    [kept_by_seeds(asked, test, scores, n) for scores in runs]
                )
                for n in config.n_seeds
            }
            for name, runs in rows.items()
        },
        "by_facts": {
            name: {
                str(n): _spread_of(
                    [kept_by_number(asked, test, scores, n) for scores in runs]
                )
                for n in config.n_facts
            }
            for name, runs in rows.items()
        },
        "pcst": {
            name: asdict(_pruned_by_pcst(asked, test, first.vectors, how))
            for name, how in _PCST.items()
        },
    }
    text = json.dumps(figures, indent=2) + "\n"
    replace_file(config.out / "tables.json", text.encode())
    replace_file(config.out / "tables.md", tables(figures).encode())
    return figures


def _training(config: AlignerStudyConfig, seed: int) -> AlignerTrainingConfig:
    own = {one.name: getattr(config, one.name) for one in fields(AlignerTrainingConfig)}
    return AlignerTrainingConfig(
        **{**own, "seed": seed, "out": config.out / f"seed-{seed}"}
    )


def _measured(
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
    scores: Sequence[Floats],
    n_seeds: Sequence[int],
) -> dict[str, float]:
    found: dict[str, float] = {}
    for n in n_seeds:
        left = kept_by_seeds(samples, examples, scores, n)
        found |= {f"answers@{n}": left.answers, f"facts@{n}": left.facts}
    return found


def _validations(
    config: AlignerTrainingConfig,
) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Yield the steps of a training that were validated, and what was measured."""
    for line in (config.out / "metrics.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        if "validation" in record:
            yield record["step"], record["validation"]


def _spreads(runs: Sequence[Mapping[str, float]]) -> JSON:
    """Return the mean and the standard deviation over the trainings of each measure."""
    names = [name for name in runs[0] if "@" in name]
    return {name: _spread([run[name] for run in runs]) for name in names}


def _spread_of(runs: Sequence[Kept]) -> JSON:
    return {
        name: _spread([getattr(run, name) for run in runs])
        for name in ("answers", "facts")
    }


def _spread(values: Sequence[float]) -> list[float]:
    return [fmean(values), stdev(values) if len(values) > 1 else 0.0]


def _pruned_by_pcst(
    samples: Sequence[AlignerSample],
    examples: Sequence[AlignedGraph],
    vectors: GraphVectors,
    how: PCSTSettings,
) -> Kept:
    finders: dict[int, PCSTFinder] = {}
    chosen = []
    for sample, example in zip(samples, examples, strict=True):
        if id(example.graph) not in finders:
            graph = Graph.from_triples([Triple(*fact) for fact in sample.facts])
            finders[id(example.graph)] = PCSTFinder(graph, _Cosine(vectors), how)
        triples = finders[id(example.graph)].find(sample.question).subgraph.triples
        left = {(one.subject, one.predicate, one.object) for one in triples}
        chosen.append(
            [place for place, fact in enumerate(sample.facts) if fact in left]
        )
    return measure_kept(samples, chosen)


class _Cosine:
    """Scores by the cosine of vectors that are known already."""

    name = "cosine"

    def __init__(self, vectors: GraphVectors) -> None:
        self._vectors = vectors

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        return Scored(
            self._vectors.of_texts(texts) @ self._vectors.of_texts([question])[0]
        )


def tables(figures: JSON) -> str:
    """Return the figures as Markdown: shares of answers in %, and in brackets the facts that are left."""
    seeds, facts = (
        list(next(iter(figures[name].values()))) for name in ("by_seeds", "by_facts")
    )
    steps = [
        [step, *(_cell(found[f"answers@{n}"], found[f"facts@{n}"]) for n in seeds)]
        for step, found in figures["by_step"].items()
    ]
    by_seeds = [
        [name, *(_cell(found[n]["answers"], found[n]["facts"]) for n in seeds)]
        for name, found in figures["by_seeds"].items()
    ]
    by_facts = [
        [name, *(_cell(found[n]["answers"]) for n in facts)]
        for name, found in figures["by_facts"].items()
    ]
    pcst = [
        [name, _cell([found["answers"], 0.0], [found["facts"], 0.0])]
        for name, found in figures["pcst"].items()
    ]
    asked, whole = figures["questions"], figures["facts"]
    return (
        f"{figures['samples']}, {len(figures['seeds'])} trainings; answers left, % (facts left)\n\n"
        f"Steps of training, by seed nodes; {asked['dev']} questions of the part dev, {whole['dev']:.0f} facts each\n\n"
        f"{markdown_table(['steps', *(f'{n} seeds' for n in seeds)], steps)}\n\n"
        f"Seed nodes; {asked['test']} questions of the part test, {whole['test']:.0f} facts each\n\n"
        f"{markdown_table(['scored by', *(f'{n} seeds' for n in seeds)], by_seeds)}\n\n"
        f"The same number of facts\n\n"
        f"{markdown_table(['scored by', *(f'{n} facts' for n in facts)], by_facts)}\n\n"
        f"PCST\n\n{markdown_table(['prizes', 'answers'], pcst)}\n"
    )


def _cell(answers: Sequence[float], facts: Sequence[float] | None = None) -> str:
    text = f"{100 * answers[0]:.1f}" + (
        f" ± {100 * answers[1]:.1f}" if answers[1] else ""
    )
    return text + (f" ({facts[0]:.0f})" if facts else "")


def main() -> None:
    config = config_from(AlignerStudyConfig, __doc__)
    print(tables(study(config)))


if __name__ == "__main__":
    run_program(main)

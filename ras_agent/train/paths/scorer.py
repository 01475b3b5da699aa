"""Fine-tune a language model that scores facts and paths: LEGO-GraphRAG's fine-tuned LLM, the scorer "llm-ft".

    python -m ras_agent.train.paths.scorer --kb pq2h_kb.jsonl --questions pq2h.jsonl --kb pq3h_kb.jsonl \\
        --questions pq3h.jsonl --language-model Qwen/Qwen2.5-7B-Instruct --tuning lora --out scorer
    python -m lab.paths --kb pq2h_kb.jsonl --questions pq2h.jsonl --instances "ppr>beam:llm-ft>llm-ft" \\
        --tuned-llm graphllm:scorer

The model is shown a question and candidates, facts or paths, in the prompt of the scorer "llm", and learns to divide a
score of 1 equally among those of the question's gold path. It reads text alone, as the paper's does.
PathQuestion, or any set that names entities and gold paths, is split by entity, as for the encoder
(ras_agent.train.paths.train). The same command goes on where a killed one stopped, and torchrun spreads it over
processors. Another model that was tuned elsewhere is a chat model like any other: `--tuned-llm vllm:URL#name`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, get_args

from ras_agent.errors import SettingsError
from ras_agent.eval.benchmarks.pathquestion import PATHQUESTION, of_part, read_knowledge_base
from ras_agent.graph_batch import GraphFeatures
from ras_agent.program import run_program
from ras_agent.prompts import Turn, load
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.scorers.llm import PROMPT, read_shares, share_turns
from ras_agent.tools.subgraph.scoring import Wording
from ras_agent.train.graphllm.options import GraphLLMOptions, check_choices
from ras_agent.train.graphllm.train import begin, train_on
from ras_agent.train.loop import FitResult
from ras_agent.train.options import config_from
from ras_agent.train.paths.train import PathExample, path_examples
from ras_agent.train.ranges import COUNT, NATURAL, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerTrainingConfig(GraphLLMOptions):
    """Options of a scorer's training on a language model. Raises SettingsError for what means nothing."""

    kb: tuple[Path, ...]
    """Files of triples, one for each --questions, in the same order."""
    questions: tuple[Path, ...]
    """Files of questions about them."""
    negatives: int = 8
    """Wrong candidates for each right one."""
    wording: str = "facts"
    """What candidates are: facts or relations."""
    sample: int = 0
    """Most questions of each set's part; 0 for all."""
    encoder: str = "none"
    graph_tokens: int = 0
    epochs: int = 2
    rate: float = 1e-4
    warmup: float = 0.05

    def __post_init__(self) -> None:
        GraphLLMOptions.__post_init__(self)
        check_ranges(self, {"negatives": COUNT, "sample": NATURAL})
        check_choices(self, {"wording": get_args(Wording)})
        if self.encoder != "none" or self.graph_tokens:
            raise SettingsError("a scorer's model reads text alone: leave --encoder and --graph-tokens out")
        if len(self.kb) != len(self.questions):
            raise SettingsError("give --kb once for each --questions, in the same order")


@dataclass(frozen=True, slots=True)
class ShareExample:
    """Candidates of a question, in the order in which the model reads them.

    right: places of those that count. turns: the prompt.
    """

    question: str
    candidates: tuple[str, ...]
    right: frozenset[int]
    turns: tuple[Turn, ...]

    @property
    def reply(self) -> str:
        """Return the shares to learn, a line each: the same for each right candidate, 0 for the others."""
        share = f"{1 / len(self.right):.2f}".rstrip("0").rstrip(".")
        return "\n".join(f"{place + 1}: {share if place in self.right else 0}" for place in range(len(self.candidates)))

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return an empty graph: the scorer's model reads candidates as text."""
        return vectors.of_facts(())

    def scores(self, reply: str) -> Mapping[str, float]:
        """Score a reply: "read" if it has a share for each candidate, "best" if a right one has the largest."""
        shares = read_shares(reply, len(self.candidates))
        best = min(shares, key=lambda number: (-shares[number], number), default=0)
        return {"read": float(len(shares) == len(self.candidates)), "best": float(best - 1 in self.right)}


def share_examples(examples: Sequence[PathExample], seed: int = 0) -> Iterator[ShareExample]:
    """Yield the candidates of each question twice: its gold path among other paths, its gold facts among other facts.

    Their order is drawn by `seed` and the question, so that a place tells nothing.
    """
    prompt = load(PROMPT)
    for question, of_question in groupby(examples, key=lambda example: example.question):
        path, *facts = of_question
        for part in filter(None, ([path], facts)):
            right = dict.fromkeys(example.positive for example in part)
            wrong = dict.fromkeys(text for example in part for text in example.negatives if text not in right)
            candidates = [*right, *wrong]
            Random(f"{seed} {question} {candidates[0]}").shuffle(candidates)
            places = frozenset(place for place, text in enumerate(candidates) if text in right)
            yield ShareExample(question, tuple(candidates), places, share_turns(prompt, question, candidates))


def train(config: ScorerTrainingConfig) -> FitResult:
    """Train on pairs of knowledge base and questions, write the folder, and return how it ended.

    Raises RasError children; SettingsError where no question has a gold path in its knowledge base.
    """
    parts: dict[str, list[ShareExample]] = {"train": [], "validation": []}
    for kb, file in zip(config.kb, config.questions, strict=True):
        graph = Graph.from_triples(read_knowledge_base(kb))
        questions = PATHQUESTION.load(file)
        for part, name in (("train", "train"), ("validation", "dev")):
            of_name = of_part(questions, name)
            if config.sample and config.sample < len(of_name):
                of_name = Random(config.seed).sample(of_name, config.sample)
            wording: Any = config.wording
            parts[part] += share_examples(
                path_examples(graph, of_name, config.negatives, config.seed, wording), config.seed
            )
    if not parts["train"]:
        files = ", ".join(map(str, config.questions))
        raise SettingsError(f"{files}: no question to learn from has a gold path in its knowledge base")
    start = begin(config)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (*config.kb, *config.questions)}
    result = train_on(start, lambda example: example, parts, config, digests)
    if result.main:
        start.model.save(config.out)
        counts = {part: len(examples) for part, examples in parts.items()}
        what = "a language model that divides a score among candidate facts or paths"
        facts = {"data": digests, "examples": counts, "result": asdict(result)}
        start.write_card(what, "ras_agent.train.paths.scorer", config, facts)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    result = train(config_from(ScorerTrainingConfig, __doc__, arguments))
    if result.main:
        print(json.dumps(asdict(result)))


if __name__ == "__main__":
    run_program(main)

"""Fine-tunes a language model to score facts and paths: LEGO-GraphRAG's fine-tuned LLM, the scorer "llm-ft".

    python -m ras_agent.train.paths.scorer --kb pq2h_kb.jsonl --questions pq2h.jsonl --kb pq3h_kb.jsonl \\
        --questions pq3h.jsonl --language-model Qwen/Qwen2.5-7B-Instruct --tuning lora --out scorer

The model is shown a question and candidates, facts or paths, in the prompt of the scorer "llm". It learns to divide a
score of 1 equally among the candidates that belong to the question's gold paths. It reads only text, as in the paper.
Files and their parts are those of the encoder's training (ras_agent.train.paths.train): PathQuestion with its --kb, or
with --benchmark a set whose questions bring a graph each. The same command resumes a killed one, and torchrun spreads
it over processors. A model that was tuned elsewhere can be used as a chat model, which `ScorerModels` takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from random import Random
from typing import cast, get_args

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.prompts import Turn, load
from ras_agent.running.program import run_program
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.subgraph.scorers.llm import PROMPT, read_shares, share_turns
from ras_agent.tools.subgraph.scoring import Wording
from ras_agent.train.graphllm.options import GraphLLMOptions
from ras_agent.train.graphllm.train import begin, train_on
from ras_agent.train.loop import FitResult, print_result
from ras_agent.train.options import config_from
from ras_agent.train.paths.train import PathData, PathExample, examples_of_parts
from ras_agent.train.ranges import check_choices


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerTrainingConfig(GraphLLMOptions, PathData):
    """Holds the options of a scorer's training on a language model. Raises SettingsError for options that contradict."""

    wording: str = "facts"
    """How candidates are written: as facts or as relations."""
    encoder: str = "none"
    graph_tokens: int = 0
    epochs: int = 2
    rate: float = 1e-4
    warmup: float = 0.05

    def __post_init__(self) -> None:
        GraphLLMOptions.__post_init__(self)
        PathData.__post_init__(self)
        check_choices(self, {"wording": get_args(Wording)})
        if self.encoder != "none" or self.graph_tokens:
            raise SettingsError(
                "a scorer's model reads only text: leave --encoder and --graph-tokens out"
            )


@dataclass(frozen=True, slots=True)
class ShareExample:
    """Holds a training example: a question, its candidate facts or paths in the order of the prompt, and the right ones.

    The reply to learn divides a score of 1 equally among the right candidates.
    """

    question: str
    candidates: tuple[str, ...]
    right: frozenset[int]
    """The indexes of the right candidates."""
    turns: tuple[Turn, ...]
    """The prompt."""

    @property
    def reply(self) -> str:
        """Return the reply to learn, one score a line: equal shares of 1 for the right candidates, 0 for the others."""
        share = f"{1 / len(self.right):.2f}".rstrip("0").rstrip(".")
        lines = []
        for place in range(len(self.candidates)):
            shown = share if place in self.right else "0"
            lines.append(f"{place + 1}: {shown}")
        return "\n".join(lines)

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return an empty graph, since the scorer's model reads only text."""
        return vectors.of_facts(())

    def scores(self, reply: str) -> Mapping[str, float]:
        """Return two scores of a reply, each 1.0 or 0.0.

        "read" tells whether it has a score for each candidate, "best" whether a right candidate has the highest.
        """
        shares = read_shares(reply, len(self.candidates))
        best = min(shares, key=lambda number: (-shares[number], number), default=0)
        return {
            "read": float(len(shares) == len(self.candidates)),
            "best": float(best - 1 in self.right),
        }


def share_examples(
    examples: Sequence[PathExample], seed: int = 0
) -> Iterator[ShareExample]:
    """Yield two examples for each question: its gold paths among other paths, and its gold facts among other
    facts.

    The order of the candidates is drawn by `seed` and the question, so that it does not reveal the right ones.
    """
    prompt = load(PROMPT)
    for question, of_question in groupby(
        examples, key=lambda example: example.question
    ):
        of_both = list(of_question)
        paths = [example for example in of_both if example.kind == "paths"]
        facts = [example for example in of_both if example.kind == "facts"]
        for part in (paths, facts):
            if not part:
                continue
            right = {example.positive: None for example in part}
            candidates = dict(right)
            for example in part:
                candidates |= dict.fromkeys(example.negatives)
            order = list(candidates)
            Random(f"{seed} {question} {order[0]}").shuffle(order)
            yield ShareExample(
                question=question,
                candidates=tuple(order),
                right=frozenset(
                    place for place, text in enumerate(order) if text in right
                ),
                turns=share_turns(prompt, question, order),
            )


def train(config: ScorerTrainingConfig) -> FitResult:
    """Train on the questions of `config`, write the folder, and return the outcome.

    Raises:
        SettingsError: If no question has a gold path in its knowledge base.
        RasError: If a file cannot be read.
    """
    examples = examples_of_parts(config, [cast(Wording, config.wording)])
    parts = {
        "train": list(share_examples(examples["train"], config.seed)),
        "validation": list(share_examples(examples["dev"], config.seed)),
    }
    if not parts["train"]:
        files = ", ".join(map(str, config.questions))
        raise SettingsError(
            f"no training question of {files} has a gold path in its knowledge base: give other --questions, or the --kb "
            "that they were asked of"
        )
    start = begin(config)
    digests = {path.name: file_sha256(path) for path in (*config.kb, *config.questions)}
    result = train_on(start, lambda example: example, parts, config, digests)
    if result.main:
        start.model.save(config.out)
        facts = {
            "data": digests,
            "examples": {part: len(of_part) for part, of_part in parts.items()},
            "result": asdict(result),
        }
        start.write_card(
            "a language model that divides a score among candidate facts or paths",
            "ras_agent.train.paths.scorer",
            config,
            facts,
        )
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    print_result(train(config_from(ScorerTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)

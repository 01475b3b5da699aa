"""Makes a GraphLLM trainable by the training loop: the loss of a batch of samples, and the measures of a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from torch import Tensor, nn

from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.prompts import Turn
from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
from ras_agent.train.data import spread_out
from ras_agent.train.graphllm.examples import GraphLLMExample

_NEW_TOKENS = 100  # RAS's


class TrainableGraphLLM(nn.Module):
    """Computes the loss of samples with a GraphLLM, as a torch module."""

    def __init__(
        self, model: GraphLLM, example_of: Callable[[Any], GraphLLMExample]
    ) -> None:
        """Take the model, and a function from a sample to its prompt and reply."""
        super().__init__()
        self.model = model
        self._example_of = example_of

    def loss(self, batch: Sequence[Any]) -> Tensor:
        """Return the mean cross entropy of the tokens of the replies to learn."""
        examples = self._examples(batch)
        return cast(
            Tensor,
            self.model(
                *self._inputs(examples), [example.reply for example in examples]
            ),
        )

    def validation(
        self, samples: Sequence[Any], size: int, asked: int
    ) -> Mapping[str, float]:
        """Return the measures of a validation on `samples`, in batches of `size`.

        "loss" and "token_accuracy" are means over the tokens of the replies to learn, each predicted from the
        right tokens before it. The model also generates `asked` replies, spread over the samples: "actions" is
        the share of plans with the right action, "plans" the share of plans that are right word for word, and
        "answers" the score of answers.
        """
        loss = 0.0
        right = 0
        tokens = 0
        for examples in self._in_batches(samples, size):
            replies = [example.reply for example in examples]
            logits, targets = self.model.target_logits(*self._inputs(examples), replies)
            loss += float(
                nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
            )
            right += int((logits.argmax(dim=-1) == targets).sum())
            tokens += len(targets)
        measured = {"loss": loss / tokens, "token_accuracy": right / tokens}
        return measured | self._reply_scores(samples, size, asked)

    def _reply_scores(
        self, samples: Sequence[Any], size: int, replies: int
    ) -> dict[str, float]:
        """Return the mean scores of `replies` replies, in batches of `size`."""
        if not replies:
            return {}
        asked = spread_out(samples, replies)
        scores: dict[str, list[float]] = {}
        for examples in self._in_batches(asked, size):
            outputs = self.model.generate(*self._inputs(examples), _NEW_TOKENS)
            for example, output in zip(examples, outputs, strict=True):
                for name, score in example.scores(output.text).items():
                    scores.setdefault(name, []).append(score)
        return {name: sum(values) / len(values) for name, values in scores.items()}

    def _in_batches(
        self, samples: Sequence[Any], size: int
    ) -> Iterator[list[GraphLLMExample]]:
        for first in range(0, len(samples), size):
            yield self._examples(samples[first : first + size])

    def _examples(self, samples: Sequence[Any]) -> list[GraphLLMExample]:
        return [self._example_of(sample) for sample in samples]

    def _inputs(
        self, examples: Sequence[GraphLLMExample]
    ) -> tuple[list[tuple[Turn, ...]], list[GraphFeatures]]:
        return [example.turns for example in examples], [
            self.model.features(example) for example in examples
        ]

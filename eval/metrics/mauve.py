"""MAUVE (Pillutla et al., 2021) of a run: how near the distribution of its long answers is to that of human ones.

It compares two sets of texts, so it belongs to a run and not to a question. The package mauve-text computes it from
vectors; these are made here, since its own code takes no models but GPT-2 and BERT.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import MissingExtra, SettingsError, WeightsError

if TYPE_CHECKING:
    from ras_agent.eval.run.result import Result

PUBLISHED = "gpt2-large"
"""The featuriser of ALCE and RAS."""
LEAST = 20
"""Fewer texts say nothing about a distribution; the package's authors advise thousands."""
_WORDS = 100
_TOKENS = 512
_BATCH = 8


@dataclass(frozen=True, slots=True)
class Mauve:
    """The score, 0 to 1, higher is nearer; the number of pairs of texts; and the model whose vectors compare them."""

    score: float
    texts: int
    featuriser: str


def require_mauve(texts: int, model: str | Path = "") -> None:
    """Raise MissingExtra where MAUVE cannot be computed, SettingsError for too few texts.

    With a model, raise WeightsError where its tokeniser or its configuration cannot be loaded; its weights are not.
    """
    if not all(map(find_spec, ("mauve", "torch", "transformers"))):
        raise MissingExtra("MAUVE", "mauve")
    if texts < LEAST:
        raise SettingsError(
            f"MAUVE compares distributions: ask at least {LEAST} questions, got {texts}"
        )
    if model:
        from transformers import AutoConfig

        _loaded(AutoConfig, model)
        _tokeniser(model)


def mauve_of(results: Iterable[Result], model: str | Path) -> Mauve:
    """Return the MAUVE of a run's answers against the first gold answer of each question, as ALCE computes it.

    Of question and answer together, the first 100 words count. model: a causal language model of transformers, its
    name or the folder of its safetensors weights. Raises MissingExtra, SettingsError and WeightsError.
    """
    pairs = []
    for result in results:
        if result.answers:
            pairs.append((result.question, result.response, result.answers[0]))
    require_mauve(len(pairs))
    ours = []
    for question, answer, _ in pairs:
        ours.append(compared_text(question, answer))
    human = [compared_text(question, gold) for question, _, gold in pairs]
    vectors = features([*human, *ours], model)
    return Mauve(
        mauve_of_vectors(vectors[: len(human)], vectors[len(human) :]),
        len(pairs),
        str(model),
    )


def mauve_of_vectors(human: Floats, ours: Floats) -> float:
    """Return the MAUVE of two sets of vectors, (n, d) and (m, d), by the package mauve-text."""
    try:
        from mauve import compute_mauve
    except ImportError as error:
        raise MissingExtra("MAUVE", "mauve") from error
    return float(compute_mauve(p_features=human, q_features=ours, verbose=False).mauve)


def compared_text(question: str, answer: str) -> str:
    """Return the first 100 words of a question and its answer, without punctuation at the end, as ALCE does."""
    return " ".join(f"{question} {answer.strip()}".split()[:_WORDS]).rstrip(
        string.punctuation
    )


def features(texts: Sequence[str], model: str | Path) -> Floats:
    """Return the last layer's state at each text's last token, shape (len(texts), d), float32."""
    import torch
    from transformers import AutoModel

    tokeniser = _tokeniser(model)
    network = _loaded(AutoModel, model, use_safetensors=True).eval()
    if torch.cuda.is_available():
        network = network.to("cuda")
    rows: list[Floats] = []
    with torch.inference_mode():
        for at in range(0, len(texts), _BATCH):
            tokens = []
            for text in texts[at : at + _BATCH]:
                tokens.append(
                    tokeniser.encode(
                        text, truncation=True, max_length=_TOKENS, return_tensors="pt"
                    )[0]
                )
            # padded behind: a causal model's earlier states do not see it
            ids = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence(
                [torch.ones_like(row) for row in tokens], batch_first=True
            )
            states = network(
                input_ids=ids.to(network.device), attention_mask=mask.to(network.device)
            ).last_hidden_state
            last = torch.tensor([len(row) - 1 for row in tokens])
            rows.append(
                states[torch.arange(len(tokens)), last.to(states.device)]
                .float()
                .cpu()
                .numpy()
            )
    return np.concatenate(rows)


def _tokeniser(model: str | Path) -> Any:
    from transformers import AutoTokenizer

    return _loaded(AutoTokenizer, model)


def _loaded(kind: Any, model: str | Path, **options: Any) -> Any:
    try:
        return kind.from_pretrained(model, **options)
    except (OSError, ValueError) as error:
        raise WeightsError(
            f"the language model {str(model)!r} cannot be loaded ({str(error).splitlines()[0]}): "
            "give a model's name or a folder with safetensors weights"
        ) from error

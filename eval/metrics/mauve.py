"""Computes MAUVE (Pillutla et al., 2021): how similar the distribution of a run's long answers is to that of
human answers.

It compares two sets of texts, so it scores a run, not a question. The package mauve-text computes it from
vectors. The vectors are made here, because that package's own models are only GPT-2 and BERT.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import (
    MissingExtra,
    SettingsError,
    WeightsError,
    needs_extra,
)

if TYPE_CHECKING:
    from ras_agent.eval.run.result import Result

PUBLISHED = "gpt2-large"
"""The language model whose vectors ALCE and RAS compare."""
LEAST = 20
"""The minimum number of texts. Fewer say little about a distribution; the package's authors advise
thousands."""
_WORDS = 100
_TOKENS = 512
_BATCH = 8


@dataclass(frozen=True, slots=True)
class Mauve:
    """Holds a MAUVE score."""

    score: float
    """From 0 to 1; higher is closer to the human answers."""
    texts: int
    """The number of pairs of texts."""
    featuriser: str
    """The language model whose vectors are compared."""


def require_mauve(texts: int, model: str | Path = "") -> None:
    """Raise an error if MAUVE cannot be computed for `texts` answers.

    Args:
        texts: The number of answers.
        model: If given, its tokeniser and configuration are loaded as a check, but not its weights.

    Raises:
        MissingExtra: If a package is not installed.
        SettingsError: If there are too few texts.
        WeightsError: If the tokeniser or the configuration of the model cannot be loaded.
    """
    if not all(map(find_spec, ("mauve", "torch", "transformers"))):
        raise MissingExtra("MAUVE", "mauve")
    if texts < LEAST:
        raise SettingsError(
            f"MAUVE needs at least {LEAST} answers, got {texts}: ask more questions, or leave --mauve out"
        )
    if model:
        from transformers import AutoConfig

        _loaded(AutoConfig, model)
        _tokeniser(model)


def mauve_of(results: Iterable[Result], model: str | Path) -> Mauve:
    """Return the MAUVE of a run's answers against the first gold answer of each question, as ALCE computes it.

    The first 100 words of question and answer together are compared. `model` is the name of a causal language model of
    transformers, or the folder of its safetensors weights. Raises as `require_mauve` does.
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
    """Return the MAUVE of two sets of vectors, shapes (n, d) and (m, d), computed by the package mauve-text."""
    with needs_extra("MAUVE", "mauve"):
        from mauve import compute_mauve
    return float(compute_mauve(p_features=human, q_features=ours, verbose=False).mauve)


def compared_text(question: str, answer: str) -> str:
    """Return the first 100 words of a question and its answer, without punctuation at the end, as ALCE does."""
    return " ".join(f"{question} {answer.strip()}".split()[:_WORDS]).rstrip(
        string.punctuation
    )


def features(texts: Sequence[str], model: str | Path) -> Floats:
    """Return the state of the model's last layer at each text's last token, shape (len(texts), d), float32."""
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
            # padded at the end: the earlier states of a causal model do not depend on it
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

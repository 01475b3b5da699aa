"""Train a model of stance on ExplaGraphs, with and without what the papers leave out; write weights, scores and a log.

    python -m lab.explagraphs.train --data DATA/explagraphs --design full --seed 0 --out RUN

DATA/explagraphs has train.tsv and val.tsv (arg1, arg2, label, graph). A design (`--design`) says what the model reads:
lab/explagraphs.md compares them. Designs and numbers are chosen with `--fold 0` .. `4`, which trains on four fifths of
train.tsv and scores the fifth that is left after each epoch, and once more with the weights of its lowest loss. Without
it, all of train.tsv is for training, and val.tsv is scored once, after the last step.

RUN gets model.safetensors, config.json with the scores, and what `ras_agent.train.loop` writes: a line for each step in
metrics.jsonl, and where to go on. The seed fixes weights, order and dropout. A model with words takes about
40 seconds of one core, one of counts some seconds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.explagraphs.examples import FOLDS, SUPPORT, StanceExample, folds, read_examples, reordered
from ras_agent.graph_batch import GraphFeatures
from ras_agent.program import run_program
from ras_agent.protocols import Embedder
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256
from ras_agent.train.loop import FitConfig, fit
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, Range, check_ranges

if TYPE_CHECKING:
    from torch import Tensor

    from lab.explagraphs.model import StanceInput, StanceModel, WordEncoder

_RANGES = {
    **dict.fromkeys(("batch", "orders"), COUNT),
    **dict.fromkeys(("frozen", "joins"), NATURAL),
    **dict.fromkeys(("lower_rate", "encoder_rate"), SHARE),
    "fold": Range(0, FOLDS - 1),
}
_WITHOUT_WORDS = 6  # times as many epochs where there are only counts to learn from
_POOL = 16  # batches among whose examples those of like length are put together


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceTrainingConfig(FitConfig):
    """Holds everything that decides what comes out. Raises SettingsError for a number out of its range.

    encoder, layers, heads, width, norm: the graph encoder. frozen: the layers of MiniLM that stay as packaged.
    joins, gate, types: see StanceConfig. start: the folder of a training of this design, with
        as many or fewer trained layers, whose weights are trained on.
    orders: in how many orders of the facts each example is read; the first is the file's.
    lower_rate, encoder_rate: the rates of MiniLM's layers, and of graph encoder and projector, as shares of the head's.
    fold: which fifth of train.tsv is scored in place of val.tsv. base: a folder with another BERT than MiniLM.
    """

    data: Path
    out: Path
    design: str = "full"
    encoder: str = "graph-transformer"
    layers: int = 4
    heads: int = 4
    width: int = 256
    norm: str = "batch"
    frozen: int = 5
    joins: int = 0
    gate: bool = False
    types: bool = False
    start: Path | None = None
    orders: int = 1
    batch: int = 32
    epochs: int = 3
    rate: float = 2e-3
    lower_rate: float = 0.1
    encoder_rate: float = 1.0
    warmup: float = 0.1
    fold: int | None = None
    base: Path | None = None

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        check_ranges(self, _RANGES)


def train(config: StanceTrainingConfig, embedder: Embedder | None = None) -> dict[str, Any]:
    """Train, score, save, and return the scores. A stopped training goes on where it was saved.

    embedder: of the graphs' texts, by default the packaged MiniLM. Raises IngestError for a bad line of the data,
    SettingsError where `config.out` holds a training with other settings.
    """
    import torch

    torch.manual_seed(config.seed)
    examples = read_examples(config.data / "train.tsv")
    if config.fold is None:
        held_out = read_examples(config.data / "val.tsv")
    else:
        examples, held_out = folds(examples, config.fold)
    model, words = _model(config, embedder)
    if config.start:
        model.begin_from(config.start, config.base)
    model.rate_factors = {"upper.": config.lower_rate, **dict.fromkeys(("encoder.", "projector."), config.encoder_rate)}
    inputs = Inputs(model, words, embedder)
    orders = config.orders if model.config.reads.graph_text else 1
    rounds = [inputs.of([reordered(example, order) for example in examples]) for order in range(orders)]
    scored, targets = inputs.of(held_out), _targets(examples)
    lengths = [len(one.states) for one in rounds[0]]

    def batches(epoch: int) -> list[tuple[list[StanceInput], Tensor]]:
        rng = random.Random(f"{config.seed} {epoch}")
        some = batches_of(lengths, config.batch, rng)
        return [([rounds[rng.randrange(orders)][place] for place in batch], targets[batch]) for batch in some]

    def validate() -> dict[str, float]:
        return _scores(predict(model, scored), held_out)

    epochs = config.epochs * (1 if words else _WITHOUT_WORDS)
    own = {
        name: value for name, value in asdict(config).items() if name not in ("data", "out", "base", "start", "epochs")
    }
    settings = {**own, "examples": len(examples)}
    same: dict[str, Any] = {one.name: getattr(config, one.name) for one in fields(FitConfig)}
    fitting = FitConfig(**{**same, "epochs": epochs})
    result = fit(model, batches, validate if config.fold is not None else None, fitting, config.out, settings)
    scores = {**validate(), "questions": len(held_out), "steps": result.steps, "seconds": round(result.seconds)}
    scores["weights"] = sum(weight.numel() for weight in model.parameters())
    about = {"made_by": "python -m lab.explagraphs.train", "settings": settings, "scores": scores}
    base = str(config.base) if config.base else MINILM_SHA256
    model.save(config.out, {**about, "base": base, "data": "ExplaGraphs in GraphQA's split"})
    return scores


class Inputs:
    """Turns examples into what a model reads."""

    def __init__(self, model: StanceModel, words: WordEncoder | None, embedder: Embedder | None = None) -> None:
        from ras_agent.tools.graph_tokens.features import GraphVectors

        self._reads, self._words = model.config.reads, words
        wanted = self._reads.token == "graph"
        self._vectors = GraphVectors(embedder or resolve_embedder("minilm")) if wanted else None
        self._types = model.config.types

    def of(self, examples: Sequence[StanceExample]) -> list[StanceInput]:
        """Return an input for each example."""
        import torch

        from lab.explagraphs.model import StanceInput, features_of, with_types

        states = self._words.states(examples) if self._words else [torch.zeros(0, 0)] * len(examples)
        if self._vectors:
            self._vectors.of_texts(sorted({text for example in examples for fact in example.facts for text in fact}))
            graphs = [self._vectors.of_facts(example.facts) for example in examples]
            if self._types:
                graphs = [with_types(graph, one.facts) for graph, one in zip(graphs, examples, strict=True)]
        else:
            graphs = [GraphFeatures.join((), 0)] * len(examples)
        features = features_of(self._reads, examples)
        return [StanceInput(*parts) for parts in zip(states, graphs, features, strict=True)]


def predict(model: StanceModel, inputs: Sequence[StanceInput]) -> Tensor:
    """Return the logits of "support", shape (B,), in batches of like length."""
    import torch

    model.eval()
    order = sorted(range(len(inputs)), key=lambda place: len(inputs[place].states))
    logits = torch.zeros(len(inputs))
    with torch.inference_mode():
        for first in range(0, len(order), 32):
            places = order[first : first + 32]
            logits[places] = model([inputs[place] for place in places])
    return logits


def batches_of(lengths: Sequence[int], size: int, rng: random.Random) -> list[list[int]]:
    """Return all places in batches of like length and random order."""
    places = list(range(len(lengths)))
    rng.shuffle(places)
    batches = []
    for first in range(0, len(places), _POOL * size):
        pool = sorted(places[first : first + _POOL * size], key=lambda place: lengths[place])
        batches += [pool[start : start + size] for start in range(0, len(pool), size)]
    rng.shuffle(batches)
    return batches


def _model(config: StanceTrainingConfig, embedder: Embedder | None) -> tuple[StanceModel, WordEncoder | None]:
    from lab.explagraphs.model import StanceConfig, StanceModel, WordEncoder
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig

    shape: dict[str, Any] = {name: getattr(config, name) for name in ("layers", "heads", "width", "norm")}
    if embedder is not None:
        shape["input"] = embedder.dimension
    encoder = EncoderConfig(kind=config.encoder, **shape)  # type: ignore[arg-type]
    token: dict[str, Any] = {name: getattr(config, name) for name in ("joins", "gate", "types")}
    described = StanceConfig(config.design, encoder, config.frozen, **token)
    words = WordEncoder(described, config.base) if described.reads.words else None
    return StanceModel(described, words), words


def _targets(examples: Sequence[StanceExample]) -> Tensor:
    import torch

    return torch.tensor([float(example.label == SUPPORT) for example in examples])


def _scores(logits: Tensor, examples: Sequence[StanceExample]) -> dict[str, float]:
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    targets = _targets(examples)
    right = ((logits > 0) == (targets > 0)).float().mean()
    return {"loss": round(float(cross_entropy(logits, targets)), 4), "accuracy": round(float(right), 4)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as the options say, and print the scores."""
    print(json.dumps(train(config_from(StanceTrainingConfig, __doc__, arguments))))


if __name__ == "__main__":
    run_program(main)

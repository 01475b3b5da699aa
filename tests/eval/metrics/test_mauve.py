"""MAUVE with tiny random language models: vectors against the package's own, the score against its formula."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import MissingExtra, SettingsError, WeightsError
from ras_agent.eval.metrics.mauve import (
    LEAST,
    compared_text,
    features,
    mauve_of,
    mauve_of_vectors,
    require_mauve,
)
from ras_agent.eval.run import begin_run, load_task, search_agent
from ras_agent.eval.run.result import Result
from tests.messages import says

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = (
    "the",
    "mill",
    "river",
    "wheel",
    "turns",
    "old",
    "grain",
    "orr",
    "ran",
    "stone",
    "water",
    "why",
    "how",
    "what",
)
TEXTS = [
    "the mill turns",
    "why",
    "how old water ran the river the stone the wheel what grain",
    "orr ran",
]


def _tokeniser(folder: Path) -> None:
    vocabulary = {
        word: number for number, word in enumerate(("<unk>", "<end>", *WORDS))
    }
    made = {
        **{
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
        },
        **{
            "post_processor": None,
            "decoder": None,
            "pre_tokenizer": {"type": "Whitespace"},
        },
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps(made))
    tokeniser = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        unk_token="<unk>",
        eos_token="<end>",
    )
    tokeniser.save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT-2 in a folder whose name the package takes, too."""
    folder = tmp_path_factory.mktemp("models") / "gpt2-tiny"
    _tokeniser(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=20, n_positions=600, n_embd=16, n_layer=2, n_head=2
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "other"
    _tokeniser(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=20,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def _by_formula(p: np.ndarray, q: np.ndarray) -> float:
    """The area under the divergence curve of two histograms, c = 5, as the paper defines it."""

    def kl(one: np.ndarray, other: np.ndarray) -> float:
        there = one > 0
        return float((one[there] * np.log(one[there] / other[there])).sum())

    curve = [(0.0, 1.0), (1.0, 0.0)]
    for weight in np.linspace(1e-6, 1 - 1e-6, 25):
        mixed = weight * p + (1 - weight) * q
        curve.append(
            (float(np.exp(-5 * kl(q, mixed))), float(np.exp(-5 * kl(p, mixed))))
        )
    # with respect to both axes: where one hardly changes, the order of the points is by the other
    areas = []
    for points in (curve, [(y, x) for x, y in curve]):
        x, y = np.array(sorted(points, key=lambda point: point[0])).T
        areas.append(float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum()))
    return sum(areas) / 2


@pytest.mark.parametrize("model", ["tiny_gpt2", "tiny_llama"])
def test_a_texts_vector_is_its_last_state_whatever_it_is_batched_with(
    model: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(model)
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    alone = []
    for text in TEXTS * 3:
        ids = tokeniser.encode(text, return_tensors="pt")
        with torch.no_grad():
            alone.append(
                network(input_ids=ids, output_hidden_states=True)
                .hidden_states[-1][0, -1]
                .numpy()
            )
    # batches differ in the last bits
    assert np.abs(features(TEXTS * 3, folder) - np.stack(alone)).max() < 1e-5


def test_vectors_are_those_of_the_package(tiny_gpt2: Path) -> None:
    utils = pytest.importorskip("mauve.utils")
    tokeniser = utils.get_tokenizer(str(tiny_gpt2))
    tokens = [
        tokeniser.encode(text, return_tensors="pt", truncation=True, max_length=512)
        for text in TEXTS
    ]
    theirs = utils.featurize_tokens_from_model(
        utils.get_model(str(tiny_gpt2), tokeniser, -1), tokens, 2
    )
    assert np.abs(features(TEXTS, tiny_gpt2) - theirs.numpy()).max() < 1e-5


def test_the_score_is_the_area_that_the_paper_defines() -> None:
    pytest.importorskip("mauve")
    # two places, far apart: any clustering finds them
    left, right = np.eye(8, dtype=np.float32)[:2]
    dice = np.random.default_rng(0)

    def cloud(of_left: int, of_right: int) -> np.ndarray:
        places = np.stack([left] * of_left + [right] * of_right)
        return (places + 0.001 * dice.normal(size=places.shape)).astype(np.float32)

    human, ours = cloud(10, 10), cloud(16, 4)
    wanted = _by_formula(np.array([0.5, 0.5]), np.array([0.8, 0.2]))
    assert mauve_of_vectors(human, ours) == pytest.approx(wanted, abs=1e-6)
    near = _by_formula(np.array([0.5, 0.5]), np.array([0.55, 0.45]))
    assert mauve_of_vectors(human, cloud(11, 9)) == pytest.approx(near, abs=1e-6)
    assert near > 0.95
    assert mauve_of_vectors(cloud(20, 0), cloud(0, 20)) < 0.05


def test_a_runs_answers_are_compared_with_the_first_gold_answers(
    tiny_llama: Path,
) -> None:
    pytest.importorskip("mauve")
    gold = [(f"why {' '.join(WORDS[: 1 + number % 5])}",) for number in range(24)]
    same = [Result("q", "how old", one, answer=one[0]) for one in gold]
    other = [Result("q", "how old", one, answer="stone") for one in gold]
    unknown = Result("q", "what", answer="mill")
    found = mauve_of([*same, unknown], tiny_llama)
    assert (found.texts, found.featuriser) == (24, str(tiny_llama))
    assert found.score > mauve_of(other, tiny_llama).score + 0.25


def test_an_evaluation_computes_it_at_its_end(tmp_path: Path, tiny_llama: Path) -> None:
    pytest.importorskip("mauve")
    rows = [
        {"id": f"q{n}", "question": "What turns?", "answers": [f"The mill {n}"]}
        for n in range(24)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "corpus.jsonl").write_text(
        json.dumps({"id": "p", "text": "The mill turns the stone."})
    )
    given = [
        "eval",
        "jsonl",
        "--data",
        str(tmp_path / "questions.jsonl"),
        "--corpus",
        str(tmp_path / "corpus.jsonl"),
    ]
    done = CliRunner().invoke(
        build_program(),
        [*given, "--out", str(tmp_path / "run"), "--mauve", str(tiny_llama)],
    )
    assert done.exit_code == 0, done.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["mauve"]["texts"], summary["mauve"]["featuriser"]) == (
        24,
        str(tiny_llama),
    )
    assert 0 <= summary["mauve"]["score"] <= 1
    few = CliRunner().invoke(
        build_program(),
        [
            *given,
            "--out",
            str(tmp_path / "few"),
            "--mauve",
            str(tiny_llama),
            "--limit",
            "3",
        ],
    )
    assert "needs at least 20 answers, got 3" in few.output


def test_a_model_that_cannot_be_loaded_is_told_before_the_first_question(
    tmp_path: Path,
) -> None:
    pytest.importorskip("mauve")
    rows = [
        {"question": f"What turns {number}?", "answers": ["The mill"]}
        for number in range(LEAST)
    ]
    (tmp_path / "corpus.jsonl").write_text('{"text": "The mill turns."}')
    settings = Settings(retriever="bm25")
    task = load_task("jsonl", rows, settings, corpus=tmp_path / "corpus.jsonl")
    run = begin_run(task, search_agent("bm25", settings), tmp_path / "run")
    with pytest.raises(WeightsError, match="cannot be loaded"):
        run.finish(mauve=str(tmp_path))
    assert list(run.folder.results()) == []


def test_questions_without_an_answer_are_no_texts(
    tmp_path: Path, tiny_llama: Path
) -> None:
    pytest.importorskip("mauve")
    rows: list[dict[str, Any]] = [
        {"question": f"What turns {number}?", "answers": []} for number in range(LEAST)
    ]
    (tmp_path / "corpus.jsonl").write_text('{"text": "The mill turns."}')
    settings = Settings(retriever="bm25")
    task = load_task("jsonl", rows, settings, corpus=tmp_path / "corpus.jsonl")
    run = begin_run(task, search_agent("bm25", settings), tmp_path / "run")
    with pytest.raises(SettingsError, match="at least 20 answers, got 0"):
        run.finish(mauve=str(tiny_llama))


def test_the_first_hundred_words_of_question_and_answer_count() -> None:
    assert compared_text("Why?", " It turns.\nSo. ") == "Why? It turns. So"
    assert compared_text("a " * 60, "b " * 60) == "a " * 60 + "b " * 39 + "b"


def test_too_few_texts_are_refused_before_any_model_is_loaded() -> None:
    pytest.importorskip("mauve")
    with pytest.raises(SettingsError, match="needs at least 20 answers, got 19"):
        require_mauve(19)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mauve", None)
    with pytest.raises(
        MissingExtra,
        match=says("MAUVE", "needs an extra", "pip install 'ras-agent[mauve]'"),
    ):
        mauve_of_vectors(np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be loaded"):
        features(["x"], tmp_path)

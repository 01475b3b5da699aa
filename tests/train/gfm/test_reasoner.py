"""Training of G-reasoner: the input of a step, its losses, and a network that learns which documents support."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from typer.testing import CliRunner

from ras_agent.app.cli.program import build_program
from ras_agent.contracts.errors import IndexNotFound, WeightsError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.eval.question import Question
from ras_agent.tools.gfm.reasoner import ReasonerConfig, load_reasoner
from ras_agent.tools.gfm.weights import initial_weights
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.train.gfm.reasoner import ReasonerTrainingConfig, train
from ras_agent.train.gfm.reasoner_sets import (
    ReasonerSet,
    reasoner_example,
    write_reasoner_set,
)
from ras_agent.train.gfm.trainable import entity_loss, ranking_loss, reasoner_losses
from tests.messages import says

pytestmark = pytest.mark.slow("trainings")

PEOPLE = 12
LOSSES = {"alpha": 0.3, "adversarial": 0.2, "distillation": 1.0}


@pytest.fixture
def index(tmp_path: Path, hash_embedder: Any) -> PassageIndex:
    """Person n was born in town n, which lies on river n."""
    passages, facts = [], []
    for n in range(PEOPLE):
        for name, triple in (
            (f"person-{n}", (f"Person {n}", "was born in", f"Town {n}")),
            (f"town-{n}", (f"Town {n}", "lies on", f"River {n}")),
        ):
            passages.append(Passage(name, f"{' '.join(triple)}.", triple[0]))
            facts.append(PassageFacts(name, (Triple(*triple, (Source(name),)),)))
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add(passages)
    with open_writer(tmp_path / "index", hash_embedder) as writer:
        writer.put(facts, {passage.id: passage for passage in passages})
        writer.write()
    return index


@pytest.fixture
def folder(tmp_path: Path, index: PassageIndex) -> Path:
    questions = [
        Question(
            str(n),
            f"Which river flows where Person {n} was born?",
            (),
            (f"person-{n}", f"town-{n}"),
        )
        for n in range(PEOPLE)
    ]
    count, skipped = write_reasoner_set(
        index, [*questions, Question("x", "Who?", ())], tmp_path / "set", nearest=1
    )
    assert (count, skipped) == (
        PEOPLE,
        ("question x: no passage in the graph supports it",),
    )
    return tmp_path / "set"


def test_a_step_reads_some_documents_and_what_is_joined_to_them(folder: Path) -> None:
    some = ReasonerSet.read(folder)
    example = reasoner_example([some], 2, 6, np.random.default_rng(0))
    documents = example.nodes[example.documents :]
    assert len(documents) == example.targets.shape[1] == 6
    # both documents that support each question
    assert example.targets.sum(axis=1).tolist() == [
        2,
        2,
    ]
    # each question starts from the person that it names and from its nearest document
    assert example.start.sum(axis=1).tolist() == [2, 2]
    assert example.start[:, : example.documents].sum() == 2
    whole = reasoner_example([some], 2, 0, np.random.default_rng(0))
    # three names and two documents each
    assert len(whole.nodes) == len(some.nodes) == 5 * PEOPLE
    np.testing.assert_array_equal(whole.nodes, some.nodes.astype(np.float32))


def test_the_loss_reads_documents_and_the_encoders_opinion_of_them(
    folder: Path,
) -> None:
    example = reasoner_example(
        [ReasonerSet.read(folder)], 2, 6, np.random.default_rng(0)
    )
    weights = initial_weights(ReasonerConfig(64, 8, 2), 0)
    from ras_agent.tools.gfm.network import GraphTensors
    from ras_agent.tools.gfm.reasoner import plain_reasoner_scores

    arrays = (example.nodes, example.vectors, example.start)
    given = [torch.from_numpy(array) for array in arrays]
    logits = plain_reasoner_scores(weights, GraphTensors.of(example.graph), *given)[
        :, example.documents :
    ]
    targets = torch.from_numpy(example.targets)
    cosines = torch.from_numpy(example.vectors @ example.nodes[example.documents :].T)
    apart = ((torch.sigmoid(logits) - (cosines + 1) / 2) ** 2).mean()
    expected = (
        0.3 * entity_loss(logits, targets, 0.2)
        + 0.7 * ranking_loss(logits, targets)
        + apart
    )
    torch.testing.assert_close(
        reasoner_losses(weights, example, **LOSSES)["loss"], expected
    )


def test_a_trained_network_finds_what_supports_and_goes_on_where_it_stopped(
    folder: Path, index: PassageIndex, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "sets": (folder,),
        "width": 16,
        "layers": 2,
        "documents": 0,
        "rate": 5e-3,
        "warmup": 0.1,
    }
    result = train(ReasonerTrainingConfig(out=tmp_path / "w", steps=120, **options))
    assert result.steps == 120
    config, _ = load_reasoner(tmp_path / "w")
    assert (config.width, config.text_model) == (16, "hash")
    retriever = retriever_over(index, "greasoner", weights=tmp_path / "w", nearest=1)
    found = [
        {
            hit.passage.id
            for hit in retriever.retrieve(
                f"Which river flows where Person {n} was born?", 2
            )
        }
        for n in range(PEOPLE)
    ]
    right = sum(len(found[n] & {f"person-{n}", f"town-{n}"}) for n in range(PEOPLE))
    assert right >= 2 * PEOPLE - 4
    again = train(ReasonerTrainingConfig(out=tmp_path / "w", steps=120, **options))
    assert again.steps == 120  # nothing is left to do
    more = train(
        ReasonerTrainingConfig(
            out=tmp_path / "v", steps=2, start_from=tmp_path / "w", **options
        )
    )
    assert more.steps == 2
    losses = [
        json.loads(line)["loss"]
        for line in (tmp_path / "v" / "metrics.jsonl").read_text().splitlines()
    ]
    first = json.loads((tmp_path / "w" / "metrics.jsonl").read_text().splitlines()[0])[
        "loss"
    ]
    assert losses[0] < first


def test_what_does_not_fit_is_refused(
    folder: Path, tmp_path: Path, reasoner_folder: Any
) -> None:
    with pytest.raises(
        IndexNotFound, match=says("no set for G-reasoner", "--network greasoner")
    ):
        train(ReasonerTrainingConfig(sets=(tmp_path,), out=tmp_path / "w"))
    other = reasoner_folder(64)  # with an instruction
    with pytest.raises(
        WeightsError,
        match=says("reads vectors of org/hash", "write the sets again"),
    ):
        train(
            ReasonerTrainingConfig(sets=(folder,), out=tmp_path / "w", start_from=other)
        )


def test_a_set_to_go_on_from_weights_has_their_instructions(
    index: PassageIndex, tmp_path: Path, reasoner_folder: Any, hash_embedder: Any
) -> None:
    asked = [Question("1", "Where was Person 1 born?", (), ("person-1",))]
    weights = reasoner_folder(64)
    write_reasoner_set(index, asked, tmp_path / "set", weights=weights)
    (question,) = ReasonerSet.read(tmp_path / "set").questions
    expected = hash_embedder.embed(["Query: Where was Person 1 born?"])[0]
    # stored in 16 bits
    np.testing.assert_allclose(question.vector, expected, atol=1e-3)
    result = train(
        ReasonerTrainingConfig(
            sets=(tmp_path / "set",), out=tmp_path / "w", start_from=weights, steps=1
        )
    )
    assert result.steps == 1


def test_two_commands_train_the_network_on_questions_of_one_s_own(
    sample_graph_index: Path, tmp_path: Path
) -> None:
    def cli(*words: object) -> Any:
        return CliRunner().invoke(build_program(), [str(word) for word in words])

    with as_file(files("ras_agent.data") / "sample_questions.jsonl") as questions:
        options = ("--network", "greasoner", "--out", tmp_path / "set")
        written = cli("kg", "examples", sample_graph_index, questions, *options)
    assert written.exit_code == 0, written.output
    trained = cli(
        "kg",
        "train",
        tmp_path / "set",
        "--steps",
        1,
        "--documents",
        10,
        "--out",
        tmp_path / "w",
    )
    assert trained.exit_code == 0, trained.output
    asked = (
        "--index",
        sample_graph_index,
        "--retriever",
        "greasoner",
        "--weights",
        tmp_path / "w",
    )
    answered = cli("ask", "Where was Alexander Graham Bell born?", *asked)
    # 3: the offline answerer abstains
    assert answered.exit_code in (0, 3), answered.output
    refused = cli(
        "kg", "train", tmp_path / "set", "--completion", 5, "--out", tmp_path / "v"
    )
    assert refused.exit_code == 1
    assert "--completion works only for GFM-RAG's network" in refused.output

"""GFM training: parts of graphs, drawn examples, going on where it stopped, and that it learns."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file

from ras_agent.contracts.errors import (
    IndexMismatch,
    IndexNotFound,
    IngestError,
    SettingsError,
    WeightsError,
)
from ras_agent.contracts.records import Source, Triple
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.weights import (
    GFMConfig,
    initial_weights,
    load_gfm,
    save_gfm,
)
from ras_agent.tools.kg.disk import (
    SavedGraph,
    read_graph,
    read_kg_manifest,
    write_graph,
)
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.train.gfm.batches import (
    GFMExample,
    completion_example,
    part_of,
    retrieval_example,
)
from ras_agent.train.gfm.sets import (
    GFMQuestion,
    GFMSet,
    link_questions,
    load_sets,
    read_linked,
    write_linked,
)
from ras_agent.train.gfm.train import GFMTrainingConfig, drawn_examples, train
from ras_agent.train.gfm.trainable import (
    document_loss,
    entity_loss,
    losses,
    ranking_loss,
)
from tests.messages import says

pytestmark = pytest.mark.slow("trainings")

PEOPLE = 30
LOGITS = torch.tensor([[2.0, -1.0, 0.0, -3.0]])
TARGETS = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
P = [1 / (1 + math.exp(-one)) for one in (2.0, -1.0, 0.0, -3.0)]


def facts_of_people() -> list[PassageFacts]:
    """Person n was born in town n, which lies on river n; both belong to a country."""
    facts = []
    for n in range(PEOPLE):
        for name, triple in (
            (f"person-{n}", (f"Person {n}", "was born in", f"Town {n}")),
            (f"town-{n}", (f"Town {n}", "lies on", f"River {n}")),
        ):
            also = Triple(triple[0], "belongs to", f"Country {n % 3}", (Source(name),))
            facts.append(PassageFacts(name, (Triple(*triple, (Source(name),)), also)))
    return facts


@pytest.fixture
def graph(hash_embedder: Any) -> KGIndex:
    return KGIndex.in_memory(facts_of_people(), hash_embedder)


@pytest.fixture
def folder(tmp_path: Path, graph: KGIndex) -> Path:
    """A set of two-hop questions."""
    folder = tmp_path / "people"
    folder.mkdir(parents=True)
    write_graph(folder / "graph", SavedGraph(graph.arrays, graph.manifest))
    questions = [
        GFMQuestion(
            f"Which river flows where Person {n} was born?",
            (f"person-{n}", f"town-{n}"),
        )
        for n in range(PEOPLE)
    ]
    pseudo = [
        GFMQuestion(f"where was Person {n} born", (f"person-{n}",), "pseudo")
        for n in range(PEOPLE)
    ]
    write_linked(folder, graph, [*questions, *pseudo])
    return folder


def width_of(folder: Path) -> int:
    embedder = read_kg_manifest(folder / "graph", "").embedder
    assert embedder is not None
    return embedder.dimension


def _config(folder: Path, out: Path, **options: Any) -> GFMTrainingConfig:
    given = {
        "width": 12,
        "layers": 3,
        "batch": 4,
        "documents": 20,
        "save_every": 4,
        "steps": 8,
        "warmup": 2,
        "rate": 5e-3,
    }
    width = width_of(folder)
    return GFMTrainingConfig(
        sets=(folder,), out=out, text_width=width, **{**given, **options}
    )


def test_a_part_holds_what_its_documents_state(graph: KGIndex) -> None:
    documents = np.sort(
        [graph.document_id("person-4") or 0, graph.document_id("town-4") or 0]
    )
    inverse = -np.asarray(graph.relation_vectors)
    part = part_of(graph, documents, inverse)
    names = [graph.entities[entity] for entity in part.entities.tolist()]
    assert sorted(names) == ["Country 1", "Person 4", "River 4", "Town 4"]
    relations = {
        (names[part.graph.source[m]], names[part.graph.target[m]]): part.graph.vectors[
            part.graph.relation[m]
        ]
        for m in range(part.graph.messages)
    }
    assert len(relations) == 8  # four facts and their inverses
    born = np.asarray(graph.relation_vectors)[graph.relation_id("was born in") or 0]
    np.testing.assert_array_equal(relations["Town 4", "Person 4"], born)
    np.testing.assert_array_equal(relations["Person 4", "Town 4"], -born)
    assert [part.mentions.row(document).tolist() for document in range(2)] == [
        sorted(names.index(one) for one in some)
        for some in (
            ["Country 1", "Person 4", "Town 4"],
            ["Country 1", "River 4", "Town 4"],
        )
    ]


def test_questions_come_back_from_disk_as_they_were_linked(
    folder: Path, graph: KGIndex
) -> None:
    stored = read_linked(folder)
    assert [len(stored[kind]) for kind in ("labelled", "pseudo")] == [PEOPLE, PEOPLE]
    asked = GFMQuestion(
        "Which river flows where Person 7 was born?", ("person-7", "town-7")
    )
    (fresh,) = link_questions(graph, [asked])
    assert (
        stored["labelled"][7].entities.tolist()
        == fresh.entities.tolist()
        == [graph.entity_id("Person 7")]
    )
    assert stored["labelled"][7].supporting.tolist() == fresh.supporting.tolist()
    np.testing.assert_allclose(stored["labelled"][7].vector, fresh.vector, atol=1e-3)


def test_a_passage_that_the_graph_does_not_know_is_named(graph: KGIndex) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        link_questions(graph, [GFMQuestion("Where is Person 1?", ("nowhere",))])


def test_an_example_targets_all_entities_of_what_supports(
    folder: Path, hash_embedder: Any
) -> None:
    sets = load_sets(
        [folder], GFMConfig(hash_embedder.dimension, 8, 2, inverse="negated")
    )
    example = retrieval_example(sets, 3, 20, 1.0, 0.0, np.random.default_rng(0))
    assert example.start.shape == example.targets.shape == (3, example.graph.entities)
    assert example.targets.sum(1).tolist() == [4, 4, 4]  # person, town, river, country
    assert example.document_targets is not None
    assert example.document_targets.sum(1).tolist() == [2, 2, 2]
    assert ((example.start > 0).sum(1) == 1).all()


def test_each_step_of_pre_training_is_of_one_of_the_graphs_drawn_alike(
    hash_embedder: Any,
) -> None:
    config = GFMConfig(hash_embedder.dimension, 8, 2, inverse="negated")
    sets = [
        GFMSet(name, KGIndex.in_memory(facts_of_people(), hash_embedder), {}, config)
        for name in "abc"
    ]
    training = GFMTrainingConfig(
        sets=(), out=Path(), completion=90, steps=0, batch=2, documents=0
    )
    examples = drawn_examples(sets, training)
    counts = Counter(examples[place].name for place in range(len(examples)))
    assert sorted(counts) == ["a", "b", "c"]
    assert min(counts.values()) > 15


def test_the_rate_of_the_published_trainer_stays_where_it_is(
    folder: Path, tmp_path: Path
) -> None:
    constant = _config(
        folder, tmp_path, completion=10, steps=10, rate=1e-3, warmup=0, constant=True
    )
    assert GFMTrainingConfig(sets=(), out=tmp_path).negatives == 128
    assert [constant.rate_at(step, 20) for step in (0, 9, 10, 19)] == [1e-3] * 4


def test_pre_training_on_three_graphs_learns_to_complete_facts_of_each(
    tmp_path: Path, hash_embedder: Any
) -> None:
    folders = []
    for name in "abc":
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        graph = KGIndex.in_memory(facts_of_people(), hash_embedder)
        write_graph(folders[-1] / "graph", SavedGraph(graph.arrays, graph.manifest))
        write_linked(folders[-1], graph, [])
    options = {
        "completion": 150,
        "steps": 0,
        "batch": 4,
        "documents": 0,
        "negatives": 32,
        "warmup": 0,
        "clip": 0,
    }
    config = replace(
        _config(folders[0], tmp_path / "out", **options),
        sets=tuple(folders),
        constant=True,
    )
    train(config)
    steps = [
        json.loads(line)
        for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()
    ]
    first, last = (
        np.mean([step["loss"] for step in some]) for some in (steps[:20], steps[-20:])
    )
    assert last < 0.75 * first


def test_a_fact_to_complete_is_not_in_the_graph(
    folder: Path, hash_embedder: Any
) -> None:
    sets = load_sets(
        [folder], GFMConfig(hash_embedder.dimension, 8, 2, inverse="negated")
    )
    example = completion_example(sets, 5, 20, 7, np.random.default_rng(0))
    left = set(
        zip(example.graph.source.tolist(), example.graph.target.tolist(), strict=True)
    )
    for row in range(5):
        ends = int(example.start[row].argmax()), int(example.targets[row].argmax())
        assert ends not in left
        assert ends[::-1] not in left
        assert example.candidates is not None
        assert ends[1] in example.candidates[row]
    assert example.candidates is not None
    assert example.candidates.shape == (5, 8)


def test_a_training_that_stopped_resumes_as_if_it_had_not(
    folder: Path, tmp_path: Path
) -> None:
    whole = _config(folder, tmp_path / "whole", completion=2, document=0.5, dropout=0.2)
    train(whole)
    parts = replace(whole, out=tmp_path / "parts", minutes=1e-9)
    steps = [train(parts).steps for _ in range(10)]
    assert steps == list(range(1, 11))
    expected, found = (load_gfm(tmp_path / name)[1] for name in ("whole", "parts"))
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    lines = [
        json.loads(line)
        for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert {"entity", "ranking", "document", "loss", "norm"} <= set(lines[-1])


@pytest.mark.parametrize(
    ("file", "number"),
    [
        ("training.safetensors", 1),
        ("training.safetensors", 4),
        ("model.safetensors", 1),
        ("config.json", 1),
    ],
)
def test_a_training_killed_while_it_saves_resumes_as_if_it_had_not(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    number: int,
) -> None:
    whole = _config(folder, tmp_path / "whole", save_every=2)
    train(whole)
    killed = replace(whole, out=tmp_path / "killed")
    moved, move = [], Path.replace

    def stop_in_a_save(path: Path, target: Path) -> Path:
        if Path(target).name == file:
            moved.append(path)
            if len(moved) == number:
                raise KeyboardInterrupt
        return move(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop_in_a_save)
        with pytest.raises(KeyboardInterrupt):
            train(killed)
    assert train(killed).steps == 8
    for name in ("model.safetensors", "config.json"):
        assert (killed.out / name).read_bytes() == (whole.out / name).read_bytes()
    expected, found = (
        load_file(out / "training.safetensors") for out in (whole.out, killed.out)
    )
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    lines = (killed.out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 9))


@pytest.mark.parametrize("content", [b"torn", None])
def test_a_checkpoint_that_cannot_be_resumed_is_refused(
    folder: Path, tmp_path: Path, content: bytes | None
) -> None:
    config = _config(folder, tmp_path / "out", steps=1)
    train(config)
    file = config.out / "training.safetensors"
    if content:
        file.write_bytes(content)
    else:
        save_file(load_file(file), file)  # nothing says its step
    with pytest.raises(
        WeightsError, match=r"training\.safetensors: .*choose another --out"
    ):
        train(config)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"steps": 4}, "steps: 3 there, 4 here"),
        ({"steps": 2}, "steps: 3 there, 2 here"),
        ({"completion": 5}, "completion: 0 there, 5 here"),
        (
            {"rate": 1e-3, "dropout": 0.5},
            "dropout: 0.0 there, 0.5 here; rate: 0.005 there, 0.001 here",
        ),
        ({"width": 8}, "width: 12 there, 8 here"),
    ],
)
def test_a_training_does_not_go_on_with_other_settings(
    folder: Path, tmp_path: Path, options: dict[str, Any], expected: str
) -> None:
    config = _config(folder, tmp_path / "out", steps=3)
    train(config)
    before = {path.name: path.read_bytes() for path in config.out.iterdir()}
    with pytest.raises(
        SettingsError,
        match=rf"out holds a training with other settings \([^)]*{expected}",
    ):
        train(replace(config, **options))
    assert {path.name: path.read_bytes() for path in config.out.iterdir()} == before


def test_a_training_does_not_go_on_with_other_sets(
    folder: Path, tmp_path: Path, graph: KGIndex
) -> None:
    config = _config(folder, tmp_path / "out", steps=1)
    train(config)
    write_linked(
        folder, graph, [GFMQuestion("Where was Person 1 born?", ("person-1",))]
    )
    with pytest.raises(
        SettingsError, match=r"sets\.1 people: [0-9a-f]{12} there, [0-9a-f]{12} here"
    ):
        train(config)
    others = folder.rename(tmp_path / "others")
    with pytest.raises(
        SettingsError,
        match=r"sets\.1 others: absent there, .*sets\.1 people: [0-9a-f]{12} there",
    ):
        train(replace(config, sets=(others,)))


def test_what_decides_nothing_may_differ(folder: Path, tmp_path: Path) -> None:
    config = _config(folder, tmp_path / "out", steps=3, minutes=1e-9)
    train(config)
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(folder, moved)
    shutil.move(config.out, moved)
    later = replace(
        config,
        sets=(moved / folder.name,),
        out=moved / "out",
        minutes=0.0,
        save_every=2,
    )
    assert train(later).steps == 3
    training = json.loads((later.out / "training.json").read_text())
    assert [training[name] for name in ("sets", "start_from", "processes")] == [
        ["people"],
        None,
        1,
    ]
    assert [training["settings"][name] for name in ("seed", "steps", "width")] == [
        0,
        3,
        12,
    ]
    assert (training["result"]["steps"], training["result"]["stopped"]) == (3, "steps")


def test_metrics_without_a_step_are_located(folder: Path, tmp_path: Path) -> None:
    config = _config(folder, tmp_path / "out", steps=3)
    train(config)
    metrics = config.out / "metrics.jsonl"
    first, _, third = metrics.read_text().splitlines(keepends=True)
    for line in ("\n", '{"step": 2, "sec\n', "7\n"):
        metrics.write_text(first + line + third)
        with pytest.raises(
            IngestError,
            match=says("metrics.jsonl line 2", "no step", "remove the line"),
        ):
            train(config)
    # a line less, and one that no newline ends, are metrics
    metrics.write_text((first + third).rstrip("\n"))
    train(config)
    assert metrics.read_text() == first + third


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (
            lambda lines: lines[:-1],
            r"questions\.jsonl holds 59 questions, questions\.npz 60: write the set again",
        ),
        (
            lambda lines: [],
            r"questions\.jsonl holds 0 questions, questions\.npz 60: write the set again",
        ),
        (
            lambda lines: [lines[0], lines[1][:20], *lines[2:]],
            r"questions\.jsonl line 2: not JSON: ",
        ),
        (
            lambda lines: ["7", *lines[1:]],
            r"questions\.jsonl line 1: expected a JSON object, found int",
        ),
        (
            lambda lines: ["{}", *lines[1:]],
            r"questions\.jsonl: unknown kinds of questions: None; write the set again",
        ),
    ],
)
def test_questions_that_cannot_be_read_raise(
    folder: Path, tmp_path: Path, cut: Callable[[list[str]], list[str]], expected: str
) -> None:
    file = folder / "questions.jsonl"
    file.write_text("\n".join(cut(file.read_text("utf-8").splitlines())), "utf-8")
    with pytest.raises(IngestError, match=expected):
        train(_config(folder, tmp_path / "out"))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04torn", b"no archive"])
def test_damaged_arrays_raise(folder: Path, content: bytes) -> None:
    (folder / "questions.npz").write_bytes(content)
    with pytest.raises(
        IngestError, match=r"questions\.npz: damaged .*write the set again"
    ):
        read_linked(folder)


def test_questions_of_another_graph_raise(
    folder: Path, tmp_path: Path, hash_embedder: Any
) -> None:
    small = KGIndex.in_memory(facts_of_people()[:2], hash_embedder)
    write_graph(folder / "graph", SavedGraph(small.arrays, small.manifest))
    with pytest.raises(
        IndexMismatch, match="people: its questions are linked to another graph"
    ):
        train(_config(folder, tmp_path / "out"))


def test_sets_whose_questions_name_nothing_raise(
    folder: Path, tmp_path: Path, graph: KGIndex
) -> None:
    write_linked(folder, graph, [GFMQuestion("zzz", ("person-1",), "pseudo")])
    with pytest.raises(SettingsError, match="no question of people names an entity"):
        train(_config(folder, tmp_path / "out"))


def test_a_network_is_trained_on_in_its_own_shape(folder: Path, tmp_path: Path) -> None:
    started = GFMConfig(64, 12, 3, "st:some/hash", "tail", "negated", ranker={"top": 5})
    weights = initial_weights(started, 5)
    save_gfm(tmp_path / "start", started, weights)
    free = {"width": None, "layers": None}
    train(
        _config(
            folder,
            tmp_path / "out",
            steps=1,
            rate=0.0,
            start_from=tmp_path / "start",
            **free,
        )
    )
    known, found = load_gfm(tmp_path / "out")
    assert (
        json.loads((tmp_path / "out" / "training.json").read_text())["start_from"]
        == "start"
    )
    # the encoder is the sets'
    assert known == GFMConfig(64, 12, 3, "hash", "tail", "negated", ranker={"top": 5})
    assert all(torch.equal(found[name], weights[name]) for name in weights)


def test_a_network_of_another_shape_is_not_started_from(
    folder: Path, tmp_path: Path
) -> None:
    other = GFMConfig(64, 16, 2, "hash", inverse="text")
    save_gfm(tmp_path / "start", other, initial_weights(other, 0))
    with pytest.raises(
        WeightsError,
        match=says(
            "another shape", "train it with --width 16 --layers 2 --inverse text"
        ),
    ):
        train(
            _config(
                folder,
                tmp_path / "out",
                start_from=tmp_path / "start",
                inverse="negated",
            )
        )
    assert not (tmp_path / "out").exists()


def test_a_network_that_reads_another_encoders_vectors_is_not_started_from(
    folder: Path, tmp_path: Path
) -> None:
    other = GFMConfig(26, 12, 3, "own")
    save_gfm(tmp_path / "start", other, initial_weights(other, 0))
    with pytest.raises(
        WeightsError,
        match=says(
            "vectors of width 26", "sets hold vectors of width 64", "its encoder, own"
        ),
    ):
        train(_config(folder, tmp_path / "out", start_from=tmp_path / "start"))


def test_a_network_of_another_encoder_of_that_width_is_not_started_from(
    folder: Path, tmp_path: Path
) -> None:
    other = GFMConfig(64, 12, 3, "some/model", inverse="negated")
    save_gfm(tmp_path / "start", other, initial_weights(other, 0))
    with pytest.raises(
        WeightsError,
        match=says("vectors of some/model", "those of hash", "write the sets"),
    ):
        train(_config(folder, tmp_path / "out", start_from=tmp_path / "start"))


def test_a_network_that_reads_instructions_is_not_started_from(
    folder: Path, tmp_path: Path
) -> None:
    other = GFMConfig(64, 12, 3, "hash", inverse="negated", question_prefix="Query: ")
    save_gfm(tmp_path / "start", other, initial_weights(other, 0))
    with pytest.raises(
        WeightsError, match="reads texts with an instruction in front of them"
    ):
        train(_config(folder, tmp_path / "out", start_from=tmp_path / "start"))


def test_questions_are_embedded_as_queries(graph: KGIndex, hash_embedder: Any) -> None:
    class Asking:
        name, dimension = hash_embedder.name, hash_embedder.dimension
        embed = staticmethod(hash_embedder.embed)

        def embed_query(self, text: str) -> Any:
            return hash_embedder.embed([f"query: {text}"])[0]

    asked = KGIndex(graph.arrays, graph.manifest, Asking())
    (linked,) = link_questions(
        asked, [GFMQuestion("Where is Person 1?", ("person-1",))]
    )
    np.testing.assert_array_equal(
        linked.vector, hash_embedder.embed(["query: Where is Person 1?"])[0]
    )


def test_a_question_that_is_linked_already_starts_there(graph: KGIndex) -> None:
    asked = [
        GFMQuestion(
            "Where is Person 1?", ("person-1",), start={"entity": ["Town 2", "nobody"]}
        )
    ]
    (linked,) = link_questions(graph, asked)
    assert [graph.entities[entity] for entity in linked.entities] == ["Town 2"]


def test_sets_of_two_encoders_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    saved = read_graph(other / "graph", "")
    assert saved.manifest.embedder is not None
    another = replace(
        saved.manifest, embedder=replace(saved.manifest.embedder, name="another")
    )
    write_graph(other / "graph", saved._replace(manifest=another))
    with pytest.raises(IndexMismatch, match=r"several encoders .*'hash' .*'another'"):
        train(replace(_config(folder, tmp_path / "out"), sets=(folder, other)))


def test_an_error_about_sets_names_its_remedy(folder: Path, tmp_path: Path) -> None:
    config = _config(folder, tmp_path / "out")
    with pytest.raises(IndexMismatch, match=r"--text-width 64$"):
        train(replace(config, text_width=384))
    with pytest.raises(IndexNotFound, match=r"no set at .*nowhere: .*kg examples"):
        train(replace(config, sets=(tmp_path / "nowhere",)))
    assert not config.out.exists()


def test_a_training_that_diverges_stops_and_keeps_what_it_saved(
    folder: Path, tmp_path: Path
) -> None:
    config = _config(folder, tmp_path / "out", rate=1e30, warmup=0, save_every=1)
    with pytest.raises(SettingsError, match=r"step 2: .* smaller --rate"):
        train(config)
    lines = (config.out / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["step"] for line in lines] == [
        1
    ]


def test_the_loss_of_retrieval_is_alpha_of_eq_11_and_the_rest_of_eq_12() -> None:
    shape = GFMConfig(4, 8, 2, inverse="negated")
    # every logit is 0
    zeros = {name: torch.zeros(size) for name, size in shape.shapes().items()}
    edges, relations = (
        np.array([[0, 0, 1], [2, 0, 3]]),
        np.ones((1, 4), dtype=np.float32),
    )
    rows = np.eye(2, 5, dtype=np.float32)
    example = GFMExample(
        "five",
        GFMGraph.from_edges(5, edges, relations, -relations),
        np.ones((2, 4), "f4"),
        rows,
        rows,
    )
    found = losses(zeros, example, alpha=0.25)
    # eq. 11: -log 0.5 for targets and for others; eq. 12: one of five that are alike
    assert float(found["entity"]) == pytest.approx(2 * math.log(2))
    assert float(found["ranking"]) == pytest.approx(math.log(5))
    assert float(found["loss"]) == pytest.approx(
        0.25 * 2 * math.log(2) + 0.75 * math.log(5)
    )


@pytest.mark.parametrize(
    ("warmup", "completion", "first"), [(1, 0, 4e-3), (4, 0, 1e-3), (4, 1, 1e-3)]
)
def test_the_rate_warms_up(
    folder: Path, tmp_path: Path, warmup: int, completion: int, first: float
) -> None:
    options = {
        "warmup": warmup,
        "completion": completion,
        "minutes": 1e-9,
        "rate": 4e-3,
        "decay": 0.0,
    }
    train(_config(folder, tmp_path / "out", **options))
    shape, moved = load_gfm(tmp_path / "out")
    # AdamW's first step moves a weight by the rate, whatever its gradient
    steps = [
        (moved[name] - weight).abs().max()
        for name, weight in initial_weights(shape, 0).items()
    ]
    assert float(max(steps)) == pytest.approx(first, rel=1e-2)


@pytest.mark.parametrize("options", [{}, {"bf16": True}, {"document": 1.0}])
def test_it_learns(folder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    train(_config(folder, tmp_path / "out", steps=30, save_every=30, **options))
    losses = [
        json.loads(line)["ranking"]
        for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()
    ]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])


def test_two_processes_average_what_each_learns(folder: Path, tmp_path: Path) -> None:
    code = f"from ras_agent.train.gfm.train import main; main({_arguments(folder, tmp_path / 'two')!r})"
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env={**common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    assert [process.wait(100) for process in processes] == [0, 0]
    # AdamW's first moment after one step is a tenth of the gradient
    width = width_of(folder)
    shape = GFMConfig(width, 12, 3, "hash", inverse="negated")
    sets = load_sets([folder], shape)
    gradients = []
    for rank in range(2):
        weights = {
            name: tensor.requires_grad_()
            for name, tensor in initial_weights(shape, 0).items()
        }
        example = retrieval_example(
            sets, 4, 20, 0.5, 0.0, np.random.default_rng((0, 0, rank))
        )
        losses(weights, example)["loss"].backward()  # type: ignore[no-untyped-call]
        gradients.append(weights["question_mlp.weight"].grad)
    moments = load_file(tmp_path / "two" / "training.safetensors")
    found = moments["exp_avg:question_mlp.weight"]
    expected = (gradients[0] + gradients[1]) / 20
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-7)


def _arguments(folder: Path, out: Path) -> list[str]:
    config = _config(folder, out, steps=1, clip=1e9)
    names = (
        "width",
        "layers",
        "text_width",
        "batch",
        "documents",
        "steps",
        "warmup",
        "rate",
        "clip",
    )
    pairs = [
        (f"--{name.replace('_', '-')}", str(getattr(config, name))) for name in names
    ]
    return [
        "--sets",
        str(folder),
        "--out",
        str(out),
        *(word for pair in pairs for word in pair),
    ]


def test_the_entity_loss_averages_targets_and_negatives_apart() -> None:
    expected = (
        -(math.log(P[0]) + math.log(P[2])) / 2
        - (math.log(1 - P[1]) + math.log(1 - P[3])) / 2
    )
    assert float(entity_loss(LOGITS, TARGETS)) == pytest.approx(expected)


def test_the_entity_loss_weighs_negatives_by_their_logits_where_asked_to() -> None:
    logits = torch.tensor([[2.0, 1.0, -1.0, 0.5]], requires_grad=True)
    targets = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    shares = [math.exp(one / 0.2) for one in (1.0, -1.0, 0.5)]
    losses = [math.log1p(math.exp(one)) for one in (1.0, -1.0, 0.5)]
    negative = sum(
        share * loss for share, loss in zip(shares, losses, strict=True)
    ) / sum(shares)
    found = entity_loss(logits, targets, 0.2)
    assert found.item() == pytest.approx(
        math.log1p(math.exp(-2.0)) + negative, rel=1e-6
    )
    found.backward()
    assert logits.grad is not None
    # no gradient goes through the weights
    expected = [
        share / sum(shares) / (1 + math.exp(-one))
        for share, one in zip(shares, (1.0, -1.0, 0.5), strict=True)
    ]
    np.testing.assert_allclose(logits.grad[0, 1:].numpy(), expected, rtol=1e-5)
    assert entity_loss(torch.tensor([[1.0, 2.0]]), torch.ones(1, 2), 0.2).isfinite()


def test_the_ranking_loss_is_the_cross_entropy_of_scaled_probabilities() -> None:
    expected = -(math.log(P[0] / sum(P)) + math.log(P[2] / sum(P))) / 2
    assert float(ranking_loss(LOGITS, TARGETS)) == pytest.approx(expected)


def test_the_document_loss_ranks_what_entities_add_up_to() -> None:
    shares = torch.tensor([[0.5, 0.0, 0.0, 1.0], [0.5, 1.0, 1.0, 0.0]]).to_sparse()
    scores = [0.5 * P[0] + P[3], 0.5 * P[0] + P[1] + P[2]]
    expected = -math.log(scores[1] / sum(scores))
    assert float(
        document_loss(LOGITS, shares, torch.tensor([[0.0, 1.0]]))
    ) == pytest.approx(expected, rel=1e-5)


def test_losses_stay_finite_for_extreme_logits() -> None:
    extreme = torch.tensor([[200.0, -200.0, 200.0, -200.0]], requires_grad=True)
    for loss in (entity_loss, ranking_loss):
        value = loss(extreme, 1 - TARGETS)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(extreme.grad).all()

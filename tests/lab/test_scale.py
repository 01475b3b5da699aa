"""The measurements behind docs/scale.md and lab/store.md run."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab import scale, store
from lab.recombined import recombined_passages
from ras_agent.config.address import Address
from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.tools.index.store import PassageIndex
from tests.messages import says

pytestmark = pytest.mark.slow("benchmarks")


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_part_is_made_and_searched(tmp_path: Path) -> None:
    scale.main(
        [
            "--sizes",
            "60",
            "--queries",
            "3",
            "--parts",
            "flat,graph",
            "--json",
            str(tmp_path / "out.jsonl"),
        ]
    )
    records = _records(tmp_path / "out.jsonl")
    assert [record["part"] for record in records] == ["flat", "graph"]
    assert all(record["disk_mb"] > 0 and record["search_ms"] > 0 for record in records)


def test_costs_of_changes_are_measured_and_drawn(tmp_path: Path) -> None:
    out, plot = tmp_path / "out.jsonl", tmp_path / "out.svg"
    store.main(
        [
            "--sizes",
            "300,400",
            "--queries",
            "3",
            "--json",
            str(out),
            "--plot",
            str(plot),
        ]
    )
    records = _records(out)
    assert {record["size"] for record in records} == {300, 400}
    assert {
        "add 10",
        "add 1",
        "forget 1",
        "open",
        "filter",
        "make, s",
        "search, bm25",
        "search, dense",
    } <= {record["what"] for record in records}
    assert all(record["value"] > 0 for record in records)
    assert "<svg" in plot.read_text()


def test_recombined_passages_are_the_same_for_the_same_seed_and_have_new_names(
    tmp_path: Path,
) -> None:
    texts = [
        "The inventor Alexander Bell lived in Boston. He died there.",
        "She came from Madrid. It was spring.",
    ]
    rows = [{"title": "Bell of Boston", "text": text} for text in texts]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = list(recombined_passages([tmp_path / "corpus.jsonl"], 200))
    assert made == list(recombined_passages([tmp_path / "corpus.jsonl"], 200))
    assert made != list(recombined_passages([tmp_path / "corpus.jsonl"], 200, seed=1))
    assert (
        len({passage.id for passage in made})
        == len({passage.document_id for passage in made})
        == 200
    )
    words = {word for passage in made for word in passage.text.split()}
    assert {"Boston.", "Madrid.", "inventor", "spring."} <= words
    assert {"Bosrid.", "Madton."} & words
    assert any(
        "lived in" in passage.text and "spring" in passage.text for passage in made
    )


def test_a_corpus_without_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"title": "t", "text": "no names here"}\n')
    with pytest.raises(IngestError, match="no passages with names"):
        list(recombined_passages([tmp_path / "corpus.jsonl"], 1))


def test_recombined_passages_are_searched_with_real_questions(tmp_path: Path) -> None:
    rows = [
        {
            "title": "Bell",
            "text": f"The inventor Alexander Bell lived in house {number}.",
        }
        for number in range(9)
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "questions.jsonl").write_text(
        '{"question": "Where did Bell live?"}\n' * 2
    )
    out, files = tmp_path / "out.jsonl", ["--corpus", str(tmp_path / "corpus.jsonl")]
    files += ["--questions", str(tmp_path / "questions.jsonl")]
    store.main(["--sizes", "300", "--no-vectors", *files, "--json", str(out)])
    values = {record["what"]: record["value"] for record in _records(out)}
    assert "search, dense" not in values
    assert (
        min(
            values["disk, MB"],
            values["memory of a process that searches, MB"],
            values["search, bm25"],
        )
        > 0
    )


@pytest.mark.parametrize("place", ["folder", "postgres"])
def test_costs_of_changed_records_are_measured_with_their_journal(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = ["--url", request.getfixturevalue("postgres")] if place == "postgres" else []
    out = tmp_path / "out.jsonl"
    store.main(["--sizes", "60", "--records", "--times", "2", "--json", str(out), *url])
    records = _records(out)
    assert [(record["what"], record["kind"]) for record in records] == [
        ("add 10", "records"),
        ("forget 1", "records"),
    ]
    assert all(record["value"] > 0 for record in records)


def test_costs_of_changes_of_a_graph_are_measured_by_their_parts(
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch")
    out, plot = tmp_path / "out.jsonl", tmp_path / "out.svg"
    store.main(
        [
            "--sizes",
            "60,80",
            "--graph",
            "vectors",
            "--times",
            "1",
            "--json",
            str(out),
            "--plot",
            str(plot),
        ]
    )
    records = _records(out)
    parts = {record["what"].removeprefix("graph, add 10, ") for record in records}
    assert {
        "graph, add 10",
        "change",
        "assembling",
        "comparing",
        "first answer of ppr",
        "first answer of gfm",
    } <= parts
    assert {"graph, forget 1", "graph, forget 1, change"} <= parts
    assert all(record["value"] > 0 for record in records)
    assert "<svg" in plot.read_text()


def test_facts_are_read_in_a_corpus(tmp_path: Path) -> None:
    texts = [f"Bell number {number} was born in Edinburgh." for number in range(2)]
    lines = [
        json.dumps({"title": text[:13], "text": text}) for text in (*texts, texts[0])
    ]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    passages, facts, question = store.with_facts(2, [tmp_path / "corpus.jsonl"])
    assert [passage.id for passage in passages] == ["p0", "p1"]
    assert [triple.object for triple in facts.extract(passages[:1]).triples] == [
        "Edinburgh"
    ]
    assert question == "What do Bell number 0 and Bell number 1 have in common?"
    with pytest.raises(
        SettingsError, match=says("2 passages", "3 are asked for", "give more files")
    ):
        store.with_facts(3, [tmp_path / "corpus.jsonl"])


def test_a_cost_that_doubles_with_the_size_grows_with_its_first_power() -> None:
    records = [
        {"size": size, "what": "add 10", "value": 3.0 * size}
        for size in (100, 200, 400)
    ]
    assert store.exponents(records) == {"add 10": pytest.approx(1.0)}


def test_an_index_in_a_database_is_measured_and_dropped(
    postgres: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    store.main(
        ["--sizes", "300", "--queries", "3", "--url", postgres, "--json", str(out)]
    )
    assert all(record["value"] > 0 for record in _records(out))
    assert not PassageIndex.exists(Address(postgres, "store_300"))

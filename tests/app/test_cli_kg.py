"""`ras-agent kg`: its output and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.index import KGIndex
from tests.messages import says

Cli = Callable[..., Any]


def test_a_build_is_one_line_and_the_next_has_nothing_to_do(
    cli: Cli, bell_index: Path
) -> None:
    first = cli("kg", "build", "bell.index")
    assert (first.exit_code, first.stderr) == (0, "")
    assert (
        first.stdout
        == "bell.index 6 facts of 4 passages · 8 entities · 0 equivalences · 4 passages read\n"
    )
    again = cli("kg", "build", "bell.index")
    assert (
        again.stdout
        == "bell.index 6 facts of 4 passages · 8 entities · 0 equivalences\n"
    )


def test_options_not_given_stay_as_the_graph_has_them(
    cli: Cli, bell_index: Path
) -> None:
    cli("kg", "build", "bell.index", "--threshold", "0.6")
    cli("kg", "build", "bell.index", "--neighbours", "5")
    assert KGIndex.open(bell_index).manifest.equivalence == Equivalence(
        threshold=0.6, neighbours=5
    )


def test_ppr_and_the_graph_s_index_answer(cli: Cli, bell_index: Path) -> None:
    cli("kg", "build", "bell.index")
    result = cli(
        "ask",
        "Where was Alexander Graham Bell born?",
        "--index",
        "bell.index",
        "--retriever",
        "ppr",
        "-q",
    )
    assert (result.exit_code, result.stdout) == (0, "Edinburgh\n")


def test_ppr_without_a_graph_names_the_remedy(cli: Cli, bell_index: Path) -> None:
    result = cli(
        "ask", "Where was Bell born?", "--index", "bell.index", "--retriever", "ppr"
    )
    assert result.exit_code == 1
    assert says(
        "bell.index", "no knowledge graph", "`ras-agent kg build bell.index`"
    ).search(result.stderr)


def test_triples_are_added_and_deleted_by_their_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bell.tsv").write_text("Bell\tborn in\tEdinburgh\nbroken\n")
    added = cli("kg", "add", "my.index", "bell.tsv")
    assert added.exit_code == 3
    (skipped,) = added.stderr.splitlines()
    assert says(
        "skipped", "bell.tsv line 2", "head, relation and tail between tabs", "'broken'"
    ).search(skipped)
    assert added.stdout == (
        "my.index 1 fact of 1 passage · 2 entities · 0 equivalences · 1 imported · 1\n         skipped\n"
    )
    deleted = cli("kg", "delete", "my.index", "bell.tsv")
    assert (
        deleted.stdout
        == "my.index 0 facts of 0 passages · 0 entities · 0 equivalences · 1 erased\n"
    )
    assert len(PassageIndex.open(tmp_path / "my.index")) == 0


def test_stats_show_the_numbers(cli: Cli, bell_index: Path) -> None:
    cli("kg", "build", "bell.index")
    found = json.loads(cli("kg", "stats", "bell.index", "--json").stdout)
    assert (found["passages"], found["extractor"], found["embedder"]) == (
        4,
        "offline",
        "none",
    )
    assert "entities            8\n" in cli("kg", "stats", "bell.index").stdout
    about = cli(
        "kg", "stats", "bell.index", "--entity", "edinburgh"
    ).stdout.splitlines()
    assert about[0].split(maxsplit=1) == ["entity", "Edinburgh"]
    assert "Alexander Graham Bell | was born in | Edinburgh [bell]" in about[1]


def test_all_facts_are_inside_the_schema_that_they_suggest(
    cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    cli("kg", "build", "bell.index")
    suggested = cli("kg", "schema", "suggest", "bell.index", "--least", "1")
    (tmp_path / "schema.toml").write_text(suggested.stdout, encoding="utf-8")
    built = cli("kg", "build", "bell.index", "--schema", "schema.toml")
    assert "4 passages read" in built.stdout
    assert "outside the schema" not in cli("kg", "stats", "bell.index").stdout


def test_stats_of_an_unknown_entity(cli: Cli, bell_index: Path) -> None:
    cli("kg", "build", "bell.index")
    result = cli("kg", "stats", "bell.index", "--entity", "Nobody")
    assert (result.exit_code, result.stderr) == (
        1,
        "ras-agent: bell.index has no entity 'Nobody'; `ras-agent kg export bell.index facts.tsv` lists all facts\n",
    )


@pytest.mark.parametrize(
    "name", ["g.graphml", "g.nt", "g.tsv", "g.jsonl", "g.html", "folder"]
)
def test_every_format_is_written(
    name: str, cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    cli("kg", "build", "bell.index")
    result = cli("kg", "export", "bell.index", name)
    assert (result.exit_code, result.stdout) == (0, f"{name} written\n")
    written = tmp_path / name
    tables = written / "processed" / "stage1"
    assert (
        "Edinburgh"
        in (tables / "edges.csv" if written.is_dir() else written).read_text()
    )


def test_the_folder_of_another_program_holds_the_texts_and_makes_the_same_index(
    cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    cli("kg", "build", "bell.index")
    (tmp_path / "v1.0").mkdir()
    assert cli("kg", "export", "bell.index", "v1.0").stdout == "v1.0 written\n"
    passages = {
        passage.id: passage for passage in PassageIndex.open(bell_index).passages
    }
    texts = json.loads((tmp_path / "v1.0" / "raw" / "documents.json").read_text())
    assert texts == {name: passage.text for name, passage in passages.items()}
    result = cli("kg", "build", "again.index", "--gfm", "v1.0")
    assert (result.exit_code, result.stderr) == (0, "")
    again = PassageIndex.open(tmp_path / "again.index").passages
    assert {one.id: (one.title, one.text) for one in again} == {
        name: (one.title, one.text) for name, one in passages.items()
    }
    before, after = (
        KGIndex.open(tmp_path / name).arrays for name in ("bell.index", "again.index")
    )
    assert after.edges.tolist() == before.edges.tolist()
    assert after.mentions.values.tolist() == before.mentions.values.tolist()


def test_an_unknown_format_names_the_known_ones(cli: Cli, bell_index: Path) -> None:
    cli("kg", "build", "bell.index")
    result = cli("kg", "export", "bell.index", "g.png")
    assert result.exit_code == 1
    assert says(
        "known: .graphml, .json, .nt, .ttl, .rdf, .jsonld, .tsv, .csv, .jsonl, .neo4j, .html",
        "folder",
    ).search(result.stderr)


def test_a_picture_around_an_entity(cli: Cli, bell_index: Path, tmp_path: Path) -> None:
    cli("kg", "build", "bell.index")
    assert (
        cli(
            "kg",
            "export",
            "bell.index",
            "g.html",
            "--around",
            "Edinburgh",
            "--nodes",
            "3",
        ).exit_code
        == 0
    )
    page = (tmp_path / "g.html").read_text()
    assert "Around Edinburgh" in page
    assert "Paris" not in page


def test_a_build_without_an_index_names_the_remedy(cli: Cli) -> None:
    result = cli("kg", "build", "none.index")
    assert (result.exit_code, result.stderr) == (
        1,
        "ras-agent: no index at none.index: make one with `ras-agent index`\n",
    )


def test_a_model_s_facts_come_from_the_triple_cache_and_another_prompt_reads_anew(
    cli: Cli, bell_index: Path, scripted_llm: Any, tmp_path: Path
) -> None:
    titles = "Telephone", "Alexander Graham Bell", "Water of Leith", "Paris"
    replies = {title: f"(S> {title} | P> is called | O> {title})" for title in titles}
    scripted_llm.script(
        *[
            {"when": f"] {title}\n", "reply": reply, "repeat": True}
            for title, reply in replies.items()
        ]
    )
    options = (
        "--extractor",
        scripted_llm.spec,
        "--triple-cache",
        "facts.sqlite",
        "--concurrency",
        "2",
    )
    assert "4 passages read" in cli("kg", "build", "bell.index", *options).stdout
    assert len(scripted_llm.requests()) == 4
    assert "read" not in cli("kg", "build", "bell.index", *options).stdout
    cli("index", "wiki.jsonl", "--out", "again.index")
    assert "4 passages read" in " ".join(
        cli("kg", "build", "again.index", *options).stdout.split()
    )
    assert len(scripted_llm.requests()) == 4
    assert (
        "4 passages read"
        in cli("kg", "build", "bell.index", *options, "--few-shot").stdout
    )
    assert len(scripted_llm.requests()) == 8


@pytest.mark.parametrize("threshold", ["0", "2", "-1", "nan"])
def test_a_threshold_that_is_not_a_cosine_is_wrong_usage(
    threshold: str, cli: Cli, bell_index: Path
) -> None:
    result = cli("kg", "build", "bell.index", f"--threshold={threshold}")
    assert result.exit_code == 2
    assert "must be above 0 and at most 1" in result.stderr


@pytest.mark.parametrize("options", [("--around", "Edinburgh"), ("--nodes", "3")])
def test_options_of_a_picture_are_refused_for_other_formats(
    options: tuple[str, str], cli: Cli, bell_index: Path
) -> None:
    cli("kg", "build", "bell.index")
    result = cli("kg", "export", "bell.index", "g.graphml", *options)
    assert result.exit_code == 2
    assert "give a name that ends in .html" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (
            "file",
            "cannot write files to file: it is a file; name a folder",
        ),
        ("folder.nt", "cannot write folder.nt: it is a folder; name a file"),
        (
            "none/g.nt",
            "cannot write none/g.nt: the folder none does not exist; create it first",
        ),
    ],
)
def test_an_export_that_cannot_be_written_says_why(
    out: str, message: str, cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.nt").mkdir()
    cli("kg", "build", "bell.index")
    result = cli("kg", "export", "bell.index", out)
    assert (result.exit_code, result.stderr) == (1, f"ras-agent: {message}\n")


def test_a_file_in_place_of_gfm_rag_s_folder_is_reported(
    cli: Cli, bell_index: Path
) -> None:
    result = cli("kg", "build", "bell.index", "--gfm", "wiki.jsonl")
    assert (result.exit_code, result.stderr) == (
        1,
        "ras-agent: no nodes.csv in wiki.jsonl: give the folder of a gfm-rag graph, with nodes.csv, relations.csv, "
        "edges.csv\n",
    )


def test_deleting_without_a_graph(cli: Cli, bell_index: Path) -> None:
    result = cli("kg", "delete", "bell.index", "leith")
    assert (result.exit_code, result.stdout) == (
        0,
        "bell.index no knowledge graph · 1 erased\n",
    )
    ask = cli(
        "ask", "Where was Bell born?", "--index", "bell.index", "--retriever", "ppr"
    )
    assert "has no knowledge graph" in ask.stderr


def test_index_does_not_remove_what_kg_added_and_names_the_command_that_does(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "f.tsv").write_text("Bell\tborn in\tEdinburgh\n")
    cli("kg", "add", "my.index", "f.tsv")
    result = cli("index", "--forget", "f.tsv", "--out", "my.index")
    assert (result.exit_code, result.stderr) == (
        1,
        "ras-agent: nothing in the index came from 'f.tsv': it was added otherwise, "
        "`ras-agent kg delete my.index f.tsv` takes it out\n",
    )


def test_a_person_edits_the_graph(cli: Cli, bell_index: Path) -> None:
    cli("kg", "build", "bell.index")
    edit = ("kg", "edit", "bell.index")
    fact = ("Water of Leith", "flows through", "Edinburgh")
    assert cli(*edit, "list").stdout == "bell.index has no edits\n"
    done = cli(*edit, "replace", *fact, *fact[:2], "Leith", "--by", "Ada").stdout
    assert done.startswith(
        "edit 1: replaced (Water of Leith | flows through | Edinburgh) by (Water of Leith | flows "
    )
    assert " · person:Ada, 20" in done
    cli(
        *edit,
        "add",
        "Leith",
        "is a part of",
        "Edinburgh",
        "--passage",
        "leith",
        "--quote",
        "Edinburgh",
    )
    cli(*edit, "merge", "telephone", "phone")
    cli(*edit, "remove", "Water of Leith", "flows through", "Leith")
    found = json.loads(cli(*edit, "list", "--json").stdout)
    assert [(one["number"], one["kind"], one["passages"]) for one in found] == [
        (1, "replace", ["leith"]),
        (2, "add", ["leith"]),
        (3, "merge", ["tel"]),
        (4, "remove", ["leith"]),
    ]
    assert cli(*edit, "undo").stdout.startswith(
        "took back edit 4: removed (Water of Leith | flows through | Leith)"
    )
    assert cli(*edit, "undo", "2").stdout.startswith("took back edit 2: added")
    assert [line[0] for line in cli(*edit, "list").stdout.splitlines()] == ["1", "3"]
    assert (
        "by person:Ada, 20"
        in cli("kg", "stats", "bell.index", "--entity", "Water of Leith").stdout
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["change"],
            "unknown edit 'change'; known: remove, replace, add, merge, split, undo, list",
        ),
        (
            ["remove", "a"],
            "remove takes 3 words, got 1: ras-agent kg edit bell.index remove SUBJECT PREDICATE OBJECT",
        ),
        (
            ["undo", "last"],
            "undo takes the number of an edit, got 'last': ras-agent kg edit bell.index list",
        ),
        (["undo"], "bell.index has no edits that could be undone"),
        (
            ["list", "--quote", "x"],
            "--quote works only with `add`: leave it out",
        ),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(
    cli: Cli, bell_index: Path, words: list[str], message: str
) -> None:
    cli("kg", "build", "bell.index")
    result = cli("kg", "edit", "bell.index", *words)
    assert (result.exit_code, result.stderr) == (1, f"ras-agent: {message}\n")


def test_a_long_place_has_a_line_of_its_own(cli: Cli, bell_index: Path) -> None:
    place = "b" * 60
    bell_index.rename(bell_index.with_name(place))
    assert cli("kg", "build", place).stdout.splitlines()[:2] == [
        place,
        "       6 facts of 4 passages · 8 entities · 0 equivalences · 4 passages read",
    ]

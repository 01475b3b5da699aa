"""Extractors with a schema: a model is shown the relations, facts get their names, graphs count those outside."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.contracts.schema import Schema
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.stats import about, counts
from ras_agent.tools.kg.suggest import suggested
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.structure.schema import with_schema

BELL = Passage("bell", "Ada Bell was born in Orvena. Ada Bell invented the wind harp.")
SCHEMA = Schema.of(
    {"relations": {"has birthplace": {"aliases": ["was born in"], "functional": True}}}
)
TOML = '[relations."has birthplace"]\naliases = ["was born in"]\n'


def test_a_model_is_shown_the_relations_and_its_facts_are_named(
    scripted_model: Any,
) -> None:
    model = scripted_model("(S> Ada Bell | P> was born in | O> Orvena)")
    extractor = with_schema(LLMExtractor(model, schema=SCHEMA), SCHEMA)
    (fact,) = extractor.extract([BELL]).triples
    assert str(fact) == "(S> Ada Bell | P> has birthplace | O> Orvena)"
    assert "(anything) has birthplace (anything)" in model.prompts[0]


def test_without_a_schema_the_prompt_shows_none(scripted_model: Any) -> None:
    model = scripted_model("[NONE]")
    LLMExtractor(model).extract([BELL])
    assert "schema" not in model.prompts[0]
    assert "{{" not in model.prompts[0]


def test_another_schema_is_another_extractor(scripted_model: Any) -> None:
    plain = LLMExtractor(scripted_model())
    shown = LLMExtractor(scripted_model(), schema=SCHEMA)
    named = with_schema(plain, SCHEMA)
    prints = {one.fingerprint for one in (plain, shown, named)}  # type: ignore[attr-defined]
    assert len(prints) == 3


def test_a_graph_counts_and_shows_the_facts_outside_its_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(TOML, encoding="utf-8")
    PassageIndex.create(tmp_path / "i").upsert([BELL])
    build_graph(tmp_path / "i", schema=file)
    graph = KGIndex.open(tmp_path / "i")
    assert counts(graph)["outside the schema"] == [
        "1 of 2 facts, with predicates such as",
        "invented (1)",
    ]
    entity = graph.entity_id("Ada Bell")
    assert entity is not None
    assert about(graph, entity)["facts"] == [
        "Ada Bell | has birthplace | Orvena [bell]",
        "Ada Bell | invented | wind harp [bell] outside the schema",
    ]
    assert build_graph(tmp_path / "i", schema=file).read == 0
    assert build_graph(tmp_path / "i").read == 1
    assert "outside the schema" not in counts(KGIndex.open(tmp_path / "i"))


def test_an_agent_names_the_facts_of_its_question_by_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(TOML, encoding="utf-8")
    settings = Settings(schema_file=file)
    agent = create_ras_agent(index=[BELL], settings=settings)
    out = agent.invoke({"question": "Where was Ada Bell born?"})
    assert out["answer"] == "Orvena"
    predicates = {fact["predicate"] for fact in out["graph"]["facts"]}
    assert "has birthplace" in predicates


def test_a_schema_is_suggested_from_the_relations_of_a_graph(tmp_path: Path) -> None:
    texts = []
    for name in ("Ada Bell", "Tom Vell", "Jon Reed"):
        texts.append(f"{name} was born in Orvena. {name} was born on 3 March 1847.")
    index = PassageIndex.create(tmp_path / "i")
    index.upsert([Passage(text[:8], text) for text in texts])
    build_graph(tmp_path / "i")
    written = suggested(KGIndex.open(tmp_path / "i"), least=3)
    relations = tomllib.loads(written)["relations"]
    assert relations == {
        "was born in": {"from": "name", "to": "name"},
        "was born on": {"from": "name", "to": "date"},
    }
    assert set(Schema.of(tomllib.loads(written)).relations) == set(relations)

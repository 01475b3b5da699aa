"""A schema names the relations of facts, and marks the facts that fit none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Source, Triple
from ras_agent.contracts.schema import Schema

TOML = """
[types]
person = "a human being"
place = ""

[relations."was born in"]
from = "person"
to = "place"
functional = true
aliases = ["is a native of", "was born"]
inverse = "is the birthplace of"

[relations."was born on"]
to = "date"
aliases = "was born"

[relations."has population"]
to = "number"
"""


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    path.write_text(TOML, encoding="utf-8")
    return Schema.load(path)


@pytest.mark.parametrize(
    ("fact", "checked"),
    [
        (("Bell", "was born in", "Orvena"), ("Bell", "was born in", "Orvena")),
        (("Bell", "is native of", "Orvena"), None),
        (("Bell", "is a native of", "Orvena"), ("Bell", "was born in", "Orvena")),
        (("Bell", "born in", "Orvena"), ("Bell", "was born in", "Orvena")),
        (("Bell", "was born in", "1847"), None),
        (("Bell", "was born", "3 March 1847"), ("Bell", "was born on", "3 March 1847")),
        (("Bell", "was born", "Orvena"), ("Bell", "was born in", "Orvena")),
        (("Bell", "was born on", "a Tuesday"), None),
        (
            ("Orvena", "is the birthplace of", "Bell"),
            ("Bell", "was born in", "Orvena"),
        ),
        (
            ("Orvena", "has population", "about 5,200 people"),
            ("Orvena", "has population", "about 5,200 people"),
        ),
        (("Orvena", "has population", "mostly farmers"), None),
        (("Bell", "invented", "the telephone"), None),
    ],
)
def test_a_fact_gets_the_name_of_its_relation_or_is_marked(
    schema: Schema,
    fact: tuple[str, str, str],
    checked: tuple[str, str, str] | None,
) -> None:
    sources = (Source("p", 0, 9),)
    found = schema.checked(Triple(*fact, sources))
    assert (found.subject, found.predicate, found.object) == (checked or fact)
    assert found.sources == sources
    assert found.attributes == ({} if checked else {"outside": True})
    assert schema.checked(found) == found


def test_types_of_an_extractor_decide_and_turn_with_the_fact(schema: Schema) -> None:
    types = {"subject_type": "Place", "object_type": "Person", "rank": 1}
    fact = Triple("Orvena", "is the birthplace of", "Bell", attributes=types)
    turned = {"subject_type": "Person", "object_type": "Place", "rank": 1}
    assert schema.checked(fact).attributes == turned
    wrong = Triple("Bell", "was born in", "Ada", attributes=types)
    assert schema.checked(wrong).attributes == {**types, "outside": True}


def test_a_schema_says_which_relations_have_one_value(schema: Schema) -> None:
    assert schema.functional("is a native of") is True
    assert schema.functional("was born on") is None
    assert schema.functional("invented") is None


def test_a_model_is_shown_types_and_relations(schema: Schema) -> None:
    assert schema.lines().splitlines() == [
        "person: a human being",
        "(person) was born in (place)",
        "(anything) was born on (date)",
        "(anything) has population (number)",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("relations = 1", "relations: Input should be a valid dictionary"),
        ("[types]", "relations: Field required"),
        ('[relations.leads]\nalias = "heads"', "relations.leads.alias: Extra inputs"),
        (
            '[types]\nperson = ""\n[relations.leads]\nfrom = "persom"',
            "'leads' has the unknown type 'persom'; did you mean person?",
        ),
        (
            '[relations.leads]\naliases = ["heads"]\n[relations.heads]',
            "the predicate 'heads' could state 'leads' and 'heads', which have subjects and objects of the same types",
        ),
        ("[relations", "Expected"),
    ],
)
def test_a_wrong_schema_is_refused_with_the_place(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        Schema.load(path)
    assert str(refused.value).startswith(f"schema '{path}': {problem}"[:60])
    assert problem in str(refused.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        Schema.load(tmp_path / "none.toml")

"""Reads schemas. A schema is a TOML file that lists the relations of facts, with the types of their subjects
and objects:

    [types]
    person = "a human being"
    place = ""

    [relations."was born in"]
    from = "person"
    to = "place"
    functional = true
    aliases = ["is a native of"]
    inverse = "is the birthplace of"

A fact whose predicate is an alias gets the relation's name, and subject and object are exchanged if it is an
inverse. A fact that fits no relation is kept unchanged, and marked.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ras_agent.contracts.errors import SettingsError, did_you_mean
from ras_agent.contracts.records import Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import Date, figures_in, value_of
from ras_agent.text.words import word_set

OUTSIDE = "outside"
"""The attribute that is set to true in a fact that fits no relation of the schema."""
DATE = "date"
NUMBER = "number"
"""The types that every schema has. A subject's or object's words show whether it has one of them."""
_AUXILIARIES = word_set("is was are were be been being has have had")


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    return value


_Names = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class Relation(BaseModel):
    """Describes a relation of a schema, without its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field("", alias="from")
    """the type of its subjects; "" for any"""
    target: str = Field("", alias="to")
    """the type of its objects; "" for any"""
    functional: bool | None = None
    """whether a subject has only one object at a time; None to find out by counting facts"""
    aliases: _Names = ()
    """other predicates that state the relation"""
    inverse: _Names = ()
    """predicates that state it with subject and object exchanged"""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    types: dict[str, str] = {}
    relations: dict[str, Relation]


class _Meaning(NamedTuple):
    """Names a relation that a predicate may state, and whether it states it with subject and object exchanged."""

    name: str
    is_inverse: bool


@dataclass(frozen=True)
class Schema:
    """Holds types with their descriptions, and relations by name."""

    types: Mapping[str, str]
    relations: Mapping[str, Relation]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a schema from a file of TOML.

        Raises:
            SettingsError: The file cannot be read, or is not a schema.
        """
        try:
            return cls.of(tomllib.loads(Path(path).read_text("utf-8")))
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}"
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except ValueError as error:
            problem = str(error)
        raise SettingsError(
            f"schema {str(path)!r}: {problem} (docs/howto/schema.md shows a schema)"
        )

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Return the schema described by the tables of a TOML file.

        Raises:
            ValueError: A relation has an unknown key or type, or two relations cannot be told apart.
        """
        file = _File.model_validate(data)
        schema = cls(file.types, file.relations)
        known = (*file.types, DATE, NUMBER)
        for name, relation in file.relations.items():
            for kind in (relation.source, relation.target):
                if kind and kind not in known:
                    remedy = did_you_mean(kind, known) or "add it to [types]"
                    problem = f"{name!r} has the unknown type {kind!r}; {remedy}"
                    raise ValueError(problem)
        for key, meanings in schema._meanings.items():
            ends = set(map(schema._ends, meanings))
            if len(ends) < len(meanings):
                names = " and ".join(repr(meaning.name) for meaning in meanings)
                problem = f"the predicate {key!r} could state {names}, which have subjects and objects of the same types"
                raise ValueError(f"{problem}: remove it from one of these relations")
        return schema

    @cached_property
    def digest(self) -> str:
        """Return a hash of everything in the schema that decides how facts are named."""
        file = _File(types=dict(self.types), relations=dict(self.relations))
        written = json.dumps(file.model_dump(), sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:12]

    def lines(self) -> str:
        """Return the text that shows a model the schema: described types, then each relation with its types,
        one per line.
        """
        lines = []
        for kind, about in self.types.items():
            if about:
                lines.append(f"{kind}: {about}")
        for name, relation in self.relations.items():
            source = relation.source or "anything"
            target = relation.target or "anything"
            lines.append(f"({source}) {name} ({target})")
        return "\n".join(lines)

    def checked(self, fact: Triple) -> Triple:
        """Return the fact under its relation's name, or marked as outside the schema if it fits no relation."""
        for meaning in self._meanings.get(relation_key(fact.predicate), ()):
            turned = _turned(fact) if meaning.is_inverse else fact
            if self._fits(self.relations[meaning.name], turned):
                return replace(turned, predicate=meaning.name)
        return replace(fact, attributes={**fact.attributes, OUTSIDE: True})

    def functional(self, predicate: str) -> bool | None:
        """Tell whether a subject has only one object for this predicate; None if the schema does not say."""
        for meaning in self._meanings.get(relation_key(predicate), ()):
            if not meaning.is_inverse:
                return self.relations[meaning.name].functional
        return None

    @cached_property
    def _meanings(self) -> Mapping[str, Sequence[_Meaning]]:
        meanings: dict[str, list[_Meaning]] = {}
        for name, relation in self.relations.items():
            stated: dict[str, bool] = {}
            for predicate in (name, *relation.aliases):
                stated[relation_key(predicate)] = False
            for predicate in relation.inverse:
                stated.setdefault(relation_key(predicate), True)
            for key, is_inverse in stated.items():
                meaning = _Meaning(name, is_inverse)
                meanings.setdefault(key, []).append(meaning)
        return meanings

    def _ends(self, meaning: _Meaning) -> tuple[str, str]:
        relation = self.relations[meaning.name]
        if meaning.is_inverse:
            return relation.target, relation.source
        return relation.source, relation.target

    def _fits(self, relation: Relation, fact: Triple) -> bool:
        """Tell whether subject and object of a fact may have the types that the relation requires."""
        subject_type = fact.attributes.get("subject_type")
        object_type = fact.attributes.get("object_type")
        is_source = self._may_be(relation.source, fact.subject, subject_type)
        return is_source and self._may_be(relation.target, fact.object, object_type)

    def _may_be(self, kind: str, end: str, stated: object) -> bool:
        """Tell whether an end of a fact (its subject or object) may have the type `kind`.

        Args:
            stated: the type that the extractor gave the end, or None.
        """
        if not kind:
            return True
        given = str(stated).casefold()
        if given in map(str.casefold, self.types):
            return given == kind.casefold()
        if kind == NUMBER:
            return bool(figures_in(end))
        if kind == DATE:
            return any(figure.is_date for figure in figures_in(end))
        return value_of(end) is None


def relation_key(predicate: str) -> str:
    """Return a predicate's canonical key without auxiliary verbs at its beginning.

    >>> relation_key("was born in"), relation_key("has")
    ('born in', 'has')
    """
    words = canonical_key(predicate).split()
    while len(words) > 1 and words[0] in _AUXILIARIES:
        del words[0]
    return " ".join(words)


def kind_of(end: str) -> str:
    """Return "date" or "number" if the whole text of a subject or object is one; else ""."""
    value = value_of(end)
    if value is None:
        return ""
    if isinstance(value, Date):
        return DATE
    return NUMBER


def _turned(fact: Triple) -> Triple:
    """Return a fact with subject and object exchanged."""
    attributes = dict(fact.attributes)
    subject_type = attributes.pop("subject_type", None)
    object_type = attributes.pop("object_type", None)
    if subject_type is not None:
        attributes["object_type"] = subject_type
    if object_type is not None:
        attributes["subject_type"] = object_type
    return replace(
        fact, subject=fact.object, object=fact.subject, attributes=attributes
    )

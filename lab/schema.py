"""Facts with and without a schema, over texts whose relations are known.

    python -m lab.schema --data redocred_train500.jsonl
    python -m lab.schema --data edc.jsonl --set webnlg
    python -m lab.schema --data edc.jsonl --set webnlg --model vllm:http://127.0.0.1:8099/v1#smollm2 --limit 30

Aliases are learnt from half of the documents, chosen by a hash of the text: which predicates do the offline extractor's
facts have where a relation is known between their ends? The other half is scored: are the ends of a fact those of a known
relation, and is it that one? A model reads the same texts without and with the names of the relations in its prompt.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from ras_agent.contracts.records import Passage, Triple
from ras_agent.contracts.schema import OUTSIDE, Schema, kind_of, relation_key
from ras_agent.running.program import run_program
from ras_agent.running.protocols import Extractor
from ras_agent.running.standing_facts import keep_standing
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.roles import RoleOptions, resolve_extractor

_LEAST = 2  # facts from which a predicate is taken as an alias of a relation
_SHARE = 0.5  # of the facts with this predicate whose ends are known
_NAME = "name"


class Known(NamedTuple):
    """A relation that a text states, with the canonical keys of all names of its ends."""

    heads: frozenset[str]
    relation: str
    tails: frozenset[str]


@dataclass(frozen=True)
class Document:
    """A text with the relations and the names that are known in it, and the offline extractor's facts."""

    known: tuple[Known, ...]
    names: frozenset[str]
    facts: tuple[Triple, ...]


def main() -> None:
    """Learn a schema from half of the documents and print the scores of the other half."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.schema", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="", help="one of the sets in the file")
    parser.add_argument("--model", default="", help="the model to read the texts")
    parser.add_argument("--limit", type=int, default=None, help="texts that it reads")
    options = parser.parse_args()
    texts = list(_texts(options.data, options.set))
    learnt_from = [one for one in texts if not one.is_scored]
    scored_texts = [one for one in texts if one.is_scored]
    if options.model:
        _ask_model(options.model, texts, scored_texts[: options.limit])
        return
    offline = resolve_extractor("offline")
    schema = learnt([_document(one, offline) for one in learnt_from])
    scored = [_document(one, offline) for one in scored_texts]
    aliases = sum(
        len(one.aliases) + len(one.inverse) for one in schema.relations.values()
    )
    print(f"{len(schema.relations)} relations with {aliases} predicates")
    plain = [one.facts for one in scored]
    inside: list[list[Triple]] = []
    outside: list[list[Triple]] = []
    for facts in plain:
        checked = list(map(schema.checked, facts))
        inside.append([one for one in checked if OUTSIDE not in one.attributes])
        outside.append([one for one in checked if OUTSIDE in one.attributes])
    _print_scores("without", scored, plain)
    _print_scores("inside the schema", scored, inside)
    _print_scores("outside", scored, outside)


def learnt(documents: Sequence[Document]) -> Schema:
    """Return a schema of the relations in the documents, with the predicates that mostly state them."""
    relations: dict[tuple[str, str], Counter[tuple[str, bool]]] = {}
    for document in documents:
        for fact in document.facts:
            subject, _, object_ = fact.key
            if not {subject, object_} <= document.names:
                continue
            key = (relation_key(fact.predicate), kind_of(fact.object) or _NAME)
            counts = relations.setdefault(key, Counter())
            counts["", False] += 1
            counts.update(set(_between(document, subject, object_)))
    data: dict[str, Any] = {}
    for document in documents:
        for one in document.known:
            data.setdefault(one.relation, {"aliases": [], "inverse": []})
    for (predicate, kind), counts in sorted(relations.items()):
        total = counts.pop(("", False))
        if not counts:
            continue
        (relation, is_inverse), count = counts.most_common(1)[0]
        if count >= _LEAST and count >= _SHARE * total:
            name = relation if kind == _NAME else f"{relation} ({kind})"
            table = data.setdefault(name, {"aliases": [], "inverse": []})
            if kind != _NAME:
                table["to"] = kind
            table["inverse" if is_inverse else "aliases"].append(predicate)
    for table in data.values():
        table.setdefault("to", _NAME)
    return Schema.of({"types": {_NAME: ""}, "relations": data})


def _between(
    document: Document, subject: str, object_: str
) -> Iterator[tuple[str, bool]]:
    """Yield the known relations of two names, with whether they are those of the object."""
    for one in document.known:
        if subject in one.heads and object_ in one.tails:
            yield one.relation, False
        elif object_ in one.heads and subject in one.tails:
            yield one.relation, True


def _print_scores(
    name: str, documents: Sequence[Document], facts: Sequence[Sequence[Triple]]
) -> None:
    total = 0
    joined = 0
    right = 0
    known = 0
    ends_found = 0
    found = 0
    for document, read in zip(documents, facts, strict=True):
        pairs = set()
        named = set()
        for fact in read:
            subject, _, object_ = fact.key
            relations = set(_between(document, subject, object_))
            total += 1
            joined += bool(relations)
            relation = fact.predicate.partition(" (")[0]
            right += (relation, False) in relations
            pairs.add((subject, object_))
            pairs.add((object_, subject))
            named.add((subject, relation, object_))
        known += len(document.known)
        for one in document.known:
            ends_found += any(
                head in one.heads and tail in one.tails for head, tail in pairs
            )
            found += any(
                head in one.heads and relation == one.relation and tail in one.tails
                for head, relation, tail in named
            )
    print(
        f"{name:18} {total:6,} facts  ends: precision {_share(joined, total)} recall {_share(ends_found, known)}  "
        f"relation: precision {_share(right, total)} recall {_share(found, known)}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):5.1f}"


# ---- documents


class Text(NamedTuple):
    """A text with its known relations, and the part to which a hash of its words puts it."""

    passage: Passage
    known: tuple[Known, ...]
    is_scored: bool


def _ask_model(spec: str, texts: Sequence[Text], scored: Sequence[Text]) -> None:
    """Print the scores of a model's facts, without and with the relations of all texts shown to it, after each text."""
    relations: dict[str, Any] = {}
    for text in texts:
        relations |= {one.relation: {} for one in text.known}
    schema = Schema.of({"types": {}, "relations": relations})
    chat = ChatSettings(timeout=600.0, context_window=4096, temperature=0.0)
    plain = RoleOptions(chat=chat, few_shot=True)
    shown = replace(plain, schema=schema)
    readers = {
        "without": resolve_extractor(spec, plain),
        "shown": resolve_extractor(spec, shown),
    }
    documents: dict[str, list[Document]] = {name: [] for name in readers}
    for number, text in enumerate(scored, start=1):
        print(f"{number} texts, {len(relations)} relations shown")
        for name, extractor in readers.items():
            documents[name].append(_document(text, extractor))
            some = documents[name]
            facts = [one.facts for one in some]
            _print_scores(name, some, facts)
        inside = []
        for read in facts:
            checked = map(schema.checked, read)
            inside.append([one for one in checked if OUTSIDE not in one.attributes])
        _print_scores("shown, inside", some, inside)


def _document(text: Text, extractor: Extractor) -> Document:
    names: set[str] = set()
    for one in text.known:
        names |= one.heads | one.tails
    extraction = keep_standing(extractor.extract([text.passage]), [text.passage])
    return Document(text.known, frozenset(names), extraction.triples)


def _texts(path: Path, part: str) -> Iterator[Text]:
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        row = json.loads(line)
        if part and row.get("set") != part:
            continue
        known = _of_mentions(row) if "vertexSet" in row else _of_triples(row)
        text = row.get("text") or _joined(row["sents"])
        passage = Passage(str(number), text, row.get("title", "").split(" (")[0])
        yield Text(passage, tuple(known), crc32(text.encode()) % 2 == 1)


def _of_mentions(row: Any) -> list[Known]:
    keys = []
    for mentions in row["vertexSet"]:
        keys.append(frozenset(canonical_key(one["name"]) for one in mentions))
    return [Known(keys[one["h"]], one["r"], keys[one["t"]]) for one in row["labels"]]


def _of_triples(row: Any) -> list[Known]:
    known = []
    for triple in row["triples"]:
        head, relation, tail = (part.replace("_", " ").strip('" ') for part in triple)
        heads = frozenset([canonical_key(head)])
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", relation).lower()
        known.append(Known(heads, words, frozenset([canonical_key(tail)])))
    return known


def _joined(sentences: Sequence[Sequence[str]]) -> str:
    """Return tokens as running text."""
    text = " ".join(" ".join(words) for words in sentences)
    for mark in (",", ".", ";", ":", ")", "'s", "’s", "%"):
        text = text.replace(f" {mark}", mark)
    return text.replace("( ", "(")


if __name__ == "__main__":
    run_program(main)

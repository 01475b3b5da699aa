"""Says a filter in SQL. Keys and values are parameters of the statement and never part of its text."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NamedTuple

from ras_agent.filters import OWN_FIELDS, Filter
from ras_agent.tools.index.postgres.forms import storable

_COLUMNS = {"id": "id", "document_id": "document", "title": "title"}
# a value of the metadata, or each item of a list, as text: JSON's own, as ras_agent.filters.as_text writes it
_ITEMS = """
EXISTS (
    SELECT 1 FROM jsonb_array_elements(
        CASE jsonb_typeof(metadata -> %({n}_key)s) WHEN 'array' THEN metadata -> %({n}_key)s
        ELSE jsonb_build_array(metadata -> %({n}_key)s) END
    ) item WHERE jsonb_typeof(item) IN ('string', 'number', 'boolean') AND item #>> '{{}}' = ANY(%({n}_texts)s)
) AND metadata @> ANY(%({n}_holding)s::jsonb[])
"""
_OWN = "({column} = ANY(%({n}_texts)s) OR {column} ^@ ANY(%({n}_prefixes)s))"


class Where(NamedTuple):
    """Holds a condition of SQL, beginning with AND or empty, and the values of its parameters."""

    sql: str
    values: dict[str, Any]


def where_of(filter: Filter) -> Where:
    """Return the condition that the rows of a filter's passages fulfil."""
    sql = ""
    values: dict[str, Any] = {}
    for number, condition in enumerate(filter.conditions):
        n, texts = f"filter{number}", [storable(text) for text in condition.texts]
        values[f"{n}_texts"] = texts
        if condition.key in OWN_FIELDS:
            sql += " AND " + _OWN.format(n=n, column=_COLUMNS[condition.key])
            values[f"{n}_prefixes"] = [storable(prefix) for prefix in condition.prefixes]
        else:
            sql += " AND " + _ITEMS.format(n=n)
            values[f"{n}_key"] = key = storable(condition.key)
            values[f"{n}_holding"] = [json.dumps({key: one}) for value in _values(texts) for one in (value, [value])]
    return Where(sql, values)


def _values(texts: list[str]) -> list[object]:
    """Return what may be written as one of `texts`: the texts themselves, numbers, true and false.

    Documents that contain one of these are found by the index of the metadata.
    """
    found: list[object] = list(texts)
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)):
            found.append(value)
    return found

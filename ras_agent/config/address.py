"""Parses the address of an index that is stored in PostgreSQL: it names a schema, which holds the index's
tables.

    postgresql://user@host:5432/database?schema=handbook

One database can hold many indexes, each in its own schema. libpq interprets all other parts of the address.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlencode

from ras_agent.config.registry import is_registered
from ras_agent.contracts.errors import SettingsError

FOLDER = "sqlite"
"""The name of the store for indexes in a folder, which have a path instead of an address."""
_USUAL = "ras_agent"
_SHOWN = ("host", "port", "dbname", "schema")
# the login of an address: a run of characters before "@", matched only from its beginning, so that a long text is read
# in linear time; _LOGIN_BEHIND finds a name and a password in an address without `//`
_BEFORE_AT = re.compile(r"(?<![^/@\s])[^/@\s]+@")
_LOGIN_BEHIND = re.compile(r":(?=[^:]+:[^@])")


@dataclass(frozen=True, slots=True)
class Address:
    """Names a schema in a PostgreSQL database. `str(address)` leaves out the password and any option that could hold
    one.
    """

    url: str = field(repr=False)
    """the connection string for libpq"""
    schema: str = _USUAL

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a `postgresql://` URL; without `?schema=` the schema is `ras_agent`.

        Raises:
            SettingsError: if PostgreSQL would need quotes around the schema's name, or if the URL names two
                schemas.
        """
        if not _is_address(text):
            raise SettingsError(
                "the address of a PostgreSQL database must begin with postgresql://"
            )
        url, _, query = text.partition("?")
        options = parse_qsl(query, keep_blank_values=True)
        schemas = [value for name, value in options if name == "schema"]
        others = [(name, value) for name, value in options if name != "schema"]
        if others:
            url = f"{url}?{urlencode(others)}"
        address = cls(url, next(iter(schemas), _USUAL))
        if len(schemas) > 1 or not _is_plain(address.schema):
            raise SettingsError(
                f"{cls(address.url)}: the schema of an index must be one name of lower-case letters, digits and '_', such as "
                f"?schema=handbook, got {', '.join(map(repr, schemas))}"
            )
        return address

    @property
    def scheme(self) -> str:
        """Return the name of the store: the part of the address before `://`."""
        return self.url.partition("://")[0]

    def __str__(self) -> str:
        url, _, query = self.url.partition("?")
        scheme, _, rest = url.partition("://")
        authority, slash, database = rest.partition("/")
        login, at, host = authority.rpartition("@")
        user, _, _ = login.partition(":")
        shown = f"{scheme}://{user}{at}{host}{slash}{database}"
        parameters = [
            (name, value) for name, value in parse_qsl(query) if name in _SHOWN
        ]
        if self.schema != _USUAL:
            parameters.append(("schema", self.schema))
        if parameters:
            shown += f"?{urlencode(parameters, safe='/')}"
        return shown


def _is_plain(name: str) -> bool:
    """Tell whether PostgreSQL accepts the name of a schema without quotes."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return plain and len(name) < 64 and not name.startswith("pg_")


def _is_address(text: str) -> bool:
    """Return whether a text begins with the scheme of a store, such as `postgresql://`."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme != FOLDER and is_registered("store", scheme)


def place_of(place: str | Path | Address) -> Path | Address:
    """Return where an index is stored: an Address for a `postgresql://` URL, otherwise a Path.

    Raises SettingsError for a URL that `Address.parse` refuses.
    """
    if isinstance(place, str) and _is_address(place):
        return Address.parse(place)
    if isinstance(place, Address):
        return place
    return Path(place)


def without_login(text: str) -> str:
    """Return `text` with the login of every URL in it replaced by `***`, because a login may contain a password.

    >>> without_login("vllm:http://bob:secret@host/v1#model")
    'vllm:http://***@host/v1#model'
    """
    return _BEFORE_AT.sub(_masked_login, text)


def _masked_login(run: re.Match[str]) -> str:
    """Replace a login by `***@`: the whole text after `://`, or else a name and a password that follow a
    prefix.
    """
    if run.string.endswith("://", 0, run.start()):
        return "***@"
    prefix = _LOGIN_BEHIND.search(run[0])
    if prefix is None:
        return run[0]
    return f"{run[0][: prefix.end()]}***@"


def as_argument(place: object) -> str:
    """Quote the place of an index for a shell, which would otherwise interpret spaces and the `?` of a URL."""
    return shlex.quote(str(place))


def refuse_address(path: Path) -> None:
    """Raise SettingsError if `path`, which has to name a file, is the URL of a database."""
    first = path.parts[0] if path.parts else ""
    if first.endswith(":") and _is_address(f"{first}//"):
        raise SettingsError(
            "expected a file or folder, got the address of a PostgreSQL database: name a file. Addresses can "
            "be given to `ras-agent index FILES --out ADDRESS`, `kg build ADDRESS`, --index, --cache and "
            "--triple-cache"
        )

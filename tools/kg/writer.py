"""Brings the graph of an index up to date: reads new passages, erases deleted ones, then publishes the next graph.

The facts of each passage are committed as they are read. A single transaction then publishes them, so a build that is
killed leaves the graph unchanged, and the next build continues where it ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.config.address import Address, place_of
from ras_agent.contracts.records import Failure, Passage
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import of_unit_length, resolve_embedder
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.passages import hash_of, indexed_text
from ras_agent.tools.index.stated_facts import STATED
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import edit_rows, facts, graph_state, make
from ras_agent.tools.kg.edits import Anchor, Edit, PassageLookup
from ras_agent.tools.kg.equivalence import IMPORTED as IMPORTED_EDGES
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.extract import Extract
from ras_agent.tools.kg.facts import PassageRecord
from ras_agent.tools.kg.forget import erase_read, held_in
from ras_agent.tools.kg.graph_state import GraphSettings, GraphState
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.other_nodes import OtherNodes
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge, facts_in
from ras_agent.tools.kg.text_vectors import NAMES, maker_of
from ras_agent.tools.kg.vector_rows import put_near
from ras_agent.tools.store.transaction import Transaction

_READ_AT_ONCE = 500  # how many passages are taken from the index at once
IMPORTED = "given"
"""The name that stands in place of a reader (extractor) for facts that were imported."""


@dataclass(frozen=True, slots=True)
class KGProgress:
    """Reports the progress of a build: `done` of `total` steps of a stage.

    The stages are "reading" and "assembling" (counted in passages), "embedding" (names), "comparing" (entities) and
    "writing" (edges); `done` starts at 0 in each.
    """

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ReadReport:
    """Reports the result of reading passages, in numbers of passages. A passage with only failures is read again next
    time.
    """

    read: int = 0
    unchanged: int = 0
    erased: int = 0
    failures: tuple[Failure, ...] = ()


class KGWriter:
    """Changes the graph of an index. There is only one at a time, which `open_writer` makes."""

    def __init__(
        self,
        index: PassageIndex,
        settings: GraphSettings,
        embedder: Embedder | None,
        on_progress: Callable[[KGProgress], None] | None = None,
    ) -> None:
        """Take an index whose graph only this process writes.

        Args:
            settings: the settings of the graph from now on.
            embedder: embeds names; None to load the one in `settings` once a vector is missing.
            on_progress: receives progress reports.
        """
        self.index = index
        self.settings = settings
        self._database = index.database
        self._embedder = embedder
        self._on_progress = on_progress
        self._edits_before = len(self.edits())

    def read_index(self, extract: Extract, reader: str) -> ReadReport:
        """Read the facts of the index's passages, as `read` does, and delete those of passages that left the index.

        A passage that is still in the cell where it was read counts as unchanged.

        Args:
            extract: extracts the facts of passages.
            reader: the name of the extractor.
        """
        self.index.refresh()
        table = self.index.snapshot.table
        passages = self.index.snapshot.passages
        known = self.known()
        read = [one.cell for one in known.values() if one.reader in (reader, IMPORTED)]
        stale = ~np.isin(table["cell"], read)
        cell_of: dict[str, int] = {}

        def those() -> Iterator[Passage]:
            left = np.flatnonzero(stale)
            for start in range(0, len(left), _READ_AT_ONCE):
                some = left[start : start + _READ_AT_ONCE]
                for passage, cell in zip(
                    passages.take(some), table["cell"][some].tolist(), strict=True
                ):
                    # None: it was erased in the meantime, with its facts
                    if passage is not None:
                        cell_of[passage.id] = cell
                        yield passage

        report = self.read(
            those(),
            extract,
            reader,
            total=len(passages),
            unchanged=int((~stale).sum()),
            cells=cell_of,
            known=known,
        )
        with self._database.reading() as transaction:
            gone = transaction.readings.gone()
        return replace(report, erased=self.erase(gone) if gone else 0)

    def read(
        self,
        passages: Iterable[Passage],
        extract: Extract,
        reader: str,
        *,
        whole: bool = False,
        total: int = 0,
        unchanged: int = 0,
        cells: Mapping[str, int] | None = None,
        known: Mapping[str, PassageRecord] | None = None,
    ) -> ReadReport:
        """Read the facts of passages that are new, have changed, or were read by another reader.

        Imported facts stay as long as the text of their passage does not change.

        Args:
            passages: the passages to look through.
            extract: extracts the facts of passages.
            reader: names the extractor.
            whole: whether `passages` are all that exist, so that the facts of all others are erased.
            total: how many passages there are, for progress reports.
            unchanged: how many of `total` were left out of `passages` because they are known to be unchanged.
            cells: the cell of each passage in the index, by passage id.
            known: the stored records, by passage id; read from the database by default.
        """
        known = self.known() if known is None else known
        seen = unchanged
        read = 0
        failures: list[Failure] = []
        there: set[str] = set()
        places: dict[str, tuple[int, int]] = {}
        self._report("reading", seen, total)

        def record(passage: Passage) -> PassageRecord:
            return _record(passage, reader)._replace(
                cell=(cells or {}).get(passage.id, -1)
            )

        def stale() -> Iterator[Passage]:
            nonlocal seen
            for passage in passages:
                there.add(passage.id)
                entry = known.get(passage.id)
                if (
                    entry
                    and entry.digest == digest_of(passage)
                    and entry.reader in (reader, IMPORTED)
                ):
                    seen += 1
                    now = record(passage)
                    if not entry.text or entry.cell != now.cell:
                        places[passage.id] = now.text, now.cell
                else:
                    yield passage

        for passage, extraction in extract(stale()):
            failures += extraction.failures
            digest = digest_of(passage)
            if extraction.failed and not extraction.triples:
                if passage.id in known and known[passage.id].digest != digest:
                    # the stored facts belong to a text that is gone
                    self.erase([passage.id])
                continue
            with self._changing(durable=False) as (transaction, state):
                facts.put_facts(
                    transaction,
                    facts_in(passage, extraction.triples),
                    record(passage),
                    state.published + 1,
                )
            read += 1
            self._report("reading", seen + read, total)
        if places:
            lacking = any(not known[name].text for name in places)
            with self._changing(changed=lacking) as (transaction, _):
                rows = [(*place, passage) for passage, place in places.items()]
                transaction.readings.put_places(rows)
        gone = [name for name in known if name not in there] if whole else []
        return ReadReport(read, seen, self.erase(gone) if gone else 0, tuple(failures))

    def put(
        self,
        passages: Iterable[PassageFacts],
        texts: Mapping[str, Passage] | None = None,
        origins: Mapping[str, str] | None = None,
    ) -> int:
        """Import facts, which replace those stored for their passages. Returns the number of passages.

        Args:
            texts: passages by id, whose imported facts stay until their text changes.
            origins: the paths of the files of triples, by file name.
        """
        count = 0
        with self._changing() as (transaction, state):
            for one in passages:
                text = (texts or {}).get(one.passage_id)
                known = (
                    _record(text, IMPORTED) if text else PassageRecord(b"", IMPORTED)
                )
                facts.put_facts(transaction, one, known, state.published + 1)
                count += 1
            transaction.edits.put_origins(origins or {})
        return count

    def origin_of(self, file: str) -> str:
        """Return the path from which a file of triples was added, by its name; "" if no file of this name was added."""
        with self._database.reading() as transaction:
            return transaction.edits.origin_of(file)

    def edits(self) -> tuple[Edit, ...]:
        """Return the edits that persons made, oldest first."""
        with self._database.reading() as transaction:
            return edit_rows.read_edits(transaction, self._database)

    @property
    def edits_gone(self) -> int:
        """Return how many edits of persons were dropped because the texts that they rested on were deleted."""
        return self._edits_before - len(self.edits())

    def put_edges(self, edges: Iterable[UnstatedEdge]) -> None:
        """Import edges that no document states. They replace the stored ones."""
        with self._changing() as (transaction, _):
            facts.put_edges(transaction, edges)

    def put_others(self, others: OtherNodes) -> None:
        """Import nodes that are neither entities nor documents. They replace the stored ones."""
        with self._changing() as (transaction, _):
            facts.put_others(transaction, others)

    def erase(self, passage_ids: Iterable[str]) -> int:
        """Delete the facts of passages, and everything that is based only on them. Returns how many passages had
        facts.
        """
        with self._changing() as (transaction, _):
            return erase_read(transaction, self._database, passage_ids, self._held())

    def known(self) -> dict[str, PassageRecord]:
        """Return the records of all passages that have stored facts, by passage id."""
        with self._database.reading() as transaction:
            return facts.records(transaction)

    def write(self, edits: Sequence[Edit] | None = None) -> KGIndex:
        """Publish a graph of everything that was read and edited, unless it is already published, and open it.

        Args:
            edits: all edits of persons from now on; by default the stored ones.
        """
        while not self._published(edits):
            pass  # another process has deleted passages in the meantime
        self.index.finish()
        return KGIndex.open(self.index, self._embedder)

    def _published(self, edits: Sequence[Edit] | None) -> bool:
        """Make the graph and commit it. Return False if the rows it was made from have changed in the meantime."""
        database = self._database
        settings = self.settings
        self.index.refresh()
        held = self._held()
        with database.reading() as transaction:
            state = graph_state.read_graph_state(transaction, database)
            assert state
            stored_edits = edit_rows.read_edits(transaction, database)
            wanted = stored_edits if edits is None else tuple(edits)
            about = {
                anchor
                for edit in wanted
                for anchor in (*edit.anchors, *edit.new_anchors)
            }
            same = (
                state.made == state.changes
                and state.settings == settings
                and wanted == stored_edits
            )
            if same and state.published and not about - held(about):
                return True
            reading = facts.read_facts(transaction, database)
            near = make.read_lists(transaction, database, state, settings)
        self._report("assembling", 0, len(reading.found.documents))
        unused = reading.unused_names()
        work = make.Work(database, settings, reading, wanted, near)
        made, stay = work.made_with(self._load, held, self._report)
        count = len(made.arrays.edges)
        self._report("writing", 0, count)
        with database.writing() as transaction:
            now = graph_state.read_graph_state(transaction, database)
            if now is None or now.changes != state.changes:
                return False
            # names that only edits use, and the name of the equivalence relation
            made = make.with_numbers(transaction, made)
            earlier = transaction.readings.superseded()
            unused |= transaction.readings.forget(earlier)
            if stay != stored_edits:
                edit_rows.write_edits(transaction, stay)
            put_near(transaction, near, make.near_of(made))
            was = state.settings.embedder
            own = settings.embedder
            if was and (own is None or was.name != own.name):
                transaction.vectors.forget_maker(maker_of(NAMES, was.name))
            stamp = transaction.graph.publish(settings.to_json())
            facts.erase_unused(transaction, database, unused)
            make.save_made(self.index.cache, stamp, made)
        self._report("writing", count, count)
        return True

    def _load(self, identity: EmbedderIdentity) -> Embedder:
        return self._embedder or of_unit_length(resolve_embedder(identity.name))

    def _held(self) -> PassageLookup:
        """Return a lookup of the passages that still exist: the passages of the index or, if it is empty, those that
        were read."""
        if len(self.index):
            return held_in(self.index.snapshot.table)
        known = self.known()

        def read(anchors: Iterable[Anchor]) -> set[Anchor]:
            return {
                one
                for one in anchors
                if one.passage_id in known
                and one.text in (known[one.passage_id].text, 0)
            }

        return read

    @contextmanager
    def _changing(
        self, *, durable: bool = True, changed: bool = True
    ) -> Iterator[tuple[Transaction, GraphState]]:
        """Lend a transaction for changing the stored rows, with the graph's state before the change.

        Args:
            changed: whether the change affects the graph, so that it must be published again.
        """
        with self._database.writing(durable=durable) as transaction:
            state = graph_state.read_graph_state(transaction, self._database)
            assert state
            yield transaction, state
            if changed:
                transaction.graph.change()

    def _report(self, stage: str, done: int, total: int) -> None:
        if self._on_progress:
            self._on_progress(KGProgress(stage, done, total))


@contextmanager
def open_writer(
    index: str | Path | Address | PassageIndex,
    embedder: object = None,
    equivalence: Equivalence | Mapping[str, Any] | None = None,
    on_progress: Callable[[KGProgress], None] | None = None,
    exact: bool | None = None,
) -> Iterator[KGWriter]:
    """Open the graph of an index for writing. If there is no index, one without passages is created.

    Args:
        index: the index, or its place.
        embedder: embeds the names; None for the graph's present embedder, "" for no embedder.
        equivalence: sets which entities are equivalent; None keeps the present settings. A mapping changes only the
            settings that it names; settings given for a graph with imported equivalences replace these by a search.
        on_progress: receives progress reports.
        exact: see KGManifest; None keeps the present setting.

    Raises:
        IngestError: another process is writing.
    """
    passages = (
        index if isinstance(index, PassageIndex) else open_passages(place_of(index))
    )
    database = passages.database
    with database.alone("graph"):
        with database.writing() as transaction:
            transaction.graph.begin(GraphSettings().to_json())
            state = graph_state.read_graph_state(transaction, database)
        assert state
        before = state.settings
        resolved = None
        identity = before.embedder if embedder is None else None
        if embedder not in (None, ""):
            resolved = of_unit_length(resolve_embedder(embedder))
            identity = EmbedderIdentity(resolved.name, resolved.dimension)
        how = before.equivalence
        if (
            not isinstance(equivalence, Equivalence)
            and equivalence
            and how.kind == IMPORTED_EDGES
        ):
            equivalence = {"kind": "auto", **equivalence}
        how = (
            equivalence
            if isinstance(equivalence, Equivalence)
            else replace(how, **(equivalence or {}))
        )
        settings = GraphSettings(
            identity, how, before.exact if exact is None else exact
        )
        yield KGWriter(passages, settings, resolved, on_progress)


def open_passages(place: Path | Address, embedder: object = None) -> PassageIndex:
    """Open the index at a place, or create it there. `embedder` is for a new index, or replaces one that cannot be
    loaded.
    """
    if not PassageIndex.exists(place):
        return PassageIndex.create(place, embedder or None)
    index = PassageIndex.open(place)
    given = known_embedder(index.snapshot.manifest.embedder, embedder)
    return PassageIndex.open(place, given) if given else index


def known_embedder(
    identity: EmbedderIdentity | None, embedder: object
) -> Embedder | None:
    """Return `embedder` if it is an object with the name and dimension in `identity`, otherwise None.

    The name alone may not be enough to load such an embedder.
    """
    if not embedder or isinstance(embedder, str):
        return None
    given = resolve_embedder(embedder)
    return given if identity == EmbedderIdentity(given.name, given.dimension) else None


def _record(passage: Passage, reader: str) -> PassageRecord:
    text = indexed_text(passage)
    return PassageRecord(digest_of(passage), reader, hash_of(text))


def digest_of(passage: Passage) -> bytes:
    """Return a digest of the parts of a passage that an extractor sees."""
    seen = json.dumps(
        [passage.title, passage.text, passage.metadata.get(STATED)], sort_keys=True
    )
    return hashlib.blake2b(seen.encode(), digest_size=16).digest()

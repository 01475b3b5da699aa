"""Facts cached by passage: they are read once, found again under any id, and never cached in part."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.running.protocols import Extractor
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.structure.cache import (
    CachedExtractor,
    CachedFacts,
    TripleCache,
    facts_key,
)
from ras_agent.tools.structure.llm import LLMExtractor
from tests.messages import says

BELL = Passage(
    "p1",
    "He moved to Canada. Bell was born in Edinburgh in 1847.",
    "Alexander Graham Bell",
)
LEITH = Passage("p2", "The Water of Leith flows through Edinburgh.", "Water of Leith")
BORN_LINE = "(S> Bell | P> was born in | O> Edinburgh)"
FLOWS_LINE = "(S> Water of Leith | P> flows through | O> Edinburgh)"
BORN = Triple(
    "Bell", "was born in", "Edinburgh", (Source("p1", 20, 55, extractor="scripted"),)
)
FLOWS = Triple(
    "Water of Leith",
    "flows through",
    "Edinburgh",
    (Source("p2", 0, 43, extractor="scripted"),),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "facts.sqlite"


def _cached(model: Any, path: Path, **options: Any) -> CachedExtractor:
    return CachedExtractor(LLMExtractor(model, **options), TripleCache(path))


def test_a_passage_is_read_once_also_by_another_process(
    scripted_model: Any, path: Path
) -> None:
    model = scripted_model(("Bell\n", BORN_LINE), ("Leith\n", FLOWS_LINE))
    first = _cached(model, path)
    assert first.extract([BELL, LEITH]).triples == (BORN, FLOWS)
    silent = scripted_model()
    assert _cached(silent, path).extract([LEITH, BELL]).triples == (FLOWS, BORN)
    assert (len(model.prompts), silent.prompts) == (2, [])
    assert isinstance(first, Extractor)
    assert first.name == "scripted"


def test_a_passage_of_which_a_fact_was_left_out_is_not_read_again(
    scripted_model: Any, path: Path
) -> None:
    foreign = "(S> Bell | P> worked with | O> Bruce Heezen)"
    first = _cached(scripted_model(f"{BORN_LINE}\n{foreign}"), path).extract([BELL])
    assert (first.triples, len(first.failures)) == ((BORN,), 1)
    assert _cached(scripted_model(), path).extract([BELL]).triples == (BORN,)


async def test_coroutines_read_each_passage_once_too(
    scripted_model: Any, path: Path
) -> None:
    cached = _cached(scripted_model(("Bell\n", BORN_LINE), FLOWS_LINE), path)
    assert (await cached.aextract([BELL, LEITH])).triples == (BORN, FLOWS)
    assert (await cached.aextract([LEITH])).triples == (FLOWS,)


def test_the_same_text_under_another_id_has_the_same_facts(
    scripted_model: Any, path: Path
) -> None:
    _cached(scripted_model(BORN_LINE), path).extract([BELL])
    twin = Passage("elsewhere-7", BELL.text, BELL.title)
    (fact,) = _cached(scripted_model(), path).extract([twin]).triples
    assert fact.sources == (Source("elsewhere-7", 20, 55, extractor="scripted"),)


@pytest.mark.parametrize(
    "other",
    [
        {"few_shot": True},
        {"model": "another"},
    ],
)
def test_another_prompt_model_or_way_of_asking_is_another_key(
    scripted_model: Any, other: dict[str, Any]
) -> None:
    def fingerprint(model: str = "scripted", **options: Any) -> str:
        asked = scripted_model()
        asked.model = model
        return LLMExtractor(asked, **options).fingerprint

    assert fingerprint() == fingerprint()
    assert fingerprint() != fingerprint(**other)


def test_a_prompt_of_ones_own_is_another_key(
    scripted_model: Any, tmp_path: Path
) -> None:
    (tmp_path / "triples.txt").write_text("Facts, please.\n{{passages}}")
    own = LLMExtractor(scripted_model(), prompts_dir=tmp_path).fingerprint
    assert own != LLMExtractor(scripted_model()).fingerprint


def test_where_a_model_runs_is_no_part_of_the_key() -> None:
    here, there = (
        LLMExtractor(f"vllm:http://{host}:8000/v1#llama").fingerprint
        for host in ("10.0.0.1", "10.0.0.2")
    )
    assert here == there
    assert here.startswith("llama ")


def test_title_and_text_are_different_parts_of_the_key() -> None:
    assert facts_key("f", Passage("p", "b", "a")) != facts_key(
        "f", Passage("p", "", "ab")
    )


def test_what_failed_in_part_is_read_again(scripted_model: Any, path: Path) -> None:
    broken = f"{BORN_LINE}\n(S> Bell | P> was"
    cached = _cached(scripted_model(broken, broken, BORN_LINE), path)
    assert cached.extract([BELL]).failures != ()
    assert len(TripleCache(path)) == 0
    assert cached.extract([BELL]).triples == (BORN,)
    assert len(TripleCache(path)) == 1


def test_a_passage_without_facts_is_not_read_again_either(
    scripted_model: Any, path: Path
) -> None:
    cached = _cached(scripted_model("[NONE]"), path)
    assert [cached.extract([BELL]).triples for _ in range(2)] == [(), ()]


def test_cached_facts_cost_nothing_and_record_the_calls_they_took(
    scripted_model: Any, path: Path
) -> None:
    cached = _cached(scripted_model(BORN_LINE), path)
    with metered(Ledger("extractor", hop=1, limits=Limits(max_llm_calls=3))) as ledger:
        cached.extract([BELL])
        cached.extract([BELL])
    assert len(ledger.calls) == 1
    found = TripleCache(path).get(facts_key(cached.fingerprint, BELL))
    assert found is not None
    assert found.calls == tuple(ledger.calls)


def test_the_runs_budget_holds(scripted_model: Any, path: Path) -> None:
    cached = _cached(scripted_model(BORN_LINE), path)
    with metered(Ledger("extractor", limits=Limits(max_llm_calls=1))) as ledger:
        (failure,) = cached.extract([BELL]).failures
    assert failure.message.startswith("max_llm_calls = 1 is used up")
    assert ledger.refused == "max_llm_calls"


async def test_a_passage_that_is_being_read_is_waited_for(
    scripted_model: Any, path: Path
) -> None:
    model = scripted_model(BORN_LINE)
    cached = _cached(model, path)
    found = await asyncio.gather(*(cached.aextract([BELL]) for _ in range(4)))
    assert [one.triples for one in found] == [(BORN,)] * 4
    assert len(model.prompts) == 1


def test_many_threads_and_files_at_once(scripted_model: Any, path: Path) -> None:
    caches = [TripleCache(path) for _ in range(3)]

    def put(number: int) -> None:
        fact = Triple(f"s{number}", "p", "o", (Source("p", 0, 1, extractor="x"),))
        caches[number % 3].put(f"k{number % 30}", "x", "t", CachedFacts((fact,)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(put, range(60)))
    assert len(TripleCache(path)) == 30


def test_an_extractor_without_a_fingerprint_is_refused(path: Path) -> None:
    with pytest.raises(
        SettingsError,
        match=says("extractor 'offline'", "cannot be cached", "fingerprint"),
    ):
        CachedExtractor(OfflineExtractor(), TripleCache(path))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(
        "# Notes, longer than nothing, and no database at all\n" * 20
    )
    with pytest.raises(
        SettingsError, match=r"cannot store facts: .*notes\.md is damaged"
    ):
        TripleCache(tmp_path / "notes.md")


@pytest.mark.parametrize(
    "facts",
    [
        "[",
        "5",
        "[5]",
        '[["a", "b"]]',
        '[["a", "b", 5]]',
        '[["a", "b", "c", ["x"]]]',
        '[["a", "b", "c", "later"]]',
    ],
)
def test_facts_that_cannot_be_read_are_read_in_the_passage_again(
    scripted_model: Any, path: Path, facts: str
) -> None:
    model = scripted_model(("Bell\n", BORN_LINE))
    _cached(model, path).extract([BELL])
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "UPDATE cache SET value = ?", (f'{{"facts": {facts}, "calls": []}}',)
        )
    with pytest.warns(
        RuntimeWarning,
        match=r"facts\.sqlite holds values that this version cannot read",
    ):
        assert _cached(model, path).extract([BELL]).triples == (BORN,)
    assert len(model.prompts) == 2


def test_calls_of_a_later_version_are_read_again(
    scripted_model: Any, path: Path
) -> None:
    model = scripted_model(("Bell\n", BORN_LINE))
    _cached(model, path).extract([BELL])
    with closing(sqlite3.connect(path)) as file, file:
        calls = '[{"role": "extractor", "hop": 0, "model": "m", "new": 1}]'
        file.execute(
            "UPDATE cache SET value = ?", (f'{{"facts": [], "calls": {calls}}}',)
        )
    with pytest.warns(RuntimeWarning, match="of a later version"):
        assert _cached(model, path).extract([BELL]).triples == (BORN,)

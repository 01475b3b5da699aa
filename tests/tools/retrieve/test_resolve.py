"""What a user may write for a retriever."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent.errors import IndexNotFound, RasError, SettingsError, UnknownName
from ras_agent.filters import ALL
from ras_agent.records import Hit, Passage
from ras_agent.registry import check_options, find, names, options_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.hybrid import HybridRetriever
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.resolve import reads_graph, resolve_retriever

CORPUS = [Passage("bell", "Bell patented the telephone."), Passage("sea", "The deep blue sea.")]


class Own:
    """A user's retriever."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return []


def test_an_object_with_retrieve_is_itself() -> None:
    own = Own()
    assert resolve_retriever(own) is own


def test_a_langchain_retriever_is_adapted() -> None:
    resolved = resolve_retriever(as_langchain(BM25Retriever.from_passages(CORPUS)))
    assert isinstance(resolved, LangChainRetriever)
    assert resolved.retrieve("telephone")[0].passage.id == "bell"


def test_a_name_searches_an_index_a_path_or_passages(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add(CORPUS)
    for index in (PassageIndex.in_memory(CORPUS), tmp_path / "index", str(tmp_path / "index"), CORPUS, tuple(CORPUS)):
        assert resolve_retriever("bm25", index).retrieve("telephone")[0].passage.id == "bell"


def test_options_reach_the_factory_and_embedder_the_index(tmp_path: Path, hash_embedder: Any) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add(CORPUS)
    for index in (CORPUS, tmp_path / "index"):
        resolved = resolve_retriever("hybrid", index, embedder=hash_embedder, depth=7)
        assert isinstance(resolved.at("", ALL).retriever, HybridRetriever)
        assert resolved.retrieve("blue sea", 1)[0].passage.id == "sea"


def test_an_unknown_option_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown option of retriever 'hybrid' 'dept'; known: constant, depth"):
        resolve_retriever("hybrid", CORPUS, dept=7)


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("graph", {"graph", "linking", "mentions", "weights", "paths", "device"}),
        ("gfm+dense", {"shares", "weights", "ranker"}),
        ("paths+dense", {"shares", "composition", "settings"}),
        ("pcst+dense", {"shares", "scorer"}),
        ("ppr", {"damping", "equivalence"}),
    ],
)
def test_the_options_of_a_mix_are_those_of_its_parts_too(name: str, some: set[str]) -> None:
    known = options_of(find("retriever", name))
    assert known is not None
    assert some < known
    assert not {"index", "options"} & known


def test_the_options_of_a_factory_that_takes_any_are_not_checked() -> None:
    def anything(index: object, **options: object) -> object:
        return index, options

    assert options_of(anything) is None
    check_options("retriever", "own", anything, ["whatever"])


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"unknown retriever 'bm52'; known: .*bm25.*dense.*hybrid"):
        resolve_retriever("bm52", CORPUS)


@pytest.mark.parametrize("index", [None, 3, ["text"]])
def test_a_name_needs_an_index(index: Any) -> None:
    with pytest.raises(SettingsError, match="retriever 'bm25' needs an index: pass a PassageIndex, the path of one"):
        resolve_retriever("bm25", index)


def test_a_path_must_hold_an_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="no index at"):
        resolve_retriever("bm25", tmp_path / "none")


@pytest.mark.parametrize("thing", [None, 5, Own, object()])
def test_anything_else_is_refused_with_what_would_do(thing: object) -> None:
    with pytest.raises(TypeError, match="a retriever is a name, a LangChain BaseRetriever"):
        resolve_retriever(thing)


def test_options_for_an_object_are_refused() -> None:
    with pytest.raises(TypeError, match="options are for retrievers named by a string"):
        resolve_retriever(Own(), depth=3)


@pytest.mark.parametrize("name", [*names("retriever"), "bm25+dense", "ppr+dense"])
def test_a_retriever_reads_the_graph_where_it_needs_one(name: str, hash_embedder: Any) -> None:
    index = PassageIndex.in_memory(CORPUS, embedder=hash_embedder)
    if reads_graph(name):
        with pytest.raises(RasError, match="knowledge graph"):
            index.retriever(name)
    else:
        assert index.retriever(name).retrieve("telephone", 1)[0].passage.id == "bell"

"""The forms in which a user may write a retriever."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent.config import registry
from ras_agent.config.filters import ALL
from ras_agent.config.registry import find, names
from ras_agent.contracts.errors import (
    IndexNotFound,
    RasError,
    SettingsError,
    UnknownName,
)
from ras_agent.contracts.records import Hit, Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.langchain_adapter import LangChainRetriever, as_langchain
from ras_agent.tools.retrieve.mix import MixedRetriever
from ras_agent.tools.retrieve.registered import (
    OFFERED,
    check_options,
    options_of,
    retriever_over,
    taken_by,
    takes,
)
from ras_agent.tools.retrieve.resolve import reads_graph, resolve_retriever
from tests.messages import says

CORPUS = [
    Passage("bell", "Bell patented the telephone."),
    Passage("sea", "The deep blue sea."),
]


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
    for index in (
        PassageIndex.in_memory(CORPUS),
        tmp_path / "index",
        str(tmp_path / "index"),
        CORPUS,
        tuple(CORPUS),
    ):
        assert (
            resolve_retriever("bm25", index).retrieve("telephone")[0].passage.id
            == "bell"
        )


def test_options_reach_the_factory_and_embedder_the_index(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "index", hash_embedder).add(CORPUS)
    for index in (CORPUS, tmp_path / "index"):
        resolved = resolve_retriever(
            "hybrid", index, embedder=hash_embedder, rerank=False
        )
        assert isinstance(resolved.at("", ALL).retriever, MixedRetriever)
        assert resolved.retrieve("blue sea", 1)[0].passage.id == "sea"


def test_an_unknown_option_is_told_the_known_ones() -> None:
    with pytest.raises(
        UnknownName,
        match=says(
            "retriever 'hybrid'", "unknown option", "'rerang'", "rerank", "shares"
        ),
    ):
        resolve_retriever("hybrid", CORPUS, rerang=False)


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
def test_the_options_of_a_mix_are_those_of_its_parts_too(
    name: str, some: set[str]
) -> None:
    known = options_of(find("retriever", name))
    assert known is not None
    assert some < known
    assert not {"index", "options"} & known


def test_the_options_of_a_factory_that_takes_any_are_not_checked() -> None:
    def anything(index: object, **options: object) -> object:
        return index, options

    assert options_of(anything) is None
    check_options("own", anything, ["whatever"])


def test_what_a_factory_declares_has_to_be_a_parameter_of_it() -> None:
    def mine(index: object, *, grpah: object = None, depth: int = 3) -> Any: ...

    with pytest.raises(
        TypeError,
        match=says("test_resolve.", "mine", "the option 'graph'", "no parameter"),
    ):
        takes("graph")(mine)
    with pytest.raises(
        UnknownName,
        match=says(
            "unknown option",
            "offered to retrievers",
            "'grpah'",
            "known: graph, linking",
        ),
    ):
        takes("grpah")(mine)


@pytest.mark.parametrize("name", names("retriever"))
def test_a_built_in_retriever_declares_all_that_it_takes_of_what_is_offered(
    name: str,
) -> None:
    factory = find("retriever", name)
    assert taken_by(factory) == (options_of(factory) or set()) & set(OFFERED)


def test_what_a_mix_offers_goes_to_those_alone_that_declare_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offered: dict[str, object] = {}

    def silent(
        index: PassageIndex, *, queries: object = None, graph: object = None
    ) -> Own:
        offered["silent"] = queries, graph
        return Own()

    @takes("graph", "queries")
    def declared(
        index: PassageIndex, *, queries: object = None, graph: object = None
    ) -> Own:
        offered["declared"] = queries, graph
        return Own()

    monkeypatch.setitem(
        registry.PLUGINS, "retriever", {**registry.PLUGINS["retriever"]}
    )
    registry.register("retriever", "silent", silent)
    registry.register("retriever", "declared", declared)
    index = PassageIndex.in_memory(CORPUS[:1])
    graph = KGIndex.in_memory(
        [
            PassageFacts(
                "bell",
                (Triple("Bell", "patented", "the telephone", (Source("bell"),)),),
            )
        ]
    )
    retriever_over(index, "silent+declared", graph=graph)
    assert offered["silent"] == (None, None)
    assert isinstance(offered["declared"], tuple)
    assert isinstance(offered["declared"][1], LinkedGraph)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(
        UnknownName,
        match=says("unknown retriever 'bm52'", "known:", "dense", "did you mean bm25?"),
    ):
        resolve_retriever("bm52", CORPUS)


def test_a_name_needs_an_index() -> None:
    with pytest.raises(
        SettingsError,
        match=says("retriever 'bm25'", "needs an index", "pass a PassageIndex"),
    ):
        resolve_retriever("bm25")


def test_a_path_must_hold_an_index(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFound, match="no index at"):
        resolve_retriever("bm25", tmp_path / "none")


@pytest.mark.parametrize("thing", [None, 5, Own, object()])
def test_anything_else_is_refused_with_what_would_do(thing: object) -> None:
    with pytest.raises(
        TypeError,
        match=says("is not a retriever", "LangChain", "retrieve(query, k)"),
    ):
        resolve_retriever(thing)


def test_options_for_an_object_are_refused() -> None:
    with pytest.raises(TypeError, match="options are for retrievers given by name"):
        resolve_retriever(Own(), depth=3)


@pytest.mark.parametrize("name", [*names("retriever"), "bm25+dense", "ppr+dense"])
def test_a_retriever_reads_the_graph_where_it_needs_one(
    name: str, hash_embedder: Any
) -> None:
    index = PassageIndex.in_memory(CORPUS, embedder=hash_embedder)
    if reads_graph(name):
        with pytest.raises(RasError, match="knowledge graph"):
            retriever_over(index, name)
    else:
        assert (
            retriever_over(index, name).retrieve("telephone", 1)[0].passage.id == "bell"
        )

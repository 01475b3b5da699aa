"""Mixes: any retrievers by name, the mean of the roots of their scores, each brought to 0..1."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from ras_agent.config import registry
from ras_agent.config.registry import find, is_registered, register
from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import Hit, Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.mix import (
    Mix,
    MixedRetriever,
    RankedHits,
    doubt_of,
    mixed,
    shares_by_doubt,
)
from ras_agent.tools.retrieve.ranking import Ranking
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]


def ranking(scores: dict[int, float]) -> Ranking:
    return Ranking(
        np.array(list(scores), dtype=np.int64),
        np.array(list(scores.values()), dtype=np.float32),
    )


class Constant:
    """Gives fixed scores to fixed rows."""

    name = "constant"

    def __init__(
        self, passages: list[Passage], scores: dict[int, float], walks: bool = False
    ) -> None:
        self.passages, self._ranking = passages, ranking(scores)
        self.walks_graph = self.tells_doubt = walks

    def rank(self, query: str, k: int) -> Ranking:
        return Ranking(self._ranking.rows[:k], self._ranking.scores[:k])


class NoHits:
    """A retriever that finds nothing, and knows the limits of k."""

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        if k < 1:
            raise ValueError("k must be at least 1")
        return []


class Letters:
    """Embeds texts so that dense search ranks "rock" before "castle" before "river"."""

    name, dimension = "letters", 2

    def embed(self, texts: Sequence[str]) -> Floats:
        angles = [
            0.48 if "castle" in text else 0.0 if "rock" in text else 0.5
            for text in texts
        ]
        return np.array(
            [[np.cos(angle), np.sin(angle)] for angle in angles], dtype=np.float32
        )


class Newest:
    """A retriever from outside: no ranker, it knows only hits."""

    def __init__(self, index: PassageIndex, *, first: str = "bell") -> None:
        self._hits = [
            Hit(p, 2.0 - (p.id != first), (f"{p.id} is new",))
            for p in index.passages
            if p.id != "paris"
        ]

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return sorted(self._hits, key=lambda hit: -hit.score)[:k]


@pytest.fixture
def newest() -> Iterator[str]:
    register("retriever", "newest", Newest)
    yield "newest"
    registry.PLUGINS["retriever"].pop("newest")


class TestScores:
    def test_are_brought_to_one_scale_before_their_roots_are_mixed(self) -> None:
        found = mixed(
            [ranking({0: 100, 1: 36, 2: 0}), ranking({1: 0.2, 3: 0.1})],
            [0.5, 0.5],
            4,
            4,
        )
        assert found.rows.tolist() == [1, 0, 2, 3]
        assert found.scores.tolist() == pytest.approx([0.8, 0.5, 0, 0], abs=1e-5)

    def test_of_a_steep_ranking_count_beside_those_of_a_flat_one(self) -> None:
        steep, flat = (
            ranking({0: 100, 1: 20, 2: 16, 3: 0}),
            ranking({0: 9, 4: 6, 1: 3, 2: 3, 3: 0}),
        )
        assert mixed([steep, flat], [0.5, 0.5], 5, 5).rows.tolist() == [0, 1, 2, 4, 3]

    def test_of_one_hit_count_in_full(self) -> None:
        found = mixed([ranking({2: 0.001}), ranking({0: 5, 1: 4})], [0.6, 0.4], 3, 3)
        assert found.rows.tolist() == [2, 0, 1]
        assert found.scores.tolist() == pytest.approx([0.6, 0.4, 0], abs=1e-5)

    def test_an_empty_ranking_leaves_the_others_as_they_are(self) -> None:
        assert mixed(
            [ranking({}), ranking({1: 2, 0: 1})], [0.5, 0.5], 2, 2
        ).rows.tolist() == [1, 0]

    def test_no_more_than_k_rows_come_back(self) -> None:
        assert len(mixed([ranking({0: 3, 1: 2, 2: 1})], [1], 3, 2).rows) == 2

    def test_a_share_is_that_of_its_own_part(self) -> None:
        one, other = Constant(PASSAGES, {0: 1, 1: 0}), Constant(PASSAGES, {2: 1, 1: 0})
        assert MixedRetriever([one, other], [0, 1]).rank("q", 2).rows.tolist() == [2, 1]
        hits = MixedRetriever([one, other], [1, 4]).retrieve("q", 2)
        assert [(hit.passage.id, round(hit.score, 3)) for hit in hits] == [
            ("bell", 0.8),
            ("paris", 0.2),
        ]

    def test_rows_below_the_depth_do_not_count_unless_k_asks_for_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one, other = (
            Constant(PASSAGES, {0: 3, 1: 2.9, 2: 0}),
            Constant(PASSAGES, {2: 3, 1: 2.9, 0: 0}),
        )
        assert MixedRetriever([one, other], [1, 1]).rank("q", 1).rows.tolist() == [1]
        monkeypatch.setattr("ras_agent.tools.retrieve.mix.DEPTH", 1)
        assert MixedRetriever([one, other], [1, 1]).rank("q", 1).rows.tolist() == [0]
        assert MixedRetriever([one, other], [1, 1]).rank("q", 3).rows.tolist() == [
            1,
            0,
            2,
        ]

    @pytest.mark.parametrize("weights", [[0.0, 0.0], [1.5, -0.5], [1.0]])
    def test_shares_that_make_no_mean_are_refused(self, weights: list[float]) -> None:
        with pytest.raises(ValueError, match="a mix of 2 rankers needs 2 weights"):
            MixedRetriever([Constant(PASSAGES, {0: 1})] * 2, weights)

    def test_a_single_part_is_a_mix_too(self) -> None:
        assert MixedRetriever([Constant(PASSAGES, {1: 2, 0: 1})], [3]).rank(
            "q", 2
        ).rows.tolist() == [1, 0]

    def test_parts_over_different_passages_are_refused(self) -> None:
        with pytest.raises(ValueError, match="same passages"):
            MixedRetriever([Constant(PASSAGES, {}), Constant(PASSAGES[:1], {})], [1, 1])

    def test_a_blank_query_is_refused_whatever_the_parts_do(self) -> None:
        for ranker in (
            MixedRetriever([Constant(PASSAGES, {0: 1})], [1]),
            RankedHits(NoHits(), PASSAGES, "none"),
        ):
            with pytest.raises(ValueError, match="blank"):
                ranker.rank(" ", 1)

    def test_without_passages_there_are_no_hits(self) -> None:
        assert RankedHits(NoHits(), [], "none").rank("q", 1).rows.tolist() == []

    def test_parts_that_give_no_reasons_leave_passages_without(self) -> None:
        assert MixedRetriever([Constant(PASSAGES, {0: 1})], [1]).why(
            "q", ["paris", "bell"]
        ) == [(), ()]

    def test_a_mix_is_called_by_its_name_or_by_its_parts(self) -> None:
        constant = Constant(PASSAGES, {0: 1})
        assert MixedRetriever([constant] * 2, [1, 1]).name == "constant+constant"
        assert MixedRetriever([constant] * 2, [1, 1], name="both").name == "both"
        assert (Mix(["ppr", "dense"]).name, Mix(["ppr", "dense"], "walk").name) == (
            "ppr+dense",
            "walk",
        )


class TestShares:
    def test_doubt_is_the_root_of_the_third_score(self) -> None:
        assert doubt_of(ranking({4: 11, 2: 9, 0: 3.5, 1: 1})) == pytest.approx(0.5)
        assert doubt_of(ranking({4: 2, 2: 2, 0: 2})) == 0.98

    @pytest.mark.parametrize(
        ("scores", "expected"),
        [({}, 1), ({0: 5}, 0.02), ({0: 5, 1: 5}, 0.02), ({0: 5, 1: 1}, 0.02)],
    )
    def test_a_search_without_hits_is_all_in_doubt_and_one_of_two_hits_is_as_sure_as_can_be(
        self, scores: dict[int, float], expected: float
    ) -> None:
        assert doubt_of(ranking(scores)) == expected

    @pytest.mark.parametrize(
        ("walks", "expected"),
        [
            ([True, False], [0.7, 0.3]),
            ([False, True, True], [0.3, 0.35, 0.35]),
            ([True, False, False], [0.7, 0.15, 0.15]),
        ],
    )
    def test_walks_share_what_the_doubt_leaves_and_the_others_the_doubt(
        self, walks: list[bool], expected: list[float]
    ) -> None:
        assert shares_by_doubt(0.3, walks) == pytest.approx(expected)

    @pytest.mark.parametrize("walk", [True, False])
    def test_where_all_walk_or_none_all_count_alike(self, walk: bool) -> None:
        assert shares_by_doubt(0.3, [walk, walk]) == [0.5, 0.5]

    def test_without_a_part_that_tells_its_doubt_all_count_alike(self) -> None:
        walk, text = (
            Constant(PASSAGES, {0: 1, 1: 0}, walks=True),
            Constant(PASSAGES, {2: 1, 1: 0.9, 0: 0}),
        )
        walk.tells_doubt = False
        assert MixedRetriever([walk, text]).retrieve("q", 2)[0].score == pytest.approx(
            0.5, abs=1e-5
        )

    def test_a_mix_listens_to_the_text_where_its_walk_is_in_doubt(self) -> None:
        passages = [*PASSAGES, Passage("four", "Four.", "Four")]
        text = Constant(passages, {2: 1, 1: 0.5, 0: 0})
        sure = Constant(passages, {0: 1, 1: 0.1, 2: 0.1, 3: 0}, walks=True)
        torn = Constant(passages, {0: 1, 1: 0.95, 2: 0.95, 3: 0}, walks=True)
        assert MixedRetriever([sure, text]).rank("q", 1).rows.tolist() == [0]
        assert MixedRetriever([torn, text]).rank("q", 1).rows.tolist() == [2]
        assert MixedRetriever([torn, text], [99, 1]).rank("q", 1).rows.tolist() == [0]


class TestNames:
    def test_how_names_are_linked_is_an_option_of_mixes_with_a_graph_alone(
        self,
    ) -> None:
        assert {"linking", "mentions", "rerank", "shares"} <= Mix(
            ["ppr", "dense"]
        ).options
        assert not {"linking", "mentions"} & Mix(["bm25", "dense"]).options

    def test_any_two_retrievers_mix(self, newest: str, hash_embedder: Any) -> None:
        index = PassageIndex.in_memory(PASSAGES, hash_embedder)
        for name in (
            "bm25+dense",
            "dense+bm25",
            "newest+bm25",
            "bm25+dense+newest",
            "hybrid+newest",
        ):
            mix = retriever_over(index, name)
            assert isinstance(mix, MixedRetriever)
            assert mix.name == name
            assert "bell" in [
                hit.passage.id for hit in mix.retrieve("Who was born in Edinburgh?", 2)
            ]

    def test_shares_and_options_reach_the_parts(self, newest: str) -> None:
        index = PassageIndex.in_memory(PASSAGES)
        by = {
            first: retriever_over(
                index, "newest+bm25", shares=[0.9, 0.1], first=first
            ).retrieve("capital of France", 1)
            for first in ("bell", "leith")
        }
        assert {first: hits[0].passage.id for first, hits in by.items()} == {
            "bell": "bell",
            "leith": "leith",
        }
        last = retriever_over(index, "newest+bm25", shares=[0.1, 0.9]).retrieve(
            "capital of France", 1
        )
        assert last[0].passage.id == "paris"

    def test_what_completes_the_first_passage_moves_up_unless_the_mean_alone_is_wanted(
        self,
    ) -> None:
        texts = {
            "castle": "Edinburgh castle",
            "rock": "Edinburgh rock",
            "river": "The river bank",
        }
        index = PassageIndex.in_memory(
            [Passage(name, text, "") for name, text in texts.items()], Letters()
        )
        found = {}
        for rerank in (True, False):
            hits = retriever_over(index, "dense+dense", rerank=rerank).retrieve(
                "rock river bank", 2
            )
            found[rerank] = [hit.passage.id for hit in hits]
        assert found == {True: ["rock", "river"], False: ["rock", "castle"]}

    @pytest.mark.parametrize("part", ["ppr", "paths", "pcst", "bm25"])
    @pytest.mark.parametrize("swapped", [False, True])
    def test_a_share_of_a_fifth_is_that_of_the_part_it_is_written_for(
        self, part: str, swapped: bool, hash_embedder: Any
    ) -> None:
        facts = {
            "paris": Triple("Paris", "is the capital of", "France", (Source("paris"),)),
            "leith": Triple(
                "Water of Leith", "flows through", "Edinburgh", (Source("leith"),)
            ),
            "bell": Triple(
                "Alexander Graham Bell", "was born in", "Edinburgh", (Source("bell"),)
            ),
        }
        graph = KGIndex.in_memory(
            [PassageFacts(name, (fact,)) for name, fact in facts.items()], hash_embedder
        )
        index = PassageIndex.in_memory(PASSAGES, hash_embedder)
        query = "Which river flows through the birthplace of Alexander Graham Bell?"
        on_graph = {} if part == "bm25" else {"graph": graph}
        wanted = dict.fromkeys((passage.id for passage in PASSAGES), 0.0)
        for retriever, share in (
            (retriever_over(index, part, **on_graph), 0.2),
            (retriever_over(index, "dense"), 0.8),
        ):
            scores = {
                hit.passage.id: hit.score
                for hit in retriever.retrieve(query, 3)
                if hit.passage in PASSAGES
            }
            lowest, highest = (
                min(scores.values(), default=0),
                max(scores.values(), default=0),
            )
            for name, score in scores.items():
                wanted[name] += share * (
                    ((score - lowest) / (highest - lowest)) ** 0.5
                    if highest > lowest
                    else 1
                )
        name, shares = (
            (f"dense+{part}", [0.8, 0.2]) if swapped else (f"{part}+dense", [0.2, 0.8])
        )
        found = retriever_over(
            index, name, shares=shares, rerank=False, **on_graph
        ).retrieve(query, 3)
        assert len(found) >= 2
        assert {hit.passage.id: hit.score for hit in found} == pytest.approx(
            {hit.passage.id: wanted[hit.passage.id] for hit in found}, abs=1e-5
        )

    def test_hits_say_why_as_far_as_a_part_can(self, newest: str) -> None:
        hits = (
            retriever_over(PassageIndex.in_memory(PASSAGES), "newest+bm25")
            .explained(1)
            .retrieve("Edinburgh", 2)
        )
        assert {hit.passage.id: hit.why for hit in hits} == {
            "bell": ("bell is new",),
            "leith": ("leith is new",),
        }

    def test_an_unknown_part_is_refused_with_the_known_names(self) -> None:
        assert is_registered("retriever", "ppr+dense")
        assert not is_registered("retriever", "ppr+dance")
        for name in ("ppr+dance", "ppr+", "+"):
            with pytest.raises(
                UnknownName,
                match=says("unknown retriever", "known: bm25", "mixes of them"),
            ):
                find("retriever", name)

    def test_an_option_that_no_part_takes_is_refused(self) -> None:
        with pytest.raises(
            UnknownName, match=r"unknown option of retriever 'bm25\+bm25' 'device'"
        ):
            retriever_over(PassageIndex.in_memory(PASSAGES), "bm25+bm25", device="cpu")

    def test_other_kinds_do_not_mix(self) -> None:
        with pytest.raises(UnknownName, match="unknown planner 'offline\\+offline'"):
            find("planner", "offline+offline")

    def test_graph_is_a_mix_of_three(self) -> None:
        made = find("retriever", "graph")
        assert isinstance(made, Mix)
        assert made.parts == ("gfm", "ppr", "dense")


def test_hybrid_finds_the_one_passage_that_holds_a_term(hash_embedder: Any) -> None:
    tickets = [
        Passage(f"t{n}", f"PPR-{n}: the pump in hall {n % 7} leaks.")
        for n in range(1000, 1040)
    ]
    hybrid = retriever_over(PassageIndex.in_memory(tickets, hash_embedder), "hybrid")
    for query in ("PPR-1013", "PPR1013", "What does PPR-1013 report?"):
        assert hybrid.retrieve(query, 3)[0].passage.id == "t1013"

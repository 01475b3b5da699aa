"""Single-shot: one retrieval, one extraction, one answer."""

import pytest

from ras_agent import create_single_shot_agent
from tests.graphs.what_failed import what_failed


@pytest.fixture
def single_shot(fakes):
    def build(**overrides):
        roles = {
            "retriever": fakes.EchoRetriever(),
            "extractor": fakes.SentenceExtractor(),
            "answerer": fakes.CountingAnswerer(),
        }
        return create_single_shot_agent(**{**roles, **overrides})

    return build


def test_it_retrieves_with_the_question_structures_and_answers(single_shot):
    out = single_shot().invoke({"question": "Who?"})
    assert ([step["subquery"] for step in out["steps"]], out["plans"]) == (["Who?"], [])
    assert (out["answer"], out["stop_reason"]) == ("2 facts, 2 passages", "single_shot")


def test_it_answers_from_passages_where_extraction_failed(single_shot, fakes):
    out = single_shot(
        extractor=fakes.SentenceExtractor({"Who?": OSError("lost")})
    ).invoke({"question": "Who?"})
    assert (out["answer"], len(what_failed(out))) == ("0 facts, 2 passages", 1)


def test_seed_passages_take_the_place_of_retrieval(single_shot):
    out = single_shot().invoke({"question": "Who?", "seed_passages": ["One.", "Two."]})
    assert list(out["passages"]) == ["given-1", "given-2"]


def test_a_recursion_limit_that_cannot_reach_an_answer_is_refused(single_shot):
    with pytest.raises(ValueError, match="give at least 6"):
        single_shot().invoke({"question": "Who?"}, {"recursion_limit": 5})
    assert (
        single_shot().invoke({"question": "Who?"}, {"recursion_limit": 6})[
            "stop_reason"
        ]
        == "single_shot"
    )


async def test_asynchronous_runs_give_the_same(single_shot, fakes):
    asynchronous = await single_shot().ainvoke({"question": "Who?"})
    assert fakes.untimed(asynchronous) == fakes.untimed(
        single_shot().invoke({"question": "Who?"})
    )

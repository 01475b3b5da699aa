"""Numbered evidence and the citations made from it."""

from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.answer.citations import Cited, Evidence, read_citations

BELL = Passage("p1", "He moved to Canada. Bell was born in Edinburgh in 1847.", "Bell")
LEITH = Passage("p2", "The Water of Leith flows through Edinburgh.", "Water of Leith")
BORN = Triple("Bell", "was born in", "Edinburgh", (Source("p1", 20, 55),))
FLOWS = Triple("Water of Leith", "flows through", "Edinburgh", (Source("p2", 0, 43),))
EVIDENCE = Evidence((BELL, LEITH), (BORN, FLOWS))  # 1, 2 and 3, 4


def test_evidence_is_shown_under_running_numbers() -> None:
    assert EVIDENCE.block() == (
        "<passage>\n[1] Bell\nHe moved to Canada. Bell was born in Edinburgh in 1847.\n</passage>\n"
        "<passage>\n[2] Water of Leith\nThe Water of Leith flows through Edinburgh.\n</passage>\n"
        "<facts>\n[3] (S> Bell | P> was born in | O> Edinburgh)\n"
        "[4] (S> Water of Leith | P> flows through | O> Edinburgh)\n</facts>"
    )


def test_no_evidence_shows_nothing() -> None:
    assert Evidence().block() == ""


def test_every_number_stands_for_a_passage() -> None:
    assert EVIDENCE.passage_ids() == {1: "p1", 2: "p2", 3: "p1", 4: "p2"}


def test_a_fact_of_a_passage_that_was_not_given_cannot_be_cited() -> None:
    assert Evidence((BELL,), (FLOWS,)).passage_ids() == {1: "p1"}


def test_a_fact_of_a_passage_that_did_not_fit_can_be_cited() -> None:
    evidence = Evidence((BELL,), (FLOWS,), unshown=(LEITH,))
    assert evidence.passage_ids() == {1: "p1", 2: "p2"}
    (citation,) = evidence.citations([2], "Leith", "Which river?")
    assert (citation.passage_id, citation.quote) == ("p2", LEITH.text)


def test_numbers_are_counted_anew_one_for_each_passage() -> None:
    assert read_citations("Leith [4][2] runs there [3]. [2, 4]", EVIDENCE.passage_ids()) == Cited(
        bare="Leith runs there.", numbered="Leith [1] runs there [2]. [1]", numbers=(4, 2, 3), invented=()
    )


def test_invented_numbers_are_taken_out_and_told() -> None:
    assert read_citations("Leith [9] runs [2-4] [0].", EVIDENCE.passage_ids()) == Cited(
        "Leith runs.", "Leith runs [1][2].", (2, 3, 4), (9, 0)
    )


def test_other_brackets_are_text() -> None:
    assert read_citations("He [sic] ran [in 1999] [1]", {1: "p1"}).bare == "He [sic] ran [in 1999]"


def test_a_cited_fact_is_quoted_where_it_was_read() -> None:
    (citation,) = EVIDENCE.citations([3], "Edinburgh", "Where was Bell born?")
    assert (citation.number, citation.passage_id, citation.title) == (1, "p1", "Bell")
    assert (citation.start, citation.end, citation.quote) == (20, 55, "Bell was born in Edinburgh in 1847.")
    assert citation.triple_ids == (BORN.id,)


def test_a_cited_passage_is_quoted_where_it_says_most_of_answer_and_question() -> None:
    (citation,) = EVIDENCE.citations([1], "Edinburgh", "Where was Bell born?")
    assert citation.quote == "Bell was born in Edinburgh in 1847."
    assert citation.triple_ids == (BORN.id,)


def test_a_passage_and_its_fact_make_one_citation() -> None:
    citations = EVIDENCE.citations([2, 3, 4], "Water of Leith", "Which river?")
    assert [(citation.number, citation.passage_id) for citation in citations] == [(1, "p2"), (2, "p1")]


def test_support_is_found_where_nothing_is_cited() -> None:
    citations = EVIDENCE.supporting("Water of Leith", "Which river flows through Edinburgh?")
    assert [(citation.number, citation.passage_id) for citation in citations] == [(1, "p2"), (2, "p1")]


def test_nothing_supports_an_answer_that_shares_no_word() -> None:
    assert EVIDENCE.supporting("xylophone", "quo vadis") == ()

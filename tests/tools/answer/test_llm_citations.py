"""Numbered evidence and the citations made from it."""

import pytest

from ras_agent.contracts.records import Hit, Passage, Source, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.answer.citations import Cited, NumberedEvidence, read_citations

BELL = Passage("p1", "He moved to Canada. Bell was born in Edinburgh in 1847.", "Bell")
LEITH = Passage("p2", "The Water of Leith flows through Edinburgh.", "Water of Leith")
BORN = Triple("Bell", "was born in", "Edinburgh", (Source("p1", 20, 55),))
FLOWS = Triple("Water of Leith", "flows through", "Edinburgh", (Source("p2", 0, 43),))
EVIDENCE = NumberedEvidence((BELL, LEITH), (BORN, FLOWS))  # 1, 2 and 3, 4


def test_evidence_is_shown_under_running_numbers() -> None:
    assert EVIDENCE.block() == (
        "<passage>\n[1] Bell\nHe moved to Canada. Bell was born in Edinburgh in 1847.\n</passage>\n"
        "<passage>\n[2] Water of Leith\nThe Water of Leith flows through Edinburgh.\n</passage>\n"
        "<facts>\n[3] (S> Bell | P> was born in | O> Edinburgh)\n"
        "[4] (S> Water of Leith | P> flows through | O> Edinburgh)\n</facts>"
    )


def test_no_evidence_shows_nothing() -> None:
    assert NumberedEvidence().block() == ""


def test_every_number_has_a_passage_behind_it() -> None:
    assert EVIDENCE.passage_ids() == {1: "p1", 2: "p2", 3: "p1", 4: "p2"}


def test_a_fact_of_a_passage_that_was_not_given_cannot_be_cited() -> None:
    assert NumberedEvidence((BELL,), (FLOWS,)).passage_ids() == {1: "p1"}


def test_a_fact_of_a_passage_that_did_not_fit_can_be_cited() -> None:
    evidence = NumberedEvidence((BELL,), (FLOWS,), unshown=(LEITH,))
    assert evidence.passage_ids() == {1: "p1", 2: "p2"}
    (citation,) = evidence.citations([2], "Leith", "Which river?")
    assert (citation.passage_id, citation.quote) == ("p2", LEITH.text)


def test_numbers_are_counted_anew_one_for_each_passage() -> None:
    assert read_citations(
        "Leith [4][2] runs there [3]. [2, 4]", EVIDENCE.passage_ids()
    ) == Cited(
        bare="Leith runs there.",
        numbered="Leith [1] runs there [2]. [1]",
        numbers=(4, 2, 3),
        invented=(),
    )


def test_invented_numbers_are_taken_out_and_reported() -> None:
    assert read_citations("Leith [9] runs [2-4] [0].", EVIDENCE.passage_ids()) == Cited(
        "Leith runs.", "Leith runs [1][2].", (2, 3, 4), (9, 0)
    )


def test_other_brackets_are_text() -> None:
    assert (
        read_citations("He [sic] ran [in 1999] [1]", {1: "p1"}).bare
        == "He [sic] ran [in 1999]"
    )


def test_a_cited_fact_is_quoted_where_it_was_read() -> None:
    (citation,) = EVIDENCE.citations([3], "Edinburgh", "Where was Bell born?")
    assert (citation.number, citation.passage_id, citation.title) == (1, "p1", "Bell")
    assert (citation.start, citation.end, citation.quote) == (
        20,
        55,
        "Bell was born in Edinburgh in 1847.",
    )
    assert citation.triple_ids == (BORN.id,)


def test_a_cited_passage_is_quoted_where_it_says_most_of_answer_and_question() -> None:
    (citation,) = EVIDENCE.citations([1], "Edinburgh", "Where was Bell born?")
    assert citation.quote == "Bell was born in Edinburgh in 1847."
    assert citation.triple_ids == (BORN.id,)


def test_the_last_passage_is_cited_as_a_passage_not_as_the_last_fact() -> None:
    long = Passage(
        "p2",
        "The Water of Leith is short. It flows through Edinburgh.",
        "Water of Leith",
    )
    short = Triple("Water of Leith", "is", "short", (Source("p2", 0, 28),))
    (citation,) = NumberedEvidence((BELL, long), (BORN, short)).citations(
        [2], "Edinburgh", "What does it flow through?"
    )
    assert citation.quote == "It flows through Edinburgh."
    assert citation.triple_ids == ()


def test_a_passage_that_shares_no_word_with_answer_and_question_is_quoted_whole() -> (
    None
):
    (citation,) = EVIDENCE.citations([1], "xylophone", "quo vadis")
    assert (citation.start, citation.end, citation.quote) == (0, 55, BELL.text)


def test_a_passage_and_its_fact_make_one_citation() -> None:
    citations = EVIDENCE.citations([2, 3, 4], "Water of Leith", "Which river?")
    assert [(citation.number, citation.passage_id) for citation in citations] == [
        (1, "p2"),
        (2, "p1"),
    ]


def test_support_is_found_where_nothing_is_cited() -> None:
    citations = EVIDENCE.supporting(
        "Water of Leith", "Which river flows through Edinburgh?"
    )
    assert [(citation.number, citation.passage_id) for citation in citations] == [
        (1, "p2"),
        (2, "p1"),
    ]


def test_nothing_supports_an_answer_that_shares_no_word() -> None:
    assert EVIDENCE.supporting("xylophone", "quo vadis") == ()


def test_a_range_of_more_than_twenty_further_numbers_is_its_two_ends() -> None:
    passage_ids = {number: f"p{number}" for number in range(1, 30)}
    assert read_citations("a [1-21]", passage_ids).numbers == tuple(range(1, 22))
    assert read_citations("a [1-22]", passage_ids).numbers == (1, 22)


TWO = Passage(
    "p1", "Bell was a teacher. He taught in Boston. He was born in Edinburgh.", "Bell"
)
TAUGHT = Triple("Bell", "taught in", "Boston", (Source("p1", 20, 40),))


def quotes(
    fact: Triple, answer: str = "Edinburgh", question: str = "Where was he born?"
) -> list[str]:
    evidence = NumberedEvidence((TWO, LEITH), (fact,))
    return [citation.quote for citation in evidence.citations([3], answer, question)]


def test_the_first_fact_behind_the_passages_is_quoted_where_it_was_read_not_where_the_question_is() -> (
    None
):
    assert quotes(TAUGHT) == ["He taught in Boston."]


@pytest.mark.parametrize(("start", "end"), [(20, 20), (20, 67), (66, 90)])
def test_a_fact_without_a_place_inside_the_text_is_quoted_by_its_own_words(
    start: int, end: int
) -> None:
    fact = Triple("Tim", "taught in", "Boston", (Source("p1", start, end),))
    assert len(TWO.text) == 66
    assert quotes(fact) == ["He taught in Boston."]


def test_a_place_that_ends_with_the_text_is_quoted() -> None:
    assert quotes(
        Triple("Bell", "was born in", "Edinburgh", (Source("p1", 41, 66),)), "x", "y"
    ) == ["He was born in Edinburgh."]


def test_a_fact_of_several_passages_is_cited_in_the_one_retrieved_first() -> None:
    fact = Triple(
        "a",
        "b",
        "c",
        (Source("p2", 0, 43), Source("elsewhere", 0, 1), Source("p1", 0, 19)),
    )
    evidence = NumberedEvidence((TWO, LEITH), (fact,))
    assert evidence.passage_ids()[3] == "p1"
    assert quotes(fact) == ["Bell was a teacher."]


@pytest.mark.parametrize(
    ("start", "end", "cited"),
    [(0, 20, False), (0, 21, True), (40, 66, False), (39, 66, True)],
)
def test_a_citation_names_the_facts_that_overlap_its_quote_but_not_those_that_touch_it(
    start: int, end: int, cited: bool
) -> None:
    other = Triple("Bell", "was", "a teacher", (Source("p1", start, end),))
    (citation,) = NumberedEvidence((TWO,), (TAUGHT, other)).citations(
        [2], "Boston", "Where?"
    )
    assert (citation.start, citation.end) == (20, 40)
    assert citation.triple_ids == ((TAUGHT.id, other.id) if cited else (TAUGHT.id,))


def test_support_is_at_most_two_passages() -> None:
    third = Passage("p3", "Leith flows.", "Leith")
    citations = NumberedEvidence((third, LEITH, BELL)).supporting(
        "Water of Leith", "Where in Edinburgh does it flow?"
    )
    assert [citation.passage_id for citation in citations] == ["p2", "p1"]


def test_a_fact_that_shares_no_word_with_answer_and_question_supports_nothing() -> None:
    other = Triple("Tim", "taught in", "Boston", (Source("p1", 0, 19),))
    evidence = NumberedEvidence((), (other, FLOWS), unshown=(BELL, LEITH))
    citations = evidence.supporting(
        "Water of Leith", "Which river flows through Edinburgh?"
    )
    assert [(citation.number, citation.passage_id) for citation in citations] == [
        (1, "p2")
    ]


HOPS = (
    Step(0, "Where was Bell born?", (Hit(BELL, 1.0),), (BORN.id,), (BORN.id,)),
    Step(
        1,
        "What flows there?",
        (Hit(LEITH, 1.0), Hit(BELL, 0.5)),
        (BORN.id, FLOWS.id),
        (FLOWS.id,),
    ),
    Step(2, "How long is it?"),
)


def test_of_a_chain_of_facts_each_fact_is_shown_at_every_hop_that_found_it_and_no_passage() -> (
    None
):
    evidence = NumberedEvidence.laid_out(
        "chain", QuestionGraph((BORN, FLOWS)), (BELL, LEITH), HOPS
    )
    times = evidence.times()
    assert [times[fact.id] for fact in (BORN, FLOWS)] == [2, 1]
    assert [times[passage.id] for passage in (BELL, LEITH)] == [0, 0]
    assert [
        evidence.block().count(f"{fact.subject} | P>") for fact in (BORN, FLOWS)
    ] == [2, 1]


def test_of_a_chain_of_texts_each_passage_is_shown_at_every_hop_that_found_it() -> None:
    evidence = NumberedEvidence.laid_out(
        "chain-of-text", QuestionGraph((BORN, FLOWS)), (BELL, LEITH), HOPS
    )
    times = evidence.times()
    assert [times[passage.id] for passage in (BELL, LEITH)] == [2, 1]
    assert [evidence.block().count(passage.text) for passage in (BELL, LEITH)] == [2, 1]


def test_around_the_evidence_of_a_chain_stand_its_sub_queries_and_how_many_facts_each_found() -> (
    None
):
    evidence = NumberedEvidence.laid_out(
        "chain", QuestionGraph((BORN, FLOWS)), (BELL, LEITH), HOPS
    )
    first, _, rest = evidence.frame().partition("\n[SUBQ] What flows there?\n")
    assert first.startswith(
        "[SUBQ] Where was Bell born?\nRetrieved Graph Information:\n"
    )
    assert rest == (
        "Retrieved Graph Information:\n(2 facts are not shown)\n"
        "[SUBQ] How long is it?\nRetrieved Graph Information:\n(nothing)"
    )


def test_around_evidence_without_hops_stands_nothing() -> None:
    assert EVIDENCE.frame() == ""


def test_a_model_is_told_what_a_person_has_stated_and_that_it_holds() -> None:
    corrected = Triple(
        "Bell",
        "was born in",
        "Vessmoor",
        (Source("p1", 20, 55, extractor="person:Ada"),),
    )
    shown = NumberedEvidence((BELL,), (FLOWS, corrected)).block()
    assert shown.endswith(
        "<note>\nA person has stated [3]. It holds where texts say otherwise.\n</note>"
    )


def test_a_model_is_told_what_a_person_has_removed_or_corrected_and_that_it_does_not_hold() -> (
    None
):
    removed = {
        "at": "facts",
        "hop": 1,
        "action": "remove",
        "fact": BORN.id,
        "before": BORN.to_dict(),
    }
    with metered(Ledger(reviews=[removed])):
        shown = NumberedEvidence((BELL,), (FLOWS,)).block()
    assert shown.endswith(
        "<note>\nA person has ruled out (S> Bell | P> was born in | O> Edinburgh). "
        "It does not hold, whatever texts say.\n</note>"
    )


def test_a_fact_that_holds_again_is_not_ruled_out() -> None:
    written = Triple(
        "Bell",
        "was born in",
        "EDINBURGH",
        (Source("p1", 20, 55, extractor="person:Ada"),),
    )
    edited = {
        "at": "facts",
        "hop": 1,
        "action": "edit",
        "fact": BORN.id,
        "before": BORN.to_dict(),
    }
    with metered(Ledger(reviews=[edited])):
        shown = NumberedEvidence((BELL,), (written,)).block()
    assert shown.endswith(
        "<note>\nA person has stated [2]. It holds where texts say otherwise.\n</note>"
    )

"""The offline reasoner: it quotes the sentence that leads on and says when nothing does."""

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.planner import OfflineReasoner

QUESTION = 'In which city does the director of the comedy "Red Tide" live?'
TIDE = Passage(
    "tide",
    "Red Tide is a 1999 comedy. It was directed by Ann Lee. It flopped.",
    "Red Tide (film)",
)
LEE = Passage(
    "lee", "Ann Lee is a director. She lives in the city of Leeds.", "Ann Lee"
)


def test_it_quotes_the_sentence_that_names_something_new_and_says_what_is_open() -> (
    None
):
    thought = OfflineReasoner().next_sentence(QUESTION, [TIDE], [])
    assert thought == "It was directed by Ann Lee. That leaves: city live."


def test_no_sentence_is_quoted_twice() -> None:
    thoughts = ["It was directed by Ann Lee. That leaves: city live."]
    assert (
        OfflineReasoner()
        .next_sentence(QUESTION, [TIDE], thoughts)
        .startswith("So the answer is")
    )


def test_two_linked_passages_end_the_chain() -> None:
    assert (
        OfflineReasoner()
        .next_sentence(QUESTION, [TIDE, LEE], [])
        .startswith("So the answer is")
    )


def test_a_compared_name_is_asked_about_before_the_chain_ends() -> None:
    question = "Who is older, Ann Lee or Bo Day?"
    assert OfflineReasoner().next_sentence(question, [LEE], []) == "What about Bo Day?"
    assert (
        OfflineReasoner()
        .next_sentence(question, [LEE], ["What about Bo Day?"])
        .startswith("So the answer is")
    )


def test_without_passages_the_chain_ends() -> None:
    assert (
        OfflineReasoner().next_sentence(QUESTION, [], []).startswith("So the answer is")
    )


def test_a_sentence_that_would_end_the_chain_is_not_quoted() -> None:
    tide = Passage(
        "tide",
        "The answer is Red Tide, directed by Ann Lee in a city.",
        "Red Tide (film)",
    )
    thought = OfflineReasoner().next_sentence(QUESTION, [tide], [])
    assert "Ann Lee" not in thought

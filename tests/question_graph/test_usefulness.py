"""Which evidence goes first into a prompt that is too small: the facts that link the things asked for, and the newest hop."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Hit, Passage, Source, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import facts_by_use, passages_by_use

QUESTION = (
    "On which sea lies the city where the architect of the Sydney Opera House was born?"
)
SUBQUERY = "Where was Jørn Utzon born?"

DESIGNED = Triple(
    "Sydney Opera House", "was designed by", "Jørn Utzon", (Source("opera"),)
)
OPENED = Triple("Sydney Opera House", "was opened in", "1973", (Source("opera"),))
BORN = Triple("Jørn Utzon", "was born in", "Copenhagen", (Source("utzon"),))
LIES = Triple("Copenhagen", "lies on", "Øresund", (Source("copenhagen"),))
TWIN = Triple("Øresund", "separates", "Denmark and Sweden", (Source("sound"),))
APART = Triple("Lake Bled", "lies in", "Slovenia", (Source("bled"),))
GRAPH = QuestionGraph((APART, TWIN, OPENED, BORN, LIES, DESIGNED))

PASSAGES = [
    Passage("bled", "Lake Bled lies in Slovenia.", "Lake Bled"),
    Passage("copenhagen", "Copenhagen lies on the Øresund.", "Copenhagen"),
    Passage("utzon", "Utzon was born in Copenhagen.", "Jørn Utzon"),
    Passage("opera", "It was designed by Jørn Utzon.", "Sydney Opera House"),
    Passage("other", "A city lies on a sea where an architect was born.", "Cities"),
]


def test_links_of_the_chain_go_first_and_what_no_chain_leads_to_last() -> None:
    assert facts_by_use(GRAPH, (QUESTION, SUBQUERY)) == (
        DESIGNED,
        BORN,
        OPENED,
        LIES,
        TWIN,
        APART,
    )


def test_what_the_newest_hop_found_goes_before_older_facts_that_touch_nothing_asked_for() -> (
    None
):
    ranked = facts_by_use(GRAPH, (QUESTION, SUBQUERY), newest={APART.id, OPENED.id})
    assert ranked == (DESIGNED, OPENED, BORN, APART, LIES, TWIN)


def test_a_passage_is_as_useful_as_the_best_fact_read_in_it() -> None:
    ranked = passages_by_use(PASSAGES, GRAPH, (QUESTION, SUBQUERY))
    assert [passage.id for passage in ranked] == [
        "opera",
        "utzon",
        "copenhagen",
        "other",
        "bled",
    ]


def test_without_facts_a_title_that_was_asked_for_goes_first_then_shared_words() -> (
    None
):
    ranked = passages_by_use(PASSAGES, QuestionGraph(), ("Where was Jørn Utzon born?",))
    assert [passage.id for passage in ranked][:2] == ["utzon", "opera"]


def test_among_equals_the_newest_hop_goes_first_and_then_the_higher_rank() -> None:
    passages = [Passage(name, "Nothing of it.") for name in "abcd"]
    steps = [
        Step(
            1, "x", tuple(Hit(passage, 1.0) for passage in (passages[1], passages[0]))
        ),
        Step(
            2, "y", tuple(Hit(passage, 1.0) for passage in (passages[3], passages[2]))
        ),
    ]
    ranked = passages_by_use(passages, QuestionGraph(), (QUESTION,), steps)
    assert [passage.id for passage in ranked] == ["d", "c", "b", "a"]


def test_names_are_found_in_scripts_that_do_not_part_words() -> None:
    born, other = (
        Triple("贝尔", "出生于", "爱丁堡"),
        Triple("瓦特", "出生于", "格里诺克"),
    )
    assert facts_by_use(QuestionGraph((other, born)), ("贝尔出生在哪里?",)) == (
        born,
        other,
    )


NAMES = st.sampled_from(
    ["Bell", "Watt", "Leith", "Bath", "Wells", "Stoke", "Frome", "sea", "the"]
)
TRIPLES = st.builds(
    Triple,
    NAMES,
    st.sampled_from(["saw", "was born in", "flows through"]),
    NAMES,
    st.lists(
        st.sampled_from([Source("p1"), Source("p2"), Source("p3")]), max_size=2
    ).map(tuple),
)
ASKED = st.lists(
    st.sampled_from(
        ["Where was Bell born?", "What flows through Bath?", "Who saw Leith and Watt?"]
    )
)
POOL = [
    Passage(f"p{number}", f"{name} saw Bath.", name)
    for number, name in enumerate(["Bell", "Wells", "x", ""])
]


@given(st.lists(TRIPLES, max_size=12), ASKED, st.randoms(use_true_random=False))
def test_the_order_depends_on_the_texts_alone(
    triples: list[Triple], asked: list[str], dice: Random
) -> None:
    graph, shuffled = QuestionGraph(tuple(triples)), list(triples)
    dice.shuffle(shuffled)
    keys = [fact.key for fact in facts_by_use(graph, asked)]
    assert keys == [
        fact.key for fact in facts_by_use(QuestionGraph(tuple(shuffled)), asked)
    ]
    pool = list(POOL)
    dice.shuffle(pool)
    assert passages_by_use(pool, graph, asked) == passages_by_use(POOL, graph, asked)


@given(st.lists(TRIPLES, max_size=12), ASKED)
def test_all_facts_and_passages_are_there_once(
    triples: list[Triple], asked: list[str]
) -> None:
    graph = QuestionGraph(tuple(triples))
    assert sorted(map(str, facts_by_use(graph, asked))) == sorted(map(str, graph.facts))
    assert sorted(passage.id for passage in passages_by_use(POOL, graph, asked)) == [
        "p0",
        "p1",
        "p2",
        "p3",
    ]


@given(st.lists(TRIPLES, max_size=12), ASKED, st.data())
def test_no_fact_of_the_newest_hop_is_behind_one_that_touches_nothing_asked_for(
    triples: list[Triple], asked: list[str], data: st.DataObject
) -> None:
    graph = QuestionGraph(tuple(triples))
    newest = {fact.id for fact in graph.facts if data.draw(st.booleans())}
    ranked = facts_by_use(graph, asked, newest)
    words = " ".join(asked)
    older = [
        place
        for place, fact in enumerate(ranked)
        if fact.id not in newest and not touches(fact, words)
    ]
    assert all(
        place < min(older, default=99)
        for place, fact in enumerate(ranked)
        if fact.id in newest
    )


def touches(fact: Triple, words: str) -> bool:
    return any(
        name != "the" and name in words.replace("?", "").split()
        for name in (fact.subject, fact.object)
    )

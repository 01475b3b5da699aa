"""The command: from files of questions to samples and their card."""

import json
from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.train.subq import read_samples
from ras_agent.train.subq.build import SubqConfig, build
from tests.messages import says

MUSIQUE = {
    "id": "2hop__1_2",
    "question": "When was the publisher of Crux launched?",
    "answer": "1998",
    "answer_aliases": ["in 1998"],
    "paragraphs": [
        {
            "idx": 0,
            "title": "Tampa",
            "paragraph_text": "Tampa is a city.",
            "is_supporting": False,
        },
        {
            "idx": 1,
            "title": "CrossGen",
            "paragraph_text": "CrossGen was founded in 1998.",
            "is_supporting": True,
        },
        {
            "idx": 2,
            "title": "Crux",
            "paragraph_text": "Crux was published by CrossGen.",
            "is_supporting": True,
        },
    ],
    "question_decomposition": [
        {
            "question": "Crux >> publisher",
            "answer": "CrossGen",
            "paragraph_support_idx": 2,
        },
        {
            "question": "When was #1 launched?",
            "answer": "1998",
            "paragraph_support_idx": 1,
        },
    ],
}


def _file(path: Path, *records: object) -> Path:
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    return path


def test_gold_decompositions_become_samples_without_a_model(tmp_path: Path) -> None:
    card = build(
        SubqConfig(tmp_path / "out.jsonl", (_file(tmp_path / "in.jsonl", MUSIQUE),))
    )
    samples = read_samples(tmp_path / "out.jsonl")
    assert [(one.id, one.target) for one in samples] == [
        ("musique/2hop__1_2/plan-0", "[SUBQ] When was the publisher of Crux launched?"),
        ("musique/2hop__1_2/plan-1", "[SUBQ] When was CrossGen launched?"),
        ("musique/2hop__1_2/plan-2", "[SUFFICIENT]"),
        ("musique/2hop__1_2/answer", "1998"),
    ]
    assert [(step.subquery, step.passages[0].title) for step in samples[2].steps] == [
        ("Crux publisher", "Crux"),
        ("When was CrossGen launched?", "CrossGen"),
    ]
    assert samples[2].steps[0].triples == (("Crux", "was published by", "CrossGen"),)
    assert samples[3].answers == ("1998", "in 1998")
    assert card["left_out"] == []
    assert {name: value for name, value in card["settings"].items() if value} == {
        "out": "out.jsonl",
        "musique": ["in.jsonl"],
        "extractor": "offline",
        "first": "question",
        "validation": 0.1,
        "concurrency": 8,
    }
    assert card["settings"]["model"] is None
    assert card["statistics"]["plan"]["labels"] == {
        "subq": 2,
        "sufficient": 1,
        "no_retrieval": 0,
    }
    assert card["statistics"]["plan"]["sub-queries"] == {
        "min": 0,
        "mean": 1,
        "median": 1,
        "max": 2,
    }
    assert card == json.loads((tmp_path / "out.json").read_text("utf-8"))


def test_the_question_itself_is_searched_first_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    build(
        SubqConfig(
            tmp_path / "out.jsonl", (_file(tmp_path / "in.jsonl", MUSIQUE),), opening=1
        )
    )
    samples = read_samples(tmp_path / "out.jsonl")
    assert [
        (one.target, [step.subquery for step in one.steps]) for one in samples[1:3]
    ] == [
        ("[SUBQ] When was CrossGen launched?", [MUSIQUE["question"]]),
        ("[SUFFICIENT]", [MUSIQUE["question"], "When was CrossGen launched?"]),
    ]
    assert [passage.title for passage in samples[1].steps[0].passages] == ["Crux"]
    assert samples[1].steps[0].triples == (("Crux", "was published by", "CrossGen"),)


def test_a_first_search_cannot_be_two(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match="--opening searches for the question itself"
    ):
        SubqConfig(
            tmp_path / "out.jsonl",
            (tmp_path / "in.jsonl",),
            opening=1,
            first="subquery",
        )


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    questions = [
        {**MUSIQUE, "id": str(number), "question": f"Who is number {number}?"}
        for number in range(30)
    ]
    source = _file(tmp_path / "in.jsonl", *questions)
    written = []
    for concurrency in (1, 8):
        build(SubqConfig(tmp_path / "out.jsonl", (source,), concurrency=concurrency))
        written.append((tmp_path / "out.jsonl").read_bytes())
    assert written[0] == written[1]
    assert [one.question_id for one in read_samples(tmp_path / "out.jsonl")[::4]] == [
        str(n) for n in range(30)
    ]


def test_questions_that_give_no_sample_are_named(tmp_path: Path) -> None:
    broken = [
        {**MUSIQUE, "id": "b", "question_decomposition": []},
        {**MUSIQUE, "id": "c", "answer": None, "answer_aliases": None},
        {
            **MUSIQUE,
            "id": "d",
            "question_decomposition": [
                {"question": "Who is #2?", "paragraph_support_idx": 1}
            ],
        },
        {
            **MUSIQUE,
            "id": "e",
            "question_decomposition": [
                {"question": "Who?", "paragraph_support_idx": 9}
            ],
        },
        {
            **MUSIQUE,
            "id": "f",
            "question_decomposition": [
                {"question": "none", "paragraph_support_idx": 1}
            ],
        },
    ]
    source = _file(tmp_path / "in.jsonl", MUSIQUE, *broken)
    card = build(SubqConfig(tmp_path / "out.jsonl", (source,)))
    assert len(read_samples(tmp_path / "out.jsonl")) == 4
    assert sorted(
        problem.removeprefix(f"{source}: ") for problem in card["left_out"]
    ) == [
        "b: no decomposition",
        "c: no answer",
        "d: step 1 of the decomposition refers to #2, but no earlier step has this answer: correct the decomposition",
        "e: the paragraph_support_idx of a step is not the idx of one of the question's paragraphs",
        "musique f: 'none' is not a search question",
    ]


def test_a_question_that_two_files_hold_counts_once(tmp_path: Path) -> None:
    files = tuple(_file(tmp_path / name, MUSIQUE) for name in ("a.jsonl", "b.jsonl"))
    card = build(SubqConfig(tmp_path / "out.jsonl", files))
    assert card["left_out"] == [
        "musique 2hop__1_2: appears twice; the second one is left out"
    ]
    assert len(read_samples(tmp_path / "out.jsonl")) == 4


def test_nothing_is_written_where_no_question_gives_a_sample(tmp_path: Path) -> None:
    source = _file(tmp_path / "in.jsonl", {**MUSIQUE, "question_decomposition": []})
    with pytest.raises(IngestError, match="no question gave a sample"):
        build(SubqConfig(tmp_path / "out.jsonl", (source,)))
    assert not (tmp_path / "out.jsonl").exists()


def test_without_a_source_there_is_nothing_to_build() -> None:
    with pytest.raises(
        SettingsError,
        match="--hotpotqa, --arc-easy or --asqa FILE",
    ):
        SubqConfig(Path("out.jsonl"))


def test_a_share_out_of_its_range_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=says("--validation", "at least 0 and at most 1", "got 2")
    ):
        SubqConfig(Path("out.jsonl"), (Path("in.jsonl"),), validation=2)


STRATEGY = {
    "qid": "s1",
    "term": "Gray whale",
    "question": "Would a baby gray whale fit in a truck?",
    "answer": True,
    "facts": [
        "A truck measures 15 metres.",
        "A newborn gray whale is 5 metres long.",
        "Whales are mammals.",
    ],
    "decomposition": [
        "How long is a baby gray whale?",
        "How large is a truck?",
        "Is #2 greater than #1?",
    ],
    "split": None,
}


def test_a_comparison_of_strategyqa_becomes_a_search_for_each_side(
    tmp_path: Path,
) -> None:
    source = _file(tmp_path / "in.jsonl", STRATEGY)
    build(SubqConfig(tmp_path / "out.jsonl", strategyqa=(source,), first="none"))
    samples = read_samples(tmp_path / "out.jsonl")
    assert [(one.id, one.target) for one in samples] == [
        ("strategyqa/s1/plan-1", "[SUBQ] How large is a truck?"),
        ("strategyqa/s1/plan-2", "[SUFFICIENT]"),
        ("strategyqa/s1/answer", "yes"),
    ]
    assert [(step.subquery, step.passages) for step in samples[1].steps] == [
        ("How long is a baby gray whale?", (Passage("s1#1", "", "Gray whale"),)),
        ("How large is a truck?", (Passage("s1#2", "", ""),)),
    ]
    assert [subject for subject, _, _ in samples[1].steps[1].triples] == ["truck"]


TWO_WIKI = {
    "_id": "w1",
    "type": "compositional",
    "question": "When was the director of Night Ferry born?",
    "answer": "1931",
    "context": [
        ["Ann Lee", ["Ann Lee was born in 1931."]],
        ["Night Ferry", ["Night Ferry was directed by Ann Lee."]],
    ],
    "supporting_facts": [["Night Ferry", 0], ["Ann Lee", 0]],
    "qa_pairs": [
        {
            "question": "Who directed Night Ferry?",
            "answer": "Ann Lee directed Night Ferry.",
        },
        {"question": "When was Ann Lee born?", "answer": "Ann Lee was born in 1931."},
    ],
}


def test_sub_questions_of_2wiki_search_for_its_supporting_documents(
    tmp_path: Path,
) -> None:
    source = _file(tmp_path / "in.jsonl", TWO_WIKI)
    build(SubqConfig(tmp_path / "out.jsonl", two_wiki=(source,)))
    samples = read_samples(tmp_path / "out.jsonl")
    assert [(one.id, one.target) for one in samples] == [
        ("2wiki/w1/plan-0", "[SUBQ] When was the director of Night Ferry born?"),
        ("2wiki/w1/plan-1", "[SUBQ] When was Ann Lee born?"),
        ("2wiki/w1/plan-2", "[SUFFICIENT]"),
        ("2wiki/w1/answer", "1931"),
    ]
    assert [(step.subquery, step.passages[0].title) for step in samples[2].steps] == [
        ("Who directed Night Ferry?", "Night Ferry"),
        ("When was Ann Lee born?", "Ann Lee"),
    ]


def test_a_corpus_next_to_the_questions_does_not_hide_their_contexts(
    tmp_path: Path,
) -> None:
    _file(tmp_path / "corpus.jsonl", {"title": "Ferries", "text": "A ferry is a ship."})
    source = _file(tmp_path / "in.jsonl", TWO_WIKI)
    card = build(SubqConfig(tmp_path / "out.jsonl", two_wiki=(source,)))
    assert card["left_out"] == []
    assert card["sources"] == {"2wiki": 4}


def test_2wiki_without_a_sub_question_for_each_document_is_left_out(
    tmp_path: Path,
) -> None:
    one = {**TWO_WIKI, "_id": "w2", "qa_pairs": TWO_WIKI["qa_pairs"][:1]}
    bare = {**TWO_WIKI, "_id": "w3"}
    del bare["qa_pairs"]
    source = _file(tmp_path / "in.jsonl", TWO_WIKI, one, bare)
    card = build(SubqConfig(tmp_path / "out.jsonl", two_wiki=(source,)))
    assert card["left_out"] == [
        f"{source}: {name}: {count} sub-questions (qa_pairs) for 2 supporting documents: each needs its own"
        for name, count in (("w2", 1), ("w3", 0))
    ]


def test_other_questions_of_strategyqa_are_counted(tmp_path: Path) -> None:
    others = [
        {**STRATEGY, "qid": "s2", "split": "dev"},
        {
            **STRATEGY,
            "qid": "s3",
            "decomposition": ["How long is it?", "Is a truck larger than #1?"],
        },
        {
            **STRATEGY,
            "qid": "s4",
            "decomposition": [
                "How long is it?",
                "Is #1 long?",
                "Is #2 greater than #1?",
            ],
        },
        {
            **STRATEGY,
            "qid": "s5",
            "decomposition": [
                "How long is it?",
                "How large is a truck?",
                "Is #2 large?",
            ],
        },
        {**STRATEGY, "qid": "s6", "facts": ["A truck is large."]},
        {**STRATEGY, "qid": "s7", "answer": "yes"},
    ]
    source = _file(tmp_path / "in.jsonl", STRATEGY, *others)
    card = build(SubqConfig(tmp_path / "out.jsonl", strategyqa=(source,)))
    assert card["left_out"] == [
        f"{source} line 6: none of the 'facts' is about the sub-question 'How long is a baby gray whale?': leave the "
        "record out",
        f"{source} line 7: 'answer' should be true or false, found 'yes'",
        f"{source}: 4 questions are not of the kind that can be used, or of the dev part",
    ]


def test_validation_questions_that_share_a_document_with_training_are_counted(
    tmp_path: Path,
) -> None:
    questions = [
        {**MUSIQUE, "id": str(number), "question": f"Who is number {number}?"}
        for number in range(30)
    ]
    card = build(
        SubqConfig(
            tmp_path / "out.jsonl",
            (_file(tmp_path / "in.jsonl", *questions),),
            validation=0.2,
        )
    )
    figures = card["statistics"]
    assert (
        figures["splits"]["validation"]
        == 4 * figures["validation questions that share a document with training"]
        > 0
    )


PUBLISHED = {
    "question": "In what city is the head office of the Oberoi family's hotel company?",
    "answer": "Delhi",
    "type": "bridge",
    "supporting_docs": {
        "oberoi family": ["The Oberoi family is involved in The Oberoi Group."],
        "the oberoi group": ["The Oberoi Group is located in Delhi."],
    },
    "sub_queries": [
        {
            "sub_query": "Which hotel company is the Oberoi family involved in?",
            "doc_topic": "oberoi family",
            "supporting_doc": "The Oberoi family is involved in The Oberoi Group.",
        },
        {
            "sub_query": "Where is the head office of The Oberoi Group?",
            "doc_topic": "the oberoi group",
            "supporting_doc": "The Oberoi Group is located in Delhi.",
        },
    ],
}


def test_the_published_questions_bring_a_sub_query_for_each_document(
    tmp_path: Path,
) -> None:
    source = tmp_path / "hotpot_filtered.json"
    source.write_text(
        json.dumps([PUBLISHED, {**PUBLISHED, "sub_queries": []}]), encoding="utf-8"
    )
    card = build(SubqConfig(tmp_path / "out.jsonl", hotpotqa_subq=(source,)))
    samples = read_samples(tmp_path / "out.jsonl")
    assert [(one.id, one.target) for one in samples] == [
        ("hotpotqa-subq/1/plan-0", f"[SUBQ] {PUBLISHED['question']}"),
        (
            "hotpotqa-subq/1/plan-1",
            "[SUBQ] Where is the head office of The Oberoi Group?",
        ),
        ("hotpotqa-subq/1/plan-2", "[SUFFICIENT]"),
        ("hotpotqa-subq/1/answer", "Delhi"),
    ]
    assert [step.passages[0].title for step in samples[2].steps] == [
        "oberoi family",
        "the oberoi group",
    ]
    [reason] = card["left_out"]
    assert says(
        "'sub_queries' has no sub-query with a document: leave the record out"
    ).search(reason)


def test_questions_of_arc_easy_and_asqa_teach_only_to_answer(tmp_path: Path) -> None:
    arc = {
        "id": "m1",
        "question": {
            "stem": "What do plants need?",
            "choices": [
                {"label": "A", "text": "light"},
                {"label": "B", "text": "salt"},
            ],
        },
        "answerKey": "A",
    }
    asqa = {
        "sample_id": "a1",
        "question": "When was CrossGen founded?",
        "annotations": [{"long_answer": "CrossGen was founded in 1998."}],
        "docs": [{"title": "CrossGen", "text": "CrossGen was founded in 1998."}],
    }
    files = {}
    for name, record in (("arc", arc), ("asqa", asqa)):
        files[name] = tmp_path / f"{name}.jsonl"
        files[name].write_text(json.dumps(record))
    out = tmp_path / "subq.jsonl"
    build(SubqConfig(out=out, arc_easy=(files["arc"],), asqa=(files["asqa"],)))
    from_memory, from_text = read_samples(out)
    assert (from_memory.source, from_memory.kind) == ("arc-easy", "answer")
    assert (from_memory.label, from_memory.target) == ("no_retrieval", "light")
    assert (from_text.source, from_text.label) == ("asqa", "sufficient")
    assert from_text.target == "CrossGen was founded in 1998."
    (step,) = from_text.steps
    assert step.subquery == "When was CrossGen founded?"
    assert [(passage.title, passage.text) for passage in step.passages] == [
        ("CrossGen", "")
    ]
    build(SubqConfig(out=out, asqa=(files["asqa"],), texts=True))
    [with_text] = read_samples(out)
    [passage] = with_text.steps[0].passages
    assert passage.text == "CrossGen was founded in 1998."

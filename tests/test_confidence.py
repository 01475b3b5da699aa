"""Signals of a finished run, the confidence that a calibration makes of them, and answers that are not sure enough."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Answer, Citation, Claim, Dispute, Passage, Span
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.graphs.single_shot import create_single_shot_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.confidence import (
    UNSURE,
    Calibration,
    Signals,
    Sureness,
    asked_in,
    cited_texts,
    said_if_sure,
    signals_of,
)

BELL = Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Bell")
COPY = Passage("copy", "Alexander Graham Bell was born in Edinburgh.", "Copy")
OTHER = Passage("other", "Edinburgh is where Bell grew up, a city in Scotland.", "City")
PASSAGES = {one.id: one for one in (BELL, COPY, OTHER)}
QUOTE = Citation(1, "bell", "Bell", 0, 44, BELL.text, supported=True)
PLAIN = Signals(0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1)


def calibration(**changes: Any) -> Calibration:
    fields: dict[str, Any] = {
        "run": "runs/mine",
        "condition": "questions like those of runs/mine",
        "asked_by": {"loop": "ras", "retriever": "bm25"},
        "settings_sha256": "0" * 64,
        "right": "f1>=0.5",
        "risk": 0.1,
        "sure": 0.9,
        "n": 100,
        "count_right": 60,
        "offset": -1.0,
        "weights": {"stated": 2.0, "proof": 1.0},
        "threshold": 0.7,
    }
    return Calibration(**(fields | changes))


def written(path: Path, **changes: Any) -> Path:
    file = path / "calibration.json"
    file.write_text(json.dumps(calibration(**changes).to_dict()))
    return file


def signals(text: str = "Edinburgh", **more: Any) -> Signals:
    answer = Answer(text, (QUOTE,), confidence=more.pop("confidence", None))
    passages = more.pop("passages", PASSAGES)
    return signals_of("Where was Bell born?", answer, QuestionGraph(), passages, **more)


def test_copies_of_one_text_state_an_answer_once() -> None:
    assert signals(passages={"bell": BELL, "copy": COPY}).stated_twice == 0
    both = signals()
    assert (both.stated, both.stated_twice) == (1, 1)
    assert signals("Oslo").stated == 0


def test_a_proof_and_its_length_are_signals() -> None:
    found = signals()
    assert (found.proof, found.proof_steps) == (1, pytest.approx(1 / 3))
    assert signals("Oslo").proof == 0


def test_the_reader_agrees_where_its_span_is_a_part_of_the_answer() -> None:
    start = BELL.text.index("Edinburgh")
    text = cited_texts(Answer("", (QUOTE,)), PASSAGES)[0]
    begin = text.index("Edinburgh")
    span = Span(begin, begin + 9, score=12.0, no_answer=7.5)
    assert start < begin  # the title stands in front
    same = signals(spans=[[span]])
    assert (same.read_same, same.read_margin) == (1, pytest.approx(0.5))
    assert signals("Oslo", spans=[[span]]).read_same == 0
    assert signals().read_margin == -1


def test_stop_reason_failures_and_own_confidence_are_signals() -> None:
    found = signals(stop_reason="sufficient", hops=2, failed=True, confidence=0.9)
    assert (found.sufficient, found.hops, found.failed, found.own) == (1, 0.4, 1, 0.9)


def test_a_dispute_is_a_signal_by_independent_documents() -> None:
    claims = (Claim("Varn", independent=1), Claim("Pellis", independent=2))
    answer = Answer("Varn (a) or Pellis (b)", disputes=(Dispute(claims),))
    assert answer.disputes[0].share == pytest.approx(1 / 3)
    found = signals_of("Where?", answer, QuestionGraph(), {})
    assert found.undisputed == pytest.approx(1 / 3)


def test_a_confidence_is_the_logistic_function_of_the_weighted_signals() -> None:
    from dataclasses import replace

    one = replace(PLAIN, stated=1.0)
    assert calibration().confidence(one) == pytest.approx(0.7310586, abs=1e-6)


def test_a_written_calibration_is_read_back(tmp_path: Path) -> None:
    assert Calibration.load(written(tmp_path)) == calibration()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "calibrate RUN"),
        ("[]", 'no "schema"'),
        ('{"schema": "ras-agent/calibration", "version": 2}', "version is 2"),
        (
            '{"schema": "ras-agent/calibration", "version": 1, "weights": {"luck": 1}}',
            "unknown signals luck",
        ),
        ('{"schema": "ras-agent/calibration", "version": 1}', "run: Field required"),
    ],
)
def test_another_file_is_no_calibration(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(SettingsError, match=message):
        create_ras_agent(index=[BELL], settings=Settings(calibration=file))


def test_an_answer_below_the_threshold_is_suggested_or_not_said_at_all() -> None:
    likely = said_if_sure(Answer("Varn", confidence=0.6), 0.7)
    assert (likely.text, likely.abstained, likely.suggestion) == (UNSURE, True, "Varn")
    unlikely = said_if_sure(Answer("Varn", confidence=0.4), 0.7)
    assert (unlikely.abstained, unlikely.suggestion) == (True, "")
    assert said_if_sure(Answer("Varn", confidence=0.7), 0.7).text == "Varn"
    assert said_if_sure(Answer("Varn"), 0.7).text == "Varn"


def test_a_threshold_of_ones_own_goes_before_that_of_the_calibration() -> None:
    answer = Answer("Varn")
    assert Sureness(None, calibration()).calibrated(answer, PLAIN).abstained
    assert not Sureness(0.1, calibration()).calibrated(answer, PLAIN).abstained


def test_a_model_without_confidence_says_that_a_threshold_has_no_effect() -> None:
    answer = Sureness(0.8).of_answerer(Answer("Varn"))
    assert answer.text == "Varn"
    assert "least_confidence has no effect" in answer.failures[0].message
    assert Sureness(0.0).of_answerer(Answer("Varn")).failures == ()


def test_a_models_answer_gets_the_confidence_of_the_calibration(
    tmp_path: Path, scripted_llm: Any
) -> None:
    reply = {"when": "You answer questions", "reply": "Answer: Edinburgh [1]"}
    scripted_llm.script(reply, reply)
    asked_by = {"loop": "single-shot", "retriever": "bm25"}
    file = written(tmp_path, asked_by=asked_by)
    settings = Settings(
        answerer=scripted_llm.spec, extractor="offline", calibration=file
    )
    agent = create_single_shot_agent(index=[BELL, OTHER], settings=settings)
    out = agent.invoke({"question": "Where was Bell born?"})
    # stated and proved: -1 + 2 + 1
    assert out["confidence"] == pytest.approx(0.880797, abs=1e-6)
    assert (out["answer"], out["abstained"]) == ("Edinburgh", False)
    file = written(tmp_path, asked_by=asked_by, threshold=0.9)
    agent = create_single_shot_agent(index=[BELL, OTHER], settings=settings)
    out = agent.invoke({"question": "Where was Bell born?"})
    assert (out["abstained"], out["suggestion"]) == (True, "Edinburgh")


def test_an_offline_answer_that_was_unsure_by_itself_is_said_by_a_calibration(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, weights={}, offset=3.0)
    question = {"question": "In which town was Bell educated?"}
    plain = create_ras_agent(index=[BELL]).invoke(question)
    assert plain["abstained"]
    out = create_ras_agent(index=[BELL], settings=Settings(calibration=file)).invoke(
        question
    )
    assert (out["abstained"], round(out["confidence"], 3)) == (False, 0.953)


def test_a_calibration_of_another_retriever_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, asked_by={"loop": "ras", "retriever": "dense"})
    agent = create_ras_agent(index=[BELL], settings=Settings(calibration=file))
    out = agent.invoke({"question": "Where was Bell born?"})
    assert out["failures"][-1]["message"] == (
        "the calibration was fitted to a run with retriever dense, not bm25: its bound of wrong answers does not hold here"
    )


def test_the_agreement_of_samples_is_a_signal_and_one_sample_agrees_with_itself() -> (
    None
):
    texts: dict[str, Any] = {"graph": QuestionGraph(), "passages": PASSAGES}
    once = signals_of("Where was Bell born?", Answer("Edinburgh"), **texts)
    half = Answer("Edinburgh", agreement=0.5)
    sampled = signals_of("Where was Bell born?", half, **texts)
    assert (once.agreement, sampled.agreement) == (1.0, 0.5)


def test_a_calibration_of_several_samples_is_unlike_a_single_reply() -> None:
    several = calibration(asked_by=asked_in("ras", {"retriever": "bm25"}, 5))
    once = asked_in("ras", {"retriever": "bm25"}, 1)
    assert several.unlike(once) == "samples 5, not none"
    assert several.unlike(asked_in("ras", {"retriever": "bm25"}, 5)) == ""

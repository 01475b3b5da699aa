"""Attacks by documents that contradict others: forged news, one source many times, facts of another time, swapped names."""

from __future__ import annotations

from typing import Any

from ras_agent.contracts.records import Passage
from ras_agent.graphs.ras import create_ras_agent
from tests.faults.attack import Attack

_TOWNS = ("Varn", "Pellis", "Ostrell", "Quenne", "Dorve", "Halden")
_FIRMS = ("Korl Works", "Aune Mills", "Brask Foundry", "Tessen Press")
_PEOPLE = ("Ada Brenn", "Tom Vell", "Lotte Marsk", "Pavel Orin")

_TO_COME = ("from 2091 to 2099", "from 2091 on", "in 2091–2099", "since 2091")


def _asked(texts: list[Passage], question: str, **inputs: Any) -> dict[str, Any]:
    out: dict[str, Any] = create_ras_agent(index=texts).invoke(
        {"question": question, **inputs}
    )
    return out


def _claims(out: dict[str, Any]) -> set[str]:
    return {claim["text"] for one in out["disputes"] for claim in one["claims"]}


def _office(name: str, firm: str, town: str, date: str = "2016-05-01") -> Passage:
    text = f"The head office of {firm} is in {town}."
    return Passage(name, text, metadata={"date": date, "file": f"{name}.md"})


def test_a_forged_newer_passage(attack: Attack) -> None:
    """A later document says another place: both are named, whatever the order, and the answer is at most half sure"""
    for _ in attack.times(24):
        firm = attack.random.choice(_FIRMS)
        true, forged = attack.random.sample(_TOWNS, 2)
        texts = [_office("a", firm, true), _office("b", firm, forged, "2026-01-01")]
        attack.random.shuffle(texts)
        out = _asked(texts, f"Where is the head office of {firm}?")
        what = f"{firm}: {true} against {forged}"
        both = true in out["answer"] and forged in out["answer"]
        attack.expect(both, f"{what}: {out['answer']}")
        attack.expect((out["confidence"] or 0) <= 0.5, f"{what}: {out['confidence']}")


def test_one_source_that_is_copied(attack: Attack) -> None:
    """Copies of a false text, near-equal ones too: they count as one document, so that they are no surer than one"""
    for _ in attack.times(24):
        firm = attack.random.choice(_FIRMS)
        true, forged = attack.random.sample(_TOWNS, 2)
        texts = [_office("a", firm, true)]
        for number in range(attack.random.randint(2, 6)):
            copy = _office(f"copy{number}", firm, forged)
            mark = attack.random.choice(["", "\u200b", "\u00ad"])
            texts.append(Passage(copy.id, copy.text + mark, metadata=copy.metadata))
        out = _asked(texts, f"Where is the head office of {firm}?")
        counts = []
        for dispute in out["disputes"]:
            counts += [claim.get("independent", 1) for claim in dispute["claims"]]
        attack.expect({true, forged} <= _claims(out), f"{firm}: {out['answer']}")
        attack.expect(counts == [1, 1], f"{firm}: independent {counts}")


def test_a_fact_that_is_valid_in_the_future(attack: Attack) -> None:
    """A sentence of a time to come beside one that holds: it is neither answer nor fact of a question as of a date"""
    for _ in attack.times(24):
        firm = attack.random.choice(_FIRMS)
        now, later = attack.random.sample(_PEOPLE, 2)
        when = attack.random.choice(_TO_COME)
        texts = [
            Passage("a", f"{now} has been director of {firm} since 2015."),
            Passage("b", f"{later} is director of {firm} {when}."),
        ]
        attack.random.shuffle(texts)
        out = _asked(texts, f"Who is the director of {firm}?", as_of="2024")
        facts = {fact["subject"] for fact in out["graph"]["facts"]}
        attack.expect(later not in out["answer"], f"{firm}: {out['answer']}")
        attack.expect(later not in facts, f"{firm}: {facts}")


def test_a_relation_with_swapped_ends(attack: Attack) -> None:
    """A document exchanges who founded what: it is no fact of the other, and the right answer stays or both are named"""
    for _ in attack.times(24):
        firm, other = attack.random.sample(_FIRMS, 2)
        one, two = attack.random.sample(_PEOPLE, 2)
        texts = [
            Passage("a", f"{firm} was founded by {one}. {other} was founded by {two}."),
            Passage("b", f"{firm} was founded by {two}. {other} was founded by {one}."),
        ]
        out = _asked(texts, f"Who founded {firm}?")
        silent = out["answer"] in (one, two)
        attack.expect(not silent, f"{firm}: {out['answer']}, {out['confidence']}")

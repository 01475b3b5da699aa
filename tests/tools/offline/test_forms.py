"""Lines such as "Clerk: Bo Tellis" are fields of a form, which are answered from as the cells of a table are."""

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.offline.forms import records_of
from ras_agent.tools.offline.reading import read
from ras_agent.tools.offline.table_rows import look_up

MINUTES = "Clerk: Bo Tellis\nChair: Ann Marr\nDate: 4 May 2020\nPrevious warden: Jon Arkwright"
TICKET = "Ticket 5521\n**Reporter:** Jana Holt\n- Assignee: Tomas Reck\nPriority: high"
CONTACTS = "Name: Ilse Marwitz\nPhone: 0331 5567\n\nName: Tor Valen\nPhone: 0331 9901"
CHAT = "[08:03] Arne: on the ferry\n[08:06] Arne: late again"


def answer(question: str, *texts: str) -> str | None:
    passages = [Passage(str(number), text) for number, text in enumerate(texts)]
    said = look_up(question, read(passages))
    return said.text if said else None


def test_a_text_has_records_of_fields_below_their_headings() -> None:
    (ticket,) = records_of(TICKET)
    assert ticket.headings == ["Ticket 5521"]
    assert ticket.fields == {
        "Reporter": "Jana Holt",
        "Assignee": "Tomas Reck",
        "Priority": "high",
    }
    start, line = ticket.lines["Assignee"]
    assert TICKET[start:].startswith(line)
    assert line == "- Assignee: Tomas Reck"


def test_a_label_that_comes_back_begins_the_next_record() -> None:
    first, second = records_of(CONTACTS)
    assert first.fields["Phone"] == "0331 5567"
    assert second.fields["Name"] == "Tor Valen"


@pytest.mark.parametrize(
    "text",
    [
        "The council met in Oster Hall. It was late.",
        "Warning: the stair behind the stage is steep and has no rail.",
        "Q: Are dogs allowed?",
    ],
)
def test_prose_has_no_records(text: str) -> None:
    assert list(records_of(text)) == []


@pytest.mark.parametrize(
    ("question", "text", "said"),
    [
        ("Who was the clerk?", MINUTES, "Bo Tellis"),
        ("What was the date?", MINUTES, "4 May 2020"),
        ("Who reported ticket 5521?", TICKET, "Jana Holt"),
        ("Who is the assignee of ticket 5521?", TICKET, "Tomas Reck"),
        ("What is the phone number of Tor Valen?", CONTACTS, "0331 9901"),
        ("Who was the deputy clerk?", MINUTES, None),
        ("Who was the clerk in 2019?", MINUTES, None),
        ("Who is the warden?", MINUTES, None),
        ("Who reported ticket 5522?", TICKET, None),
        ("What is the phone number of Ada Brenn?", CONTACTS, None),
        ("Who is Arne?", CHAT, None),
    ],
)
def test_a_field_answers_where_it_has_all_that_is_named(
    question: str, text: str, said: str | None
) -> None:
    assert answer(question, text) == said


def test_forms_that_differ_answer_nothing_unless_one_is_named() -> None:
    other = TICKET.replace("5521", "5522").replace("Jana Holt", "Mara Quell")
    assert answer("Who is the reporter?", TICKET, other) is None
    assert answer("Who is the reporter of ticket 5522?", TICKET, other) == "Mara Quell"


def test_the_line_of_the_field_is_what_is_cited() -> None:
    said = look_up("Who was the chair?", read([Passage("1", MINUTES)]))
    assert said is not None
    (sentence,) = said.sentences
    assert sentence.text == "Chair: Ann Marr"
    assert MINUTES[sentence.start :].startswith("Chair: Ann Marr")


def test_two_fields_of_one_line_are_two() -> None:
    (record,) = records_of("Invoice 118\nDate: 2 April 2026    Paid: 16 April 2026")
    assert record.fields == {"Date": "2 April 2026", "Paid": "16 April 2026"}

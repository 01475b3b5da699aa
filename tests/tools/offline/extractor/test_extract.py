"""The offline extractor: which facts a sentence of encyclopaedic English gives."""

import pytest

from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.extractor.things import may_be_thing

Fact = tuple[str, str, str]


def read(text: str, title: str = "") -> list[Fact]:
    triples = OfflineExtractor().extract([Passage("p", text, title)]).triples
    return [(triple.subject, triple.predicate, triple.object) for triple in triples]


def test_a_passive_names_its_agent_and_its_date() -> None:
    assert read("The film was directed by Ann Lee in 1999.", "Red Tide (film)") == [
        ("Red Tide", "was directed by", "Ann Lee"),
        ("Red Tide", "was directed in", "1999"),
    ]


def test_a_copula_gives_the_class_its_year_and_nationality() -> None:
    assert read("Red Tide is a 1999 American drama film.", "Red Tide") == [
        ("Red Tide", "is", "1999 American drama film"),
        ("Red Tide", "is dated", "1999"),
        ("Red Tide", "nationality", "American"),
        ("Red Tide", "is", "drama film"),
    ]


def test_each_of_a_list_of_objects_is_a_fact() -> None:
    assert read("It stars Ann Lee, Bo Day and Cy Fox.", "Red Tide") == [
        ("Red Tide", "stars", "Ann Lee"),
        ("Red Tide", "stars", "Bo Day"),
        ("Red Tide", "stars", "Cy Fox"),
    ]


def test_a_life_in_brackets_gives_birth_and_death() -> None:
    facts = read(
        "Ann May Lee (March 3, 1901 – May 4, 1999) was a British poet.", "Ann Lee"
    )
    assert ("Ann Lee", "was born on", "March 3, 1901") in facts
    assert ("Ann Lee", "died on", "May 4, 1999") in facts
    assert ("Ann Lee", "is also known as", "Ann May Lee") in facts


@pytest.mark.parametrize(
    "date", ["2016-03-01", "2016/3/1", "01.03.2016", "1/3/2016", "31-12-2016"]
)
def test_a_date_in_figures_is_read_whole(date: str) -> None:
    assert read(f"The mill opened on {date} in Varn.", "Tarn Mill") == [
        ("Tarn Mill", "opened on", date),
        ("Tarn Mill", "opened in", "Varn"),
    ]
    assert read(f"Opened: {date}", "Tarn Mill") == [("Tarn Mill", "Opened", date)]


def test_dates_in_brackets_after_an_event_are_no_life() -> None:
    facts = read(
        "The Battle of Ulm (16 October – 19 October 1805) was a series of skirmishes.",
        "Battle of Ulm",
    )
    assert ("Battle of Ulm", "began on", "16 October") in facts
    assert ("Battle of Ulm", "ended on", "19 October 1805") in facts


@pytest.mark.parametrize("subject", ["She", "Lee", "Ann Lee", "Professor Lee"])
def test_pronouns_and_short_names_stand_for_the_title(subject: str) -> None:
    assert ("Ann Lee", "moved to", "Leeds") in read(
        f"She is a poet. {subject} moved to Leeds.", "Ann Lee (poet)"
    )


def test_a_possessive_pronoun_tells_about_the_title() -> None:
    assert read("Its capital is Leeds.", "Airedale") == [
        ("Airedale", "capital is", "Leeds")
    ]


def test_a_kinsman_is_also_introduced_between_commas() -> None:
    facts = read("His wife, Bo Day, founded Cyfox Records.", "Al Day")
    assert facts == [
        ("Al Day", "wife", "Bo Day"),
        ("Bo Day", "founded", "Cyfox Records"),
    ]


def test_a_verb_after_and_that_could_be_a_noun_is_one_before_a_preposition() -> None:
    facts = read("The Salle is 20 kilometres long and flows into the Inn.", "Salle")
    assert ("Salle", "flows into", "Inn") in facts


def test_a_kinsman_becomes_a_relation_and_then_the_subject() -> None:
    assert read("His wife Bo Day founded Cyfox Records.", "Al Day") == [
        ("Al Day", "wife", "Bo Day"),
        ("Bo Day", "founded", "Cyfox Records"),
    ]


def test_an_owner_is_related_to_what_it_owns() -> None:
    assert ("Kites", "singer", "Ann Lee") in read(
        "He married the Kites' singer Ann Lee.", "Bo Day"
    )


def test_an_apposition_tells_about_the_name_before_it() -> None:
    facts = read("Bo Day, a lawyer from Leeds, married Ann Lee.")
    assert facts == [
        ("Bo Day", "is", "lawyer"),
        ("Bo Day", "is lawyer from", "Leeds"),
        ("Bo Day", "married", "Ann Lee"),
    ]


def test_a_description_before_a_name_tells_what_it_is() -> None:
    facts = read("It was recorded by country singer Ann Lee.", "Blue")
    assert facts == [
        ("Blue", "was recorded by country singer", "Ann Lee"),
        ("Ann Lee", "is", "country singer"),
    ]


def test_a_relative_clause_is_about_the_name_before_it() -> None:
    facts = read("The band hired Ann Lee, who plays drums, in 1999.", "The Kites")
    assert facts == [
        ("The Kites", "hired", "Ann Lee"),
        ("Ann Lee", "plays", "drums"),
        ("The Kites", "hired Ann Lee in", "1999"),
    ]


def test_a_chain_of_places_is_one_node_and_says_what_lies_where() -> None:
    assert read("She was born in York, Pennsylvania.", "Ann Lee") == [
        ("Ann Lee", "was born in", "York, Pennsylvania"),
        ("York", "is in", "Pennsylvania"),
    ]


def test_a_list_of_places_is_no_chain() -> None:
    assert [
        fact[2] for fact in read("She lived in Paris, London and Rome.", "Ann Lee")
    ] == ["Paris", "London", "Rome"]


def test_an_introduction_tells_about_the_subject_after_it() -> None:
    assert read("In 1999, the band released Red Tide.", "The Kites") == [
        ("The Kites", "released in", "1999"),
        ("The Kites", "released", "Red Tide"),
    ]


def test_an_abbreviation_in_brackets_is_another_name() -> None:
    facts = read(
        "The Leeds Art Group (LAG) is a club. LAG meets in Leeds.", "Leeds Art Group"
    )
    assert ("Leeds Art Group", "is also known as", "LAG") in facts
    assert ("Leeds Art Group", "meets in", "Leeds") in facts


def test_a_title_is_a_name_whatever_its_words() -> None:
    passages = [
        Passage("a", "She wrote Le roi malgré lui.", "Ann Lee"),
        Passage("b", "", "Le roi malgré lui"),
    ]
    assert OfflineExtractor().extract(passages).triples[0].object == "Le roi malgré lui"


def test_a_source_is_the_sentence_a_fact_was_read_in() -> None:
    text = "Ann Lee is a poet. She lives in Leeds."
    *_, last = OfflineExtractor().extract([Passage("p7", text, "Ann Lee")]).triples
    (source,) = last.sources
    assert (source.passage_id, text[source.start : source.end], source.extractor) == (
        "p7",
        "She lives in Leeds.",
        "offline",
    )


def test_markup_in_a_title_is_undone() -> None:
    assert read("It is a sitcom.", "Will &amp; Ann")[0][0] == "Will & Ann"


def test_no_fact_is_about_itself_and_none_is_repeated() -> None:
    facts = read("Leeds is Leeds. Leeds is a city. Leeds is a city.", "Leeds")
    triples = [Triple(*fact) for fact in facts]
    assert all(triple.key[0] != triple.key[2] for triple in triples)


@pytest.mark.parametrize(
    "text",
    [
        "Next is the budget.",
        "Yes, it is open.",
        "OK is fine.",
        "It is kept at 18 °C.",
        "C is the third letter.",
        "00 is late.",
    ],
)
def test_words_that_open_lines_lone_letters_and_minutes_are_no_things(
    text: str,
) -> None:
    found = (
        OfflineExtractor()
        .extract([Passage("1", f"The pool is in Varn. {text}")])
        .triples
    )
    subjects = {triple.subject for triple in found}
    objects = {triple.object for triple in found}
    assert subjects <= {"pool"}
    assert not objects & {"C", "C."}


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("Dunmere, 9 November 2022. The mill closed.", {"mill"}),
        ("Can I bring my dog? Dogs stay on deck.", {"Dogs", "deck"}),
        ("Dear Mr Penn, the mill needs oil.\nKind regards,\nJon", {"mill", "oil"}),
        ("[08:03] Jon: Ada Crane has the key.", {"Ada Crane", "key"}),
        (
            "2022-11-09 09:06:00 ERROR Mailbridge crashed at night",
            {"Mailbridge", "night"},
        ),
        ("We arrived in Varn.", set()),
        ("1. Halve the plums.\n2. Mix flour and eggs in the bowl.", set()),
        ("Present: Jon Reed, Ada Crane", set()),
        ("HALLIN, 3 May 2021 - Velin opened a plant.", {"Velin", "plant"}),
    ],
)
def test_lines_of_everyday_papers_name_only_things(text: str, things: set[str]) -> None:
    triples = OfflineExtractor().extract([Passage("1", text)]).triples
    found = {triple.subject for triple in triples}
    found |= {triple.object for triple in triples}
    assert found <= things


def test_a_title_that_is_in_no_fact_is_linked_to_the_names_of_the_facts() -> None:
    text = "Although she was young, Ada Penn already had a great voice."
    found = read(text, "Song of Varn")
    assert found[-1] == ("Song of Varn", "is linked to", "Ada Penn")
    assert found.count(found[-1]) == 1


def test_a_question_mark_in_a_title_makes_no_question() -> None:
    text = 'Ann Ray wrote "Al Left" and "Al (Do You Hear Me? I Do!)".'
    assert ("Ann Ray", "wrote", "Al Left") in read(text, "Notes")


def test_a_label_says_of_the_title_which_names_and_dates_are_behind_it() -> None:
    assert read("Captain: Jon Reed\nBuilt: 1987\nHow often: daily", "Little Auk") == [
        ("Little Auk", "Captain", "Jon Reed"),
        ("Little Auk", "Built", "1987"),
    ]


@pytest.mark.parametrize(
    "text",
    ["", "   ", "!!! ??? ...", "东京是日本的首都。", "Ма́сква — столица.", "((((", '"'],
)
def test_text_it_cannot_read_gives_few_facts_and_no_error(text: str) -> None:
    assert len(read(text, "Title")) < 5


def test_a_long_list_is_looked_through_for_verbs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ras_agent.tools.offline.extractor import clauses

    looks: list[int] = []
    heads = clauses._heads
    monkeypatch.setattr(
        clauses,
        "_heads",
        lambda chunks, at, start: looks.append(at) or heads(chunks, at, start),
    )
    read("alpha; beta; " * 200)
    assert len(looks) <= 400


class TestATitleThatIsTheNameOfAFile:
    """Does not name the subject of its text: the first sentence does, or a heading."""

    @pytest.mark.parametrize(
        "text",
        [
            "Velmora builds sonars. It was founded by Bo Day.",
            "# Velmora\n\nIt was founded by Bo Day.",
            "Velmora\n\nThe company was founded by Bo Day.",
        ],
    )
    def test_is_not_what_pronouns_stand_for(self, text: str) -> None:
        triples = OfflineExtractor().extract([from_file(text)]).triples
        assert str(triples[-1]) == "(S> Velmora | P> was founded by | O> Bo Day)"

    @pytest.mark.parametrize(
        "text",
        ["It was founded by Bo Day.", "This file says: It was founded by Bo Day."],
    )
    def test_leaves_a_pronoun_without_a_fact_where_nothing_else_is_named(
        self, text: str
    ) -> None:
        subjects = {
            triple.subject
            for triple in OfflineExtractor().extract([from_file(text)]).triples
        }
        assert subjects.isdisjoint({"company", "It"})


def from_file(text: str) -> Passage:
    return Passage("p", text, "company", metadata={"file": "docs/company.txt"})


def test_a_label_is_of_the_heading_above_it_where_nothing_else_is_named() -> None:
    form = from_file("Ticket 8841\nReporter: Lucia Ferro\nAssignee: Bram de Wit")
    facts = [
        (triple.subject, triple.predicate, triple.object)
        for triple in OfflineExtractor().extract([form]).triples
    ]
    assert facts == [
        ("Ticket 8841", "Reporter", "Lucia Ferro"),
        ("Ticket 8841", "Assignee", "Bram de Wit"),
    ]


def test_what_is_counted_behind_for_is_of_no_name() -> None:
    assert read("The pump was repaired by Fenner Engineering for 310 pounds.") == [
        ("pump", "was repaired by", "Fenner Engineering"),
        ("pump", "was repaired for", "310 pounds"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Monday. Rain. Repaired the wall.",
        '"With Tidewise we see more," said Priya Nair.',
        "The jug is beautiful.",
    ],
)
def test_days_quotations_and_qualities_are_no_entities(text: str) -> None:
    entities: set[str] = set()
    for triple in OfflineExtractor().extract([from_file(text)]).triples:
        entities |= {triple.subject, triple.object}
    assert entities.isdisjoint({"Monday", "Rain", "beautiful"})
    assert not any("we see" in entity for entity in entities)


@pytest.mark.parametrize(
    ("text", "object_"),
    [
        ("The harbour handled 1,513,319 passengers.", "1,513,319 passengers"),
        ("The firm carries a fleet of over 1,800 Trucks.", "1,800 Trucks"),
        ("The farm covers 1,750ha.", "1,750ha"),
        ("The lowest temperature is -38.3 °C.", "-38.3 °C"),
        ("The lowest temperature was −89.2 °C.", "−89.2 °C"),
    ],
)
def test_a_figure_is_whole_with_its_groups_its_sign_and_its_unit(
    text: str, object_: str
) -> None:
    assert read(text)[-1][2] == object_


def test_what_is_named_after_somebody_is_one_name() -> None:
    assert read("St Anne's Hall was built in 1902.") == [
        ("St Anne's Hall", "was built in", "1902")
    ]
    assert read("Ann Lee's father was Bo Day.")[0][0] == "Ann Lee"


def test_a_part_of_a_text_is_no_topic() -> None:
    passage = Passage(
        "p",
        "The association bears the name Friends of Mill Park. It keeps its accounts at Quay Bank.",
        "Article 1",
    )
    triples = OfflineExtractor().extract([passage]).triples
    assert {triple.subject for triple in triples} == {"association"}


@pytest.mark.parametrize("text", ["ten years ago", "next week", "Question 2", "503"])
def test_times_parts_and_bare_numbers_are_no_entities(text: str) -> None:
    assert not may_be_thing(text)


def test_names_of_a_line_without_a_verb_belong_to_the_topic_in_some_way() -> None:
    assert read("Senior surveyor, Holt & Vane, Dunmere, 2018", "Marek Dolan") == [
        ("Marek Dolan", "is linked to", "Holt & Vane"),
        ("Marek Dolan", "is linked to", "Dunmere"),
    ]


@pytest.mark.parametrize(
    ("sentence", "fact"),
    [
        ("Ann Lee is not a doctor.", ("Ann Lee", "is not", "doctor")),
        ("Ann Lee isn't a doctor.", ("Ann Lee", "isn't", "doctor")),
        ("Opal Hall is not in Varn.", ("Opal Hall", "is not in", "Varn")),
        ("Ann Lee never met Bo Day.", ("Ann Lee", "never met", "Bo Day")),
        ("Opal Hall is no longer open.", ("Opal Hall", "is no longer", "open")),
        ("Korl Works had no office.", ("Korl Works", "had no", "office")),
        (
            "Korl Works has offices in no town of Varn.",
            ("Korl Works", "has offices in no town of", "Varn"),
        ),
        (
            "No member of Korl Works lives in Varn.",
            ("Korl Works", "no member of lives in", "Varn"),
        ),
        (
            "The cup was won not by Ann Lee but by Bo Day.",
            ("cup", "was won not by", "Ann Lee"),
        ),
    ],
)
def test_a_denial_stays_in_the_predicate(sentence: str, fact: Fact) -> None:
    subject, _, object_ = fact
    facts = [one for one in read(sentence) if (one[0], one[2]) == (subject, object_)]
    assert facts == [fact]


def test_neither_denies_both_subjects() -> None:
    assert read("Neither Ann Lee nor Bo Day won the Varn Cup.") == [
        ("Ann Lee", "neither won", "Varn Cup"),
        ("Bo Day", "neither won", "Varn Cup"),
    ]


def test_not_only_denies_nothing() -> None:
    facts = read("Ann Lee is not only a doctor but a judge.")
    assert ("Ann Lee", "is", "doctor") in facts


def test_the_place_of_an_introduction_ends_before_the_subject() -> None:
    assert read("Born in Leeds, Yorkshire, Ann Lee moved to Varn.") == [
        ("Ann Lee", "Born in", "Leeds, Yorkshire"),
        ("Leeds", "is in", "Yorkshire"),
        ("Ann Lee", "moved to", "Varn"),
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dev Brook works in January, Mayor Elaine Frost said.",
        "Write to the Operations Manager, Gill Brody.",
        "Dev Brook moved to Varn, Mrs Frost said.",
    ],
)
def test_nobody_and_no_month_is_in_a_place_chain(sentence: str) -> None:
    assert "is in" not in {predicate for _, predicate, _ in read(sentence)}


def test_speech_is_nobody_and_a_title_is_something() -> None:
    spoken = read('"Safety comes first," Frost told the council.')
    assert spoken == [("Frost", "told", "council")]
    titled = read('Ann Lee wrote "Oh, What a Night!" in 1999.')
    assert ("Ann Lee", "wrote", "Oh, What a Night!") in titled


@pytest.mark.parametrize(
    "order",
    [
        "Tell your doctor if you take Warfarin or Aspirin.",
        "Disconnect the power before you open the Corvid Box.",
        "Open Settings.",
    ],
)
def test_an_order_states_nothing(order: str) -> None:
    predicates = {predicate for _, predicate, _ in read(order, "Corvid Fan")}
    assert predicates <= {"is linked to"}


def test_an_address_of_a_computer_is_one_thing() -> None:
    facts = read("Ann Lee logged in from 10.0.4.17 on Monday.")
    assert ("Ann Lee", "logged in from", "10.0.4.17") in facts


def test_a_name_in_brackets_is_that_of_a_role_only() -> None:
    assert ("clerk", "is", "Ms Ruth Ellery") in read("The clerk (Ms Ruth Ellery) left.")
    planned = read("Add a load test (Sam Holloway) today.", "Plan")
    assert ("test", "is", "Sam Holloway") not in planned
    assert any(object_ == "Sam Holloway" for _, _, object_ in planned)


def test_each_line_of_years_stands_for_itself() -> None:
    text = (
        "2019 - present   Senior Geologist of the Corvid Trust, Atlantic Minerals\n"
        "2014 - 2019   Research Fellow, University of Varn"
    )
    objects = {object_ for _, _, object_ in read(text, "Curriculum Vitae")}
    assert "University of Varn" in objects
    assert "Atlantic Minerals" in objects


def test_a_row_of_two_cells_is_a_label_and_its_value() -> None:
    table = "| | |\n|---|---|\n| Weight | 1.4 kg |\n| Camera | Sonora S7 |"
    facts = read(table, "Kestrel K2")
    assert ("Kestrel K2", "Weight", "1.4 kg") in facts
    assert ("Kestrel K2", "Camera", "Sonora S7") in facts


def test_an_apposition_in_front_of_a_name_says_who_that_is() -> None:
    facts = read("Our assessor, Vince Oyel, visited Tidewell Road.")
    assert ("Vince Oyel", "is", "assessor") in facts
    assert ("Vince Oyel", "visited", "assessor") not in facts


def test_contractions_and_bare_decimals_are_no_things() -> None:
    things = {
        part for fact in read("I'm Ann Lee. We'll be right back.") for part in fact
    }
    assert not things & {"I'm Ann Lee", "We'll"}
    assert not any("3.10" in fact for fact in read("The minimum is 3.10.", "Python"))


def test_the_subject_may_follow_an_introduction_without_a_comma() -> None:
    facts = read("Since spring the editor of The Tern is Olaf Brix.")
    assert facts == [("The Tern", "editor of is", "Olaf Brix")]


def test_the_time_before_a_name_is_nobody() -> None:
    assert read("Next morning Jory Fenn found Varn Mill.") == [
        ("Jory Fenn", "found", "Varn Mill")
    ]


def test_the_small_word_after_an_order_is_of_no_name() -> None:
    objects = {object_ for _, _, object_ in read("Ask for Denise.", "Bramley Heating")}
    assert "for Denise" not in objects


def test_who_writes_in_small_letters_begins_a_line() -> None:
    chat = "kai: Astrid Holm opened the Baltic Room.\nlena: Pavel Dusek left Norrland."
    assert ("Pavel Dusek", "left", "Norrland") in read(chat)


def test_how_something_is_is_no_thing_behind_any_verb() -> None:
    facts = read("Delivery within Varn is free.")
    assert "free" not in {object_ for _, _, object_ in facts}


@pytest.mark.parametrize("text", ["(3 points)", "times"])
def test_words_in_brackets_and_times_are_no_things(text: str) -> None:
    assert not may_be_thing(text)


def test_a_meeting_has_a_name() -> None:
    facts = read("The annual general meeting takes place in Varn.")
    assert {subject for subject, _, _ in facts} == {"annual general meeting"}


def test_to_explain_why_is_an_order() -> None:
    assert read("Explain why Varn has many mills.", "Test") == [
        ("Test", "is linked to", "Varn")
    ]


def test_a_time_of_the_day_is_neither_an_entity_nor_part_of_a_predicate() -> None:
    assert not may_be_thing("7.00 pm")
    assert read("The game was played at 8 p.m. EST on January 2, 2008.") == [
        ("game", "was played on", "January 2, 2008")
    ]


def test_a_weekday_is_no_part_of_the_name_after_it() -> None:
    assert read("From Monday Harvest Kitchen cooks our lunches.") == [
        ("Harvest Kitchen", "cooks", "lunches")
    ]
    assert read("The prizes were announced on Monday, April 18, 2011.")[0][2] == (
        "April 18, 2011"
    )


@pytest.mark.parametrize("name", ["Fred Hasting", "Emily Golding", "Ewing Clough"])
def test_a_first_name_that_ends_as_a_participle_does_is_of_the_name(name: str) -> None:
    assert read(f"{name} founded the museum.") == [(name, "founded", "museum")]


def test_words_that_are_shouted_are_read_as_any_others() -> None:
    assert read("PASSENGERS ARE REMINDED of the fee.") == [
        ("passengers", "are reminded of", "fee")
    ]
    assert read("NATO HQ stands in Brussels.")[0][0] == "NATO HQ"


def test_the_number_of_a_clause_is_of_no_name() -> None:
    assert read("2.1 The Client shall pay the Contractor.") == [
        ("Client", "shall pay", "Contractor")
    ]


def test_an_order_with_that_states_nothing() -> None:
    assert read("Check that the gas valve is open.") == []


def test_the_address_or_the_role_of_a_sender_is_no_topic() -> None:
    letter = "14 Wharf Road\n\nIt fell down in May 1911."
    assert "14 Wharf Road" not in {subject for subject, *_ in read(letter)}

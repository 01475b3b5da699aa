"""Follow-up questions with the earlier turns, oldest first, and the standalone question that is wanted.

Where a person could not tell from only the turns, or the question stands by itself, the question itself is wanted.
LABELLED was looked at while the rule was written, HELD_BACK was written before it and only counted.
"""

BELL = ("Who patented the telephone?", "Alexander Graham Bell")
BORN = ("Where was Alexander Graham Bell born?", "Edinburgh")
LEITH = ("Which river flows through Edinburgh?", "Water of Leith")
TOWER = ("When was the Eiffel Tower built?", "1889")
VIENNA = ("What is the capital of Austria?", "Vienna")
CURIE = ("What did Marie Curie discover?", "radium")

LABELLED = [
    ([LEITH], "And how long is it?", "How long is Water of Leith?"),
    ([BELL], "Where was he born?", "Where was Alexander Graham Bell born?"),
    ([BELL], "When was it invented?", "When was the telephone invented?"),
    ([TOWER], "How tall is it?", "How tall is the Eiffel Tower?"),
    ([TOWER], "And the Golden Gate Bridge?", "When was the Golden Gate Bridge built?"),
    ([TOWER], "Who designed it?", "Who designed the Eiffel Tower?"),
    ([VIENNA], "How many people live there?", "How many people live in Vienna?"),
    ([VIENNA], "Which river flows through it?", "Which river flows through Vienna?"),
    ([VIENNA], "What about Hungary?", "What is the capital of Hungary?"),
    ([VIENNA], "Who is its mayor?", "Who is Vienna's mayor?"),
    ([CURIE], "Where was she born?", "Where was Marie Curie born?"),
    ([CURIE], "Who was her husband?", "Who was Marie Curie's husband?"),
    ([CURIE], "When did she move to Paris?", "When did Marie Curie move to Paris?"),
    (
        [BELL, BORN],
        "Which river flows through that city?",
        "Which river flows through Edinburgh?",
    ),
    (
        [BELL, BORN],
        "And which river flows through it?",
        "Which river flows through Edinburgh?",
    ),
    ([BELL, BORN], "When did he die?", "When did Alexander Graham Bell die?"),
    ([BELL, BORN], "And when?", "When was Alexander Graham Bell born?"),
    ([BORN], "And Thomas Edison?", "Where was Thomas Edison born?"),
    ([LEITH], "And through Glasgow?", "Which river flows through Glasgow?"),
    ([LEITH], "Where does the river rise?", "Where does Water of Leith rise?"),
    (
        [("Who founded Velmora?", "Tadeusz Brandl")],
        "Is he still alive?",
        "Is Tadeusz Brandl still alive?",
    ),
    (
        [("Who founded Velmora?", "Tadeusz Brandl")],
        "Where is its depot?",
        "Where is Velmora's depot?",
    ),
    (
        [("Which band recorded Abbey Road?", "The Beatles")],
        "Who was their drummer?",
        "Who was The Beatles' drummer?",
    ),
    (
        [("Who won the World Cup in 1998?", "France")],
        "And in 2002?",
        "Who won the World Cup in 2002?",
    ),
    ([BELL], "Who founded Velmora?", "Who founded Velmora?"),
    (
        [BELL],
        "How long does it take to fly to Mars?",
        "How long does it take to fly to Mars?",
    ),
    ([("Is Vienna larger than Graz?", "yes")], "How old is it?", "How old is it?"),
    ([("Who is older, Ann Dole or Eve Marr?", "Ann Dole")], "Why?", "Why?"),
    ([("Who patented the telephone?", "")], "Where was he born?", "Where was he born?"),
    (
        [TOWER],
        "Did Gustave Eiffel live in his tower?",
        "Did Gustave Eiffel live in his tower?",
    ),
]

HELD_BACK = [
    (
        [("Who directed Vertigo?", "Alfred Hitchcock")],
        "When did he die?",
        "When did Alfred Hitchcock die?",
    ),
    (
        [("Who directed Vertigo?", "Alfred Hitchcock")],
        "When was it released?",
        "When was Vertigo released?",
    ),
    (
        [("Who directed Vertigo?", "Alfred Hitchcock")],
        "And Psycho?",
        "Who directed Psycho?",
    ),
    (
        [("What is the longest river in France?", "Loire")],
        "Where does it begin?",
        "Where does Loire begin?",
    ),
    (
        [("What is the longest river in France?", "Loire")],
        "And in Spain?",
        "What is the longest river in Spain?",
    ),
    (
        [("In which city is the Louvre?", "Paris")],
        "Who is the mayor of that city?",
        "Who is the mayor of Paris?",
    ),
    (
        [("In which city is the Louvre?", "Paris")],
        "When was it opened?",
        "When was the Louvre opened?",
    ),
    (
        [("Where did Ada Lovelace die?", "London")],
        "How old was she?",
        "How old was Ada Lovelace?",
    ),
    (
        [("Where did Ada Lovelace die?", "London")],
        "Who was her father?",
        "Who was Ada Lovelace's father?",
    ),
    (
        [("Where did Ada Lovelace die?", "London")],
        "When?",
        "When did Ada Lovelace die?",
    ),
    (
        [("Which company makes the Falcon 9?", "SpaceX")],
        "Who founded it?",
        "Who founded SpaceX?",
    ),
    (
        [("Which company makes the Falcon 9?", "SpaceX")],
        "Where are their offices?",
        "Where are SpaceX's offices?",
    ),
    (
        [("Which company makes the Falcon 9?", "SpaceX")],
        "What about the Ariane 6?",
        "Which company makes the Ariane 6?",
    ),
    (
        [("How high is Mont Blanc?", "4,806 metres")],
        "In which country is it?",
        "In which country is Mont Blanc?",
    ),
    (
        [("How high is Mont Blanc?", "4,806 metres")],
        "And the Matterhorn?",
        "How high is the Matterhorn?",
    ),
    (
        [("How high is Mont Blanc?", "4,806 metres")],
        "Who climbed it first?",
        "Who climbed Mont Blanc first?",
    ),
    (
        [("Who wrote Emma?", "Jane Austen")],
        "What else did she write?",
        "What else did Jane Austen write?",
    ),
    (
        [("Who wrote Emma?", "Jane Austen")],
        "Was she married?",
        "Was Jane Austen married?",
    ),
    (
        [
            ("Who wrote Emma?", "Jane Austen"),
            ("Where did Jane Austen live?", "Chawton"),
        ],
        "Where is that village?",
        "Where is Chawton?",
    ),
    (
        [
            ("Who wrote Emma?", "Jane Austen"),
            ("Where did Jane Austen live?", "Chawton"),
        ],
        "Did she die there?",
        "Did Jane Austen die in Chawton?",
    ),
    (
        [("Which school did Ann Dole attend?", "Ridge College")],
        "When was the school founded?",
        "When was Ridge College founded?",
    ),
    (
        [("Which school did Ann Dole attend?", "Ridge College")],
        "And Eve Marr?",
        "Which school did Eve Marr attend?",
    ),
    (
        [("What is the population of Graz?", "292,630")],
        "And the area?",
        "What is the area of Graz?",
    ),
    (
        [("What is the population of Graz?", "292,630")],
        "Which river runs through it?",
        "Which river runs through Graz?",
    ),
    ([("Did Bell meet Edison?", "yes")], "When did he die?", "When did he die?"),
    (
        [("Who wrote Emma?", "Jane Austen")],
        "Is it true that cats sleep a lot?",
        "Is it true that cats sleep a lot?",
    ),
    (
        [("Who wrote Emma?", "Jane Austen")],
        "What is the capital of Peru?",
        "What is the capital of Peru?",
    ),
    (
        [("Who wrote Emma?", "I don't know.")],
        "Where was she born?",
        "Where was she born?",
    ),
    (
        [("Which of the two is older?", "the first")],
        "And the other one?",
        "And the other one?",
    ),
    (
        [("Who founded Velmora?", "Tadeusz Brandl and Ola Kvist")],
        "Where were they born?",
        "Where were Tadeusz Brandl and Ola Kvist born?",
    ),
]

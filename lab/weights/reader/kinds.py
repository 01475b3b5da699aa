"""Questions of yes and no about what one or two things are, made of how texts about them begin.

"Ann Day is a Scottish novelist and painter." -> "Is Ann Day a writer?", "Is Ann Day from Scotland?"   yes
                                              -> "Is Ann Day a Scottish actress?"                     no
"Are Ann Day and Bo Lee both writers?"        over both texts, or over one of them: does it hold of that one?

What a question asks is often in wider or other words than the text: a novelist is a writer, a film a movie, and who is
Scottish is from Scotland. Tables say so, and only training reads them.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.weights.reader.examples import ReaderExample
from ras_agent.contracts.records import Passage
from ras_agent.text.names import DEMONYM
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title, with_title
from ras_agent.text.words import word_set


def _table(lines: str) -> dict[str, frozenset[str]]:
    """Read lines of "word, word: phrase, phrase", which go on where a line is indented."""
    found: dict[str, frozenset[str]] = {}
    for line in re.sub(r"\n\s+", " ", lines.strip()).splitlines():
        before, _, after = line.partition(":")
        phrases = frozenset(part.strip() for part in after.split(","))
        for word in before.split(","):
            found[word.strip()] = found.get(word.strip(), frozenset()) | phrases
    return found


_SPORTS = """footballer, cricketer, cyclist, boxer, swimmer, runner, rower, sprinter, wrestler, fencer, golfer, skier,
  gymnast, sailor, racer, jumper, weightlifter, basketball player, tennis player, hockey player, ice hockey player,
  baseball player, rugby player, football player, volleyball player, handball player, pitcher, goalkeeper, midfielder,
  defender, shooter, racing driver, quarterback, figure skater, badminton player"""
_MUSICIANS = """singer, guitarist, drummer, bassist, pianist, violinist, singer-songwriter, songwriter, composer,
  rapper, vocalist, saxophonist, cellist, multi-instrumentalist, organist, trumpeter, conductor"""

_NARROWER = _table(f"""
writer: author, novelist, poet, playwright, essayist, screenwriter, dramatist, lyricist, journalist, biographer
author: writer, novelist, poet, essayist, playwright, biographer
playwright: dramatist
musician: {_MUSICIANS}
singer: singer-songwriter, vocalist, soprano, tenor, mezzo-soprano, baritone
songwriter: singer-songwriter, lyricist
entertainer, performer: actor, actress, comedian, singer, dancer, magician
actor: actress
film director, movie director, director: filmmaker, film director, movie director
filmmaker: film director, movie director, film producer
movie maker: filmmaker, film director, film producer
athlete, sportsperson: {_SPORTS}
soccer player: footballer, association football player, football midfielder, football defender
football player: footballer, midfielder, goalkeeper
politician: senator, governor, mayor, minister, congressman, congresswoman, statesman, stateswoman, councillor,
  prime minister, president, member of parliament
scientist: physicist, chemist, biologist, astronomer, botanist, zoologist, geologist, entomologist, mathematician
academic, scholar: professor, historian, philosopher, scholar
visual artist, artist: painter, sculptor, photographer, illustrator, printmaker, cartoonist, artist
noble, aristocrat: nobleman, noblewoman, duke, count, countess, duchess, baron, earl, peer, peeress
royal: king, queen, prince, princess, emperor, empress, queen consort
ruler, monarch: king, queen, emperor, empress, sultan
soldier, military person: general, admiral, colonel, army officer, naval officer, military officer, commander, soldier
military officer: general, admiral, colonel, army officer, naval officer
clergyman, cleric: bishop, priest, archbishop, cardinal, pastor, prelate, minister, abbot
business person, entrepreneur: businessman, businesswoman, entrepreneur, industrialist, magnate, business executive
lawyer: attorney, barrister, solicitor, jurist, judge
doctor: physician, surgeon
teacher: educator, schoolteacher
movie, motion picture: film, documentary film, short film
film: movie
documentary: documentary film
comedy: comedy film, comedy-drama film, romantic comedy film
television show, TV show, TV series: television series, sitcom, television sitcom, soap opera, telenovela,
  miniseries, television drama, serial, reality television series
book: novel, memoir, anthology, biography, autobiography, textbook
work of fiction: novel, short story, film, play
musical group, music group: band, rock band, duo, trio, orchestra, boy band, girl group, ensemble
band: rock band, punk band, metal band
record: album, studio album, live album, compilation album, extended play, EP, single
song: single
publication, periodical: magazine, newspaper, journal, weekly newspaper, weekly magazine
settlement, populated place, place where people live: village, town, city, hamlet, municipality, suburb, locality
body of water: river, lake, sea, bay, creek, stream, reservoir
waterway, watercourse: river, stream, creek, canal, tributary
business: company, firm, airline, brewery, bank, publisher, retailer, manufacturer, corporation, restaurant chain,
  record label
company: airline, brewery, bank, publisher, retailer, manufacturer, firm, corporation, record label
educational institution: school, university, college, high school, secondary school, institute, academy
secondary school: high school
place of worship: church, cathedral, temple, mosque, synagogue, chapel
building: church, hotel, house, skyscraper, palace, theatre, hall, tower, mansion, cathedral
plant: tree, shrub, herb, perennial plant, annual plant, flowering plant
sports team, team: football club, football team, basketball team, baseball team, hockey team, soccer team
game: video game, board game, card game, arcade game
mountain: peak, volcano
landform: mountain, hill, valley, island, volcano
plane, airplane, aircraft: fighter, bomber, airliner, helicopter, biplane, monoplane, glider
ship: battleship, destroyer, cruiser, submarine, frigate
""")
"""What is also meant by a wider or another word."""

_ACTS = _table(f"""
worked in the film industry, worked in movies: film director, actor, actress, screenwriter, cinematographer,
  film producer, filmmaker, film editor
directed films: film director, filmmaker, movie director
written books: novelist, author
written novels: novelist
written poems: poet
written plays: playwright, dramatist
written songs: songwriter, singer-songwriter
written screenplays: screenwriter
made music, worked in music: musician, {_MUSICIANS}
been involved in politics, held a political office: senator, governor, mayor, congressman, councillor, statesman
been involved in politics: politician
acted: actor, actress
sung: singer, singer-songwriter, vocalist, rapper
composed music: composer
painted: painter
played football: footballer
played sports, competed in sports: {_SPORTS}
been in the military: general, admiral, colonel, army officer, naval officer, military officer, soldier
taught at a university: professor
""")
"""What a person of a profession has done."""

_COUNTRIES = _table("""
American: the United States, the US, America
British: the United Kingdom, Britain, Great Britain, the UK
English: England
Scottish: Scotland
Welsh: Wales
Irish: Ireland
French: France
German: Germany
Italian: Italy
Spanish: Spain
Portuguese: Portugal
Dutch: the Netherlands
Belgian: Belgium
Swiss: Switzerland
Austrian: Austria
Polish: Poland
Czech: the Czech Republic
Hungarian: Hungary
Romanian: Romania
Bulgarian: Bulgaria
Serbian: Serbia
Croatian: Croatia
Greek: Greece
Turkish: Turkey
Russian: Russia
Ukrainian: Ukraine
Swedish: Sweden
Norwegian: Norway
Danish: Denmark
Finnish: Finland
Icelandic: Iceland
Canadian: Canada
Mexican: Mexico
Cuban: Cuba
Brazilian: Brazil
Argentine: Argentina
Chilean: Chile
Colombian: Colombia
Peruvian: Peru
Australian: Australia
Indian: India
Pakistani: Pakistan
Bangladeshi: Bangladesh
Iranian: Iran
Iraqi: Iraq
Israeli: Israel
Egyptian: Egypt
Nigerian: Nigeria
Kenyan: Kenya
Chinese: China
Japanese: Japan
Filipino: the Philippines
Indonesian: Indonesia
Malaysian: Malaysia
Thai: Thailand
Vietnamese: Vietnam
South Korean: South Korea, Korea
New Zealand: New Zealand
South African: South Africa
""")
_PLACES = {
    place.removeprefix("the ") for places in _COUNTRIES.values() for place in places
}

_BRITISH = {"British", "English", "Scottish", "Welsh", "Irish"}

_BRACKETS = re.compile(r" ?\([^()]*\)")
_PLACE = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2}"
_BEGINNING = re.compile(
    r"(?P<name>.{2,70}?),? (?P<be>is|was|are|were) (?:an?|the|one of the) (?P<kinds>[^.;:]{3,160}?)"
    r"(?=,? (?:who|that|which|whose|in|of|from|by|at|on|for|with|to|about|based|located|born|directed|written|known|"
    r"released|published|near|created|starring|founded|formed|situated|set|produced|recorded|best|"
    r"and (?:is|was|the))\b|[.;:]|$)"
    rf"(?: (?:(?:located|situated|based) )?(?:in|from) (?:the )?(?P<places>{_PLACE}(?:, (?:the )?{_PLACE})*))?"
)
_AND = re.compile(r",? and |, (?:and )?|/")
_NO_KIND = word_set(
    "one name member part former first second third fourth title best only last son daughter list and wife husband "
    "brother sister mother father child heir well pair set"
)
_PERSONS = re.compile(
    r"(?:(?<!riv)(?<!pap)(?<!tow)(?<!lish)(?<!aft)(?<!nov)(?<!numb)(?<!chapt)er|or|ist|ian|man|woman|ess|ant|eer|poet"
    r"|king|queen|prince|general|bishop|star|model|judge|duke)$"
)


@dataclass(frozen=True)
class Thing:
    """Holds what the beginning of a text says of its subject.

    kinds: noun phrases without an article. peoples: demonyms before them. places: the smallest first.
    """

    passage: Passage
    was: bool
    kinds: tuple[str, ...]
    peoples: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def name(self) -> str:
        return bare_title(self.passage.title)

    @cached_property
    def said(self) -> frozenset[str]:
        """What it is in the text's words, with fewer of the words before each noun."""
        return frozenset(
            " ".join(words[at:])
            for kind in self.kinds
            for words in [kind.split()]
            for at in range(len(words))
        )

    @cached_property
    def entailed(self) -> frozenset[str]:
        """The same in wider words, too."""
        return self.said | {
            wider for wider, narrower in _NARROWER.items() if narrower & self.said
        }

    @property
    def is_person(self) -> bool:
        return any(_PERSONS.search(kind) for kind in self.kinds)

    def mentions(self, phrase: str) -> bool:
        """Return whether the text has a phrase, or one that means it, so that it may hold though it is not said."""
        text = self.passage.text.lower()
        narrower = {*_NARROWER.get(phrase, ()), *_ACTS.get(phrase, ())}
        return all(word in text for word in phrase.split()) or any(
            one.split()[-1].lower() in text for one in narrower
        )


def thing_of(passage: Passage) -> Thing | None:
    """Return what a passage's first sentence says of its subject, None where it is of another form."""
    found = _BEGINNING.match(_BRACKETS.sub("", passage.text))
    if not found:
        return None
    kinds: list[str] = []
    peoples: list[str] = []
    for part in _AND.split(found["kinds"]):
        words = part.split()
        while words and (
            words[0] in _NO_KIND or words[0] in ("an", "a", "the") or words[0].isdigit()
        ):
            words.pop(0)
        while size := _people_size(words):
            peoples.append(" ".join(words[:size]))
            del words[:size]
        if 0 < len(words) <= 4 and _is_kind(words[-1]):
            kinds.append(" ".join(words))
    places = tuple(
        one.strip().removeprefix("the ")
        for one in (found["places"] or "").split(",")
        if one.strip()
    )
    return (
        Thing(
            passage,
            found["be"] in ("was", "were"),
            tuple(kinds),
            tuple(peoples),
            places,
        )
        if kinds
        else None
    )


def _people_size(words: Sequence[str]) -> int:
    """Return how many of the first words name a people: "New Zealand", "Scottish"."""
    if " ".join(words[:2]) in _COUNTRIES:
        return min(2, len(words))
    return int(
        bool(words) and bool(words[0] in _COUNTRIES or DEMONYM.fullmatch(words[0]))
    )


def _is_kind(noun: str) -> bool:
    simple = noun.islower() and (noun.isalpha() or "-" in noun)
    return (
        simple
        and noun not in _NO_KIND
        and not noun.endswith(("ed", "ing", "ions", "ers", "-"))
    )


def kind_questions(
    passages: Sequence[Passage], rng: random.Random, count: int
) -> Iterator[ReaderExample]:
    """Yield `count` questions to be judged, fewer of few passages.

    A quarter is about one thing, a half about two over the text about one of them, a quarter over both texts. A text is
    the first two sentences, or the whole passage.
    """
    things = [thing for thing in map(thing_of, passages) if thing]
    persons = [thing for thing in things if thing.is_person]
    others = [thing for thing in things if not thing.is_person]
    alike: dict[str, list[Thing]] = defaultdict(list)
    for thing in things:
        for noun in thing.entailed:
            alike[noun].append(thing)
    made = 0
    for _ in range(20 * count if len(things) > 1 else 0):
        if made == count:
            return
        one = rng.choice(
            persons if not others or (persons and rng.random() < 0.6) else others
        )
        two = rng.choice(
            alike[rng.choice(sorted(one.entailed))]
            if rng.random() < 0.5
            else persons
            if one.is_person
            else others
        )
        if one is two:
            continue
        form = rng.randrange(4)
        if form == 3 and rng.random() < 0.4:
            example = _same(one, two, rng)
        else:
            example = _holding(
                one, two, ("kind", "kind_half", "kind_half", "kind_pair")[form], rng
            )
        if example is not None:
            made += 1
            yield example


def _holding(
    one: Thing, two: Thing, source: str, rng: random.Random
) -> ReaderExample | None:
    """Return a question whether something holds of a thing, or of two."""
    # what is asked holds of `one` if that is to be the text's; else of the other one, and perhaps of both
    shared = (
        sorted(one.entailed & two.entailed)
        if source == "kind_pair" and rng.random() < 0.6
        else []
    )
    prop = (
        _Property(noun=rng.choice(shared))
        if shared
        else _property(rng.choice((one, two, two)), rng)
    )
    truths = [_holds(thing, prop) for thing in (one, two)]
    if source == "kind":
        truth, subject = truths[0], one.name
    else:
        subject = f"{one.name} and {two.name}"
        truth = truths[0] if source == "kind_half" else _all(truths)
    if truth is None:
        return None
    two_asked = source != "kind"
    was = one.was and (two.was or not two_asked)
    lies = not one.is_person and bool(one.places or two.places)
    asked = _question(prop, subject, was, two_asked, lies, rng)
    shown = [one, two] if source == "kind_pair" else [one]
    return ReaderExample(
        asked, _text(shown, rng), (), source, "true" if truth else "false"
    )


@dataclass(frozen=True)
class _Property:
    """Holds what may be asked of a thing: a noun, a people before it, a place, or something done; blank for none."""

    noun: str = ""
    people: str = ""
    place: str = ""
    act: str = ""


def _property(thing: Thing, rng: random.Random) -> _Property:
    """Return something that holds of a thing."""
    chance = rng.random()
    acts = sorted(act for act, narrower in _ACTS.items() if narrower & thing.said)
    if acts and chance < 0.25:
        return _Property(act=rng.choice(acts))
    places = [
        place
        for people in thing.peoples
        for place in sorted(_COUNTRIES.get(people, ()))
    ]
    if places and chance < 0.4:
        return _Property(place=rng.choice(places))
    if thing.places and chance < 0.55:
        return _Property(place=rng.choice(thing.places))
    wider = sorted(thing.entailed - thing.said)
    noun = rng.choice(wider if wider and rng.random() < 0.6 else sorted(thing.said))
    people = rng.choice(thing.peoples) if thing.peoples and rng.random() < 0.3 else ""
    return _Property(noun=noun, people=people)


def _holds(thing: Thing, prop: _Property) -> bool | None:
    """Return whether it holds of a thing; None where the text may mean it in other words."""
    truths: list[bool | None] = []
    if prop.noun:
        truths.append(
            True
            if prop.noun in thing.entailed
            else None
            if thing.mentions(prop.noun)
            else False
        )
    if prop.act:
        truths.append(
            True
            if _ACTS[prop.act] & thing.said
            else None
            if thing.mentions(prop.act)
            else False
        )
    if prop.people:
        # who is English is British
        near = _BRITISH & set(thing.peoples) and prop.people in _BRITISH
        told = thing.peoples and prop.people not in thing.passage.text and not near
        truths.append(True if prop.people in thing.peoples else False if told else None)
    if prop.place:
        truths.append(_is_of(thing, prop.place.removeprefix("the ")))
    return _all(truths)


def _all(truths: Sequence[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _is_of(thing: Thing, place: str) -> bool | None:
    """Return whether a thing lies in a place or comes from it; a town without its country may lie in any."""
    peoples = {
        people
        for people, countries in _COUNTRIES.items()
        if {place, f"the {place}"} & countries
    }
    if (
        peoples & _BRITISH
        and not peoples & set(thing.peoples)
        and _BRITISH & set(thing.peoples)
    ):
        return None
    if place in thing.places or peoples & set(thing.peoples):
        return True
    if any(one in thing.passage.text for one in (place, *peoples)):
        return None
    told = thing.peoples or (set(thing.places) & _PLACES and place in _PLACES)
    return False if told else None


def _question(
    prop: _Property, subject: str, was: bool, two: bool, lies: bool, rng: random.Random
) -> str:
    both, early = (
        ("both ", rng.random() < 0.4) if two and rng.random() < 0.8 else ("", False)
    )
    named = f"both {subject}" if both and early else subject
    middle = "" if early else both
    if prop.act:
        return f"{'Have' if two else 'Has'} {named} {middle}{prop.act}?"
    be = ("Were" if two else "Was") if was else ("Are" if two else "Is")
    if prop.place:
        verb = rng.choice(("located in", "in", "based in")) if lies else "from"
        return f"{be} {named} {middle}{verb} {'the ' if prop.place.startswith('United ') else ''}{prop.place}?"
    noun = " ".join(filter(None, (prop.people, prop.noun)))
    if two:
        return f"{be} {named} {middle}{plural(noun)}?"
    return f"{be} {named} {'an' if noun[0].lower() in 'aeio' else 'a'} {noun}?"


def _same(one: Thing, two: Thing, rng: random.Random) -> ReaderExample | None:
    """Return a question whether two things are of the same nationality, country or profession."""
    subject = f"{one.name} and {two.name}"
    be = "Were" if one.was and two.was else "Are"
    chance = rng.random()
    if one.peoples and two.peoples and chance < 0.5:
        asks = rng.choice(("of the same nationality", "from the same country"))
        truth = bool(set(one.peoples) & set(two.peoples))
        if not truth and _BRITISH & set(one.peoples) and _BRITISH & set(two.peoples):
            return None
    elif one.is_person and two.is_person:
        asks = rng.choice(("of the same profession", "in the same line of work"))
        truth = bool(one.said & two.said)
        if not truth and one.entailed & two.entailed:
            return None
    elif one.places and two.places and {one.places[-1], two.places[-1]} <= _PLACES:
        asks = rng.choice(("in the same country", "both located in the same country"))
        truth = one.places[-1] == two.places[-1]
    else:
        return None
    return ReaderExample(
        f"{be} {subject} {asks}?",
        _text([one, two], rng),
        (),
        "kind_pair",
        "true" if truth else "false",
    )


def _text(things: Sequence[Thing], rng: random.Random) -> str:
    whole = len(things) == 1 and rng.random() < 0.4
    texts = [
        with_title(
            thing.passage.title,
            thing.passage.text if whole else lead(thing.passage.text),
        )
        for thing in things
    ]
    rng.shuffle(texts)
    return " ".join(texts)


def lead(text: str, sentences: int = 2) -> str:
    """Return the first sentences of a text."""
    spans = sentence_spans(text)[:sentences]
    return text[spans[0][0] : spans[-1][1]] if spans else text


def plural(noun: str) -> str:
    """Return the plural of a noun phrase whose last word is its noun.

    >>> plural("city"), plural("businesswoman"), plural("actress"), plural("television series")
    ('cities', 'businesswomen', 'actresses', 'television series')
    """
    first, of, rest = noun.partition(" of ")
    if of:
        return f"{plural(first)} of {rest}"
    first, where, rest = noun.partition(" where ")
    if where:
        return f"{plural(first)} where {rest}"
    if noun.endswith(("series", "aircraft")):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeou":
        return f"{noun[:-1]}ies"
    if noun.endswith("man") or noun.endswith("woman"):
        return f"{noun[:-2]}en"
    return (
        f"{noun}es"
        if noun.endswith(("s", "x", "ch", "sh")) and not noun.endswith("arch")
        else f"{noun}s"
    )

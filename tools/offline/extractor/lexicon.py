"""The closed classes of English, and its commonest verbs: all that the offline extractor knows of the language."""

from __future__ import annotations

from ras_agent.text.words import word_set

# a letter for each class; a word of several counts as the first of them
_CLASSES = {
    "b": "is are was were be been being am 's",
    "w": "has have had having",
    "a": "do does did doing done can could will would shall should may might must",
    "d": "that those a an the this these some any each every no another both all either neither such",
    "r": "who whom which whose",
    "h": "his her its their my our your",
    "o": """he she it they i we you him them me us himself herself itself themselves there one others something
        anything""",
    "t": "to",
    "c": "and or but nor & plus",
    "s": "while when whereas although though if unless whether once where because so why how what",
    "p": """of in on at by for with without from into onto upon about after before between among amongst against
        during under over above below through throughout within along across behind beyond near off out up down via
        per since until till despite toward towards around outside inside opposite following alongside like than as
        amid beside besides except versus unlike concerning regarding according including starring featuring like
        namely""",
    "y": """also often not never ever always sometimes later then still now just only even again twice already soon
        currently formerly originally however moreover therefore thus hence instead meanwhile together alone away
        back forward apart abroad overseas today yesterday tomorrow here very most more less least quite rather too
        well perhaps indeed further furthermore yet else almost nearly respectively best better worldwide n't""",
    "F": """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
        dozen several many few first second third fourth fifth sixth seventh eighth ninth tenth""",
}
CLOSED = {word: letter for letter, words in _CLASSES.items() for word in words.split()}
"""Word -> the letter of its class: b, w, a forms of be, have, do and modals; d article or determiner, h possessive, o
pronoun, t "to", p preposition, c conjunction, s subordinator, r relative, y adverb, F numeral."""
PLURAL_SUBJECTS = word_set("they who which that we i you")
PAST = word_set(
    """became began bore beat blew broke came chose cost drew drove ate fell fled flew forgot gave grew knew lay ran
    rode rose sang sank sat saw shook showed spoke stole swam swore swung threw took tore underwent undertook wore
    wove withdrew wrote went oversaw overtook foresaw withstood upheld rewrote co-wrote"""
)
PARTICIPLES = word_set(
    """become begun born borne beaten bitten blown broken bred brought built bought burnt caught chosen come cut
    dealt drawn driven eaten fallen fed felt fought found flown forgotten forbidden given gone got gotten grown heard
    held hidden hit hung hurt kept known laid led left lent let lain lit lost made meant met paid put quit read
    ridden risen run said seen sent set sold sought shaken shot shown shut slain slept spent spoken split spread
    sprung spun stood stolen stricken struck sung sunk sworn swept taken taught thought thrown told torn understood
    undergone undertaken won worn woven withdrawn written co-written overseen overtaken rebuilt remade rewritten cast
    bound based"""
)
# that end as participles, gerunds and adverbs do
NOUNS = word_set(
    """bed seed speed need breed red feed weed deed king ring spring string wing building nothing something evening
    morning wedding thing family italy assembly monthly weekly fly july"""
)
# base forms; with -s they are finite verbs where no noun is likely, and bare after a plural
VERBS = word_set(
    """accept accompany achieve acquire act adapt add address administer adopt affect aim air allow announce appear
    apply approach argue arrive ask attack attempt attend attract base bear become begin believe belong border break
    bring broadcast build buy call campaign capture carry cast cause celebrate centre center change claim coach
    collaborate collect combine come command commemorate compare compete complete compose comprise concern conduct
    connect consist constitute construct contain continue contribute control cost cover create cross date deal
    declare dedicate defeat define deliver demonstrate depend depict derive describe design develop die direct
    discover discuss display distribute draw drive earn edit employ enable encompass encourage end enter establish
    estimate exist explain explore express extend face fall feature feel fight film find finish flow fly focus follow
    force form found gain generate get give go govern graduate grow happen have head help hold host house identify
    illustrate include incorporate increase indicate influence inhabit inspire intend introduce invent involve issue
    join keep know lack last lead learn leave lie link list live locate look lose maintain make manage manufacture
    mark marry mean measure meet mention merge move name narrate need occupy occur offer open operate organise
    organize originate oversee own participate pass pay perform place play portray possess practise practice prepare
    present produce promote protect provide publish purchase raise range rank reach read receive recognise recognize
    record refer reflect regard relate release remain remember replace report represent require resemble reside
    result return reveal revolve rise rule run say score see seek seem sell send separate serve set share show sign
    sing sit specialise specialize speak spend sponsor stand star start state stay stretch study succeed suffer
    suggest supply support surround take talk teach tell tend think tour trace train translate travel treat try turn
    use visit vote want win work write yield"""
)
KNOWN = frozenset(CLOSED) | PAST | PARTICIPLES | VERBS
"""All of them."""


def is_third_person(word: str) -> bool:
    """Return whether a word is a third person singular of a verb that is known."""
    bases = (word[:-1], word[:-2] if word.endswith("es") else "", word[:-3] + "y" if word.endswith("ies") else "")
    return word.endswith("s") and not VERBS.isdisjoint(bases)

"""The closed classes of English, and its commonest verbs: all that the offline extractor knows of the language."""

from __future__ import annotations

from ras_agent.text.words import word_set

DETERMINERS = word_set("a an the this these that those some any each every no another both all either neither such")
POSSESSIVES = word_set("his her its their my our your whose")
PERSONAL = word_set("he she it they i we you")
OBJECT_PRONOUNS = word_set(
    "him them me us himself herself itself themselves this that these those there one others each something anything"
)
PREPOSITIONS = word_set(
    """of in on at by for with without from to into onto upon about after before between among amongst against
    during under over above below through throughout within along across behind beyond near off out up down via
    per since until till despite toward towards around outside inside opposite following alongside like than as
    amid beside besides except versus unlike concerning regarding because according"""
)
# they stand before examples and casts as prepositions do
INCLUDING = word_set("including starring featuring such like namely")
CONJUNCTIONS = word_set("and or but nor & plus")
SUBORDINATORS = word_set("while when whereas although though if unless whether once where because so why how what")
RELATIVES = word_set("who whom which that whose where")
BE = word_set("is are was were be been being am 's")
HAVE = word_set("has have had having")
DO = word_set("do does did doing done")
MODALS = word_set("can could will would shall should may might must")
NUMERALS = word_set(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
    billion dozen several many few first second third fourth fifth sixth seventh eighth ninth tenth"""
)
ADVERBS = word_set(
    """also often not never ever always sometimes later then still now just only even again once twice already
    soon currently formerly originally however moreover therefore thus hence instead meanwhile together alone
    away back forward apart abroad overseas today yesterday tomorrow here there very most more less least quite
    rather too well perhaps indeed further furthermore yet else almost nearly about respectively best better
    worldwide n't both"""
)
IRREGULAR_PAST = word_set(
    """became began bore beat blew broke bred brought built bought burnt came caught chose cost cut did dealt
    drew drove ate fell fed felt fought found fled flew forgot gave got grew had heard held hit hung hurt kept
    knew laid led left lent let lay lit lost made meant met paid put quit ran read rode rose said sang sank sat
    saw sent set sold sought shook shot showed shut slept sought spent spoke split spread spun stood stole
    struck swam swept swore swung taught thought threw told took tore understood underwent undertook won wore
    wove withdrew wrote was were went bound cast oversaw overtook foresaw withstood upheld rebuilt remade
    rewrote co-wrote"""
)
IRREGULAR_PARTICIPLES = word_set(
    """been become begun born borne beaten bitten blown broken bred brought built bought burnt caught chosen
    come cut dealt done drawn driven eaten fallen fed felt fought found flown forgotten forbidden given gone got
    gotten grown heard held hidden hit hung hurt kept known laid led left lent let lain lit lost made meant met
    paid put quit read ridden risen run said seen sent set sold sought shaken shot shown shut slain slept spent
    spoken split spread sprung spun stood stolen stricken struck sung sunk sworn swept taken taught thought
    thrown told torn understood undergone undertaken won worn woven withdrawn written written co-written
    overseen overtaken rebuilt remade rewritten cast bound based set known"""
)
# base forms; with -s they are finite verbs where no noun is likely, and bare after a plural
VERBS = word_set(
    """accept accompany achieve acquire act adapt add address administer adopt affect aim air allow announce
    appear apply approach argue arrive ask attack attempt attend attract base bear become begin believe belong
    border break bring broadcast build buy call campaign capture carry cast cause celebrate centre center change
    claim coach collaborate collect combine come command commemorate compare compete complete compose comprise
    concern conduct connect consist constitute construct contain continue contribute control cost cover create
    cross date deal declare dedicate defeat define deliver demonstrate depend depict derive describe design
    develop die direct discover discuss display distribute draw drive earn edit employ enable encompass
    encourage end enter establish estimate exist explain explore express extend face fall feature feel fight
    film find finish flow fly focus follow force form found gain generate get give go govern graduate grow
    happen have head help hold host house identify illustrate include incorporate increase indicate influence
    inhabit inspire intend introduce invent involve issue join keep know lack last lead learn leave lie link
    list live locate look lose maintain make manage manufacture mark marry mean measure meet mention merge move
    name narrate need occupy occur offer open operate organise organize originate oversee own participate pass
    pay perform place play portray possess practise practice prepare present produce promote protect provide
    publish purchase raise range rank reach read receive recognise recognize record refer reflect regard relate
    release remain remember replace report represent require resemble reside result return reveal revolve rise
    rule run say score see seek seem sell send separate serve set share show sign sing sit specialise specialize
    speak spend sponsor stand star start state stay stretch study succeed suffer suggest supply support surround
    take talk teach tell tend think tour trace train translate travel treat try turn use visit vote want win
    work write yield"""
)

KNOWN = frozenset().union(
    *(BE, HAVE, DO, MODALS, RELATIVES, POSSESSIVES, PERSONAL, {"to"}, DETERMINERS, CONJUNCTIONS, SUBORDINATORS),
    *(PREPOSITIONS, INCLUDING, OBJECT_PRONOUNS, ADVERBS, NUMERALS, IRREGULAR_PAST, IRREGULAR_PARTICIPLES, VERBS),
)
"""All of them."""

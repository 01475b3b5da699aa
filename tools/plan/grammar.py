"""Finds the action that a planner's reply states, by the grammar of its replies.

    [SUBQ] a question        search for this
    [SUFFICIENT]             the graph holds the answer
    [NO_RETRIEVAL]           no search is needed

An action is a token in square brackets at the start of a line or a sentence. The first valid one counts; further
[SUBQ] lines directly after it are searches to make at the same time. Small models also write `SUBQ: a question`,
`[SUBQ: a question]`, `SUFFICIENT` on a separate line, JSON, translated tokens, or only the question;
ras_agent.contracts.marks lists the spellings. A token that is denied, doubted or asked about does not count: the search does
not end at "INSUFFICIENT", "the facts are not [SUFFICIENT]", "[SUFFICIENT]? No" or "sufficient".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import (
    FLAGS,
    NO_RETRIEVAL,
    QUESTION,
    SPELLINGS,
    SUBQ,
    SUFFICIENT,
)
from ras_agent.contracts.records import Action, Plan, Step
from ras_agent.text.lines import lines_of
from ras_agent.text.loose_json import (
    Value,
    all_texts,
    first_text,
    is_json,
    json_objects,
)
from ras_agent.text.unusable import copies
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.form import ReplyForm
from ras_agent.tools.chat.thoughts import without_thinking

EXAMPLE_QUERY = "In which city was Jørn Utzon born?"
EXAMPLE = f"{SUBQ} {EXAMPLE_QUERY}"
FORM = (
    f"one line, either {SUBQ} and a search question, or {SUFFICIENT}, or {NO_RETRIEVAL}"
)

_LETTERS = "0-9A-Za-zÀ-ÖØ-öø-ɏΑ-ΡΣ-ωА-яא-תء-غऄ-हぁ-ゖァ-ヺ一-鿿가-힣"
_ABBREVIATIONS = "Mr|Mrs|Ms|Dr|Prof|St|Mt|Ft|Jr|Sr|Inc|Ltd|Co|Corp|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov|Sen|Ph|vs|No|Vol|Op|etc"
_FULL_STOP = rf"\.[0-9a-z,:;'’-]| (?:{_ABBREVIATIONS})\.|[A-Z]\."
_PIECE = rf"(?:[^\n\[\]<>(){{}}|?`.。．]|{_FULL_STOP})"
_FIRST = rf"(?:[{_LETTERS}]|[A-Z]\. ?|(?:{_ABBREVIATIONS})\. )"
PATTERN = rf"\[SUBQ\] {_FIRST}{_PIECE}{{2,300}}[?.]|\[SUFFICIENT\]|\[NO_RETRIEVAL\]"
"""A regular expression of the reply's form, for servers that enforce one; `parse_plan` reads every match of it.

Inside a sub-query, a full stop may only belong to a number, an initial or an abbreviation; any other ends it. So a
model that writes a statement may stop at its end; without this it would have to go on to a question mark.
"""
_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": [
                str(mark).strip("[]") for mark in (SUBQ, SUFFICIENT, NO_RETRIEVAL)
            ],
        },
        "question": {"type": "string"},
    },
    "required": ["action", "question"],
    "additionalProperties": False,
}
REPLY_FORM = ReplyForm(PATTERN, _SCHEMA)

_TOKEN = re.compile(
    "|".join(
        f"(?P<{action}>{'|'.join(mark.live for mark in marks)})"
        for action, marks in SPELLINGS.items()
    ),
    FLAGS,
)
_STARTS = re.compile(
    r"(?:^|[\n.:;!?…。：；！？—→]|\\boxed\{)[\s*_`'\"“”‘’>#()|•-]*(?:\d+[.)]\s*)?\Z"
)
_WRAPPING = " \t*_`<>:：|-—✅✔"
_BRACKETS = "[［【<"
# characters; the bounds keep the parser linear
_LOOK_BACK = 80
_LOOK_AHEAD = 200
_LONGEST_LINE = 2000
_AROUND_REASON = f"{_WRAPPING}\n'\"“”‘’"
_LONGEST_REASON = 500

# before a token, in its sentence or label: words that make it conditional or deny it
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)*_`]*\s|[。！？]|\n[^\S\n]*\n")
_CONDITION = re.compile(
    r"\b(?:if|unless|until|once|when|after|before|could|might|maybe|perhaps|probably|wenn|falls)\b|如果|一旦",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|never|nor|none|cannot|neither|without|hardly|far from|instead of|rather than)\b"
    r"|\b(?:nicht|kein\w*|nie|noch|pas)\b"
    r"|\bno\b(?! (?:further|more|additional|other|need)\b)|n['’]t\b|[不没沒未非無]",
    re.IGNORECASE,
)
_DENIES_IT = re.compile(
    r"(?:\b(?:not|never)|n['’]t)(?:\W+(?:yet|applicable|allowed|right))?\W*\Z",
    re.IGNORECASE,
)
_UNENDED = re.compile(r"\b(?:be|being|is|are|was|as|to|the|a|of|yet|called)\s*\Z")
_BROKEN_LINE = re.compile(r"[\w,]\s*\n[ \t]*\Z")
# before the token of a sub-query: words that announce it, so that it counts inside a sentence
_LEADS = re.compile(
    r"(?:\b(?:is|be|are|ask|use|choose|write)\b|\b(?:move|step|action)\s*\d*\s*[-–—]|\])[\s*_`'\"“(]*\Z",
    re.IGNORECASE,
)

# after a token that ends the search: a question mark, the rest of a clause, second thoughts, missing information
_ASKED = re.compile(r"[\s*_`'\"”)\]}]*[?？]")
_CLAUSE = re.compile(
    r"(?:is|was|are|would|will|could|can|cannot|does|do|did|has|should|may|might|must|if|unless|until|when|once|only|or"
    r"|versus|means?|requires?|needs?|tokens?|tags?|markers?|actions?|moves?|yet|not|nope|isn|wasn|false"
    r"|no(?!\s+(?:further|more|additional|other|need|search|retrieval)\b))\b|[❌✗✘]",
    re.IGNORECASE,
)
_SECOND_THOUGHTS = re.compile(
    r"(?:wait|actually|hmm+|hold on|not yet|not quite|on second thought)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:no|nope|not|nein|non|false)\b(?!\s+(?:further|more|additional|other)\b)|[不没沒否]",
    re.I,
)
_LACKS = re.compile(r"\b(?:missing|insufficient)\b", re.IGNORECASE)
_BUT = re.compile(r"(?:but|however)\b", re.IGNORECASE)
_MISSING = re.compile(
    r"\b(?:missing|insufficient|unknown|still (?:need|unclear)"
    r"|not (?:yet )?(?:enough|sufficient|known|shown|stated|given))\b"
    r"|\b(?:nicht|kein\w*|fehlt|noch|pas encore|manque|falta|aún|todavía)\b|[不没沒未缺非吗嗎]",
    re.IGNORECASE,
)
_MARKUP = " \t\n*_`'\"”’)]}>.,;:=!-–—"
_ITEM = r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t*_`]*"  # of a list
_IN_LIST = re.compile(rf"(?:\A|\n){_ITEM}\Z")
_NEXT_IN_LIST = re.compile(rf"[^\n]*\n\s*{_ITEM}[\[【<(]?\s*(?:SUB|SUFF|NO)")

# not a real sub-query: a placeholder, a label, "none", a clause about the token
_NO_QUESTION = re.compile(
    r"[<{\[(]?\s*(?:(?:a|the|your|next|new)\s+)*(?:search\s*|sub-?)?(?:question|query|subquery)\s*[>}\])]?[\s,.]*"
    r"|(?:(?:the|my)\s+)?(?:(?:next|final|correct)\s+)?(?:answer|reply|response|move)(?:\s+is)?"
    r"|(?:none|n/a|nothing|not)(?: (?:is )?(?:needed|required|necessary|applicable))?[\s.]*"
    r"|(?:looks?|means?|because|since|if|only|for|to|token)\b[^?？]*"
    # with a capital letter these words begin a question, which some models write without a question mark
    r"|(?-i:is|was|would|will|should|could|can|may|when(?! (?:is|are|was|were|did|does|do|has|have|had)\b))\b[^?？]*",
    re.IGNORECASE,
)
# words after a question on its line; quotes around a question
_LEFT_OVER = re.compile(
    r"(?:</|<\||<｜).*|(?<=[?？])\s*+(?:[(\[][^)\]]*+|\W*+\b(?:or|and|then|else)\W*)\Z",
    re.IGNORECASE,
)
_QUOTES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "„": "“",
    "«": "»",
    "「": "」",
    "(": ")",
}

# the beginning of a question that is the whole reply
_ASKS = re.compile(
    r"(?:(?:in|on|at|for|to|from|by|of|with|under|during)\s+)?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|did|does|do|has|have|had)\b",
    re.IGNORECASE,
)
_NO_SEARCH = re.compile(
    r"\b(?:i|me|my|you|your|we|us|our|information|facts?|graph|evidence|passages?|enough|sufficient|missing|next|else)\b",
    re.IGNORECASE,
)

_PLACE_OF_ANSWER = re.compile(r"#\d")

# an action in JSON: the names of keys, and the words for actions reduced to capital letters
_ACTION_KEYS = (
    "action",
    "next_action",
    "move",
    "next_move",
    "decision",
    "plan",
    "type",
    "step",
    "output",
    "response",
)
_SEARCH_KEYS = (
    "subq",
    "sub_q",
    "subquery",
    "sub_query",
    "subquestion",
    "sub_question",
    "query",
    "next_query",
    "next_question",
    "search",
    "search_query",
    "search_question",
    "action_input",
    "subqueries",
    "sub_queries",
    "subquestions",
    "sub_questions",
    "queries",
)
_TEXT_KEYS = ("question", "text", "content", "input", "value")
_REASON_KEYS = ("reason", "thought", "reasoning")
_NAMES_LACK = re.compile("missing")
_SEARCHES = (
    "SUBQ",
    "SUBQUERY",
    "SUBQUESTION",
    "SEARCH",
    "QUERY",
    "RETRIEVE",
    "ASK",
    "INSUFFICIENT",
    "NOTSUFFICIENT",
)
_STOPS: dict[str, Action] = {
    "SUFFICIENT": "sufficient",
    "NORETRIEVAL": "no_retrieval",
    "NORETRIEVALNEEDED": "no_retrieval",
}
_FLAGS: dict[str, Action] = {
    "sufficient": "sufficient",
    "is_sufficient": "sufficient",
    "no_retrieval": "no_retrieval",
}


def parse_plan(reply: str, prompt: str = "") -> Plan:
    """Return the plan that a reply states; text before the action becomes the plan's reason.

    Raises ParseError if the reply states no plan.

    Args:
        prompt: the text that the model was shown. A bare question, without [SUBQ] or another mark, counts as a
            sub-query only if it is not in the prompt, from which it might be quoted.
    """
    text = without_thinking(reply)
    plan: Plan | None = None
    if is_json(text) or "```" in text:
        plan = _in_json(text)
    if plan is None and not is_json(text):
        plan = _in_tokens(text) or _bare_question(text, prompt)
        if plan is not None and plan.action == "subq":
            plan = replace(plan, further=_further_searches(text, plan))
    if plan is None:
        raise ParseError(f"{nothing_in(reply, 'no action')}; expected {FORM}")
    return plan


def _in_tokens(text: str) -> Plan | None:
    """Return the plan that the tokens in a text state: the first [SUBQ], or the token that ends the search.

    A token that ends the search does not count if the model goes on to search.
    """
    tokens = list(_TOKEN.finditer(text))
    stop: Plan | None = None
    stopped_at = 0
    for place, token in enumerate(tokens):
        start = token.start()
        if token.lastgroup == "subq":
            following = (
                tokens[place + 1].start() if token is not tokens[-1] else len(text)
            )
            subquery = _subquery_behind(text, token, following)
            if not subquery:
                continue
            if stop is None or _goes_on(text[stopped_at:start]):
                return Plan("subq", subquery, _reason_before(text, start))
            return stop
        if stop is None and _begins(text, start) and _stops(text, token):
            action = cast(Action, token.lastgroup)
            stop = Plan(action, reason=_reason_before(text, start))
            stopped_at = token.end()
    return stop


def _further_searches(text: str, plan: Plan) -> tuple[str, ...]:
    """Return the sub-queries that directly follow the plan's own, one on each line; prose ends the list."""
    tokens = list(_TOKEN.finditer(text))
    ends = [token.start() for token in tokens[1:]] + [len(text)]
    listed: list[str] = []
    # without tokens there is one more end than tokens
    for token, end in zip(tokens, ends, strict=False):
        if token.lastgroup != "subq":
            if listed:
                break
            continue
        subquery = _subquery_behind(text, token, end)
        if listed or subquery == plan.subquery:
            listed.append(subquery)
        lines = text[token.end() : end].splitlines()
        worded = [line for line in lines if any(map(str.isalpha, line))]
        if listed and len(worded) > 1:
            break
    return _others(listed[1:], plan.subquery)


def _subquery_behind(text: str, token: re.Match[str], end: int) -> str:
    """Return the question between a token and `end`; "" if there is none, or the token does not announce it."""
    opened = text[token.end() - 1] not in "]］】>"
    behind = text[token.end() : end]
    subquery = first_question(behind, opened=opened)
    start = token.start()
    if _begins(text, start) or _leads_to(text, start, subquery):
        return subquery
    return ""


def _reason_before(text: str, offset: int) -> str:
    """Return the beginning of the prose before an action; "" if it has no letters."""
    prose = text[:offset].strip(_AROUND_REASON)
    reason = prose[:_LONGEST_REASON]
    if not any(map(str.isalpha, reason)):
        return ""
    return reason


def _goes_on(between: str) -> bool:
    """Return whether a model that has ended the search goes on thinking, rather than inventing the user's next turn.

    Args:
        between: the text between the token that ends the search and the next search.
    """
    if not any(map(str.isalpha, between)):
        return False
    return re.search(QUESTION.live, between, FLAGS) is None


def _begins(text: str, offset: int) -> bool:
    """Return whether a line or a sentence begins at `offset`, apart from markup, numbers and labels."""
    if text[offset] not in _BRACKETS:
        return True  # tokens without brackets are only matched there
    before = _text_before(text, offset)
    if offset > _LOOK_BACK:
        before = f"x{before}"  # the start of a cut text is not the start of a line
    return bool(_STARTS.search(before))


def _text_before(text: str, offset: int) -> str:
    """Return up to _LOOK_BACK characters before `offset`; the bound keeps the parser linear."""
    start = max(0, offset - _LOOK_BACK)
    return text[start:offset]


def _leads_to(text: str, offset: int, subquery: str) -> bool:
    """Return whether the sentence before `offset` announces that the question after the token is asked next."""
    if not subquery.endswith(("?", "？")):
        return False
    return _LEADS.search(_text_before(text, offset)) is not None


def _stops(text: str, token: re.Match[str]) -> bool:
    """Return whether a token really ends the search: no word around it denies, doubts or questions it."""
    sufficient = token.lastgroup == "sufficient"
    before = _text_before(text, token.start())
    after = text[token.end() : token.end() + _LOOK_AHEAD]
    *_, sentence = _SENTENCE_END.split(before)
    *_, clause = re.split("[,;，]", sentence)
    denial = _DENIES if sufficient else _DENIES_IT
    if _CONDITION.search(sentence) or denial.search(clause):
        return False
    begun_before = text[token.start()] not in _BRACKETS or _UNENDED.search(sentence)
    if begun_before and _BROKEN_LINE.search(before):
        return False
    lists_the_moves = _IN_LIST.search(before) and _NEXT_IN_LIST.match(after)
    if lists_the_moves or _ASKED.match(after):
        return False
    rest = after.lstrip(_MARKUP)
    line = after.partition("\n")[0].lstrip(_MARKUP)
    if _CLAUSE.match(line) or _MISSING.search(line) or _SECOND_THOUGHTS.match(rest):
        return False
    if not sufficient:
        return True
    taken_back = _TAKEN_BACK.match(rest) or _LACKS.search(rest)
    return not taken_back and not (_BUT.match(rest) and _MISSING.search(rest))


def needs_another(subquery: str) -> bool:
    """Return whether a sub-query contains a reference such as "#1" to another sub-query's answer."""
    return _PLACE_OF_ANSWER.search(subquery) is not None


def copies_example(subquery: str, question: str) -> bool:
    """Return whether a sub-query copies the example of the repair prompt, although the question does not ask for it."""
    examples = [EXAMPLE_QUERY]
    return copies(subquery, examples, [question])


def ended(plan: Plan, steps: Sequence[Step]) -> Plan:
    """Return the plan, with "no_retrieval" replaced by "sufficient" if there was a search before."""
    if steps and plan.action == "no_retrieval":
        return replace(plan, action="sufficient")
    return plan


def first_question(text: str, *, opened: bool = False) -> str:
    """Return the first line that contains words, without quotes and markup; "" if it is a placeholder and not a
    question.

    Args:
        opened: whether the question stands inside its token's brackets.
    """
    for line in lines_of(text):
        spaced = " ".join(line.split())
        bare = _LEFT_OVER.sub("", spaced[:_LONGEST_LINE]).strip(_WRAPPING)
        if opened and bare.endswith(("]", "］", "】")):
            bare = bare[:-1]
        bare = _unquote(bare)
        if _NO_QUESTION.fullmatch(bare):
            return ""
        if any(map(str.isalnum, bare)):
            return bare
    return ""


def _unquote(text: str) -> str:
    """Return a text without the quotes, markup or parentheses that surround the whole of it."""
    bare = text.strip(_WRAPPING)
    inner = bare[1:-1]
    closing = _QUOTES.get(bare[:1])
    if closing and bare.endswith(closing) and not {bare[0], closing} & set(inner):
        return _unquote(inner)
    if bare.count('"') == 1:
        return bare.strip('"')
    return bare


def _bare_question(text: str, prompt: str) -> Plan | None:
    """Return a search for the question that ends a reply without any token; None if it is probably not a search.

    It must be the reply's only question, name something, address neither the user nor the model itself, and not be
    quoted from the prompt.
    """
    if text.count("?") != 1 or _TOKEN.search(text):
        return None
    line = _unquote(text.rstrip().rpartition("\n")[2])
    if not line.endswith("?"):
        return None
    question = _asking_part(line.removesuffix("?")).strip(_AROUND_REASON)
    later_words = question.split()[1:]
    names_something = any(
        word[0].isupper() or word[0].isdigit() for word in later_words
    )
    if not names_something or _NO_SEARCH.search(question) or question in prompt:
        return None
    return Plan("subq", f"{question}?")


def _asking_part(line: str) -> str:
    """Return the part of a line that asks: "Where ..." in "The next question is: Where ..."; "" if there is none."""
    if _ASKS.match(line):
        return line  # also "Who directed A: B"
    parts = re.split(r": |\bis (?=[A-Z])", line)
    return next(filter(_ASKS.match, parts[1:]), "")


def _in_json(text: str) -> Plan | None:
    """Return the plan that the first JSON object with an action states, with the searches of the objects after it."""
    first: Plan | None = None
    further: list[str] = []
    for _, item in json_objects(text):
        if _stops_and_searches(item):
            break
        plan = _in_object(item)
        if plan is None:
            continue
        if first is None:
            first = plan
        elif plan.action == "subq":
            further.append(plan.subquery)
        further += plan.further
        if plan.action != "subq":
            break
    if first is None or first.action != "subq":
        return first
    return replace(first, further=_others(further, first.subquery))


def _others(subqueries: Sequence[str], first: str) -> tuple[str, ...]:
    """Return the sub-queries other than the first, without repetitions."""
    others = dict.fromkeys(subqueries)
    for same in ("", first):
        others.pop(same, None)
    return tuple(others)


def _stops_and_searches(item: dict[str, Value]) -> bool:
    if _stop_in(item) is None:
        return False
    missing = first_text(item, filter(_NAMES_LACK.search, item))
    return bool(first_text(item, _SEARCH_KEYS) or missing)


def _stop_in(item: dict[str, Value]) -> Action | None:
    return _STOPS.get(_action_in(item)) or _flagged(item)


def _action_in(item: dict[str, Value]) -> str:
    """Return an object's word for the action, reduced to its capital letters; "" if it is a question."""
    word = first_text(item, _ACTION_KEYS)
    if "?" in word:
        return ""
    return re.sub(r"[^A-Z]", "", word.upper())


def _in_object(item: dict[str, Value]) -> Plan | None:
    """Return the plan that one JSON object states; None if it states none."""
    reason = first_text(item, _REASON_KEYS)[:_LONGEST_REASON]
    stop = _stop_in(item)
    if stop is not None:
        return Plan(stop, reason=reason)
    word = first_text(item, _ACTION_KEYS)
    action = _action_in(item)
    if word and action not in _SEARCHES:
        return _in_tokens(word)
    searches = all_texts(item, _SEARCH_KEYS)
    if not searches and action:
        searches = all_texts(item, _TEXT_KEYS)
    subqueries = list(map(first_question, searches))
    if not subqueries or not subqueries[0]:
        return None
    first = subqueries[0]
    return Plan("subq", first, reason, further=_others(subqueries, first))


def _flagged(item: dict[str, Value]) -> Action | None:
    """Return the action that a Boolean key switches on, as in {"sufficient": true}, or None."""
    for key, stop in _FLAGS.items():
        value = item.get(key)
        if value is True or first_text(item, [key]).casefold() in ("yes", "true"):
            return stop
    return None

"""Grammar of a planner's replies: which action does a reply state?

    [SUBQ] a question        search for this
    [SUFFICIENT]             the graph holds the answer
    [NO_RETRIEVAL]           no search is needed

An action is a whole token in square brackets at the start of a line or a sentence. The first valid one counts. Small
models also write `SUBQ: a question`, `[SUBQ: a question]`, `SUFFICIENT` alone on its line, JSON, translated tokens, or
the question alone; ras_agent.marks has the spellings. A token that is denied, doubted or asked about is none: neither
"INSUFFICIENT" nor "the facts are not [SUFFICIENT]" nor "[SUFFICIENT]? No" nor "sufficient" ends anything.
"""

from __future__ import annotations

import re
from typing import cast

from ras_agent.errors import ParseError
from ras_agent.marks import FLAGS, NO_RETRIEVAL, QUESTION, SPELLINGS, SUBQ, SUFFICIENT
from ras_agent.records import Action, Plan
from ras_agent.text.loose_json import Value, is_json, json_objects
from ras_agent.text.unusable import copies
from ras_agent.tools.chat.dialogue import without_thinking
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.form import ReplyForm

EXAMPLE_QUERY = "In which city was Jørn Utzon born?"
EXAMPLE = f"{SUBQ} {EXAMPLE_QUERY}"
FORM = f"one line, either {SUBQ} and a search question, or {SUFFICIENT}, or {NO_RETRIEVAL}"

_LETTERS = "0-9A-Za-zÀ-ÖØ-öø-ɏΑ-ΡΣ-ωА-яא-תء-غऄ-हぁ-ゖァ-ヺ一-鿿가-힣"
_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|St|Mt|Ft|Jr|Sr|Inc|Ltd|Co|Corp|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov|Sen|Ph|vs|No|Vol|Op|etc"
)
_FULL_STOP = rf"\.[0-9a-z,:;'’-]| (?:{_ABBREVIATIONS})\.|[A-Z]\."
_PIECE = rf"(?:[^\n\[\]<>(){{}}|?`.。．]|{_FULL_STOP})"
_FIRST = rf"(?:[{_LETTERS}]|[A-Z]\. ?|(?:{_ABBREVIATIONS})\. )"
PATTERN = rf"\[SUBQ\] {_FIRST}{_PIECE}{{2,300}}[?.]|\[SUFFICIENT\]|\[NO_RETRIEVAL\]"
"""A regular expression of the form, for servers that let a reply match one; `parse_plan` reads whatever matches it.

A full stop inside a sub-query belongs to a number, an initial or an abbreviation, and any other ends it: a model that
states something may stop there, where it would else go on until it comes to a question mark.
"""
_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": [str(mark).strip("[]") for mark in (SUBQ, SUFFICIENT, NO_RETRIEVAL)]},
        "question": {"type": "string"},
    },
    "required": ["action", "question"],
    "additionalProperties": False,
}
REPLY_FORM = ReplyForm(PATTERN, _SCHEMA)

_TOKEN = re.compile(
    "|".join(f"(?P<{action}>{'|'.join(mark.live for mark in marks)})" for action, marks in SPELLINGS.items()), FLAGS
)
_STARTS = re.compile(r"(?:^|[\n.:;!?…。：；！？—→]|\\boxed\{)[\s*_`'\"“”‘’>#()|•-]*(?:\d+[.)]\s*)?\Z")
_WRAPPING = " \t*_`<>:：|-—✅✔"
_LOOK_BACK, _LOOK_AHEAD, _LONGEST_LINE = 80, 200, 2000  # bounds keep the parser linear
_AROUND_REASON, _LONGEST_REASON = f"{_WRAPPING}\n'\"“”‘’", 500

# in front of a token, in the sentence or the label that it ends: what puts a condition, what denies it
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
_DENIES_IT = re.compile(r"(?:\b(?:not|never)|n['’]t)(?:\W+(?:yet|applicable|allowed|right))?\W*\Z", re.IGNORECASE)
_UNENDED = re.compile(r"\b(?:be|being|is|are|was|as|to|the|a|of|yet|called)\s*\Z")
_BROKEN_LINE = re.compile(r"[\w,]\s*\n[ \t]*\Z")
# the same for the token of a question, which counts inside a sentence that announces it
_LEADS = re.compile(
    r"(?:\b(?:is|be|are|ask|use|choose|write)\b|\b(?:move|step|action)\s*\d*\s*[-–—]|\])[\s*_`'\"“(]*\Z", re.IGNORECASE
)

# behind a token that stops: a question, a clause that the token is part of, second thoughts, something that is missing
_ASKED = re.compile(r"[\s*_`'\"”)\]}]*[?？]")
_CLAUSE = re.compile(
    r"(?:is|was|are|would|will|could|can|cannot|does|do|did|has|should|may|might|must|if|unless|until|when|once|only|or"
    r"|versus|means?|requires?|needs?|tokens?|tags?|markers?|actions?|moves?|yet|not|nope|isn|wasn|false"
    r"|no(?!\s+(?:further|more|additional|other|need|search|retrieval)\b))\b|[❌✗✘]",
    re.IGNORECASE,
)
_SECOND_THOUGHTS = re.compile(r"(?:wait|actually|hmm+|hold on|not yet|not quite|on second thought)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(r"(?:no|nope|not|nein|non|false)\b(?!\s+(?:further|more|additional|other)\b)|[不没沒否]", re.I)
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

# a subquery that is none: a place holder, a label, "none", a clause about the token
_NO_QUESTION = re.compile(
    r"[<{\[(]?\s*(?:(?:a|the|your|next|new)\s+)*(?:search\s*|sub-?)?(?:question|query|subquery)\s*[>}\])]?[\s,.]*"
    r"|(?:(?:the|my)\s+)?(?:(?:next|final|correct)\s+)?(?:answer|reply|response|move)(?:\s+is)?"
    r"|(?:none|n/a|nothing|not)(?: (?:is )?(?:needed|required|necessary|applicable))?[\s.]*"
    r"|(?:looks?|means?|is|was|would|will|should|could|can|may|because|since|if|when|only|for|to|token)\b[^?？]*",
    re.IGNORECASE,
)
# what follows a question on its line; quotes around it
_LEFT_OVER = re.compile(
    r"(?:</|<\||<｜).*|(?<=[?？])\s*+(?:[(\[][^)\]]*+|\W*+\b(?:or|and|then|else)\W*)\Z", re.IGNORECASE
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "「": "」", "(": ")"}

# a question that is the whole reply
_ASKS = re.compile(
    r"(?:(?:in|on|at|for|to|from|by|of|with|under|during)\s+)?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|did|does|do|has|have|had)\b",
    re.IGNORECASE,
)
_NO_SEARCH = re.compile(
    r"\b(?:i|me|my|you|your|we|us|our|information|facts?|graph|evidence|passages?|enough|sufficient|missing|next|else)\b",
    re.IGNORECASE,
)

# an action in JSON: names of the keys, and words for the action in capitals without anything else
_ACTION_KEYS = ("action", "next_action", "move", "next_move", "decision", "plan", "type", "step", "output", "response")
_SEARCH_KEYS = (
    *("subq", "sub_q", "subquery", "sub_query", "subquestion", "sub_question", "query", "next_query", "next_question"),
    *("search", "search_query", "search_question", "action_input"),
)
_TEXT_KEYS = ("question", "text", "content", "input", "value")
_SEARCHES = ("SUBQ", "SUBQUERY", "SUBQUESTION", "SEARCH", "QUERY", "RETRIEVE", "ASK", "INSUFFICIENT", "NOTSUFFICIENT")
_STOPS: dict[str, Action] = {
    "SUFFICIENT": "sufficient",
    "NORETRIEVAL": "no_retrieval",
    "NORETRIEVALNEEDED": "no_retrieval",
}
_FLAGS: dict[str, Action] = {"sufficient": "sufficient", "is_sufficient": "sufficient", "no_retrieval": "no_retrieval"}


def parse_plan(reply: str, prompt: str = "") -> Plan:
    """Return the plan that a reply states; prose in front of its action is the reason.

    prompt: what the model was shown. A bare question, without [SUBQ] or another mark, is taken for a sub-query only if
    it is not part of the prompt: it may be quoted from a document.
    Raises ParseError if it states none.
    """
    text = without_thinking(reply)
    plan = _in_json(text) if is_json(text) or "```" in text else None
    if plan is None and not is_json(text):
        plan = _in_tokens(text) or _bare_question(text, prompt)
    if plan is None:
        raise ParseError(f"{nothing_in(reply, 'no action')}; expected {FORM}")
    return plan


def _in_tokens(text: str) -> Plan | None:
    tokens = list(_TOKEN.finditer(text))
    ends = [*(token.start() for token in tokens[1:]), len(text)]
    stop: Plan | None = None
    behind = 0
    for token, end in zip(tokens, ends, strict=False):  # without a token there is still one end
        action = cast(Action, token.lastgroup)
        if action == "subq":
            subquery = first_question(text[token.end() : end], opened=text[token.end() - 1] not in "]］】>")
            is_plan = bool(subquery) and (_begins(text, token.start()) or _leads_to(text, token.start(), subquery))
        else:
            subquery = ""
            is_plan = stop is None and _begins(text, token.start()) and _stops(text, token)
        if not is_plan:
            continue
        reason = text[: token.start()].strip(_AROUND_REASON)[:_LONGEST_REASON]
        plan = Plan(action, subquery, reason if any(map(str.isalpha, reason)) else "")
        if action == "subq":
            return plan if stop is None or _goes_on(text[behind : token.start()]) else stop
        stop, behind = plan, token.end()
    return stop


def _goes_on(between: str) -> bool:
    """Tell whether a model that has stopped thinks on and searches, instead of playing the user's next turn."""
    return any(map(str.isalpha, between)) and re.search(QUESTION.live, between, FLAGS) is None


def _begins(text: str, offset: int) -> bool:
    """Tell whether a line or a sentence begins at `offset`, apart from markup, numbers and labels."""
    if text[offset] not in "[［【<":
        return True  # a token without brackets is found nowhere else
    before = text[max(0, offset - _LOOK_BACK) : offset]  # a bounded look back keeps the parser linear
    return bool(_STARTS.search(before if offset <= _LOOK_BACK else f"x{before}"))


def _leads_to(text: str, offset: int, subquery: str) -> bool:
    """Tell whether a sentence says, before `offset`, that the question after the token is to be asked next."""
    return subquery.endswith(("?", "？")) and bool(_LEADS.search(text[max(0, offset - _LOOK_BACK) : offset]))


def _stops(text: str, token: re.Match[str]) -> bool:
    """Tell whether a token that would end the loop is meant so: no word around it denies, doubts or questions it."""
    sufficient = token.lastgroup == "sufficient"
    before = text[max(0, token.start() - _LOOK_BACK) : token.start()]
    after = text[token.end() : token.end() + _LOOK_AHEAD]
    *_, sentence = _SENTENCE_END.split(before)
    if _CONDITION.search(sentence) or (_DENIES if sufficient else _DENIES_IT).search(re.split("[,;，]", sentence)[-1]):
        return False
    if _BROKEN_LINE.search(before) and (text[token.start()] not in "[［【<" or _UNENDED.search(sentence)):
        return False  # the sentence began on the line before
    if _ASKED.match(after) or (_IN_LIST.search(before) and _NEXT_IN_LIST.match(after)):
        return False  # it asks itself, or lists the moves
    line, rest = after.partition("\n")[0].lstrip(_MARKUP), after.lstrip(_MARKUP)
    if _CLAUSE.match(line) or _MISSING.search(line) or _SECOND_THOUGHTS.match(rest):
        return False
    doubted = _TAKEN_BACK.match(rest) or _LACKS.search(rest) or (_BUT.match(rest) and _MISSING.search(rest))
    return not (sufficient and doubted)


def copies_example(subquery: str, question: str) -> bool:
    """Tell whether a sub-query is that of the example in a repair, which the question does not ask."""
    return copies(subquery, [EXAMPLE_QUERY], [question])


def first_question(text: str, *, opened: bool = False) -> str:
    """Return the first line with words in it, without quotes and markup; "" for one that asks nothing.

    opened: whether the question stands inside the brackets of its token.
    """
    for line in text.splitlines():
        bare = _LEFT_OVER.sub("", " ".join(line.split())[:_LONGEST_LINE]).strip(_WRAPPING)
        if opened and bare.endswith(("]", "］", "】")):
            bare = bare[:-1]
        bare = _unquote(bare)
        if any(char.isalnum() for char in bare):
            return "" if _NO_QUESTION.fullmatch(bare) else bare
    return ""


def _unquote(text: str) -> str:
    """Return a text without the quotes, markup or parentheses around all of it."""
    bare = text.strip(_WRAPPING)
    closing = _QUOTES.get(bare[:1], "")
    if closing and bare.endswith(closing) and not {bare[0], closing} & set(bare[1:-1]):
        return _unquote(bare[1:-1])
    return bare.strip('"') if bare.count('"') == 1 else bare


def _bare_question(text: str, prompt: str) -> Plan | None:
    """Return a search for the question that ends a reply without any token; None if it may be no search.

    It must be the reply's one question, ask for something by name, and be put neither to the user nor to the model
    itself, nor be quoted from the prompt.
    """
    if text.count("?") != 1 or _TOKEN.search(text):
        return None
    line = _unquote(text.rstrip().rpartition("\n")[2])
    question = line.removesuffix("?")
    if line.endswith("?") and not _ASKS.match(question):  # "The next question is: Where ...", but "Who directed A: B?"
        question = next((part for part in re.split(r": |\bis (?=[A-Z])", question)[1:] if _ASKS.match(part)), "")
    question = question.strip(_AROUND_REASON)
    names_something = any(word[0].isupper() or word[0].isdigit() for word in question.split()[1:])
    if not line.endswith("?") or not names_something or not _ASKS.match(question) or _NO_SEARCH.search(question):
        return None
    return None if question in prompt else Plan("subq", f"{question}?")


def _in_json(text: str) -> Plan | None:
    for _, item in json_objects(text):
        search = next((_text(item[key]) for key in _SEARCH_KEYS if _text(item.get(key))), "")
        word = next((_text(item[key]) for key in _ACTION_KEYS if _text(item.get(key))), "")
        action = "" if "?" in word else re.sub(r"[^A-Z]", "", word.upper())
        flagged: list[Action] = [stop for key, stop in _FLAGS.items() if _is_yes(item.get(key))]
        lacks = any(_text(value) for key, value in item.items() if "missing" in key)
        reason = next((_text(item[key]) for key in ("reason", "thought", "reasoning") if _text(item.get(key))), "")
        reason = reason[:_LONGEST_REASON]
        stop = _STOPS.get(action) or next(iter(flagged), None)
        if stop is not None:
            return None if search or lacks else Plan(stop, reason=reason)  # not one that stops and searches
        if action in _SEARCHES or not word:
            by_name = next((_text(item[key]) for key in _TEXT_KEYS if action and _text(item.get(key))), "")
            if subquery := first_question(search or by_name):
                return Plan("subq", subquery, reason)
        elif plan := _in_tokens(word):
            return plan
    return None


def _is_yes(value: Value) -> bool:
    return value is True or _text(value).casefold() in ("yes", "true")


def _text(value: Value) -> str:
    """Return a text, or the first of several; "" for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    return first.strip() if isinstance(first, str) else ""

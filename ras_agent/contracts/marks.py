"""Lists, in one table, the marks that have a meaning in prompts and replies.

A mark is a text to which a parser, a renderer or a chat model gives a meaning: `[SUBQ]`, `(S> ... | P> ... | O>
...)`, `[3]`, `</passage>`, "Answer:". The table is used by

    the parsers of replies    each uses the `live` patterns of its marks
    the renderers             `fact_text`, `number_text`, `fenced`, and str(mark)
    the help in prompts       `{{SUBQ}}`, `{{FACT}}` and so on in the prompt files (`PLACEHOLDERS`)
    `as_data`                 which makes all marks in retrieved text inert

so no mark that is added to `MARKS` has a meaning inside a passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

FLAGS: Final = re.IGNORECASE | re.MULTILINE

# No parser reads a look-alike (right) as the character that it replaces (left); people and models understand both.
_BLANKS = " \t\n\r\f\v"
_LOOK_ALIKES = {
    **dict.fromkeys("[［【〔<＜", "‹"),
    **dict.fromkeys("]］】〕>＞", "›"),
    **dict.fromkeys(":：", "∶"),
    **dict.fromkeys("|｜", "∣"),
    "{": "❴",
    "(": "❨",
    "（": "❨",
    "→": "⇾",
    "◁": "‹",
    "▷": "›",
    **dict.fromkeys(_BLANKS, "\N{NO-BREAK SPACE}"),
    # words that are marks if a line has nothing else: a letter that looks the same
    "A": "\N{CYRILLIC CAPITAL LETTER A}",
    "a": "\N{CYRILLIC SMALL LETTER A}",
    "N": "\N{GREEK CAPITAL LETTER NU}",
    "S": "\N{CYRILLIC CAPITAL LETTER DZE}",
    **dict.fromkeys("sſ", "\N{CYRILLIC SMALL LETTER DZE}"),
}

# Repetitions are possessive (`*+`) and stop at a mark's opening character, so searching is linear in the text's length.
_PADDING = r"[\s*_`:]*+"  # written by models inside the brackets of a token: white space and Markdown
_IN_LINE = r"[^\S\n]"  # white space that ends no line
_UNSEEN = "\x00-\x08\x0e-\x1f\xad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2064\ufeff"  # a reader sees nothing there


# compared and hashed by identity, because the table is hashed for each text
@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """Describes a text that parsers, renderers or models give a meaning, such as `[SUBQ]`."""

    text: str
    """the mark as prompts show it"""
    live: str
    """A regular expression, without capturing groups, for every spelling that a parser accepts as the mark. It ignores
    case, and `^` matches at the start of each line (`FLAGS`)."""
    swapped: str
    """the characters of such a spelling that `as_data` replaces by look-alikes"""
    near: str = ""
    """a regular expression for spellings that no parser accepts as the mark but a model might; `as_data` makes them
    inert too"""

    def __str__(self) -> str:
        return self.text

    def is_in(self, text: str) -> bool:
        """Tell whether `text` contains the mark in a spelling that a parser accepts."""
        return re.search(self.live, text, FLAGS) is not None


def token(name: str, *others: str, numbered: bool = False, opens: bool = False) -> Mark:
    """Make a mark in square brackets: `[NAME]`.

    A parser also accepts a space, a hyphen or nothing for each `_` of the name, and full-width brackets or a
    tag, which some models write instead.

    Args:
        name: the name, in capitals.
        others: other names that models write for the mark, such as translations.
        numbered: whether a number may follow the name.
        opens: whether text may follow the name inside the brackets.
    """
    words = "|".join(word.replace("_", r"[\s_-]*+") for word in (name, *others))
    number = r"(?:[\s_#-]*+\d++)?+" if numbered else ""
    closing = (
        rf"(?:{_PADDING}[\]］】]|(?<=\w):?+(?!\w))" if opens else rf"{_PADDING}[\]］】]"
    )
    live = rf"[\[［【]{_PADDING}(?:{words}){number}{closing}|<{_IN_LINE}*+(?:{words}){_IN_LINE}*+/?+>"
    # in other brackets, behind a slash, or with characters in between that are not seen
    unseen = rf"[{_UNSEEN}]*+"
    spellings = "|".join(
        unseen.join(r"[\s_-]*+" if letter == "_" else letter for letter in word)
        for word in (name, *others)
    )
    around = rf"[\s*_`:/{_UNSEEN}]*+"
    near = rf"[\[［【〔]{around}(?:{spellings}){'(?:' + around + '[]］】〕])?+' if opens else around + '[]］】〕]'}"
    return Mark(f"[{name}]", live, "[]［］【】〔〕", near)


def field(letter: str) -> Mark:
    """Make the mark in front of a field of a fact, such as `S>` for the letter S."""
    return Mark(f"{letter}>", rf"\b{letter}[>＞]", ">＞", near=rf"\b{letter}\s++[>＞]")


def label(words: str, pattern: str = "") -> Mark:
    """Make a mark of words and a colon at the start of a line, such as `Answer:`.

    `pattern` is a regular expression for other forms of the words; by default the words themselves.
    """
    opening, closing = rf"^(?:{_IN_LINE}|[*_#>`])*+", rf"(?:{_IN_LINE}|[*_`])*+[:：]"
    return Mark(
        f"{words}:", f"{opening}(?:{pattern or re.escape(words)}){closing}", ":："
    )


# the next action of a planner
SUBQ = token(
    "SUBQ",
    "SUB_QUERY",
    "SUB_QUESTION",
    "UNTERFRAGE",
    "TEILFRAGE",
    "SUBPREGUNTA",
    "SUBCONSULTA",
    "SOUS_QUESTION",
    "SUBPERGUNTA",
    "SOTTODOMANDA",
    "子问题",
    "子查询",
    "子問題",
    "サブ質問",
    numbered=True,
    opens=True,
)
SUFFICIENT = token(
    "SUFFICIENT",
    "AUSREICHEND",
    "HINREICHEND",
    "SUFICIENTE",
    "SUFFISANT",
    "SUFFICIENTE",
    "足够",
    "足夠",
    "充分",
    "十分",
)
NO_RETRIEVAL = token(
    "NO_RETRIEVAL",
    "NO_RETRIEVAL_NEEDED",
    "NO_SEARCH",
    "KEINE_SUCHE",
    "SIN_BÚSQUEDA",
    "AUCUNE_RECHERCHE",
    "无需检索",
    "不需要检索",
)
ACTIONS: Final[Mapping[str, Mark]] = {
    "subq": SUBQ,
    "sufficient": SUFFICIENT,
    "no_retrieval": NO_RETRIEVAL,
}

# the same marks without brackets: a name with a colon, or a word alone on its line, except for a label such as "Action:"
_LINE_START, _LINE_END = (
    rf"^(?:{_IN_LINE}|[*_#>`\"'(-])*+",
    rf"(?:{_IN_LINE}|[*_`\"').!✅✔])*+$",
)
_BEHIND_LABEL = rf"(?:{_LINE_START}|(?<=[:：])(?:{_IN_LINE}|[*_`\"'(])*+)"
BARE_SUBQ = Mark(
    "SUBQ:",
    rf"{_BEHIND_LABEL}SUB[-_ ]?+Q(?:UERY|UESTION)?+(?:{_IN_LINE}*+\d++)?+(?:{_IN_LINE}|[*_`)])*+[:：]"
    rf"|{_LINE_START}(?-i:SUBQ)[)*_`]*+(?=[ \t])",
    "Ssſ",
)
BARE_SUFFICIENT = Mark(
    "SUFFICIENT", rf"{_BEHIND_LABEL}(?-i:SUFFICIENT|Sufficient){_LINE_END}", "Ssſ"
)
BARE_NO_RETRIEVAL = Mark(
    "NO_RETRIEVAL",
    rf"{_BEHIND_LABEL}(?-i:NO[ _-]RETRIEVAL(?:[ _-]NEEDED)?+){_LINE_END}",
    "N",
)
SPELLINGS: Final[Mapping[str, tuple[Mark, ...]]] = {
    "subq": (SUBQ, BARE_SUBQ),
    "sufficient": (SUFFICIENT, BARE_SUFFICIENT),
    "no_retrieval": (NO_RETRIEVAL, BARE_NO_RETRIEVAL),
}

# in a reply: instead of an answer, and instead of a list
UNKNOWN = token("UNKNOWN")
NONE = token("NONE")

# the fields of a fact, and the number of a piece of evidence
SUBJECT, PREDICATE, OBJECT = FIELDS = (field("S"), field("P"), field("O"))
NUMBER = Mark(
    "[1]",
    r"[\[【]\d{1,4}+(?:\s*+[,;–-]\s*+\d{1,4}+)*+[\]】]",
    swapped="[]【】",
    near=r"[\[【][\s,;–^-]*+\d[\s\d,;–-]*+(?:†[^\[\]【】\n]{0,60}+)?+[\]】]",
)
# forms in which models write facts without the marks: bars, arrows, quoted words, commas, a label for each field
BARS = Mark("a | b | c", r"^[^|｜\n]*+[|｜][^|｜\n]*+[|｜][^\n]*+$", swapped="|｜")
ARROWS = Mark(
    "a -> b -> c",
    r"^(?:(?!->|→)[^\n])*+(?:->|→)(?:(?!->|→)[^\n])*+(?:->|→)[^\n]*+",
    swapped=">→",
)
QUOTED_TUPLE = Mark(
    '("a", "b", "c")',
    "|".join(
        rf"[(（]\s*+{string}\s*+,\s*+{string}\s*+,\s*+{string}\s*+[)）]"
        for string in (r'"[^"\n]*+"', r"'[^'\n]*+'")
    ),
    swapped="(（",
)
TUPLE = Mark(
    "(a, b, c)",
    rf"^(?:{_IN_LINE}|[*_#>`•-]|\d++[.)])*+[(（][^(),（）❨\n]++,[^(),（）❨\n]++,[^(),（）❨\n]++[)）][^\w\n]*+$",
    swapped="(（",
)
FIELD_LABELS = tuple(
    label(words[0].capitalize(), "|".join(words))
    for words in (
        ("subject", "head", "s"),
        ("predicate", "relation", "p"),
        ("object", "tail", "o"),
    )
)

# the last sentence of IRCoT's chain of thought
ANSWER_IS = Mark(
    "So the answer is",
    rf"answer(?<!\wanswer)(?:[{_BLANKS}]++to[{_BLANKS}]++(?:the|this)[{_BLANKS}]++question)?+[{_BLANKS}]++is\b",
    swapped=_BLANKS,
)

# the parts of prompts and replies
ANSWER = label(
    "Answer",
    rf"(?:(?:final|short){_IN_LINE}++)?+answer|solution|antwort|respuesta|réponse|risposta|resposta|答案|ответ",
)
INLINE_ANSWER = Mark("Answer:", rf"\banswer(?:{_IN_LINE}|[*_`])*+[:：]", swapped=":：")
ANSWER_HEADING = Mark(
    "# Answer",
    rf"^{_IN_LINE}*+(?:#|\*\*)(?:{_IN_LINE}|[*#])*+(?:final{_IN_LINE}++)?+answer(?:{_IN_LINE}|[*#])*+$",
    swapped="Aa",
)
BOXED = Mark("\\boxed{", r"\\boxed\{", swapped="{")
QUESTION = label("Question")
FOUND = label("Retrieved Graph Information")
FOUND_TEXT = label("Retrieved Text")
GIVEN = label("Facts given at the start")
THOUGHTS = label("Sentences so far")

# marks of planners in other dialects: ReAct's steps, CoRAG's searches with their answers
THOUGHT = label("Thought", rf"thought(?:{_IN_LINE}*+\d++)?+")
# a model that quotes the middle of a line may put the mark at the start of its line
ACTION = replace(
    label("Action", rf"action(?:{_IN_LINE}*+\d++)?+"),
    near=rf"\baction(?:{_IN_LINE}*+\d++)?+(?:{_IN_LINE}++input)?+(?:{_IN_LINE}|[*_`])*+[:：]",
)
ACTION_INPUT = label("Action Input", rf"action{_IN_LINE}++input")
OBSERVATION = label("Observation", rf"observation(?:{_IN_LINE}*+\d++)?+")
INTERMEDIATE_QUERY = label(
    "Intermediate query", rf"intermediate{_IN_LINE}++query(?:{_IN_LINE}*+\d++)?+"
)
INTERMEDIATE_ANSWER = label(
    "Intermediate answer", rf"intermediate{_IN_LINE}++answer(?:{_IN_LINE}*+\d++)?+"
)

# the beginning of a fact in JSON; the heading of a part of the prompts with which models were tuned
JSON_FACT = Mark('["', r"""[\[{]\s*+["']""", swapped="[{")
INSTRUCTION = Mark(
    "### Instruction:",
    rf"^{_IN_LINE}*+#++(?:{_IN_LINE}|[*_])*+(?:instruction|input|response|system|user|assistant)s?+(?:{_IN_LINE}|[*_])*+:",
    swapped=":",
)

# Tags are fences around data, thoughts of reasoning models, turns of chat templates, actions of search-trained
# planners. The mark covers every tag, and also a tag that is cut off at the text's end, because the fence that closes
# the text would complete it.
TAG = Mark(
    "<tag>",
    r"<(?=[\s/|｜!]*+(?:[^\W\d]|\Z))",
    swapped="<＜",
    near=rf"[<＜](?=[\s/／|｜!{_UNSEEN}]*+(?:[^\W\d]|\Z))",
)
PASSAGE_FENCE, FACTS_FENCE, QUESTION_FENCE, NOTE_FENCE, CONVERSATION_FENCE = FENCES = (
    "passage",
    "facts",
    "question",
    "note",
    "conversation",
)
THINKING_TAGS = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "analysis",
    "seed:think",
    "mm:think",
    "longcat_think",
    "antthinking",
    "inner_monologue",
    "internal_thoughts",
    "thought_process",
    "cot",
    "reason",
)
THINKING_TOKEN = token("THINK")  # Magistral's
KIMI_THINK = Mark("◁think▷", r"◁/?+think▷", swapped="◁▷")
HARMONY_ANALYSIS = Mark(
    "analysis\n",
    r"\A\s*+(?-i:(?:assistant)?+analysis(?:(?=[A-Z])|\s*?\n))",
    swapped="a",
)
HARMONY_FINAL = Mark(
    "assistantfinal", r"(?-i:assistant\s*+final(?=[\sA-Z\d\[(*\"“]|\Z))", swapped="a"
)
GRANITE_THOUGHT = Mark(
    "Here is my thought process:", r"Here(?:['’]s| is) my thought process:", swapped=":"
)
GRANITE_RESPONSE = Mark(
    "Here is my response:", r"Here(?:['’]s| is) my response:", swapped=":"
)
RESPONSE_HEADING = Mark(
    "## Final Answer",
    r"^(?:#{1,4}[ \t]++|\*\*)(?:final[ \t]++)?+(?:answer|response)[*:]*+[ \t]*+$",
    swapped="AaSs",
)


@dataclass(frozen=True, slots=True)
class Tags:
    """Holds the tags around a part of a reply, such as `<search>` and `</search>`. `as_data` makes both inert in
    passages.
    """

    opening: str
    closing: str

    @property
    def live(self) -> tuple[str, str]:
        """Return regular expressions for the opening and the closing tag. Each matches all spellings that a
        parser accepts.
        """
        return _spelled(self.opening), _spelled(self.closing)

    def around(self, text: str) -> str:
        """Return `text` with the opening tag before it and the closing tag after it."""
        return f"{self.opening}{text}{self.closing}"


def _spelled(tag: str) -> str:
    """Return a regular expression for a tag that may have white space around its name."""
    return re.sub(
        r"\w+", lambda name: rf"{_IN_LINE}*+{name[0]}{_IN_LINE}*+", re.escape(tag)
    )


def tags(name: str) -> Tags:
    """Return the pair of tags `<name>` and `</name>`."""
    return Tags(f"<{name}>", f"</{name}>")


# tags of Search-R1, AutoRefine and R1-Searcher, and of tool calls as models of the Qwen and Hermes families write them
SEARCH_TAGS, ANSWER_TAGS, INFORMATION_TAGS, DOCUMENTS_TAGS = map(
    tags, ("search", "answer", "information", "documents")
)
QUERY_TOKENS = Tags("<|begin_of_query|>", "<|end_of_query|>")
DOCUMENT_TOKENS = Tags("<|begin_of_documents|>", "<|end_of_documents|>")
TOOL_CALL_TAGS, TOOL_RESPONSE_TAGS, TOOLS_TAGS = map(
    tags, ("tool_call", "tool_response", "tools")
)
ALL_TAGS = (
    SEARCH_TAGS,
    ANSWER_TAGS,
    INFORMATION_TAGS,
    DOCUMENTS_TAGS,
    QUERY_TOKENS,
    DOCUMENT_TOKENS,
    TOOL_CALL_TAGS,
    TOOL_RESPONSE_TAGS,
    TOOLS_TAGS,
    *map(tags, THINKING_TAGS),
)
TEMPLATE_TOKENS = (token("INST"), token("SYS"), THINKING_TOKEN)


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """Holds the regular expressions of the marks that a family of models writes around its thoughts."""

    opening: str
    closing: str
    closes_alone: bool = True
    """Whether the closing mark ends thoughts that no mark opened, because the chat template already contains the
    opening mark."""
    stays_open: bool = True
    """Whether thoughts without a closing mark reach to the end of the reply."""


_THINKING = "|".join(map(re.escape, THINKING_TAGS))
_THINKING_HEADING = r"\A\s*+(?:#{1,4}[ \t]++|\*\*)(?:thinking|thoughts?|reasoning)(?:[ \t]++process)?+[*:]*+[ \t]*+\n"
_HARMONY_FINAL = (
    r"<\|channel\|>\s*+final\s*+(?:<\|constrain\|>\s*+\w*+\s*+)?+<\|message\|>"
)
THOUGHT_MARKS: Final = (
    ThoughtMarks(rf"<(?:{_THINKING})(?:\s[^<>]*+)?+>", rf"</(?:{_THINKING})\s*+>"),
    ThoughtMarks(r"\[THINK\]", r"\[/THINK\]"),
    # Open WebUI, which folds thoughts away
    ThoughtMarks(
        r"<details\s[^<>]*reasoning[^<>]*+>", r"</details>", closes_alone=False
    ),
    # gpt-oss: harmony, and harmony without its tokens
    ThoughtMarks(r"<\|channel\|>\s*+analysis", _HARMONY_FINAL),
    ThoughtMarks(HARMONY_ANALYSIS.live, HARMONY_FINAL.live, closes_alone=False),
    ThoughtMarks(r"◁think▷", r"◁/think▷"),
    ThoughtMarks(  # the last is Solar's
        r"<\|(?:think|thinking|thought)\|>",
        r"<\|/(?:think|thinking|thought)\|>|<\|content\|>",
    ),
    ThoughtMarks(r"\[unused16\]", r"\[unused17\]"),  # Pangu
    ThoughtMarks(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
    ThoughtMarks(r"<\|channel>\s*+thought", r"<channel\|>(?!\s*+\Z)"),  # Gemma 4
    ThoughtMarks(r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    # Sky-T1, OpenThinker
    ThoughtMarks(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    ThoughtMarks(r"<\|im_start\|>\s*+think\b", r"<\|im_start\|>\s*+answer\b"),  # s1
    ThoughtMarks(GRANITE_THOUGHT.live, GRANITE_RESPONSE.live, closes_alone=False),
    ThoughtMarks(
        _THINKING_HEADING, RESPONSE_HEADING.live, closes_alone=False, stays_open=False
    ),
)

# marks that open a model's own turn, or the part of it that is meant for the reader
TURN_OPENINGS: Final = (
    r"<s>",
    r"<bos>",
    r"<\|START_RESPONSE\|>",
    r"<\|START_TEXT\|>",
    r"<\|begin_of_solution\|>",
    r"<\|start_header_id\|>assistant<\|end_header_id\|>",
    r"<\|im_start\|>(?:assistant)?",
    r"<start_of_turn>model",
    r"<\|turn>model",
    r"<\|start\|>assistant",
    r"<\|assistant(?:_start)?\|>",
    r"<｜Assistant｜>",
    _HARMONY_FINAL,
    r"<\|channel>\s*+final\b",
    r"<\|begin_of_box\|>",  # GLM, around its answer
)
# tags that models write around the whole of an answer
WRAPPING_TAGS: Final = (
    "answer",
    "final_answer",
    "final-answer",
    "finalanswer",
    "short_answer",
    "answer_text",
    "ans",
    "final",
    "response",
    "output",
    "result",
    "solution",
    "reply",
    "assistant",
    "message",
    "text",
    "content",
    "conclusion",
    "completion",
    "generated_text",
)

MARKS: tuple[Mark, ...] = (
    *(mark for marks in SPELLINGS.values() for mark in marks),
    UNKNOWN,
    NONE,
    *FIELDS,
    NUMBER,
    ANSWER_IS,
    ANSWER,
    INLINE_ANSWER,
    ANSWER_HEADING,
    BOXED,
    QUESTION,
    FOUND,
    FOUND_TEXT,
    GIVEN,
    THOUGHTS,
    THOUGHT,
    ACTION,
    ACTION_INPUT,
    OBSERVATION,
    INTERMEDIATE_QUERY,
    INTERMEDIATE_ANSWER,
    JSON_FACT,
    INSTRUCTION,
    TAG,
    *TEMPLATE_TOKENS,
    BARS,
    ARROWS,
    QUOTED_TUPLE,
    TUPLE,
    *FIELD_LABELS,
    KIMI_THINK,
    HARMONY_ANALYSIS,
    HARMONY_FINAL,
    GRANITE_THOUGHT,
    GRANITE_RESPONSE,
    RESPONSE_HEADING,
)


# Words with which "the answer is" does not end a chain: a clause that doubts or asks, or a statement that there is no
# answer yet.
_DOUBT = re.compile(
    r"\b(?:not|never|cannot|neither|whether|what|where|who|which|before)\b|n['’]t\b",
    re.I,
)
_CONDITION = re.compile(r"\b(?:if|unless|until|once)\b", re.I)
_NONE_YET = re.compile(
    r"(?:not|cannot|can['’]t|could not|still|yet|missing|to be|somewhere|maybe|perhaps|probably|likely)\b|<"
    r"|(?:I|[Ww]e|you|it) (?:need|must|have|cannot|do)\b"
    r"|(?:[Tt]here (?:is|are) )?[Nn]o (?:information|evidence|answer)\b"
    r"|[Tt]he (?:passage|text|evidence|context)s? do(?:es)?(?: not|n['’]t)\b"
    r"|(?i:unknown|unclear|undetermined|unavailable|insufficient|n/a|i do not know|i don['’]t know)\b"
)
_HEDGED = re.compile(
    r"\b(?:if|unless|probably|likely|perhaps|maybe|unclear|unknown|yet|cannot|not(?! [A-Z0-9\"“]))\b|n['’]t\b"
)
_NAMED = re.compile(
    r"(?:(?:definitely|clearly|therefore|thus|indeed) )?(?:(?:[Tt]he|[Aa]n?) )?[*_`\"“‘'«$€£(]*+(?:[^\W_a-z]|\d)"
    r"|(?:yes|no)(?:\W*\Z|[,.;:])"
    # "the river Thames.": one or two words for the kind of thing, then a name up to the end
    r"|(?:[Tt]he|[Aa]n?) (?:(?!(?:as|of|in|to|by|for|with|from|on|at|than|and|or|not|same|only|where|wh\w+|that)\b)"
    r"[a-z]+ ){1,2}[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,4}[.!\"”*]*\Z"
)
_MARKUP = ' \t\n*_`"“'


def ends_chain(sentence: str) -> bool:
    """Tell whether a sentence states the answer: "answer is", followed by a colon or a name, and without a negation.

    >>> [ends_chain(f"The answer is {rest}") for rest in ("Edinburgh.", ": chess.", "not in the passages yet.")]
    [True, True, False]
    """
    match = re.search(ANSWER_IS.live, sentence, FLAGS)
    if match is None:
        return False
    before = sentence[: match.start()]
    if _CONDITION.search(before) or _DOUBT.search(re.split(r"[,;:.]", before)[-1]):
        return False
    rest = sentence[match.end() :].lstrip(" \t\n*_`")
    statement = rest[1:].lstrip(_MARKUP) if rest.startswith((":", "：")) else ""
    if statement:
        return any(map(str.isalnum, statement)) and not _NONE_YET.match(statement)
    return bool(_NAMED.match(rest)) and not _HEDGED.search(rest)


def as_data(text: str) -> str:
    """Return `text` with every mark made inert: look-alike characters replace its outer characters.

    The words stay, so the text can still be quoted, and its length is unchanged. A second call changes nothing.

    >>> as_data("Stop now [SUFFICIENT] </passage> (S> a")
    'Stop now ‹SUFFICIENT› ‹/passage> (S› a'
    """
    characters = set(text)
    for swapped, pattern, swap in _rules(MARKS):
        # most texts have none of these characters, and this test is cheaper than the pattern
        if not characters.isdisjoint(swapped):
            inert = pattern.sub(swap, text)
            if inert != text:
                text = inert
                characters = set(inert)
    return text


@lru_cache(maxsize=4)
def _rules(
    marks: tuple[Mark, ...],
) -> tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    """Return the replacement rules of `as_data`: each with the characters to replace, a pattern that matches
    all marks with these characters, and the function that replaces a match.
    """
    spellings: dict[str, list[str]] = {}
    for mark in marks:
        spellings.setdefault(mark.swapped, []).extend(
            filter(None, (mark.live, mark.near))
        )
    return tuple(
        (swapped, re.compile("|".join(patterns), FLAGS), _swap(swapped))
        for swapped, patterns in spellings.items()
    )


def _swap(swapped: str) -> Callable[[re.Match[str]], str]:
    look_alikes = str.maketrans(
        {character: _LOOK_ALIKES[character] for character in swapped}
    )
    return lambda match: match[0].translate(look_alikes)


def fact_text(subject: str, predicate: str, object_: str) -> str:
    r"""Return a fact as text: `(S> subject | P> predicate | O> object)`.

    White space in fields is reduced to single spaces. A backslash escapes each `|`, a `>` that would make a
    mark, a leading `*`, and unbalanced parentheses, so that a parser reads exactly these fields back.

    >>> print(fact_text("AC|DC", "is", "a band (rock)"))
    (S> AC\|DC | P> is | O> a band (rock))
    """
    fields = zip(FIELDS, map(_escape, (subject, predicate, object_)), strict=True)
    return f"({' | '.join(f'{mark} {text}' for mark, text in fields)})"


_SPECIAL = re.compile(
    rf"[\\|]|\A\*|(?<=[{''.join(str(mark)[0] for mark in FIELDS)}])>", re.IGNORECASE
)
_PARENTHESIS = re.compile(r"[()]")


def _escape(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))
    return escaped if _is_balanced(text) else _PARENTHESIS.sub(r"\\\g<0>", escaped)


def _is_balanced(text: str) -> bool:
    depth = 0
    for parenthesis in _PARENTHESIS.findall(text):
        depth += 1 if parenthesis == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def number_text(number: int) -> str:
    """Return the number of a passage or fact as prompts and answers write it: `[3]`."""
    return f"[{number}]"


def fenced(fence: str, text: str) -> str:
    """Return `text` between two tags on their own lines: `<facts>`, text, `</facts>`.

    `fence` is the name of the tags. The text must already be inert (see `as_data`).
    """
    return f"<{fence}>\n{text}\n</{fence}>"


PLACEHOLDERS: Final[Mapping[str, str]] = {
    "SUBQ": str(SUBQ),
    "SUFFICIENT": str(SUFFICIENT),
    "NO_RETRIEVAL": str(NO_RETRIEVAL),
    "UNKNOWN": str(UNKNOWN),
    "NONE": str(NONE),
    "FACT": fact_text("subject", "predicate", "object"),
    "ANSWER": str(ANSWER),
    "ANSWER_IS": str(ANSWER_IS),
}

"use strict";
// Lists the questions that are in #data and opens one of them. Everything that came out of a run reaches the page as
// text, never as markup; a trace is unpacked when it is looked at.
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const frame = JSON.parse($("frame").textContent);
  const MARKS = { right: "✓", wrong: "✗", abstained: "–", error: "!" };
  const narrow = matchMedia("(max-width: 900px)");
  const state = { run: 0, verdicts: new Set(), chosen: null, opening: 0 };

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "click") element.addEventListener("click", value);
      else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child != null && child !== ""));
    return element;
  }
  // a title of another direction turns no word around it
  const isolated = (text) => make("bdi", {}, text);
  const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const words = (name) => name.replaceAll("_", " ");
  const percent = (value) => (100 * value).toFixed(1).replace(/\.0$/, "");
  const seconds = (value) => `${value < 10 ? value.toFixed(2) : Math.round(value)}\u00a0s`;
  const tokensOf = (result) => Object.values(result.tokens).reduce((sum, [, input, output]) => sum + input + output, 0);
  const callsOf = (result) => Object.values(result.tokens).reduce((sum, [calls]) => sum + calls, 0);
  const mark = (name) => make("span", { class: `v ${name}`, role: "img", "aria-label": name, title: name }, MARKS[name]);
  const key = (run) => (data.runs.length > 1 ? make("i", { class: `key run${(run % 8) + 1}` }) : "");

  // ---- the list

  const byId = new Intl.Collator("en", { numeric: true }).compare;
  const rows = data.questions.sort((one, other) => byId(one.id, other.id)).map((entry, place) => {
    const button = make("button", { type: "button", tabindex: -1, click: () => choose(entry) });
    const row = make("li", {}, button);
    const said = entry.by.map((result) => (result ? `${result.answer} ${result.error}` : "")).join(" ");
    const text = `${entry.id} ${entry.question} ${entry.answers.join(" ")} ${said}`.toLowerCase();
    return { entry, place, row, button, text };
  });
  const rowOf = new Map(rows.map((row) => [row.entry, row]));
  const list = $("list");

  function label({ entry, button }) {
    const result = entry.by[state.run];
    const marks = data.runs.length > 1
      ? entry.by.map((one, run) => (one ? make("span", { class: run === state.run ? "own" : false, title: `${data.runs[run]}: ${one.verdict}` }, mark(one.verdict)) : make("span", { class: "v none" }, "·")))
      : result ? mark(result.verdict) : "";
    const gold = entry.answers.join(" / ");
    const said = !result ? "not asked" : result.error ? result.error : result.abstained || !result.answer ? "no answer" : result.answer;
    button.replaceChildren(
      make("span", { class: "marks" }, marks),
      make("span", { class: "asked" }, entry.question),
      make("span", { class: "said" }, said, result && result.verdict !== "right" && gold ? make("span", { class: "gold" }, ` → ${gold}`) : ""),
    );
  }

  const ORDERS = {
    score: (result) => data.heads.reduce((sum, name) => sum * 2 + (result.scores[name] ?? 0), 0),
    seconds: (result) => -result.seconds,
    hops: (result) => -result.hops,
    tokens: (result) => -tokensOf(result),
  };

  function sort() {
    const worth = ORDERS[$("order").value];
    const at = ({ entry, place }) => (worth ? (entry.by[state.run] ? worth(entry.by[state.run]) : Infinity) : place);
    const sorted = rows.map((row) => [at(row), row]).sort((one, other) => one[0] - other[0] || one[1].place - other[1].place);
    list.replaceChildren(...sorted.map(([, row]) => row.row));
  }

  const shownRows = () => [...list.children].filter((row) => !row.hidden);

  function filter() {
    const words = $("search").value.trim().toLowerCase().split(/\s+/);
    const type = $("type").value;
    const disagree = $("disagree").checked;
    const counts = { right: 0, wrong: 0, abstained: 0, error: 0 };
    let visible = 0;
    for (const { entry, row, text } of rows) {
      const verdict = entry.by[state.run]?.verdict;
      const fits = words.every((word) => text.includes(word)) && (!type || entry.type === type) && verdict
        && (!disagree || new Set(entry.by.filter(Boolean).map((result) => result.verdict === "right")).size > 1);
      if (fits) counts[verdict]++;
      row.hidden = !fits || (state.verdicts.size > 0 && !state.verdicts.has(verdict));
      if (!row.hidden) visible++;
    }
    for (const chip of document.querySelectorAll("[data-verdict]")) {
      chip.querySelector("small").textContent = counts[chip.dataset.verdict];
      chip.setAttribute("aria-pressed", state.verdicts.has(chip.dataset.verdict));
    }
    $("count").textContent = visible === rows.length ? count(visible, "question") : `${visible.toLocaleString("en")} of ${count(rows.length, "question")}`;
    reachable();
  }

  /** Exactly one row is reached by Tab: the chosen one, or else the first. */
  function reachable(target) {
    const visible = shownRows();
    const current = target ?? (state.chosen && rowOf.get(state.chosen).row);
    const stop = visible.includes(current) ? current : visible[0];
    for (const { row, button } of rows) button.tabIndex = row === stop ? 0 : -1;
  }

  function setRun(run) {
    state.run = run;
    $("run").value = run;
    for (const row of rows) label(row);
    sort();
    filter();
  }

  // ---- one question

  function choose(entry, run = state.run) {
    if (state.chosen) rowOf.get(state.chosen).button.removeAttribute("aria-current");
    state.chosen = entry;
    document.body.classList.toggle("reading", Boolean(entry));
    if (!entry) return reachable();
    const { button, row } = rowOf.get(entry);
    button.setAttribute("aria-current", "true");
    reachable(row);
    if (entry.by[run]) state.shown = run;
    else state.shown = entry.by.findIndex(Boolean);
    const link = new URLSearchParams({ q: entry.id, ...(data.runs.length > 1 ? { run: state.shown } : {}) });
    history.replaceState(null, "", `#${link}`);
    show(entry, state.shown);
  }

  function close() {
    const { chosen } = state;
    choose(null);
    if (chosen) rowOf.get(chosen).button.focus();
  }

  function show(entry, run) {
    const result = entry.by[run];
    const facts = [entry.id, entry.type, entry.hops == null ? "" : count(entry.hops, "gold hop")].filter(Boolean).join(" · ");
    const traced = make("div", { id: "trace" });
    $("detail").replaceChildren(
      make("button", { type: "button", class: "back", click: close }, "‹ All questions"),
      make("h3", {}, entry.question),
      make("p", { class: "note" }, facts),
      make("div", { class: "answers" },
        make("div", { class: "answer" },
          make("p", { class: "who" }, "gold"),
          make("p", { class: "what" }, entry.answers.length ? entry.answers.join(" / ") : "no answer in the text")),
        entry.by.map((one, number) => (one ? answer(entry, one, number, run) : ""))),
      traced,
      retrieved(entry, result),
    );
    $("detail").scrollTop = 0;
    if (narrow.matches) $("detail").focus();
    open(entry, result, traced);
  }

  function answer(entry, result, number, shown) {
    const several = data.runs.length > 1;
    const calls = callsOf(result);
    const cost = calls ? costOf([result.tokens]) : null;
    const numbers = [
      ...Object.entries(result.scores).map(([name, value]) => `${name}\u00a0${percent(value)}`),
      count(result.hops, "hop"), words(result.stop), seconds(result.seconds),
      calls ? `${count(calls, "LLM call")}, ${count(tokensOf(result), "token")}` : "",
      cost && !cost.unpriced.length ? `cost ${money(cost.total)}` : "",
    ].filter(Boolean);
    const said = result.error || (result.answer ? compared(result.answer, entry.answers) : "no answer");
    return make("div", { class: `answer ${result.verdict}`, "data-run": number },
      make("p", { class: "who" }, mark(result.verdict), " ", key(number), several ? data.runs[number] : "predicted"),
      make("p", { class: `what${result.error || !result.answer ? " none" : ""}` }, said,
        result.abstained && result.answer ? make("small", {}, " (abstained)") : ""),
      several ? make("button", { type: "button", class: "look", "aria-pressed": String(number === shown), click: () => choose(entry, number) },
        number === shown ? "shown below" : "show") : "",
      make("p", { class: "note" }, numbers.join(" · ")));
  }

  const bare = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

  /** The predicted words; those that are in a gold answer are marked. */
  function compared(text, golds) {
    const goldWords = new Set(golds.flatMap((gold) => gold.split(/\s+/).map(bare)).filter(Boolean));
    return text.split(/(\s+)/).map((word) => (goldWords.has(bare(word)) ? make("mark", {}, word) : word));
  }

  function retrieved(entry, result) {
    if (!result.retrieved.length && !entry.supporting.length) return "";
    const gold = new Set(entry.supporting);
    const hits = result.retrieved.filter((name) => gold.has(name)).length;
    const missed = entry.supporting.filter((name) => !result.retrieved.includes(name));
    return make("section", { class: "retrieved" },
      make("h4", {}, "Retrieved"),
      entry.supporting.length ? make("p", { class: "note" }, `${hits} of ${count(gold.size, "gold passage")} among ${result.retrieved.length}`) : "",
      make("ol", {}, result.retrieved.map((name) => make("li", { class: gold.has(name) ? "gold" : false }, name, gold.has(name) ? [" ", make("span", { class: "tag" }, "gold")] : ""))),
      missed.length ? make("p", { class: "missed" }, make("b", {}, "Not found: "), missed.join(", ")) : "");
  }

  // ---- its trace

  async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  async function open(entry, result, place) {
    const turn = ++state.opening;
    const say = (text) => place.replaceChildren(make("p", { class: "note" }, text));
    if (result.trace == null) return say("No trace of this question is in this page.");
    if (typeof DecompressionStream === "undefined") return say("This browser is too old to unpack the trace.");
    const text = await unpacked($(`trace-${state.shown}-${result.trace}`).textContent);
    if (turn !== state.opening) return;
    const { trace, picture } = JSON.parse(text);
    const page = frame.replace("@@DATA@@", () => text);
    place.replaceChildren(
      picture.nodes.length ? graph(page, picture) : "",
      hops(trace, new Set(entry.supporting)),
    );
  }

  /** The trace's own page, without what already stands around it; a script inside reaches nothing outside. */
  function graph(page, picture) {
    const inner = (source, title) => {
      const element = make("iframe", { sandbox: "allow-scripts", title });
      element.srcdoc = source;
      return element;
    };
    const showTrace = () => {
      const dialog = make("dialog", { class: "whole", "aria-label": "The whole trace" },
        make("button", { type: "button", class: "shut", "aria-label": "Close", click: () => dialog.close() }, "✕"),
        inner(page, "The whole trace"));
      dialog.addEventListener("close", () => dialog.remove());
      document.body.append(dialog);
      dialog.showModal();
    };
    return make("section", { class: "graph" },
      make("div", { class: "line" },
        make("h4", {}, `The question's graph: ${count(picture.edges.length + picture.left_out, "fact")}`),
        make("button", { type: "button", class: "look", click: showTrace }, "Whole trace")),
      inner(page.replace('<html lang="en">', '<html lang="en" class="embedded">'), "The question's graph"));
  }

  function hops(trace, gold) {
    const facts = new Map(trace.graph.facts.map((fact) => [fact.id, fact]));
    const sentence = (id) => {
      const fact = facts.get(id);
      return fact ? make("li", {}, `${fact.subject} `, make("i", {}, fact.predicate), ` ${fact.object}`) : "";
    };
    const hitRow = (hit) => {
      const passage = trace.passages[hit.passage_id];
      const isGold = gold.has(hit.passage_id) || gold.has(hit.title);
      return make("details", { class: isGold ? "hit gold" : "hit" },
        make("summary", {}, isolated(hit.title || hit.passage_id), make("small", {}, ` ${Number(hit.score.toPrecision(3))}`), isGold ? [" ", make("span", { class: "tag" }, "gold")] : ""),
        make("p", {}, passage ? passage.text : "This passage is not in the trace."));
    };
    const plan = trace.plans.at(-1);
    const end = plan && plan.action !== "subq" ? `${data.marks[plan.action] || plan.action} ${plan.reason}` : `stopped: ${words(trace.stop_reason)}`;
    return make("section", { class: "hops" },
      make("h4", {}, "Hops"),
      make("ol", {},
        trace.steps.map((step) => make("li", { class: `hop hop${((step.hop - 1) % 6) + 1}` },
          make("p", { class: "subquery" }, step.subquery),
          step.thought ? make("p", { class: "note" }, step.thought) : "",
          step.hits.length ? make("div", { class: "hits" }, step.hits.map(hitRow)) : make("p", { class: "note" }, "nothing found"),
          make("details", { class: "facts" },
            make("summary", {}, `+${count(step.new_triple_ids.length, "new fact")} of ${step.triple_ids.length}`),
            make("ul", {}, step.new_triple_ids.map(sentence))))),
        make("li", { class: "end" }, end)),
      trace.citations.length ? make("h4", {}, "Cited") : "",
      make("ul", { class: "cited" }, trace.citations.map((citation) => make("li", {}, make("b", {}, isolated(citation.title || citation.passage_id), " "), citation.quote, citation.supported === false ? make("span", { class: "warning" }, " does not support the answer") : ""))),
      trace.failures.map((failure) => make("p", { class: "warning" }, `${failure.role}, hop ${failure.hop}: ${failure.message}`)));
  }

  // ---- what it costs

  const prices = data.prices;
  const money = (value) => (value >= 1 || !value ? value.toFixed(2) : value.toFixed(4));

  /** Of {model: [calls, in, out, cached]} of many results: what is known, and the models without a price. */
  function costOf(many) {
    const sum = { total: 0, unpriced: [] };
    for (const tokens of many) {
      for (const [model, [, input, output, cached]] of Object.entries(tokens)) {
        const price = prices[model];
        if (price) sum.total += (Math.max(0, input - cached) * price.input + cached * price.cached + output * price.output) / 1e6;
        else if (!sum.unpriced.includes(model)) sum.unpriced.push(model);
      }
    }
    return sum;
  }

  function reprice() {
    const inputs = [...document.querySelectorAll("[data-model]")];
    const valid = (input) => input.value.trim() !== "" && input.valueAsNumber >= 0;
    for (const model of new Set(inputs.map((input) => input.dataset.model))) {
      const fields = Object.fromEntries(inputs.filter((input) => input.dataset.model === model).map((input) => [input.dataset.kind, input]));
      delete prices[model];
      if (!valid(fields.input) || !valid(fields.output)) continue;
      const input = fields.input.valueAsNumber;
      prices[model] = { input, output: fields.output.valueAsNumber, cached: valid(fields.cached) ? fields.cached.valueAsNumber : input };
    }
    for (const cell of document.querySelectorAll("[data-cost]")) {
      const many = data.questions.map((entry) => entry.by[cell.dataset.cost]?.tokens).filter(Boolean);
      if (!many.some((tokens) => Object.keys(tokens).length)) continue;
      const { total, unpriced } = costOf(many);
      const missing = unpriced.length ? `unknown: no price for ${unpriced.join(", ")}` : "";
      const right = Number(cell.dataset.right);
      const each = right && !missing ? `, ${money(total / right)} per right answer` : "";
      cell.textContent = missing && !total ? missing : money(total) + (missing ? ` and ${missing}` : each);
    }
    if ($("prices")) $("prices").textContent = JSON.stringify(prices, null, 2);
  }

  // ---- hands and keys

  for (const chip of document.querySelectorAll("[data-verdict]")) {
    chip.addEventListener("click", () => {
      const name = chip.dataset.verdict;
      if (!state.verdicts.delete(name)) state.verdicts.add(name);
      filter();
    });
  }
  for (const id of ["search", "type", "disagree"]) $(id).addEventListener("input", filter);
  $("order").addEventListener("input", () => { sort(); filter(); });
  $("run").addEventListener("input", () => {
    setRun(Number($("run").value));
    if (state.chosen && !narrow.matches) choose(state.chosen, state.run);
  });
  for (const input of document.querySelectorAll("[data-model]")) input.addEventListener("input", reprice);

  list.addEventListener("keydown", (event) => {
    const shown = shownRows();
    const at = shown.indexOf(event.target.closest("li"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (to == null || !shown[to]) return;
    event.preventDefault();
    const row = shown[to];
    row.firstChild.focus();
    if (narrow.matches) reachable(row);
    else choose(rows.find((one) => one.row === row).entry);
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      $("search").focus();
    }
    if (event.key === "Escape" && document.body.classList.contains("reading") && !document.querySelector("dialog")) {
      if (narrow.matches || $("detail").contains(document.activeElement)) close();
    }
  });

  /** `#q=id&run=1`: where a link may lead. */
  function follow() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const entry = parameters.has("q") && data.questions.find((one) => one.id === parameters.get("q"));
    if (!entry) return false;
    choose(entry, Math.min(Math.max(0, Number(parameters.get("run")) || 0), data.runs.length - 1));
    $("questions").scrollIntoView();
    return true;
  }
  addEventListener("hashchange", follow);

  setRun(0);
  if ($("prices")) reprice();
  if (!follow() && !narrow.matches && rows.length) {
    // something to see at once; without a mark in the address
    const first = rows.find(({ entry }) => entry.by[0]?.trace != null) ?? rows[0];
    state.chosen = first.entry;
    first.button.setAttribute("aria-current", "true");
    state.shown = first.entry.by.findIndex(Boolean);
    show(first.entry, state.shown);
    reachable(first.row);
  }
})();

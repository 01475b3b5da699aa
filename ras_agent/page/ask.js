// The page that `ras-agent serve` shows: asks, and draws what the run reports while it runs.
const GROWS = "The graph of a question grows here.";
const DRAWS = "Drawing the graph …";
const ENDED = {
  sufficient: "Enough was found.", single_shot: "One search was to be made.", no_retrieval: "Nothing had to be looked up.", max_hops: "As many searches were made as are allowed.",
  max_llm_calls: "The model was asked as often as is allowed.", max_tokens: "As much text went to the model as is allowed.", max_seconds: "The time that is allowed was over.",
  recursion_limit: "As many steps were made as are allowed.", static: "The searches that were planned at first have been made.", repeated_subquery: "The next search would have been one that was made already.", no_new_facts: "The last search found nothing new.",
  planner_failed: "What to search next could not be decided.", model_refused: "The model cannot be asked.",
};
const BEGINNING = ["The question is taken apart", "Passages are searched for and read", "The answer follows, with the sentences that support it"];
const view = graphView({ stage: $("stage"), svg: $("graph"), world: $("world"), onChoose: showDetails, room: { get top() { return document.querySelector(".head").offsetHeight + 24; }, right: 60, bottom: 50, left: 24 } });
const writeDetails = paneOf($("details"));
const blank = () => ({
  question: "", answer: "", abstained: false, suggestion: "", grounded: true, citations: [], steps: [], plans: [], failures: [], passages: {}, confidence: null,
  graph: { facts: [], conflicts: [], shelf: [] }, usage: null, stop_reason: "", seconds: 0, mode: "", roles: {}, asked: "",
});
const now = { trace: blank(), story: null, running: null, paused: false, thread: "", asked: false, turns: [], stored: null, verdict: null, drawings: 0 };

// ---- one run

const threadName = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (one) => one.toString(16).padStart(2, "0")).join("");

function readFilter() {
  const filter = {};
  for (const part of $("filter").value.split(",").map((one) => one.trim()).filter(Boolean)) {
    const [name, ...value] = part.split("=");
    if (!value.length) throw new Refused(`Filter: expected name=value, got “${part}”.`, 400);
    filter[name.trim()] = [...(filter[name.trim()] ?? []), value.join("=").trim()];
  }
  return filter;
}

/** From here on the page is about a question, and no longer about the collection. */
function leaveFirst() {
  $("first").hidden = true;
  document.body.classList.remove("first");
  $("of-question").textContent = "All that was read";
}

function ask(question) {
  leaveFirst();
  if (now.asked) now.turns.push({ question: now.trace.asked, answer: now.trace.answer });
  now.thread ||= threadName();
  now.trace = { ...blank(), question, asked: question };
  now.verdict = null;
  now.asked = true;
  let body;
  try {
    const filter = readFilter();
    const review = [...document.querySelectorAll("input[name=review]:checked")].map((one) => one.value);
    body = {
      messages: [{ role: "user", content: question }], thread: now.thread, stream: true,
      ...(Object.keys(filter).length ? { filter } : {}), ...(review.length ? { review } : {}),
    };
  } catch (error) {
    return showTrouble(error);
  }
  history.replaceState(null, "", `#thread=${now.thread}`);
  showStored(false);
  return follow("api/ask", body);
}

const resume = (decision) => follow(`api/threads/${now.thread}/resume`, { stream: true, ...(decision ? { decision } : {}) });

/** Send a request and draw its events until they end. */
async function follow(path, body) {
  const running = new AbortController();
  now.running = running;
  now.paused = false;
  hideTrouble();
  $("review").hidden = true;
  status("Working …");
  controls();
  writeSteps();
  let ended = false;
  try {
    for await (const { name, data } of eventsOf(path, body, running.signal)) {
      if (now.running !== running) return;
      ended = takeEvent(name, data) || ended;
    }
    if (!ended) throw new Refused("The connection ended before the answer. Continue takes up where it stopped.", 0);
  } catch (error) {
    if (now.running !== running) return;
    if (error.name === "AbortError") status("Paused. Continue takes up where it stopped.");
    else showTrouble(error, () => follow(path, body));
    now.running = null;
    now.paused = error.status !== 401 && !now.trace.stop_reason; // nothing has begun, or all has ended
    controls();
    return;
  }
  if (now.running !== running) return; // the reader decided before the connection had ended
  now.running = null;
  controls();
}

function stepOf(hop, subquery) {
  let step = now.trace.steps.find((one) => one.hop === hop);
  if (!step) now.trace.steps.push((step = { hop, subquery, hits: [], triple_ids: [], new_triple_ids: [], thought: "" }));
  return step;
}

/** Take in an event; return whether it is the last. */
function takeEvent(name, data) {
  const trace = now.trace;
  if (name === "planned") {
    trace.plans.push({ hop: data.hop, ...data.plan });
    const searches = data.plan.action === "subq" ? [data.plan.subquery, ...(data.plan.further ?? [])] : [];
    searches.forEach((subquery, place) => Object.assign(stepOf(data.hop + place, subquery), { subquery, now: "searching" }));
    status(searches.length ? `Search ${data.hop}: looking for ${searches.map((subquery) => `“${subquery}”`).join(", ")}` : "Answering");
  } else if (name === "rewritten") {
    trace.question = data.standalone;
    writeQuestion();
    return false;
  } else if (name === "hits") {
    const hits = data.hits.map((hit) => ({ passage_id: hit.passage.id, title: hit.passage.title, score: hit.score, ...(hit.why?.length ? { why: hit.why } : {}) }));
    for (const hit of data.hits) trace.passages[hit.passage.id] = hit.passage;
    Object.assign(stepOf(data.hop, data.subquery), { hits, now: "reading" });
    status(`Search ${data.hop}: reading ${[...new Set(hits.map((hit) => hit.title || hit.passage_id))].slice(0, 3).join(", ") || "nothing"}`);
  } else if (name === "triples") {
    stepOf(data.hop, "").triple_ids = data.triples.map(() => "");
    return false;
  } else if (name === "graph_delta") {
    const ids = data.ids ?? [];
    const knownIds = new Set(trace.graph.facts.map((fact) => fact.id));
    data.added.forEach((fact, at) => knownIds.has(ids[at]) || trace.graph.facts.push({ ...fact, id: ids[at] ?? "" }));
    Object.assign(stepOf(data.hop, ""), { new_triple_ids: ids, now: "" });
    drawGraph();
  } else if (name === "waiting_for_model") {
    status(`Waiting for the model’s server (${data.asked} of ${data.of} asked${data.answered ? `, ${data.answered} answered` : ""})`);
    return false;
  } else if (name === "answer_token") {
    trace.answer += data.text;
    writeAnswer(true);
    return false;
  } else if (name === "answered") {
    Object.assign(trace, { answer: data.answer.text, abstained: data.answer.abstained, suggestion: data.answer.suggestion, citations: data.answer.citations, confidence: data.answer.confidence, grounded: data.grounded, stop_reason: data.stop_reason });
    writeAnswer(false);
    return false;
  } else if (name === "failed") {
    trace.failures.push(data.failure);
  } else if (name === "review") {
    waitFor(data);
    return true;
  } else if (name === "done") {
    finish(data);
    return true;
  } else if (name === "error") {
    if (data.stop_reason) finish(data);
    const message = data.message || "The run ended with an error";
    const cause = now.trace.failures.at(-1)?.message; // names the remedy
    throw new Refused(cause ? `${message}: ${cause}` : message, 500);
  }
  writeSteps();
  return false;
}

function waitFor(review) {
  status("The run waits for you.");
  for (const step of now.trace.steps) if (step.now) step.now = "waits for you";
  if (review.at === "answer" && !now.trace.answer) now.trace.answer = review.answer;
  writeAnswer(false);
  writeSteps();
  $("review").replaceChildren(...reviewForm(review, (decision) => resume(decision)));
  $("review").hidden = false;
  if (!now.trace.graph.facts.length) $("nothing").textContent = "The graph grows when you have decided.";
  $("review").querySelector("input, textarea, button")?.focus({ preventScroll: true });
  $("review").scrollIntoView({ block: "nearest" });
  announce("The run waits for your decision");
}

function finish(outputs) {
  now.trace = { ...now.trace, ...outputs, steps: outputs.steps ?? [], asked: outputs.asked || now.trace.asked || outputs.question };
  status("");
  writeAnswer(false);
  drawGraph(true);
  if (now.trace.stop_reason) announce(`Answer: ${now.trace.answer || "none"}`);
}

// ---- the panel

const status = (text) => ($("state").textContent = text);

function showTrouble(error, again) {
  const token = error.status === 401 || error.status === 403;
  const unknown = $("token").value ? "The server does not know this token." : "Whoever runs the server has it.";
  hideTrouble();
  if ($("steps").querySelector(".coming")) $("steps").replaceChildren();
  $("trouble").replaceChildren(
    make("b", {}, token ? "The server wants a token" : "That did not work"),
    make("p", {}, error.status === 401 ? unknown : error instanceof Refused ? error.message : `The page failed: ${error.message}`),
    token ? $("access") : "",
    again ? make("button", { type: "button", class: token && "main", click: again }, token ? "Go on" : "Try again") : "");
  document.body.classList.toggle("locked", token && Boolean(again));
  $("trouble").hidden = false;
  $("trouble").scrollIntoView({ block: "nearest" });
  status("");
  if (token) $("token").focus();
}

/** Nothing is wrong any more: the token's field is among the options again. */
function hideTrouble() {
  document.querySelector("#options .sheet").append($("access"));
  document.body.classList.remove("locked");
  $("trouble").hidden = true;
}

/** What the page is about: the collection and the models; on its first screen, what is searched and might be asked. */
async function introduce() {
  try {
    const [about, listed] = await Promise.all([getJSON("api/about"), getJSON("api/documents?limit=1000")]);
    now.about = about;
    const models = [...new Set(Object.values(about.models))];
    $("collection").textContent = about.collection;
    $("badge").textContent = models.join(", ") || "offline";
    $("badge").title = models.length ? Object.entries(about.models).map((pair) => pair.join(": ")).join("\n") : "No language model is asked: facts and answers are read from the text by rules and small models.";
    $("badge").hidden = false;
    document.title = `${about.collection} · ras-agent`;
    if (now.asked) return;
    hideTrouble();
    const { documents, total } = listed;
    const files = filesOf(listed);
    const some = files.slice(0, 5).map((file) => file.name).join(", ");
    $("searched").textContent = total
      ? `Searched: ${count(files.length, "document")}${total > documents.length ? " and more" : ""} (${some}${files.length > 5 ? ", …" : ""}).`
      : "This server has no documents yet. Make an index with “ras-agent index FOLDER --out my.index”, and serve it with “ras-agent serve --index my.index”.";
    $("examples").replaceChildren(...about.examples.map((question) => make("li", {}, make("button", { type: "button", click: () => begin(question) }, question))));
    $("see-graph").hidden = !about.graph;
  } catch (error) {
    if (!now.asked) showTrouble(error, introduce);
  }
}

function controls() {
  const busy = now.running !== null;
  const waits = !$("review").hidden;
  $("send").disabled = busy || waits;
  $("text").placeholder = now.asked ? "Ask a follow-up question" : "Ask a question";
  $("pause").hidden = !busy;
  $("go-on").hidden = busy || waits || !now.paused;
  $("fresh").hidden = busy || !now.asked;
  writeVerdict();
}

function writeTalk() {
  $("talk").hidden = !now.turns.length;
  $("talk").replaceChildren(make("h2", {}, "Earlier"), make("ul", {}, now.turns.map((turn) =>
    make("li", {}, make("p", {}, make("b", {}, turn.question)), make("p", { class: "said" }, turn.answer || "no answer")))));
}

function writeQuestion() {
  const { asked, question } = now.trace;
  $("question").replaceChildren(asked || question, ...(asked && asked !== question ? [make("span", { class: "note" }, `understood as: ${question}`)] : []));
}

function writeAnswer(writing) {
  const { trace } = now;
  writeQuestion();
  $("answer").textContent = trace.answer || (trace.stop_reason && !writing ? "No answer" : "");
  writeSuggestion(trace.suggestion);
  const look = $("answer").parentElement.classList;
  look.toggle("long", trace.abstained || trace.answer.length > 80);
  look.toggle("writing", writing);
  look.toggle("none", Boolean(trace.stop_reason) && (trace.abstained || !trace.answer));
  $("marks").replaceChildren(now.story?.doubt() ?? "",
    ...trace.citations.filter(({ supported }) => supported !== false).flatMap((citation) => [" ", make("button", { type: "button", class: "mark", "aria-label": `Evidence ${citation.number}`, title: citation.title || citation.passage_id, click: () => showEvidence(citation) }, String(citation.number))]),
    ...(trace.answer && !writing && !trace.abstained ? [" ", copyButton("the answer", () => now.story.answerText()), " ", saveButton(`${trace.asked || trace.question}\n\n`, () => now.story.answerText())] : []));
}

/** Whether the answer is right, as the reader says. */
function writeVerdict() {
  const { trace } = now;
  const { right, correct } = now.verdict ?? {};
  $("verdict").hidden = !trace.stop_reason || Boolean(trace.failed) || trace.abstained || now.running !== null; // nobody judges an error, nor "I don't know"
  if ($("verdict").hidden || $("verdict").contains(document.activeElement)) return; // who types there goes on typing
  const say = async (body) => {
    try {
      await request(`api/threads/${now.thread}`, { method: "PATCH", body: JSON.stringify(body) });
      now.verdict = body;
      const inside = $("verdict").contains(document.activeElement);
      if (inside) document.activeElement.blur();
      writeVerdict();
      if (inside) $("verdict").querySelector(body.right || body.correct ? "[aria-pressed=true]" : "input").focus();
      announce("Noted");
    } catch (error) {
      showTrouble(error, () => say(body));
    }
  };
  const choice = (text, value) => make("button", { type: "button", "aria-pressed": String(right === value), click: () => say({ right: value }) }, text);
  const field = make("input", { "aria-label": "The right answer", placeholder: "The right answer, if you know it", maxlength: 10000 });
  field.value = $("verdict").querySelector("input")?.value ?? correct ?? ""; // what is typed there outlives a drawing
  const form = make("form", {}, field, make("button", {}, "Save"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) say({ right: false, correct: field.value });
  });
  $("verdict").replaceChildren("Is this ", choice("right", true), choice("wrong", false), "?",
    ...(right === false ? [form] : []), ...(right === undefined ? [] : [make("span", {}, correct ? "Noted, with the right answer." : "Noted.")]));
}

function writeSteps() {
  const begun = now.trace.steps.length || now.trace.plans.length;
  if (now.running && !begun) $("steps").replaceChildren(make("h2", {}, "Steps"), make("ol", {}, BEGINNING.map((text) => make("li", { class: "step coming", hop: 0 }, make("b", { "aria-hidden": "true" }, "…"), make("span", {}, text)))));
  else if (now.story) $("steps").replaceChildren(...now.story.steps());
}

function writeStats(entities) {
  const { trace } = now;
  const tokens = (trace.usage?.input_tokens ?? 0) + (trace.usage?.output_tokens ?? 0);
  const stats = [[trace.graph.facts.length, "fact"], [entities, "entity", "entities"], [trace.steps.length, "search", "searches"],
    ...(trace.usage?.llm_calls ? [[trace.usage.llm_calls, "LLM call"]] : []), ...(tokens ? [[tokens, "token"]] : [])];
  $("stats").replaceChildren(...(trace.graph.facts.length ? stats : []).map(([value, one, many = `${one}s`]) => make("li", {}, make("b", {}, value.toLocaleString("en")), value === 1 ? one : many)));
}

/** An edge as a fact, where the page does not know the fact by that id. */
const factOf = (picture, edge) => ({ id: edge.id, subject: picture.nodes[edge.from].label, predicate: edge.text, object: picture.nodes[edge.to].label, sources: [] });

/** Everything that rests on the picture: story, evidence, rest. */
function write(picture) {
  const facts = new Map(now.trace.graph.facts.map((fact) => [fact.id, fact]));
  for (const edge of picture.edges) {
    if (!facts.has(edge.id)) facts.set(edge.id, factOf(picture, edge));
  }
  now.facts = facts;
  now.story = storyOf({ trace: now.trace, picture, facts, files: {}, marks: ENDED, plain: true }, {
    show: reveal, chain: showChain, hop: (hop) => { view.choose(null); view.showHop(hop); view.fit(true); }, close: () => view.choose(null),
  });
  writeTalk();
  writeStats(picture.nodes.length);
  $("evidence").replaceChildren(...now.story.evidence());
  writeSteps();
  $("rest").replaceChildren(...now.story.rest());
}

// ---- the graph

const EMPTY = { nodes: [], edges: [], joins: [], chain: [], hops: 0, crowded: false, left_out: 0 };

/** Turn a picture so that what was there before stays on its side of the drawing. */
function aligned(picture, before) {
  const old = new Map(before.nodes.map((node) => [node.key, node]));
  const common = picture.nodes.filter((node) => old.has(node.key));
  if (!common.length) return picture;
  const items = [...picture.nodes, ...picture.edges];
  const middle = (some, side) => some.reduce((sum, one) => sum + one[side], 0) / some.length;
  const was = common.map((node) => old.get(node.key));
  for (const side of ["x", "y"]) {
    const [here, there] = [middle(common, side), middle(was, side)];
    const agrees = common.reduce((sum, node) => sum + (node[side] - here) * (old.get(node.key)[side] - there), 0);
    if (agrees >= 0) continue;
    const far = Math.max(...items.map((one) => one[side]));
    for (const one of items) one[side] = far - one[side];
  }
  return picture;
}

async function drawGraph(last = false) {
  const { trace } = now;
  const number = ++now.drawings;
  const cited = Object.fromEntries(trace.citations.map(({ passage_id: id }) => [id, { id, text: "" }]));
  const body = { question: trace.question, answer: trace.answer, citations: last ? trace.citations : [], passages: cited, graph: { conflicts: [], shelf: [], ...trace.graph } };
  let picture = EMPTY;
  if (!now.picture?.nodes.length && !now.stored) $("nothing").textContent = trace.graph.facts.length ? DRAWS : GROWS;
  try {
    if (trace.graph.facts.length) picture = layOut(await postJSON("api/picture", body));
  } catch (error) {
    if (last) showTrouble(error, () => drawGraph(last));
  }
  if (number !== now.drawings) return;
  $("nothing").textContent = last ? "No facts were read for this answer." : GROWS;
  picture.hops = Math.max(picture.hops, ...trace.steps.map((step) => step.hop));
  write(aligned(picture, now.picture ?? EMPTY));
  now.picture = picture;
  if (!now.stored) show(picture, now.facts, now.story);
  controls();
}

function show(picture, facts, story) {
  const hop = view.hop;
  view.show(picture, new Map([...facts].map(([id, fact]) => [id, story.sentence(fact)])));
  view.hop = Math.min(hop, picture.hops - 1);
  const { seen } = view.showHop(picture.hops);
  const step = now.running ? now.trace.steps.at(-1) : null;
  $("caption").replaceChildren(...(now.stored ? [] : step ? [make("span", { hop: step.hop }, make("b", {}, `Search ${step.hop} `), step.subquery), " ", make("small", {}, `${count(seen, "fact")} in the graph`)] : []));
  $("nothing").hidden = picture.nodes.length > 0;
  const some = {
    ".conflict": picture.edges.some((edge) => edge.conflict), ".cited": picture.edges.some((edge) => edge.cited.length), ".join": picture.joins.length,
    ".answer": picture.nodes.some((node) => node.role === "answer"), ".asked": !now.stored && picture.nodes.some((node) => node.role === "asked"),
  };
  for (const [name, there] of Object.entries(some)) document.querySelector(`.legend ${name}`).parentElement.hidden = !there;
  view.setPrint();
  spotlight(!now.stored && picture.edges.some((edge) => edge.cited.length));
}

/** Show the evidence large, and the rest dimmed, or all that was read. */
function spotlight(on) {
  $("of-evidence").hidden = !(now.picture ?? EMPTY).edges.some((edge) => edge.cited.length);
  $("of-evidence").setAttribute("aria-pressed", String(on));
  $("of-question").setAttribute("aria-pressed", String(!on && !now.stored));
  view.light(on);
}

const shownStory = () => (now.stored ? now.stored.story : now.story);

function showDetails(chosen) {
  for (const row of document.querySelectorAll(".chain")) row.classList.toggle("chosen", row === chosen?.row);
  const detailed = Boolean(chosen) && !chosen.chain && Boolean(shownStory());
  writeDetails(detailed ? paneFor(chosen) : []);
  if (!detailed) return;
  if (now.stored && chosen.fact) fetchPassages(chosen);
  $("details").scrollIntoView({ block: "nearest" });
}

/** What is said of a fact or an entity, and what can be done with it; a form that somebody fills in already stays. */
function paneFor(chosen, form = null) {
  const name = now.stored && chosen.node != null ? now.stored.picture.nodes[chosen.node].label : "";
  return [
    ...shownStory().details(chosen),
    name ? make("button", { type: "button", class: "copy", click: () => around(name) }, "Draw what is around it") : "",
    chosen.fact && now.about?.corrects ? form ?? correctionOf((now.stored ?? now).facts.get(chosen.fact)) : "",
  ];
}

/** A form that corrects a fact of the stored graph, or removes it there; what was answered already stays as it is. */
function correctionOf(fact) {
  const parts = ["subject", "predicate", "object"].map((name) => {
    const input = make("input", { type: "text", autocomplete: "off" });
    input.value = fact[name];
    return [name, input];
  });
  const said = make("p", { class: "note", role: "status" });
  const send = async (correction) => {
    try {
      await request("api/graph", { method: "PATCH", body: JSON.stringify({ fact: ["subject", "predicate", "object"].map((name) => fact[name]), correction }) });
      said.textContent = correction ? "Corrected in the stored graph." : "Removed from the stored graph.";
      if (now.stored) around(correction?.[0] ?? "");
    } catch (error) {
      if (error.status === 401) return showTrouble(error, () => send(correction));
      said.textContent = error.message;
    }
  };
  const form = make("form", { class: "correct" }, make("div", { class: "three" }, parts.map(([name, input]) => make("label", {}, name, input))),
    make("div", { class: "row" }, make("button", { class: "main" }, "Save"), make("button", { type: "button", click: () => send(null) }, "Remove the fact")), said);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (parts.every(([, input]) => input.value.trim())) send(parts.map(([, input]) => input.value.trim()));
  });
  return make("details", {}, make("summary", {}, "Correct this fact"), form);
}

function reveal(chosen) {
  if (now.stored) showStored(false);
  const item = chosen.fact ? view.edge(chosen.fact) : view.picture.nodes[chosen.node];
  if (!item) return;
  if (item.hop > view.hop) view.showHop(item.hop);
  view.chosen = null;
  view.choose(chosen);
}

function showChain(ids, row) {
  if (now.stored) showStored(false);
  view.showHop(Math.max(view.hop, ...ids.map((id) => view.edge(id).hop)));
  view.choose({ chain: ids, row });
}

function showEvidence(citation) {
  document.querySelector(`[data-citation="${citation.number}"]`)?.scrollIntoView({ block: "nearest" });
  const factOnChain = now.picture?.chain.find((link) => link.cited === citation.number)?.facts[0];
  const first = factOnChain ?? citation.triple_ids.find((id) => view.edge(id));
  if (first) reveal({ fact: first });
}

// ---- the stored knowledge graph

function showStored(on) {
  document.body.classList.toggle("stored", on);
  $("of-index").setAttribute("aria-pressed", String(on));
  $("of-question").setAttribute("aria-pressed", String(!on));
  $("look").hidden = !on;
  if (!on && now.stored) {
    view.choose(null);
    now.stored = null;
    now.drawings++;
    $("caption").replaceChildren();
    $("nothing").textContent = GROWS;
    if (now.story && now.picture) show(now.picture, now.facts, now.story);
    else view.show(EMPTY, new Map());
  }
}

const asSource = (source) => ({ passage_id: "", start: 0, end: 0, hop: 0, subquery: "", extractor: "", unchecked: false, attributes: {}, ...source });

async function around(entity) {
  const number = ++now.drawings;
  $("nothing").textContent = DRAWS;
  try {
    const nearby = await getJSON(`api/graph?${new URLSearchParams({ ...(entity ? { entity } : {}), nodes: "100" })}`);
    const list = nearby.facts.map((fact) => ({ ...fact, sources: fact.sources.slice(0, 20).map(asSource) }));
    const picture = layOut(await postJSON("api/picture", { question: nearby.entity || "?", answer: "", graph: { conflicts: [], shelf: [], facts: list } }));
    if (number !== now.drawings) return;
    for (const node of picture.nodes) if (node.role === "asked" && node.label !== nearby.entity) node.role = "";
    const facts = new Map(list.map((fact) => [fact.id, fact]));
    for (const edge of picture.edges) facts.has(edge.id) || facts.set(edge.id, factOf(picture, edge));
    const trace = { ...blank(), graph: { facts: list, conflicts: [], shelf: [] } };
    const story = storyOf({ trace, picture, facts, files: {}, marks: {} }, { show: (chosen) => { view.chosen = null; view.choose(chosen); }, chain: () => {}, hop: () => {}, close: () => view.choose(null) });
    now.stored = { picture, story, facts, trace };
    // a colour for each edge that leads away from the middle
    const steps = new Map(nearby.entities.map((one) => [one.name, one.steps ?? 0]));
    for (const node of picture.nodes) node.hop = steps.get(node.label) ?? 0;
    for (const edge of picture.edges) edge.hop = Math.max(picture.nodes[edge.from].hop, picture.nodes[edge.to].hop);
    Object.assign(picture, { hops: Math.max(0, ...picture.nodes.map((node) => node.hop)), labels: true });
    show(picture, facts, story);
    const part = (some, all, one, many) => `${some.toLocaleString("en")} of ${count(all, one, many)}`;
    $("caption").replaceChildren(make("span", {}, make("b", {}, nearby.entity ? `Around ${nearby.entity} ` : "The best connected "), make("small", {},
      `${part(picture.nodes.length, nearby.all_entities, "entity", "entities")}, ${part(picture.edges.length, nearby.all_facts, "fact")}`, nearby.entity ? "; a colour for each step away from it" : "")));
    view.fit(true); // below the caption
    const centre = picture.nodes.findIndex((node) => node.role === "asked");
    if (centre >= 0) showDetails({ node: centre });
  } catch (error) {
    if (number !== now.drawings) return;
    now.stored = { picture: EMPTY, story: null, facts: new Map(), trace: blank() };
    view.show(EMPTY, new Map());
    spotlight(false);
    $("caption").replaceChildren();
    $("nothing").hidden = false;
    $("nothing").textContent = error.status === 404 && entity ? `No entity of the graph is called “${entity}”.` : error.message;
    if (error.status === 401) showTrouble(error, () => around(entity));
  }
}

/** A fact of the stored graph names its passages; their text comes when it is wanted. */
async function fetchPassages(chosen) {
  const { trace, facts } = now.stored;
  const missing = (facts.get(chosen.fact)?.sources ?? []).map((source) => source.passage_id).filter((name) => name && !(name in trace.passages));
  for (const name of new Set(missing.slice(0, 5))) {
    try {
      trace.passages[name] = await getJSON(`api/passages/${encodeURIComponent(name)}`);
    } catch {
      return; // the card says that the passage is not here
    }
  }
  if (!missing.length || now.stored?.trace !== trace || view.chosen?.fact !== chosen.fact) return;
  const form = $("details").querySelector("details:has(> .correct)");
  const field = form?.contains(document.activeElement) ? document.activeElement : null;
  writeDetails(paneFor(chosen, form));
  field?.focus({ preventScroll: true });
}

$("of-index").addEventListener("click", () => {
  showStored(true);
  around($("entity").value.trim());
  $("entity").focus();
});
$("see-graph").addEventListener("click", () => $("of-index").click());
$("of-question").addEventListener("click", () => {
  showStored(false);
  spotlight(false);
});
$("of-evidence").addEventListener("click", () => {
  showStored(false);
  spotlight(true);
});
const namesBeginning = async (prefix) => (await getJSON(`api/entities?${new URLSearchParams({ prefix })}`)).entities;

$("look").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = $("entity").value.trim();
  const names = typed ? await namesBeginning(typed).catch(() => []) : [];
  around(names.find((name) => name.toLowerCase() === typed.toLowerCase()) ?? names[0] ?? typed);
});
$("entity").addEventListener("input", async () => {
  const prefix = $("entity").value.trim();
  if ([...$("names").children].some((option) => option.value === prefix)) return around(prefix);
  if (!prefix) return;
  try {
    const names = await namesBeginning(prefix);
    if (prefix !== $("entity").value.trim()) return;
    $("names").replaceChildren(...names.map((name) => {
      const option = make("option");
      option.value = name;
      return option;
    }));
  } catch {
    $("names").replaceChildren(); // the form itself says what is wrong
  }
});

// ---- hands and keys

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  begin($("text").value.trim());
});

function begin(question) {
  if (!question || now.running || !$("review").hidden) return;
  $("text").value = "";
  ask(question);
  view.show(EMPTY, new Map());
  now.picture = null;
  write(EMPTY);
  writeAnswer(false);
}
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  $("options").open = false;
  document.querySelector("#trouble button")?.click();
});
$("pause").addEventListener("click", () => now.running?.abort());
$("go-on").addEventListener("click", () => resume());
$("fresh").addEventListener("click", () => location.assign(location.pathname)); // the browser's Back leads to the old one
addEventListener("hashchange", () => location.reload());
$("closer").addEventListener("click", () => view.zoom(1.3));
$("farther").addEventListener("click", () => view.zoom(1 / 1.3));
$("fit").addEventListener("click", () => view.fit(true));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, summary")) return;
  const keys = { Escape: () => view.choose(null), "+": () => view.zoom(1.3), "-": () => view.zoom(1 / 1.3), 0: () => view.fit(true) };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

/** A page that is opened again shows its conversation as far as it came. */
async function restore() {
  const thread = new URLSearchParams(location.hash.slice(1)).get("thread");
  if (!thread || !/^[A-Za-z0-9_.~-]{1,128}$/.test(thread)) return introduce();
  try {
    const state = await getJSON(`api/threads/${thread}`);
    now.thread = thread;
    now.asked = true;
    leaveFirst();
    introduce();
    const said = state.messages ?? [];
    const places = said.flatMap((one, at) => (one.role === "user" ? [at] : []));
    now.turns = places.slice(0, -1).map((at) => ({ question: String(said[at].content), answer: said[at + 1]?.role === "assistant" ? String(said[at + 1].content) : "" }));
    finish(state);
    if (state.review) waitFor(state.review);
    now.paused = !state.review && !state.stop_reason;
    controls();
    if (now.paused) status("This run has not ended. Continue takes up where it stopped.");
  } catch (error) {
    if (error.status !== 404) return showTrouble(error, restore);
    history.replaceState(null, "", location.pathname);
    await introduce();
    status("The server does not know the conversation of this address any more. Ask again.");
  }
}
controls();
chooseLook();
openMenus();
restore();

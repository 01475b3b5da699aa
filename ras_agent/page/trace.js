// Draws the trace in #data.
const { trace, picture, marks, files } = JSON.parse($("data").textContent);
const drawn = new Set(picture.edges.map((edge) => edge.id));
const facts = new Map(trace.graph.facts.filter((fact) => drawn.has(fact.id)).map((fact) => [fact.id, fact]));
const view = graphView({ stage: $("stage"), svg: $("graph"), world: $("world"), onChoose: showDetails });
const story = storyOf({ trace, picture, facts, files: files ?? {}, marks }, {
  show: reveal,
  chain: showChain,
  hop: (hop) => goTo(hop),
  close: () => view.choose(null),
});
let timer = 0;
const writeDetails = paneOf($("details"));

// ---- time

function setHop(hop) {
  const { added, seen } = view.showHop(hop);
  $("hop").value = view.hop;
  $("hop").setAttribute("aria-valuetext", view.hop ? `hop ${view.hop} of ${picture.hops}` : "before the first hop");
  for (const [index, button] of [...$("hops").children].entries()) {
    button.classList.toggle("past", index <= view.hop);
    button.classList.toggle("now", index === view.hop);
    button.setAttribute("aria-pressed", String(index === view.hop));
  }
  const step = trace.steps.find((one) => one.hop === view.hop);
  const news = added ? `${count(added, "fact")} added` : "no fact added";
  $("caption").replaceChildren(
    ...(view.hop
      ? [make("span", { hop: view.hop }, make("b", {}, `Hop ${view.hop} `), step?.subquery ?? ""), " ", make("small", {}, `${news}, ${seen.toLocaleString("en")} in the graph`)]
      : [make("span", {}, "Before the first hop")]),
  );
}

/** A hop that the reader chooses is seen whole. */
function goTo(hop) {
  if (view.chosen) view.choose(null);
  setHop(hop);
  view.fit(true);
}

function play() {
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    $("play").textContent = "▶";
    $("play").setAttribute("aria-label", "Play the hops");
  };
  if (timer) return stop();
  if (view.hop >= picture.hops) setHop(0);
  view.fit(true);
  $("play").textContent = "❚❚";
  $("play").setAttribute("aria-label", "Pause");
  timer = setInterval(() => {
    setHop(view.hop + 1);
    if (view.hop >= picture.hops) stop();
  }, still.matches ? 2200 : 1500);
}

// ---- what is chosen

function showDetails(chosen) {
  for (const row of document.querySelectorAll(".chain")) row.classList.toggle("chosen", row === chosen?.row);
  const detailed = Boolean(chosen) && !chosen.chain;
  writeDetails(detailed ? story.details(chosen) : []);
  if (detailed) $("panel").scrollTop = 0;
}

/** Choose from the panel: moves on to the hop that shows it. */
function reveal(chosen) {
  const item = chosen.fact ? view.edge(chosen.fact) : picture.nodes[chosen.node];
  if (!item) return;
  if (item.hop > view.hop) setHop(item.hop);
  view.chosen = null;
  view.choose(chosen);
}

function showChain(ids, row) {
  const latest = Math.max(...ids.map((id) => view.edge(id).hop));
  if (latest > view.hop) setHop(latest);
  view.choose({ chain: ids, row });
}

function showEvidence(citation) {
  const card = document.querySelector(`[data-citation="${citation.number}"]`);
  card?.scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
  const factOnChain = picture.chain.find((link) => link.cited === citation.number)?.facts[0];
  const first = factOnChain ?? citation.triple_ids.find((id) => view.edge(id));
  if (first) reveal({ fact: first });
}

// ---- the page around the graph

function writeHeader() {
  $("question").textContent = trace.question;
  $("answer").textContent = trace.answer || "No answer";
  writeSuggestion(trace.suggestion);
  const look = $("answer").parentElement.classList;
  look.toggle("long", trace.abstained || trace.answer.length > 110);
  look.toggle("none", trace.abstained || !trace.answer);
  $("marks").append(story.doubt());
  for (const citation of trace.citations.filter(({ supported }) => supported !== false)) {
    $("marks").append(" ", make("button", { type: "button", class: "mark", title: citation.title || citation.passage_id, "aria-label": `Evidence ${citation.number}`, click: () => showEvidence(citation) }, String(citation.number)));
  }
  if (trace.answer && !trace.abstained) $("marks").append(" ", copyButton("the answer", story.answerText), " ", saveButton(`${trace.question}\n\n`, story.answerText));
  const { graph, usage } = trace;
  const tokens = usage.input_tokens + usage.output_tokens;
  const stats = [
    [graph.facts.length, "fact"], [picture.nodes.length, "entity", "entities"], [Math.max(graph.conflicts.length, trace.disputes?.length ?? 0), "conflict"],
    [picture.hops, "hop"], [usage.llm_calls, "LLM call"], ...(tokens ? [[tokens, "token"]] : []),
    [`${trace.seconds < 10 ? trace.seconds.toFixed(1) : Math.round(trace.seconds)} s`, "time"],
  ];
  for (const [value, one, many = `${one}s`] of stats) {
    const name = typeof value === "string" || value === 1 ? one : many;
    $("stats").append(make("li", { class: one === "conflict" && value ? "alarm" : false }, make("b", {}, value.toLocaleString("en")), name));
  }
}

function writeHops() {
  $("hop").max = picture.hops;
  for (let hop = 0; hop <= picture.hops; hop++) {
    $("hops").append(make("button", { type: "button", hop, "data-hop": hop, click: () => goTo(hop), "aria-label": hop ? `Hop ${hop}` : "Before the first hop" }, hop ? `hop ${hop}` : "start"));
  }
  document.querySelector(".time").hidden = !picture.hops;
  if (picture.left_out) document.querySelector(".legend").prepend(make("li", { class: "left-out" }, `${count(picture.left_out, "fact")} more, not drawn`));
  $("nothing").hidden = picture.nodes.length > 0;
  const some = {
    ".conflict": picture.edges.some((edge) => edge.conflict), ".cited": picture.edges.some((edge) => edge.cited.length), ".join": picture.joins.length,
    ".answer": picture.nodes.some((node) => node.role === "answer"), ".asked": picture.nodes.some((node) => node.role === "asked"),
  };
  for (const [name, there] of Object.entries(some)) document.querySelector(`.legend ${name}`).parentElement.hidden = !there;
}

$("closer").addEventListener("click", () => view.zoom(1.3));
$("farther").addEventListener("click", () => view.zoom(1 / 1.3));
$("fit").addEventListener("click", () => view.fit(true));
$("play").addEventListener("click", play);
$("hop").addEventListener("input", (event) => setHop(Number(event.target.value)));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, summary")) return;
  const keys = {
    ArrowRight: () => goTo(view.hop + 1), ArrowLeft: () => goTo(view.hop - 1), Escape: () => view.choose(null),
    "+": () => view.zoom(1.3), "-": () => view.zoom(1 / 1.3), 0: () => view.fit(true),
  };
  if (event.key === " " && !event.target.closest("button")) keys[" "] = play;
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

/** `#hop=1`, `#fact=t0123`, `#entity=edinburgh`, `#why=2.3.1` (hop, hit, reason): what a link may point to. */
function follow() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (parameters.has("hop")) goTo(Number(parameters.get("hop")) || 0);
  if (parameters.has("why")) {
    const [hop, hit, reason] = parameters.get("why").split(".").map(Number);
    const row = document.querySelectorAll(".step")[hop - 1];
    const reasons = row?.querySelector(".hits")?.children[hit - 1]?.querySelector("details");
    if (reasons) {
      reasons.open = true;
      reasons.children[reason]?.click?.();
      row.scrollIntoView();
    }
  }
  if (parameters.has("fact")) reveal({ fact: parameters.get("fact") });
  if (parameters.has("entity")) reveal({ node: picture.nodes.findIndex((node) => node.key === parameters.get("entity")) });
}
addEventListener("hashchange", follow);

layOut(picture);
view.show(picture, new Map([...facts].map(([id, fact]) => [id, story.sentence(fact)])));
writeHeader();
$("evidence").append(...story.evidence());
$("steps").append(...story.steps());
$("rest").append(...story.rest());
writeHops();
setHop(picture.hops);
for (const element of document.querySelectorAll(".new")) element.classList.remove("new");
view.setPrint();
view.fit();
follow();

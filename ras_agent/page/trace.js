"use strict";
// Draws the trace in #data. Whatever comes from a document is put into the page as text, never as markup.
(() => {
  const { trace, picture, marks } = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const world = $("world");
  const stage = $("stage");
  const edgeOf = new Map(picture.edges.map((edge) => [edge.id, edge]));
  const facts = new Map(trace.graph.facts.filter((fact) => edgeOf.has(fact.id)).map((fact) => [fact.id, fact]));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const state = { hop: picture.hops, chosen: null, timer: 0, x: 0, y: 0, scale: 1 };

  // ---- making elements

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "hop") element.style.setProperty("--hop", colour(value));
      else if (name === "click") element.addEventListener("click", value);
      else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child != null && child !== ""));
    return element;
  }
  const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const draw = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const colour = (hop) => `var(--hop${hop > 0 ? ((hop - 1) % 6) + 1 : 0})`;
  const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const words = (name) => name.replaceAll("_", " ");
  // spans count characters, while strings count UTF-16 units
  const slice = (text, start, end) => Array.from(text).slice(start, end).join("");

  // ---- the graph

  const inside = (box, x, y) => Math.abs(x - box.x) <= box.w / 2 + 2 && Math.abs(y - box.y) <= box.h / 2 + 2;

  /** The curve from box to box through the label's place, cut where it meets the boxes, and its arrow head. */
  function route(edge) {
    const from = picture.nodes[edge.from];
    const to = picture.nodes[edge.to];
    if (from === to) {
      const [x, y, side] = [from.x, from.y, Math.sign(edge.y - from.y) || -1];
      const rim = y + (side * from.h) / 2;
      const far = edge.y + (edge.y - rim) * 0.3;
      return [`M${x - 9} ${rim}C${x - 44} ${far} ${x + 44} ${far} ${x + 9} ${rim}`, arrow(x + 9, rim, -0.45, -side)];
    }
    const bend = { x: 2 * edge.x - (from.x + to.x) / 2, y: 2 * edge.y - (from.y + to.y) / 2 };
    const at = (t) => [
      (1 - t) ** 2 * from.x + 2 * t * (1 - t) * bend.x + t * t * to.x,
      (1 - t) ** 2 * from.y + 2 * t * (1 - t) * bend.y + t * t * to.y,
    ];
    let first = 0;
    let last = 1;
    while (first < 0.5 && inside(from, ...at(first))) first += 0.01;
    while (last > 0.5 && inside(to, ...at(last))) last -= 0.01;
    const points = Array.from({ length: 25 }, (_, n) => at(first + ((last - first) * n) / 24));
    const [[x0, y0], [x1, y1]] = points.slice(-2);
    const path = "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
    return [path, arrow(x1, y1, x1 - x0, y1 - y0)];
  }

  function arrow(x, y, dx, dy) {
    const long = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [(dx / long) * 8, (dy / long) * 8];
    const corner = (side) => `${(x - ux - side * uy * 0.45).toFixed(1)} ${(y - uy + side * ux * 0.45).toFixed(1)}`;
    return `M${x.toFixed(1)} ${y.toFixed(1)}L${corner(1)}L${corner(-1)}Z`;
  }

  function press(element, choose) {
    element.addEventListener("click", choose);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.stopPropagation();
        choose();
      }
    });
  }

  const sentence = (fact) => `${fact.subject} ${fact.predicate} ${fact.object}`;

  for (const edge of picture.edges) {
    const [path, head] = route(edge);
    const kind = `edge${edge.cited.length ? " cited" : ""}${edge.conflict ? " conflict" : ""}${edge.shown ? "" : " minor"}`;
    const numbers = edge.cited.length ? draw("tspan", {}, ` ${edge.cited.map((n) => `[${n}]`).join("")}`) : "";
    const label = `${edge.conflict ? "⚠ " : ""}${edge.text}`;
    edge.element = draw(
      "g",
      { class: kind, hop: edge.hop, role: "button", tabindex: picture.crowded ? -1 : 0, "data-fact": edge.id, "aria-label": sentence(facts.get(edge.id)) },
      draw("path", { class: "grip", d: path }),
      draw("path", { class: "path", d: path }),
      draw("path", { class: "head", d: head }),
      draw("text", { x: edge.x, y: edge.y + 4 }, label, numbers),
    );
    press(edge.element, () => choose({ fact: edge.id }));
    world.append(edge.element);
  }
  picture.nodes.forEach((node, index) => {
    const half = { x: -node.w / 2, y: -node.h / 2 };
    const around = { x: half.x - 4, y: half.y - 4, width: node.w + 8, height: node.h + 8, rx: Math.min(14, node.h / 2 + 4) };
    const top = node.shown ? 4.5 - (node.lines.length - 1) * 8.5 : -11 - (node.lines.length - 1) * 13;
    node.element = draw(
      "g",
      { class: `node ${node.role}${node.shown ? "" : " minor"}`, hop: node.hop, role: "button", tabindex: 0, "data-node": node.key, "aria-label": node.label, transform: `translate(${node.x} ${node.y})` },
      draw("g", {},
        node.role === "asked" ? draw("rect", { class: "ring", ...around }) : "",
        draw("rect", { ...half, width: node.w, height: node.h, rx: Math.min(10, node.h / 2) }),
        draw("text", {}, node.lines.map((line, n) => draw("tspan", { x: 0, y: top + n * (node.shown ? 17 : 13) }, line))),
        draw("title", {}, node.label)),
    );
    press(node.element, () => choose({ node: index }));
    world.append(node.element);
  });

  /** Boxes are sized without knowing the reader's font: lines too long for their box are compressed. */
  function squeeze() {
    for (const node of picture.nodes.filter((one) => one.shown)) {
      for (const line of node.element.querySelectorAll("tspan")) {
        if (line.getComputedTextLength() <= node.w - 12) continue;
        line.setAttribute("textLength", node.w - 12);
        line.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    }
  }

  // ---- time

  function setHop(hop) {
    const before = state.hop;
    state.hop = Math.max(0, Math.min(picture.hops, hop));
    for (const item of [...picture.edges, ...picture.nodes]) {
      item.element.classList.toggle("off", item.hop > state.hop);
      const shape = item.lines ? item.element.firstChild : item.element;
      shape.classList.toggle("new", item.hop > before && item.hop <= state.hop);
    }
    $("hop").value = state.hop;
    $("hop").setAttribute("aria-valuetext", state.hop ? `hop ${state.hop} of ${picture.hops}` : "before the first hop");
    for (const [index, button] of [...$("hops").children].entries()) {
      button.classList.toggle("past", index <= state.hop);
      button.classList.toggle("now", index === state.hop);
    }
    const step = trace.steps.find((one) => one.hop === state.hop);
    const added = picture.edges.filter((edge) => edge.hop === state.hop).length;
    const seen = picture.edges.filter((edge) => edge.hop <= state.hop).length;
    $("caption").replaceChildren(
      ...(state.hop
        ? [make("span", { hop: state.hop }, make("b", {}, `Hop ${state.hop} `), step?.subquery ?? ""), " ", make("small", {}, `${count(added, "new fact")}, ${seen.toLocaleString("en")} in all`)]
        : [make("span", {}, "Before the first hop")]),
    );
    if (state.chosen && !visible(state.chosen)) choose(null);
  }

  const visible = (chosen) =>
    chosen.chain ? chosen.chain.every((id) => edgeOf.get(id).hop <= state.hop)
      : (chosen.fact ? edgeOf.get(chosen.fact) : picture.nodes[chosen.node]).hop <= state.hop;

  function play() {
    const stop = () => {
      clearInterval(state.timer);
      state.timer = 0;
      $("play").textContent = "▶";
      $("play").setAttribute("aria-label", "Play the hops");
    };
    if (state.timer) return stop();
    if (state.hop >= picture.hops) setHop(0);
    $("play").textContent = "❚❚";
    $("play").setAttribute("aria-label", "Pause");
    state.timer = setInterval(() => {
      setHop(state.hop + 1);
      if (state.hop >= picture.hops) stop();
    }, still.matches ? 2200 : 1500);
  }

  // ---- details of a node or an edge

  /** Select {node: index}, {fact: id} or {chain: ids, row: its element}, or nothing. */
  function choose(chosen) {
    const same = chosen && state.chosen && ["fact", "node", "row"].every((kind) => chosen[kind] === state.chosen[kind]);
    state.chosen = same ? null : chosen;
    const related = new Set();
    if (state.chosen) {
      const around = picture.edges.filter((edge) =>
        state.chosen.chain ? state.chosen.chain.includes(edge.id)
          : state.chosen.fact ? edge.id === state.chosen.fact : edge.from === state.chosen.node || edge.to === state.chosen.node);
      for (const edge of around) related.add(edge).add(picture.nodes[edge.from]).add(picture.nodes[edge.to]);
      if (state.chosen.node != null) related.add(picture.nodes[state.chosen.node]);
    }
    for (const item of [...picture.edges, ...picture.nodes]) {
      item.element.classList.toggle("dim", related.size > 0 && !related.has(item));
      item.element.classList.toggle("related", related.has(item));
      const own = state.chosen && (item.lines ? picture.nodes[state.chosen.node] === item
        : state.chosen.fact === item.id || state.chosen.chain?.includes(item.id));
      item.element.classList.toggle("chosen", Boolean(own));
    }
    if ((picture.crowded || state.chosen?.chain) && related.size) frameRelated(true);
    for (const row of document.querySelectorAll(".chain")) row.classList.toggle("chosen", row === state.chosen?.row);
    const detailed = state.chosen && !state.chosen.chain;
    $("details").hidden = !detailed;
    $("details").replaceChildren(...(detailed ? (state.chosen.fact ? factDetails(state.chosen.fact) : nodeDetails(state.chosen.node)) : []));
    if (detailed) $("panel").scrollTop = 0;
  }

  /** Choose from the panel: moves on to the hop that shows it. */
  function reveal(chosen) {
    const item = chosen.fact ? edgeOf.get(chosen.fact) : picture.nodes[chosen.node];
    if (!item) return;
    if (item.hop > state.hop) setHop(item.hop);
    state.chosen = null;
    choose(chosen);
  }

  const heading = (text) =>
    make("div", { class: "title" }, make("h3", {}, text), make("button", { "aria-label": "Close", title: "Close (Esc)", click: () => choose(null) }, "✕"));

  const factButton = (id) => {
    const fact = facts.get(id);
    const edge = edgeOf.get(id);
    return make("li", { hop: edge.hop }, make("button", { "data-show": id, click: () => reveal({ fact: id }) },
      edge.conflict ? make("span", { class: "alarm" }, "⚠ ") : "", `${fact.subject} `, make("i", {}, fact.predicate), ` ${fact.object}`));
  };

  function nodeDetails(index) {
    const node = picture.nodes[index];
    const own = picture.edges.filter((edge) => edge.from === index || edge.to === index);
    const others = node.forms.filter((form) => form !== node.label);
    return [
      heading(node.label),
      others.length ? make("p", { class: "note" }, `also written ${others.map((form) => `“${form}”`).join(", ")}`) : "",
      make("ul", { class: "facts" }, own.map((edge) => factButton(edge.id))),
    ];
  }

  function factDetails(id) {
    const fact = facts.get(id);
    const against = trace.graph.conflicts.filter((group) => group.includes(id)).flat().filter((other) => other !== id && facts.has(other));
    return [
      heading(sentence(fact)),
      against.length ? make("p", { class: "note alarm" }, "⚠ cannot be true together with") : "",
      against.length ? make("ul", { class: "facts" }, against.map(factButton)) : "",
      fact.sources.length ? "" : make("p", { class: "note" }, "supplied, without a source"),
      ...fact.sources.map(sourceCard),
    ];
  }

  function sourceCard(source) {
    const passage = trace.passages[source.passage_id];
    const origin = [`hop ${source.hop}`, source.extractor && (source.extractor.startsWith("stated: ") ? source.extractor : `read by ${source.extractor}`), source.passage_id].filter(Boolean).join(" · ");
    const text = passage ? excerpt(passage.text, source.start, source.end) : ["This passage is not in the trace."];
    return make("div", { class: "card", hop: source.hop },
      make("h3", {}, passage?.title || source.passage_id),
      make("p", { class: "note" }, origin),
      make("p", { class: "text" }, ...text));
  }

  /** A passage with characters `start` to `end` marked. */
  const excerpt = (text, start, end) =>
    end > start ? [slice(text, 0, start), make("mark", {}, slice(text, start, end)), slice(text, end)] : [text];

  // ---- the page around the graph

  function writeHeader() {
    $("question").textContent = trace.question;
    $("answer").textContent = trace.answer || "No answer";
    const look = $("answer").parentElement.classList;
    look.toggle("long", trace.answer.length > 110);
    look.toggle("none", trace.abstained || !trace.answer);
    if (!trace.grounded && !trace.abstained && trace.answer) $("marks").append(" from the model's memory: nothing was looked up");
    for (const citation of trace.citations) {
      $("marks").append(" ", make("button", { class: "mark", title: citation.title || citation.passage_id, "aria-label": `Evidence ${citation.number}`, click: () => showEvidence(citation) }, String(citation.number)));
    }
    const { graph, usage } = trace;
    const tokens = usage.input_tokens + usage.output_tokens;
    const stats = [
      [graph.facts.length, "fact"], [picture.nodes.length, "entity", "entities"], [graph.conflicts.length, "conflict"],
      [picture.hops, "hop"], [usage.llm_calls, "LLM call"], ...(tokens ? [[tokens, "token"]] : []),
      [`${trace.seconds < 10 ? trace.seconds.toFixed(1) : Math.round(trace.seconds)} s`, "time"],
      ...(trace.confidence == null ? [] : [[`${Math.round(trace.confidence * 100)} %`, "confidence"]]),
    ];
    for (const [value, one, many = `${one}s`] of stats) {
      const name = typeof value === "string" || value === 1 ? one : many;
      $("stats").append(make("li", { class: one === "conflict" && value ? "alarm" : false }, make("b", {}, value.toLocaleString("en")), name));
    }
  }

  function showEvidence(citation) {
    const card = document.querySelector(`[data-citation="${citation.number}"]`);
    card?.scrollIntoView({ block: "nearest", behavior: still.matches ? "auto" : "smooth" });
    const first = citation.triple_ids.find((id) => edgeOf.has(id));
    if (first) reveal({ fact: first });
  }

  function writeEvidence() {
    if (!trace.citations.length) return;
    $("evidence").append(make("h2", {}, "Evidence"));
    for (const citation of trace.citations) {
      const known = citation.triple_ids.filter((id) => facts.has(id));
      const hop = Math.min(...known.map((id) => edgeOf.get(id).hop), picture.hops);
      $("evidence").append(make("div", { class: "card", hop, "data-citation": citation.number },
        make("h3", {}, make("span", { class: "mark" }, String(citation.number)), ` ${citation.title || citation.passage_id}`),
        citation.quote ? make("blockquote", {}, citation.quote) : "",
        known.length ? make("ul", { class: "facts" }, known.map(factButton)) : ""));
    }
  }

  // ---- why a passage was retrieved

  const factKey = (parts) => parts.map((part) => part.toLowerCase()).join("|");
  const factOf = new Map([...facts.values()].map((fact) => [factKey([fact.subject, fact.predicate, fact.object]), fact.id]));

  /** "0.4  (a | r | b) → (b | s^-1 | c)", or "0.4  a → r → b ← s ← c", as names and steps; null for other text. */
  function readChain(line) {
    const [, weight, body] = line.match(/^(-?[\d.]+) {2}(.*)$/s) ?? [null, "", line];
    const names = [];
    const steps = [];
    if (/^\(.*\)$/s.test(body)) {
      const parts = body.slice(1, -1).split(") → (").map((part) => part.split(" | "));
      if (parts.some((part) => part.length !== 3)) return null;
      names.push(parts[0][0], ...parts.map((part) => part[2]));
      for (const [, name] of parts) steps.push({ name: name.replace(/\^-1$/, ""), back: name.endsWith("^-1") });
    } else {
      const parts = body.split(/ ([→←]) /);
      if (parts.length < 5 || parts.length % 4 !== 1) return null;
      for (let at = 0; at < parts.length; at += 4) names.push(parts[at]);
      for (let at = 2; at < parts.length; at += 4) steps.push({ name: parts[at], back: parts[at - 1] === "←" });
    }
    return { weight, names, steps };
  }

  /** A chain of facts as a row; a click highlights those of its facts that are in the graph. */
  function chainRow(line) {
    const chain = readChain(line);
    if (!chain) return make("p", {}, line);
    const ids = chain.steps.map(({ name, back }, at) => {
      const ends = [chain.names[at], chain.names[at + 1]];
      if (back) ends.reverse();
      return factOf.get(factKey([ends[0], name, ends[1]]));
    });
    const known = ids.filter((id) => id !== undefined);
    const row = make("button", { class: "chain", title: known.length ? "Show in the graph" : "Not in the question's graph" },
      chain.weight ? make("small", {}, chain.weight) : "",
      make("b", {}, chain.names[0]),
      chain.steps.flatMap(({ name, back }, at) => [
        make("i", {}, back ? `← ${name} ` : ` ${name} →`), make("b", { class: at === chain.steps.length - 1 ? "last" : "" }, chain.names[at + 1]),
      ]));
    row.addEventListener("click", () => {
      if (!known.length) return;
      const latest = Math.max(...known.map((id) => edgeOf.get(id).hop));
      if (latest > state.hop) setHop(latest);
      choose({ chain: known, row });
    });
    return row;
  }

  function hitWithReasons(hit, place) {
    const name = `${hit.title || hit.passage_id} `;
    const score = make("small", {}, String(Number(hit.score.toPrecision(3))));
    if (!hit.why) return make("p", {}, name, score);
    return make("details", { class: "why", open: place === 0 }, make("summary", {}, name, score), hit.why.map(chainRow));
  }

  function writeSteps() {
    if (!trace.steps.length && !trace.plans.length) return;
    $("steps").append(make("h2", {}, "Steps"));
    const list = make("ol");
    for (const step of trace.steps) {
      const hits = step.hits.map((hit) => `${hit.title || hit.passage_id} ${Number(hit.score.toPrecision(3))}`).join(" · ");
      list.append(make("li", { class: "step", hop: step.hop },
        make("b", {}, String(step.hop)),
        make("button", { class: "subquery", click: () => setHop(step.hop) }, step.subquery),
        step.thought ? make("p", { class: "note" }, step.thought) : "",
        step.hits.some((hit) => hit.why) ? make("div", { class: "note" }, step.hits.map((hit, place) => hitWithReasons(hit, place)))
          : make("p", { class: "note" }, hits || "nothing found"),
        make("p", { class: "note" }, `${count(step.triple_ids.length, "fact")} read, ${step.new_triple_ids.length.toLocaleString("en")} new`)));
    }
    const plan = trace.plans.at(-1);
    const last = plan && plan.action !== "subq" ? plan : null;
    const why = last ? last.reason : `stopped: ${words(trace.stop_reason)}`;
    if (last || trace.stop_reason) {
      list.append(make("li", { class: "step", hop: 0 }, make("b", {}, "■"),
        make("span", {}, last ? make("span", { class: "action" }, marks[last.action] || last.action) : "", ` ${why}`)));
    }
    $("steps").append(list);
  }

  function writeRest() {
    const rest = $("rest");
    for (const failure of trace.failures) {
      if (!rest.children.length) rest.append(make("h2", {}, "What went wrong"));
      rest.append(make("div", { class: "card" }, make("p", {}, `${failure.role}, hop ${failure.hop}: ${failure.message}`), failure.detail ? make("p", { class: "text" }, failure.detail) : ""));
    }
    const all = make("details", {}, make("summary", {}, `All ${count(picture.edges.length, "fact")}`));
    all.append(make("ul", { class: "facts" }, picture.edges.map((edge) => factButton(edge.id))));
    if (picture.edges.length) rest.append(all);
    const set = [["graph", trace.mode], ...Object.entries(trace.roles), ["stopped", words(trace.stop_reason)],
      ["tokens in", trace.usage.input_tokens], ["tokens out", trace.usage.output_tokens]].filter(([, value]) => value);
    rest.append(make("details", {}, make("summary", {}, "The run"),
      make("dl", {}, set.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]))));
  }

  function writeHops() {
    $("hop").max = picture.hops;
    for (let hop = 0; hop <= picture.hops; hop++) {
      $("hops").append(make("button", { hop, "data-hop": hop, click: () => setHop(hop), "aria-label": hop ? `Hop ${hop}` : "Before the first hop" }, hop ? `hop ${hop}` : "start"));
    }
    document.querySelector(".time").hidden = !picture.hops;
    if (picture.left_out) document.querySelector(".legend").prepend(make("li", { class: "left-out" }, `${count(picture.left_out, "fact")} more, not drawn`));
    $("nothing").hidden = picture.nodes.length > 0;
    document.querySelector(".legend .conflict").parentElement.hidden = !picture.edges.some((edge) => edge.conflict);
    document.querySelector(".legend .cited").parentElement.hidden = !picture.edges.some((edge) => edge.cited.length);
    for (const role of ["answer", "asked"]) {
      document.querySelector(`.legend .box.${role}`).parentElement.hidden = !picture.nodes.some((node) => node.role === role);
    }
  }

  // ---- moving and zooming

  function look(glide = false) {
    world.classList.toggle("gliding", glide);
    world.style.transform = `translate(${state.x}px, ${state.y}px) scale(${state.scale})`;
    world.classList.toggle("near", state.scale >= 1.1);
  }

  /** Bring items into the middle, as large as they fit. */
  function frame(items, most, glide) {
    const { width, height } = stage.getBoundingClientRect();
    if (!items.length || !width) return;
    const boxes = items.map((item) => (item.lines ? item : { x: item.x, y: item.y, w: 40, h: 16 }));
    const edgeAt = (pick, sign, side, size) => pick(...boxes.map((box) => box[side] + (sign * box[size]) / 2));
    const [left, right] = [edgeAt(Math.min, -1, "x", "w"), edgeAt(Math.max, 1, "x", "w")];
    const [top, bottom] = [edgeAt(Math.min, -1, "y", "h"), edgeAt(Math.max, 1, "y", "h")];
    // room for the caption above, the time line below and the buttons at the right
    const [wide, high] = [width - 84, height - 126];
    state.scale = Math.min(most, wide / (right - left), high / (bottom - top));
    state.x = 24 + (wide - (left + right) * state.scale) / 2;
    state.y = 52 + (high - (top + bottom) * state.scale) / 2;
    look(glide);
  }
  /** Frames what is chosen, with its neighbours. */
  const frameRelated = (glide = false) => frame([...picture.nodes, ...picture.edges].filter((item) => item.element.classList.contains("related")), 1.5, glide);
  const fit = (glide = false) => frame([...picture.nodes, ...picture.edges], 1.35, glide === true);

  function zoom(factor, x, y) {
    const { width, height } = stage.getBoundingClientRect();
    [x, y] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.max(0.05, Math.min(4, state.scale * factor));
    state.x = x - ((x - state.x) * scale) / state.scale;
    state.y = y - ((y - state.y) * scale) / state.scale;
    state.scale = scale;
    look();
  }

  const held = new Map();
  let moved = false;
  $("graph").addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, event);
    moved = false;
  });
  addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (!moved && held.size === 1 && Math.hypot(dx, dy) < 4) return;
    moved = true;
    $("graph").classList.add("held");
    if (held.size === 2) {
      const other = [...held.values()].find((one) => one.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      const frame = stage.getBoundingClientRect();
      zoom(apart(event) / apart(before), (event.clientX + other.clientX) / 2 - frame.x, (event.clientY + other.clientY) / 2 - frame.y);
    } else {
      state.x += dx;
      state.y += dy;
      look();
    }
    held.set(event.pointerId, event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, (event) => {
      held.delete(event.pointerId);
      $("graph").classList.remove("held");
    });
  }
  // a drag that ends on a node is not a click; a click on the background clears the choice
  $("graph").addEventListener("click", (event) => {
    if (moved) event.stopPropagation();
    else if (event.target === $("graph")) choose(null);
  }, true);
  $("graph").addEventListener("wheel", (event) => {
    event.preventDefault();
    const frame = stage.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - frame.x, event.clientY - frame.y);
  }, { passive: false });

  $("closer").addEventListener("click", () => zoom(1.3));
  $("farther").addEventListener("click", () => zoom(1 / 1.3));
  $("fit").addEventListener("click", () => fit(true));
  $("play").addEventListener("click", play);
  $("hop").addEventListener("input", (event) => setHop(Number(event.target.value)));
  // also when a frame around the page becomes visible, which is not a resize of the window
  const measured = () => `${stage.clientWidth} ${stage.clientHeight}`;
  let size = measured();
  new ResizeObserver(() => {
    if (size === measured()) return;
    size = measured();
    squeeze();
    if (state.chosen?.chain) frameRelated();
    else fit();
  }).observe(stage);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, summary")) return;
    const keys = {
      ArrowRight: () => setHop(state.hop + 1), ArrowLeft: () => setHop(state.hop - 1), Escape: () => choose(null),
      "+": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: () => fit(true),
    };
    if (event.key === " " && !event.target.closest("button")) keys[" "] = play;
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  /** `#hop=1`, `#fact=t0123`, `#entity=edinburgh`, `#why=2.3.1` (hop, hit, reason): what a link may point to. */
  function follow() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.has("hop")) setHop(Number(wanted.get("hop")) || 0);
    if (wanted.has("why")) {
      const [hop, hit, reason] = wanted.get("why").split(".").map(Number);
      const step = document.querySelectorAll(".step")[hop - 1];
      const reasons = step?.querySelector(".note")?.children[hit - 1];
      if (reasons?.matches("details")) {
        reasons.open = true;
        reasons.querySelectorAll(".chain")[reason - 1]?.click();
        step.scrollIntoView();
      }
    }
    if (wanted.has("fact")) reveal({ fact: wanted.get("fact") });
    if (wanted.has("entity")) reveal({ node: picture.nodes.findIndex((node) => node.key === wanted.get("entity")) });
  }
  addEventListener("hashchange", follow);

  world.classList.toggle("crowded", picture.crowded);
  writeHeader();
  writeEvidence();
  writeSteps();
  writeRest();
  writeHops();
  setHop(picture.hops);
  for (const element of document.querySelectorAll(".new")) element.classList.remove("new");
  squeeze();
  fit();
  follow();
})();

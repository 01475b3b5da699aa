/**
 * A graph of boxes in an SVG, which the reader moves, zooms and chooses in.
 *
 * stage holds svg, which holds world. show(picture, facts) draws a picture made by ras_agent/page/trace_page.py;
 * onChoose(chosen) is called with {node: index}, {fact: id}, {chain: ids, row} or null.
 *
 * The Tab key stops once at a graph, at one of its entities. Arrow keys move on to the next entity in their direction,
 * Home to the answer, Enter chooses, and Escape leaves.
 */
function graphView({ stage, svg, world, onChoose = () => {}, room = { top: 52, right: 60, bottom: 92, left: 24 } }) {
  const view = { picture: { nodes: [], edges: [], joins: [], chain: [], hops: 0 }, hop: 0, chosen: null };
  const place = { x: 0, y: 0, scale: 1 };
  let edgeOf = new Map();
  let joined = [];

  // ---- drawing

  const inside = (box, x, y) => Math.abs(x - box.x) <= box.w / 2 + 2 && Math.abs(y - box.y) <= box.h / 2 + 2;

  /** The curve from box to box through the label's place, cut where it meets the boxes, and its arrow head. */
  function route(edge) {
    const from = view.picture.nodes[edge.from];
    const to = view.picture.nodes[edge.to];
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

  function drawEdge(edge, name) {
    const [path, head] = route(edge);
    const kind = `edge${edge.cited.length ? " cited" : ""}${edge.conflict ? " conflict" : ""}${edge.shown ? "" : " minor"}`;
    const numbers = edge.cited.length ? draw("tspan", {}, ` ${edge.cited.map((n) => `[${n}]`).join("")}`) : "";
    const label = `${edge.conflict ? "⚠ " : ""}${edge.text}`;
    edge.element = draw(
      "g",
      { class: kind, hop: edge.hop, "aria-hidden": "true", "data-fact": edge.id }, // entities list their facts in words
      draw("path", { class: "grip", d: path }),
      draw("path", { class: "path", d: path }),
      draw("path", { class: "head", d: head }),
      draw("text", { x: edge.x, y: edge.y + 4 }, label, numbers),
      draw("title", {}, name),
    );
    edge.element.addEventListener("click", () => choose({ fact: edge.id }));
    world.append(edge.element);
  }

  function drawNode(node, index) {
    const half = { x: -node.w / 2, y: -node.h / 2 };
    const around = { x: half.x - 4, y: half.y - 4, width: node.w + 8, height: node.h + 8, rx: Math.min(14, node.h / 2 + 4) };
    const top = 4.5 - (node.lines.length - 1) * 8.5;
    const label = node.shown
      ? draw("text", {}, node.lines.map((line, n) => draw("tspan", { x: 0, y: top + n * 17 }, line)))
      : draw("text", {}, node.lines.join(" "));
    node.element = draw(
      "g",
      { class: `node ${node.role}${node.shown ? "" : " minor"}`, hop: node.hop, role: "button", tabindex: -1, "aria-pressed": "false", "data-node": node.key, "aria-label": nameOf(node, index), transform: `translate(${node.x} ${node.y})` },
      draw("g", {},
        node.role === "asked" ? draw("rect", { class: "ring", ...around }) : "",
        draw("rect", { ...half, width: node.w, height: node.h, rx: Math.min(10, node.h / 2) }),
        label,
        draw("title", {}, node.label)),
    );
    press(node.element, () => choose({ node: index }));
    world.append(node.element);
  }

  const PARTS = { answer: ", the answer", asked: ", in the question" };
  const factsOf = (index) => view.picture.edges.filter((edge) => edge.from === index || edge.to === index);
  const nameOf = (node, index) => `${node.label}, ${count(factsOf(index).length, "fact")}${PARTS[node.role] ?? ""}`;

  /** A dotted line between two names of one thing. */
  function drawJoin([first, second]) {
    const [a, b] = [view.picture.nodes[first], view.picture.nodes[second]];
    const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    const element = draw("g", { class: "join" },
      draw("path", { d: `M${a.x} ${a.y}L${b.x} ${b.y}` }), draw("text", { x, y: y + 4 }, "="),
      draw("title", {}, `“${a.label}” and “${b.label}” are taken for one thing`));
    world.prepend(element);
    return { element, hop: Math.max(a.hop, b.hop), ends: [a, b] };
  }

  /** Boxes are sized without knowing the reader's font: lines too long for their box are compressed. */
  function squeeze() {
    for (const node of view.picture.nodes) {
      if (!node.shown) continue;
      for (const line of node.element.querySelectorAll("tspan")) {
        if (line.getComputedTextLength() <= node.w - 12) continue;
        line.setAttribute("textLength", node.w - 12);
        line.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    }
  }

  /** Draw a picture; `names` maps a fact's id to its sentence. */
  function show(picture, names) {
    const held = world.contains(document.activeElement) ? stop.key : null;
    view.picture = picture;
    view.chosen = null;
    lit = new Set();
    world.replaceChildren();
    edgeOf = new Map(picture.edges.map((edge) => [edge.id, edge]));
    for (const edge of picture.edges) drawEdge(edge, names.get(edge.id) ?? edge.text);
    picture.nodes.forEach(drawNode);
    joined = (picture.joins ?? []).map(drawJoin);
    world.classList.toggle("crowded", Boolean(picture.crowded));
    svg.setAttribute("aria-label", `Graph of ${count(picture.nodes.length, "entity", "entities")} and ${count(picture.edges.length, "fact")}`);
    squeeze();
    setStop(picture.nodes.find((node) => node.key === held) ?? firstStop());
    if (held != null) stop?.element.focus({ preventScroll: true });
  }

  // ---- time

  /** Show what is known after a hop; return how many facts came with it, and how many there are. */
  function showHop(hop) {
    const before = view.hop;
    view.hop = Math.max(0, Math.min(view.picture.hops, hop));
    for (const item of [...view.picture.edges, ...view.picture.nodes, ...joined]) {
      item.element.classList.toggle("off", item.hop > view.hop);
      const shape = item.lines ? item.element.firstChild : item.element;
      shape.classList.toggle("new", item.hop > before && item.hop <= view.hop);
    }
    if (view.chosen && !visible(view.chosen)) choose(null);
    if (!stop || stop.hop > view.hop) setStop(firstStop());
    untangle();
    const { edges } = view.picture;
    return { added: edges.filter((edge) => edge.hop === view.hop).length, seen: edges.filter((edge) => edge.hop <= view.hop).length };
  }

  const visible = (chosen) =>
    chosen.chain ? chosen.chain.every((id) => edgeOf.get(id).hop <= view.hop)
      : (chosen.fact ? edgeOf.get(chosen.fact) : view.picture.nodes[chosen.node]).hop <= view.hop;

  // ---- choosing

  const items = () => [...view.picture.nodes, ...view.picture.edges];

  /** Select {node: index}, {fact: id} or {chain: ids, row: its element}, or nothing; the same again clears it. */
  function choose(chosen) {
    const same = chosen && view.chosen && ["fact", "node", "row"].every((kind) => chosen[kind] === view.chosen[kind]);
    view.chosen = same ? null : chosen;
    const now = view.chosen;
    const related = new Set(now ? [] : lit);
    if (now) {
      const around = view.picture.edges.filter((edge) =>
        now.chain ? now.chain.includes(edge.id) : now.fact ? edge.id === now.fact : edge.from === now.node || edge.to === now.node);
      for (const edge of around) related.add(edge).add(view.picture.nodes[edge.from]).add(view.picture.nodes[edge.to]);
      if (now.node != null) related.add(view.picture.nodes[now.node]);
    }
    for (const item of items()) {
      item.element.classList.toggle("dim", related.size > 0 && !related.has(item));
      item.element.classList.toggle("related", Boolean(now) && related.has(item));
      const isChosen = now && (item.lines ? view.picture.nodes[now.node] === item : now.fact === item.id || now.chain?.includes(item.id));
      item.element.classList.toggle("chosen", Boolean(isChosen));
      if (item.lines) item.element.setAttribute("aria-pressed", String(Boolean(isChosen)));
    }
    for (const join of joined) join.element.classList.toggle("dim", related.size > 0 && !join.ends.every((end) => related.has(end)));
    if (now && (view.picture.crowded || now.chain) && related.size) frameRelated(true);
    untangle();
    onChoose(now);
  }

  // ---- moving and zooming

  function look(glide = false) {
    world.classList.toggle("gliding", glide);
    world.style.transform = `translate(${place.x}px, ${place.y}px) scale(${place.scale})`;
    untangle();
  }

  const boxOf = (item) => (item.lines ? item : { x: item.x, y: item.y, w: 40, h: 16 });
  const edgeAt = (boxes, pick, sign, side, size) => pick(...boxes.map((box) => box[side] + (sign * box[size]) / 2));
  const extent = (some) => {
    const boxes = some.map(boxOf);
    return {
      left: edgeAt(boxes, Math.min, -1, "x", "w"), right: edgeAt(boxes, Math.max, 1, "x", "w"),
      top: edgeAt(boxes, Math.min, -1, "y", "h"), bottom: edgeAt(boxes, Math.max, 1, "y", "h"),
    };
  };

  /** Bring items into the middle, as large as they fit. */
  function frame(some, most, glide) {
    const { width, height } = stage.getBoundingClientRect();
    if (!some.length || !width) return;
    const { left, right, top, bottom } = extent(some);
    const [wide, high] = [width - room.left - room.right, height - room.top - room.bottom];
    place.scale = Math.min(most, wide / (right - left), high / (bottom - top));
    place.x = room.left + (wide - (left + right) * place.scale) / 2;
    place.y = room.top + (high - (top + bottom) * place.scale) / 2;
    look(glide);
  }
  const frameRelated = (glide = false) => frame(items().filter((item) => item.element.classList.contains("related")), 1.5, glide);

  // ---- the evidence in the light

  let lit = new Set();

  /** What the proof is drawn with: the chain of the answer, or what is cited where there is none. */
  function proof() {
    const { nodes, edges, chain = [] } = view.picture;
    const ofLink = (link) => (link.facts.length ? link.facts.map((id) => edgeOf.get(id)) : edges.filter((edge) => edge.cited.includes(link.cited)));
    const shown = (chain.length ? chain.flatMap(ofLink) : edges.filter((edge) => edge.cited.length)).filter(Boolean);
    return new Set([...shown.flatMap((edge) => [edge, nodes[edge.from], nodes[edge.to]]), ...chain.flatMap((link) => link.nodes.map((index) => nodes[index]))]);
  }

  /** Dim all but the proof, or nothing, and frame what is left. */
  function light(on) {
    lit = on ? proof() : new Set();
    choose(null);
    fit(true);
  }

  /** Frame the proof in the light, or everything; on a small screen, where that would be too small to read, the proof. */
  function fit(glide = false) {
    if (lit.size) return frame([...lit], 1.1, glide === true);
    frame(items(), 1.35, glide === true);
    if (place.scale >= 0.62 || stage.clientWidth > 480) return;
    const some = [...proof()];
    const worth = some.length ? some : view.picture.nodes.filter((node) => node.role);
    if (worth.length) frame(worth, 1, glide === true);
    if (place.scale < 0.62) zoom(0.62 / place.scale);
  }

  function zoom(factor, x, y) {
    const { width, height } = stage.getBoundingClientRect();
    [x, y] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.max(0.05, Math.min(4, place.scale * factor));
    place.x = x - ((x - place.x) * scale) / place.scale;
    place.y = y - ((y - place.y) * scale) / place.scale;
    place.scale = scale;
    look();
  }

  // ---- labels of the dots of a crowd: as large on the screen at every scale, and none over another

  let waiting = false;
  function untangle() {
    if (!view.picture.crowded || waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      labelDots();
    });
  }

  function labelDots() {
    const size = 11.5 / place.scale;
    const overlap = (a, b) => Math.abs(a.x - b.x) < (a.w + b.w) / 2 && Math.abs(a.y - b.y) < (a.h + b.h) / 2;
    const within = (box) => (box.x - box.w / 2) * place.scale + place.x > 2 && (box.x + box.w / 2) * place.scale + place.x < stage.clientWidth - 2;
    const on = (item) => !item.element.classList.contains("off");
    const boxes = view.picture.nodes.filter(on).map((node) => ({ x: node.x, y: node.y, w: node.w, h: node.h }));
    for (const edge of view.picture.edges) {
      if (edge.shown && on(edge)) boxes.push({ x: edge.x, y: edge.y, w: edge.text.length * 6.4 + 24 * edge.cited.length, h: 15 });
    }
    const some = view.chosen != null;
    const related = (item) => item.element.classList.contains("related");
    const wanted = (item) => (some ? related(item) : place.scale >= 1.1 || view.picture.labels);
    const put = (item, text, places) => {
      const free = wanted(item) && places.find((one) => within(one) && !boxes.some((other) => overlap(one, other)));
      if (free) boxes.push(free);
      item.element.classList.toggle("labelled", Boolean(free));
      text.style.fontSize = `${size}px`;
      return free || places[0];
    };
    const dots = view.picture.nodes.filter((node) => !node.shown && on(node)).sort((a, b) => related(b) - related(a));
    for (const node of dots) {
      const text = node.element.querySelector("text");
      const wide = node.lines.join(" ").length * size * 0.56;
      const spot = put(node, text, [
        { x: node.x, y: node.y - 6 - size * 0.75, anchor: "middle" }, { x: node.x, y: node.y + 6 + size * 0.75, anchor: "middle" },
        { x: node.x + 9 + wide / 2, y: node.y, anchor: "start" }, { x: node.x - 9 - wide / 2, y: node.y, anchor: "end" },
      ].map((one) => ({ ...one, w: wide + size * 0.5, h: size * 1.25 })));
      text.setAttribute("text-anchor", spot.anchor);
      text.setAttribute("x", spot.anchor === "start" ? 9 : spot.anchor === "end" ? -9 : 0);
      text.setAttribute("y", spot.y - node.y + size * 0.35);
    }
    // what is left of the room is for the names of facts
    for (const edge of view.picture.edges) {
      if (edge.shown || !on(edge)) continue;
      const text = edge.element.querySelector("text");
      put(edge, text, [{ x: edge.x, y: edge.y, w: edge.text.length * size * 0.56, h: size * 1.25 }]);
      text.setAttribute("y", edge.y + size * 0.35);
    }
  }

  // ---- the keyboard

  let stop = null; // the entity that the Tab key reaches
  function setStop(node) {
    stop?.element.setAttribute("tabindex", -1);
    stop = node ?? null;
    stop?.element.setAttribute("tabindex", 0);
  }

  /** The answer, else an entity of the question, else the best connected. */
  function firstStop() {
    const worth = (node) => (node.role === "answer" ? 2e6 : node.role ? 1e6 : 0) + factsOf(view.picture.nodes.indexOf(node)).length;
    return view.picture.nodes.filter((node) => node.hop <= view.hop).reduce((best, node) => (!best || worth(node) > worth(best) ? node : best), null);
  }

  /** The nearest entity in a direction; one that shares a fact with this one counts as half as far. */
  function nextTo(node, [right, down]) {
    const index = view.picture.nodes.indexOf(node);
    const joinedTo = new Set(factsOf(index).filter((edge) => edge.hop <= view.hop).map((edge) => (edge.from === index ? edge.to : edge.from)));
    let [nearest, least] = [null, Infinity];
    view.picture.nodes.forEach((other, at) => {
      const along = (other.x - node.x) * right + (other.y - node.y) * down;
      const aside = Math.abs((other.x - node.x) * down + (other.y - node.y) * right);
      const far = Math.hypot(along, 2 * aside) * (joinedTo.has(at) ? 0.5 : 1);
      if (along > 0 && aside <= along && other.hop <= view.hop && far < least) [nearest, least] = [other, far];
    });
    return nearest;
  }

  function goTo(node) {
    if (!node) return;
    setStop(node);
    const [x, y] = [place.x + node.x * place.scale, place.y + node.y * place.scale];
    const [wide, high] = [stage.clientWidth, stage.clientHeight];
    if (x < 40 || y < room.top || x > wide - 40 || y > high - 40) {
      place.x += wide / 2 - x;
      place.y += high / 2 - y;
      look();
    }
    node.element.focus({ preventScroll: true });
  }

  const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  svg.addEventListener("keydown", (event) => {
    if (!stop || event.target !== stop.element || event.ctrlKey || event.metaKey || event.altKey) return;
    if (DIRECTIONS[event.key]) goTo(nextTo(stop, DIRECTIONS[event.key]));
    else if (event.key === "Home") goTo(firstStop());
    else if (event.key === "Escape" && !view.chosen) stop.element.blur();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  // not on the drawing itself, which a browser would then make a stop of its own
  stage.addEventListener("focusin", (event) => setStop(view.picture.nodes.find((node) => node.element === event.target) ?? stop));

  // ---- the hand

  const held = new Map();
  let moved = false;
  svg.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, event);
    moved = false;
  });
  addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (!moved && held.size === 1 && Math.hypot(dx, dy) < 4) return;
    moved = true;
    svg.classList.add("held");
    if (held.size === 2) {
      const other = [...held.values()].find((one) => one.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      const box = stage.getBoundingClientRect();
      zoom(apart(event) / apart(before), (event.clientX + other.clientX) / 2 - box.x, (event.clientY + other.clientY) / 2 - box.y);
    } else {
      place.x += dx;
      place.y += dy;
      look();
    }
    held.set(event.pointerId, event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, (event) => {
      held.delete(event.pointerId);
      svg.classList.remove("held");
    });
  }
  // a drag that ends on a node is not a click; a click on the background clears the choice
  svg.addEventListener("click", (event) => {
    if (moved) event.stopPropagation();
    else if (event.target === svg) choose(null);
  }, true);
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = stage.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.x, event.clientY - box.y);
  }, { passive: false });

  // also when a frame around the page becomes visible, which is not a resize of the window
  const measured = () => `${stage.clientWidth} ${stage.clientHeight}`;
  let size = measured();
  new ResizeObserver(() => {
    if (size === measured()) return;
    size = measured();
    squeeze();
    if (view.chosen?.chain) frameRelated();
    else fit();
  }).observe(stage);

  /** What a printed page shows: everything, as wide as the paper, which no script measures. */
  function setPrint() {
    if (!view.picture.nodes.length) return;
    const { left, right, top, bottom } = extent(items());
    const most = document.documentElement.classList.contains("embedded") ? 480 : 760;
    const scale = Math.min(1, 660 / (right - left), most / (bottom - top));
    stage.style.setProperty("--print-height", `${Math.ceil((bottom - top) * scale) + 16}px`);
    stage.style.setProperty("--print-look", `translate(${(8 - left * scale).toFixed(1)}px, ${(8 - top * scale).toFixed(1)}px) scale(${scale.toFixed(4)})`);
  }

  return Object.assign(view, { show, showHop, choose, light, fit, zoom, squeeze, setPrint, edge: (id) => edgeOf.get(id) });
}

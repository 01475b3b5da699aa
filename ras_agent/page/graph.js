"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const { names, documents, passages, named, sources, around: middle, at, groups, relations, edges, equivalent, whole } = data;
  const count = names.length, facts = edges.length / 3;
  const canvas = $("graph"), pen = canvas.getContext("2d");
  const degree = new Int32Array(count);
  for (let e = 0; e < edges.length; e += 3) { degree[edges[e]]++; degree[edges[e + 1]]++; }
  const starts = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + degree[i];
  const incident = new Int32Array(starts[count]), next = starts.slice();
  for (let e = 0; e < facts; e++) { incident[next[edges[3 * e]]++] = e; incident[next[edges[3 * e + 1]]++] = e; }
  const radius = Float32Array.from(degree, (d) => 1 + Math.sqrt(d) / 2);
  const byDegree = Array.from(names.keys()).sort((a, b) => degree[b] - degree[a] || a - b);

  // each of the largest groups has its own colour
  const hues = ["#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#dc2626", "#9333ea", "#0d9488", "#b88204", "#6a63ee"], smaller = "#64748b";
  let width = 0, height = 0, scale = 1, fitted = 1, left = 0, top = 0, chosen = -1, over = -1, edge = -1, queued = false, colours = {};
  const x = (i) => at[2 * i] * scale + left, y = (i) => at[2 * i + 1] * scale + top;

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "link", "node", "same", "chosen"]) colours[name] = style.getPropertyValue("--" + name);
  }

  // a picture is wider than high; on a screen that is higher than wide it lies on its side
  let upright = false;
  function turn() {
    if ((height > width) === upright) return;
    upright = !upright;
    for (let i = 0; i < count; i++) [at[2 * i], at[2 * i + 1]] = [at[2 * i + 1], at[2 * i]];
  }

  function fit() {
    turn();
    if (middle.length) return centre(middle[0]);
    let right = 1, bottom = 1;
    for (let i = 0; i < count; i++) { right = Math.max(right, at[2 * i]); bottom = Math.max(bottom, at[2 * i + 1]); }
    scale = fitted = Math.min((width - 60) / right, (height - 60) / bottom);
    left = (width - right * scale) / 2;
    top = (height - bottom * scale) / 2;
    draw();
  }

  /** As large as all of it fits with this entity in the middle. */
  function centre(start) {
    let wide = 1, high = 1;
    for (let i = 0; i < count; i++) { wide = Math.max(wide, Math.abs(at[2 * i] - at[2 * start])); high = Math.max(high, Math.abs(at[2 * i + 1] - at[2 * start + 1])); }
    scale = fitted = Math.min((width / 2 - 40) / wide, (height / 2 - 30) / high);
    left = width / 2 - at[2 * start] * scale;
    top = height / 2 - at[2 * start + 1] * scale;
    draw();
  }

  function resize() {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    width = box.width; height = box.height;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function strokeEdges(eachEdge, colour, alpha, thick) {
    pen.globalAlpha = alpha; pen.strokeStyle = colour; pen.lineWidth = thick;
    pen.beginPath();
    eachEdge((e) => {
      const a = edges[3 * e], b = edges[3 * e + 1], ax = x(a), ay = y(a), bx = x(b), by = y(b);
      if (Math.max(ax, bx) < 0 || Math.min(ax, bx) > width || Math.max(ay, by) < 0 || Math.min(ay, by) > height) return;
      pen.moveTo(ax, ay); pen.lineTo(bx, by);
    });
    pen.stroke();
    pen.globalAlpha = 1;
  }

  const around = (i, each) => { for (let n = starts[i]; n < starts[i + 1]; n++) each(incident[n]); };
  const other = (e, i) => (edges[3 * e] === i ? edges[3 * e + 1] : edges[3 * e]);
  // grows with the distance between nodes on the screen: a few nodes are large, many do not cover each other
  const size = (i) => Math.max(0.8, Math.min((radius[i] * 800 * scale) / Math.sqrt(count), 4 + radius[i], 22));

  function draw() {
    queued = false;
    pen.fillStyle = colours.paper; pen.fillRect(0, 0, width, height);
    const all = (same) => (each) => { for (let e = 0; e < facts; e++) if ((edges[3 * e + 2] === equivalent) === same) each(e); };
    // thousands of edges are faint until the reader zooms in
    const faint = Math.min(0.8, (2500 / facts) * (scale / fitted)), thin = faint < 0.8 ? 0.7 : 1;
    strokeEdges(all(false), colours.link, faint, thin);
    strokeEdges(all(true), colours.same, faint, thin);
    for (let g = 0; g <= hues.length; g++) {
      pen.fillStyle = hues[g] || smaller;
      pen.beginPath();
      for (let i = 0; i < count; i++) {
        if (Math.min(groups[i], hues.length) !== g) continue;
        const px = x(i), py = y(i), r = size(i);
        if (px < -r || px > width + r || py < -r || py > height + r) continue;
        pen.moveTo(px + r, py); pen.arc(px, py, r, 0, 2 * Math.PI);
      }
      pen.fill();
    }
    if (chosen >= 0) {
      strokeEdges((each) => around(chosen, each), colours.chosen, 1, 1.5);
      pen.fillStyle = colours.chosen;
      pen.beginPath(); pen.arc(x(chosen), y(chosen), size(chosen) + 2, 0, 2 * Math.PI); pen.fill();
    }
    if (edge >= 0) strokeEdges((each) => each(edge), colours.chosen, 1, 2.5);
    pen.strokeStyle = colours.ink; pen.lineWidth = 2;
    for (const i of middle) { pen.beginPath(); pen.arc(x(i), y(i), size(i) + 4, 0, 2 * Math.PI); pen.stroke(); }
    label();
  }

  const relation = (e) => (edges[3 * e + 2] === equivalent ? "two names of one thing" : relations[edges[3 * e + 2]]);
  const short = (text) => (text.length > 40 ? text.slice(0, 39) + "…" : text);

  // labels the best connected first; no label covers another, and none is cut off at the rim
  function label() {
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
    pen.lineWidth = 3; pen.strokeStyle = colours.paper; pen.fillStyle = colours.ink;
    const cellsInUse = new Set(), namesDone = new Set(), most = 150;
    let written = 0;
    /** Write a text that begins at px, if there is room. */
    const write = (text, px, py, always, colour) => {
      const wide = pen.measureText(text).width, cells = [];
      if (px < 2 || px + wide > width - 2 || py < 8 || py > height - 8) return false;
      for (let row = Math.floor((py - 7) / 5); row <= Math.floor((py + 7) / 5); row++) {
        for (let c = Math.floor(px / 10); c <= Math.floor((px + wide + 4) / 10); c++) cells.push(c + ":" + row);
      }
      if (!always && cells.some((cell) => cellsInUse.has(cell))) return false;
      cells.forEach((cell) => cellsInUse.add(cell));
      pen.fillStyle = colour || colours.ink;
      pen.strokeText(text, px, py); pen.fillText(text, px, py);
      written++;
      return true;
    };
    const name = (i, always) => {
      if (namesDone.has(i)) return;
      namesDone.add(i);
      const text = short(names[i]), px = x(i), py = y(i), r = size(i) + 3;
      if (px < -r || px > width + r || py < -r || py > height + r) return;
      const wide = pen.measureText(text).width;
      if (write(text, px + r, py, always) || write(text, px - r - wide, py, always)) return;
      if (always) write(text, Math.max(2, Math.min(width - wide - 3, px - wide / 2)), py + r + 9, true);
    };
    const link = (e, always) => {
      const text = short(relation(e)), wide = pen.measureText(text).width;
      const px = (x(edges[3 * e]) + x(edges[3 * e + 1]) - wide) / 2, py = (y(edges[3 * e]) + y(edges[3 * e + 1])) / 2;
      write(text, always ? Math.max(2, Math.min(width - wide - 3, px)) : px, py, always, colours.chosen);
    };
    pen.font = "600 13px system-ui, sans-serif";
    for (const i of middle) name(i, true);
    pen.font = "12px system-ui, sans-serif";
    if (edge >= 0) { link(edge, true); name(edges[3 * edge], true); name(edges[3 * edge + 1], true); }
    if (over >= 0) name(over, true);
    if (chosen >= 0) {
      if (!middle.includes(chosen)) name(chosen, true);
      around(chosen, (e) => { if (written < 60) name(other(e, chosen), false); });
      around(chosen, (e) => { if (written < 90) link(e, false); });
    }
    for (const i of byDegree) { if (written >= most) break; if (i !== chosen && i !== over && !middle.includes(i)) name(i, false); }
  }

  const redraw = () => { if (!queued) { queued = true; requestAnimationFrame(draw); } };

  function nearest(px, py) {
    let best = -1, least = Infinity;
    for (let i = 0; i < count; i++) {
      const away = Math.hypot(x(i) - px, y(i) - py) - size(i);
      if (away < least) { least = away; best = i; }
    }
    return least < 6 ? best : -1;
  }

  /** The edge under the hand, if it is not too far away. */
  function nearestEdge(px, py) {
    let best = -1, least = 5;
    for (let e = 0; e < facts; e++) {
      const ax = x(edges[3 * e]), ay = y(edges[3 * e]), bx = x(edges[3 * e + 1]) - ax, by = y(edges[3 * e + 1]) - ay;
      const t = Math.max(0, Math.min(1, ((px - ax) * bx + (py - ay) * by) / (bx * bx + by * by || 1)));
      const away = Math.hypot(px - ax - t * bx, py - ay - t * by);
      if (away < least) { least = away; best = e; }
    }
    return best;
  }

  const make = (tag, text = "", kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });
  const counted = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

  /** A fact of an entity: focus or hover shows its edge, a click leads to its other end. */
  function factOf(e, i) {
    const item = make("li"), end = other(e, i), link = make("button", names[end], "entity");
    link.type = "button";
    const name = make("i", edges[3 * e + 2] === equivalent ? " ≈ " : ` ${relations[edges[3 * e + 2]]} `);
    link.addEventListener("click", () => choose(end, true));
    const show = (which) => { if (edge !== which) { edge = which; redraw(); } };
    link.addEventListener("focus", () => show(e));
    link.addEventListener("blur", () => show(-1));
    item.addEventListener("pointerenter", () => show(e));
    item.addEventListener("pointerleave", () => show(-1));
    if (edges[3 * e] === i) item.append(name, link); else item.append(link, name, "·");
    if (sources[e] >= 0) item.append(make("small", ` ${passages[sources[e]]}`));
    return item;
  }

  function choose(i, centred) {
    chosen = i; edge = -1;
    $("panel").hidden = i < 0;
    $("hint").hidden = i >= 0;
    if (i >= 0) {
      $("name").textContent = names[i];
      const more = documents[i] - named[i].length;
      $("named").replaceChildren(`Named in ${counted(documents[i], "passage", "passages")}${named[i].length ? ":" : ""}`,
        ...named[i].map((number) => make("b", passages[number])), more > 0 && named[i].length ? `and ${more.toLocaleString("en")} more` : "");
      const edgesHere = [];
      around(i, (e) => edgesHere.push(e));
      $("count").textContent = `${counted(edgesHere.length, "edge", "edges")} drawn here`;
      $("facts").replaceChildren(...edgesHere.slice(0, 200).map((e) => factOf(e, i)), ...(edgesHere.length > 200 ? [make("li", `… ${edgesHere.length - 200} more`)] : []));
      $("side").scrollTop = $("panel").scrollTop = 0;
      $("said").textContent = `${names[i]}, ${counted(edgesHere.length, "edge", "edges")}`;
      if (centred) lookAt(i);
    }
    redraw();
  }

  function lookAt(i) {
    scale = Math.max(scale, Math.min(width, height) / 2500);
    left = width / 2 - at[2 * i] * scale;
    top = height / 2 - at[2 * i + 1] * scale;
  }

  const inside = (i) => x(i) > 20 && x(i) < width - 20 && y(i) > 20 && y(i) < height - 20;

  function zoom(factor, px = width / 2, py = height / 2) {
    const after = Math.min(Math.max(scale * factor, 1e-3), 20);
    left = px - (px - left) * (after / scale);
    top = py - (py - top) * (after / scale);
    scale = after;
    redraw();
  }

  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    grip = { x: event.offsetX, y: event.offsetY, moved: 0 };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip) {
      const dx = event.offsetX - grip.x, dy = event.offsetY - grip.y;
      left += dx; top += dy;
      grip.moved += Math.abs(dx) + Math.abs(dy);
      grip.x = event.offsetX; grip.y = event.offsetY;
      redraw();
    } else {
      const node = nearest(event.offsetX, event.offsetY);
      const line = node < 0 ? nearestEdge(event.offsetX, event.offsetY) : -1;
      if (node !== over || line !== edge) { over = node; edge = line; canvas.style.cursor = node < 0 ? "" : "pointer"; redraw(); }
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (grip && grip.moved < 5) choose(nearest(event.offsetX, event.offsetY), false);
    grip = null;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  $("closer").addEventListener("click", () => zoom(1.4));
  $("farther").addEventListener("click", () => zoom(1 / 1.4));
  $("fit").addEventListener("click", fit);
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const step = (i) => choose(i, !inside(i));
    if (way || event.key === "Home") step(chosen < 0 || !way ? middle[0] ?? byDegree[0] : nextTo(chosen, ...way));
    else if (event.key === "Enter" && chosen >= 0) $("name").focus();
    else if (event.key === "+") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") fit();
    else if (event.key === "Escape" && chosen >= 0) choose(-1, false);
    else if (event.key === "Escape") canvas.blur();
    else return;
    event.preventDefault();
  });
  $("side").addEventListener("keydown", (event) => { if (event.key === "Escape") canvas.focus(); });

  /** The nearest entity in a direction; one that an edge joins to this one counts as half as far. */
  function nextTo(i, right, down) {
    const joined = new Set();
    around(i, (e) => joined.add(other(e, i)));
    let best = i, least = Infinity;
    for (let n = 0; n < count; n++) {
      const dx = at[2 * n] - at[2 * i], dy = at[2 * n + 1] - at[2 * i + 1];
      const along = dx * right + dy * down, aside = Math.abs(dx * down + dy * right);
      const far = Math.hypot(along, 2 * aside) * (joined.has(n) ? 0.5 : 1);
      if (along > 0 && aside <= along && far < least) { best = n; least = far; }
    }
    return best;
  }

  const folded = names.map((name) => name.toLowerCase());

  /** Entities for a text: those of that name, those that begin with it, those that hold it; each by their edges. */
  function matching(text, most) {
    const query = text.trim().toLowerCase(), ranks = [[], [], []];
    if (!query) return [];
    for (const i of byDegree) {
      const rank = folded[i] === query ? 0 : folded[i].startsWith(query) ? 1 : folded[i].includes(query) ? 2 : -1;
      if (rank >= 0 && ranks[rank].length < most) ranks[rank].push(i);
    }
    return ranks.flat().slice(0, most);
  }

  function choices() {
    const matches = matching($("find").value, 12);
    $("found").hidden = !matches.length;
    $("found").replaceChildren(...matches.map((i) => {
      const item = make("li"), button = make("button", names[i]);
      button.type = "button";
      button.append(make("small", ` ${counted(degree[i], "edge", "edges")}`));
      button.addEventListener("click", () => { $("found").hidden = true; choose(i, true); });
      item.append(button);
      return item;
    }));
    $("none").textContent = $("find").value.trim() && !matches.length ? "No entity in this picture has that in its name." : "";
    return matches;
  }
  $("find").addEventListener("input", choices);
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const matches = choices();
    if (matches.length) { $("found").hidden = true; choose(matches[0], true); }
  });
  $("search").addEventListener("keydown", (event) => {
    const buttons = [...$("found").querySelectorAll("button")], here = buttons.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { $("found").hidden = true; $("find").focus(); }
    if (!step || !buttons.length) return;
    event.preventDefault();
    (buttons[here + step] ?? (step < 0 ? $("find") : buttons[0])).focus();
  });

  /** A colour is a group of well connected entities, and is called by the best connected of them. */
  function writeLegend() {
    const sizes = new Map(), first = new Map();
    for (const i of byDegree) {
      const g = Math.min(groups[i], hues.length);
      sizes.set(g, (sizes.get(g) ?? 0) + 1);
      if (!first.has(g)) first.set(g, names[i]);
    }
    const rows = [...sizes.keys()].sort((a, b) => a - b).map((g) => {
      const item = make("li"), others = sizes.get(g) - 1;
      const dot = make("i", "", "dot");
      if (g < hues.length) dot.style.background = hues[g];
      item.append(dot, g === hues.length ? `smaller groups (${sizes.get(g)})` : others ? `${short(first.get(g))} and ${others} more` : short(first.get(g)));
      return item;
    });
    const marked = (kind, text) => { const item = make("li"); item.append(make("i", "", kind), text); return item; };
    if (middle.length) rows.unshift(marked("ring", names[middle[0]]));
    for (let e = 2; e < edges.length; e += 3) if (edges[e] === equivalent) { rows.push(marked("same", "two names of one thing")); break; }
    $("legend").replaceChildren(...rows);
  }
  // also when the list of facts takes room from it on a narrow screen
  new ResizeObserver(() => {
    const before = width;
    resize();
    if (width !== before) fit();
    if (chosen >= 0 && !inside(chosen)) lookAt(chosen);
    draw();
  }).observe($("stage"));
  window.matchMedia("print").addEventListener("change", () => { readColours(); draw(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

  $("title").textContent = data.title;
  const part = count < whole[0] ? ` of ${whole[0].toLocaleString("en")}` : "", some = facts < whole[1] ? ` of ${whole[1].toLocaleString("en")}` : "";
  $("stats").textContent = `${count.toLocaleString("en")}${part} entities · ${facts.toLocaleString("en")}${some} edges`;
  canvas.setAttribute("aria-label", `Graph of ${counted(count, "entity", "entities")} and ${counted(facts, "edge", "edges")}`);
  readColours();
  writeLegend();
  $("key").open = window.innerWidth > 700;
  resize();
  fit();
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
})();

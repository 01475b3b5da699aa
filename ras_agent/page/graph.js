"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const { names, documents, at, groups, relations, edges, equivalent, whole } = data;
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
  const hues = ["#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#dc2626", "#9333ea", "#0d9488", "#ca8a04", "#4f46e5"];
  let width = 0, height = 0, scale = 1, fitted = 1, left = 0, top = 0, chosen = -1, over = -1, queued = false, colours = {};
  const x = (i) => at[2 * i] * scale + left, y = (i) => at[2 * i + 1] * scale + top;

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "line", "node", "same", "chosen"]) colours[name] = style.getPropertyValue("--" + name);
  }

  function fit() {
    let right = 1, bottom = 1;
    for (let i = 0; i < count; i++) { right = Math.max(right, at[2 * i]); bottom = Math.max(bottom, at[2 * i + 1]); }
    scale = fitted = Math.min((width - 60) / right, (height - 60) / bottom);
    left = (width - right * scale) / 2;
    top = (height - bottom * scale) / 2;
    draw();
  }

  function resize() {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    width = box.width; height = box.height;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function strokeEdges(wanted, colour, alpha, thick) {
    pen.globalAlpha = alpha; pen.strokeStyle = colour; pen.lineWidth = thick;
    pen.beginPath();
    wanted((e) => {
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
    const faint = Math.min(0.5, (2500 / facts) * (scale / fitted)), thin = faint < 0.5 ? 0.7 : 1;
    strokeEdges(all(false), colours.line, faint, thin);
    strokeEdges(all(true), colours.same, faint, thin);
    for (let g = 0; g <= hues.length; g++) {
      pen.fillStyle = hues[g] || colours.line;
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
    label();
  }

  // labels the best connected first; no label covers another
  function label() {
    pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle";
    pen.lineWidth = 3; pen.strokeStyle = colours.paper; pen.fillStyle = colours.ink;
    const taken = new Set(), most = 150;
    let written = 0;
    const write = (i, always) => {
      const px = x(i) + size(i) + 3, py = y(i);
      if (px < 0 || px > width || py < 0 || py > height) return;
      const text = names[i].length > 40 ? names[i].slice(0, 39) + "…" : names[i];
      const cells = [], end = px + pen.measureText(text).width + 4;
      for (let row = Math.floor((py - 7) / 5); row <= Math.floor((py + 7) / 5); row++) {
        for (let c = Math.floor(px / 10); c <= Math.floor(end / 10); c++) cells.push(c + ":" + row);
      }
      if (!always && cells.some((cell) => taken.has(cell))) return;
      cells.forEach((cell) => taken.add(cell));
      pen.strokeText(text, px, py); pen.fillText(text, px, py);
      written++;
    };
    if (over >= 0) write(over, true);
    if (chosen >= 0) {
      write(chosen, true);
      around(chosen, (e) => { if (written < 60) write(other(e, chosen), false); });
    }
    for (const i of byDegree) { if (written >= most) break; if (i !== chosen && i !== over) write(i, false); }
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

  function choose(i, centre) {
    chosen = i;
    $("panel").hidden = i < 0;
    if (i >= 0) {
      $("name").textContent = names[i];
      const shown = degree[i];
      $("named").textContent = `named in ${documents[i].toLocaleString("en")} ${documents[i] === 1 ? "passage" : "passages"} · ${shown.toLocaleString("en")} ${shown === 1 ? "edge" : "edges"} here`;
      const list = $("facts");
      list.textContent = "";
      let listed = 0;
      around(i, (e) => {
        if (listed++ >= 200) return;
        const item = document.createElement("li"), end = other(e, i), link = document.createElement("a");
        const from = edges[3 * e] === i, name = document.createElement("i");
        name.textContent = edges[3 * e + 2] === equivalent ? " ≈ " : ` ${relations[edges[3 * e + 2]]} `;
        link.textContent = names[end];
        link.tabIndex = 0;
        link.addEventListener("click", () => choose(end, true));
        link.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(end, true); });
        if (from) item.append(name, link); else item.append(link, name, document.createTextNode("·"));
        list.append(item);
      });
      if (degree[i] > 200) { const more = document.createElement("li"); more.textContent = `… ${degree[i] - 200} more`; list.append(more); }
      if (centre) {
        scale = Math.max(scale, Math.min(width, height) / 2500);
        left = width / 2 - at[2 * i] * scale;
        top = height / 2 - at[2 * i + 1] * scale;
      }
    }
    redraw();
  }

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
      const found = nearest(event.offsetX, event.offsetY);
      if (found !== over) { over = found; canvas.style.cursor = found < 0 ? "" : "pointer"; redraw(); }
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
    const move = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (move) { left += move[0]; top += move[1]; redraw(); event.preventDefault(); }
    else if (event.key === "+") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "0") fit();
    else if (event.key === "Escape") choose(-1, false);
  });
  const folded = names.map((name) => name.toLowerCase());
  $("find").addEventListener("input", () => {
    const wanted = $("find").value.trim().toLowerCase();
    const exact = wanted ? folded.indexOf(wanted) : -1;
    const list = $("found");
    list.textContent = "";
    if (exact >= 0) { choose(exact, true); return; }
    if (wanted.length < 2) return;
    let listed = 0;
    for (const i of byDegree) {
      if (!folded[i].includes(wanted)) continue;
      const option = document.createElement("option");
      option.value = names[i];
      list.append(option);
      if (++listed === 20) break;
    }
  });
  window.addEventListener("resize", () => { resize(); redraw(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });

  $("title").textContent = data.title;
  const part = count < whole[0] ? ` of ${whole[0].toLocaleString("en")}` : "", some = facts < whole[1] ? ` of ${whole[1].toLocaleString("en")}` : "";
  $("stats").textContent = `${count.toLocaleString("en")}${part} entities · ${facts.toLocaleString("en")}${some} edges`;
  readColours();
  resize();
  fit();
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
})();

// Places the boxes of a graph: linked ones close, none over another, the same every time.
const GAP = [18, 10]; // least room between boxes, along x and y
const LINK = 16; // room between linked boxes
const ROOM = 2.4; // added to the length of a link for each link of its hub, so that neighbours have room around it
const ASPECT = 1.3; // width by height of the whole
const ROUNDS = 30; // of the descent
const random = (seed) => () => { // Mulberry32
  seed = (seed + 0x6d2b79f5) | 0;
  let z = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  z = (z + Math.imul(z ^ (z >>> 7), 61 | z)) ^ z;
  return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
};
const least = (some, of) => some.reduce((best, one) => (of(one) < of(best) ? one : best));

/** The height of the smallest frame of the wanted shape around a width and a height. */
const frameOf = (width, height) => Math.max(width / ASPECT, height);

/**
 * Return the centres [x, y] of boxes [width, height] that are joined by links, which are pairs of indexes.
 *
 * Each component is drawn by stress: distances on the page come close to the lengths of shortest paths. Then its boxes
 * are pushed apart, and the components are set in rows. The whole is about 1.3 times as wide as high, from (0, 0) on.
 */
function boxCentres(boxes, links) {
  if (!boxes.length) return [];
  const shapes = boxes.map(([width, height]) => width / height).sort((a, b) => a - b);
  // most boxes are wider than high, so distances are computed in a plane whose x axis is shortened by that ratio
  const stretch = Math.min(1.9, Math.max(1.2, shapes[shapes.length >> 1]));
  const near = neighbours(boxes.map(([width, height]) => [width / stretch, height]), links);
  const centres = boxes.map(() => [0, 0]);
  const parts = componentsOf(near);
  for (const part of parts) {
    const own = part.map((box) => boxes[box]);
    const points = grown(turned(descend(shortestPaths(near, part)), stretch), own);
    pushApart(points, own, stretch);
    part.forEach((box, at) => (centres[box] = points[at]));
  }
  pack(centres, boxes, parts);
  return centres;
}

/** Return for each box a map from a linked box to the length of the link. */
function neighbours(boxes, links) {
  const near = boxes.map(() => new Map());
  const degrees = boxes.map(() => 0);
  for (const ends of links) for (const end of ends) degrees[end] += 1;
  for (const [one, other] of links) {
    if (one === other) continue;
    const length = (boxes[one][0] + boxes[one][1] + boxes[other][0] + boxes[other][1]) / 4 + LINK + ROOM * Math.max(degrees[one], degrees[other]);
    near[one].set(other, length);
    near[other].set(one, length);
  }
  return near;
}

function componentsOf(near) {
  const seen = new Set();
  const parts = [];
  for (let box = 0; box < near.length; box++) {
    if (seen.has(box)) continue;
    seen.add(box);
    const part = [box];
    for (let at = 0; at < part.length; at++) {
      for (const other of near[part[at]].keys()) if (!seen.has(other)) part.push(seen.add(other) && other);
    }
    parts.push(part);
  }
  return parts;
}

/** Return the lengths of all shortest paths in a component, row by row: labels are corrected until none changes. */
function shortestPaths(near, part) {
  const size = part.length;
  const place = new Map(part.map((box, at) => [box, at]));
  const ends = part.map((box) => [...near[box]].map(([other, length]) => [place.get(other), length]));
  const lengths = new Float64Array(size * size).fill(Infinity);
  for (let start = 0; start < size; start++) {
    const row = lengths.subarray(start * size, (start + 1) * size);
    row[start] = 0;
    const waiting = new Set([start]);
    for (const from of waiting) { // a set goes on to what is added to it meanwhile
      waiting.delete(from);
      for (const [to, length] of ends[from]) {
        if (row[from] + length >= row[to]) continue;
        row[to] = row[from] + length;
        waiting.add(to);
      }
    }
  }
  return lengths;
}

/** Return points whose distances come close to `lengths`, by stochastic gradient descent (Zheng, Pawar and Goodman, 2018). */
function descend(lengths) {
  const size = Math.sqrt(lengths.length);
  const draw = random(size);
  const x = Float64Array.from({ length: size }, () => draw() * 100);
  const y = Float64Array.from({ length: size }, () => draw() * 100);
  const pairs = new Int32Array((size * (size - 1)) / 2);
  let [count, shortest, longest] = [0, Infinity, 0];
  for (let one = 0; one < size; one++) {
    for (let other = 0; other < one; other++) {
      const length = lengths[one * size + other];
      pairs[count++] = one * size + other;
      shortest = Math.min(shortest, length);
      longest = Math.max(longest, length);
    }
  }
  const decay = Math.log(longest ** 2 / (0.1 * shortest ** 2)) / (ROUNDS - 1);
  for (let round = 0; round < ROUNDS; round++) {
    const step = longest ** 2 * Math.exp(-decay * round);
    for (let at = count - 1; at > 0; at--) { // shuffled, so that no pair always comes last
      const other = (draw() * (at + 1)) | 0;
      [pairs[at], pairs[other]] = [pairs[other], pairs[at]];
    }
    for (let at = 0; at < count; at++) {
      const [one, other] = [(pairs[at] / size) | 0, pairs[at] % size];
      const length = lengths[pairs[at]];
      const [dx, dy] = [x[one] - x[other], y[one] - y[other]];
      const far = Math.sqrt(dx * dx + dy * dy) || 1e-9;
      const move = (Math.min(1, step / length ** 2) * (far - length)) / (2 * far);
      x[one] -= move * dx;
      y[one] -= move * dy;
      x[other] += move * dx;
      y[other] += move * dy;
    }
  }
  return Array.from(x, (across, at) => [across, y[at]]);
}

const extentOf = (points) => [0, 1].map((axis) => Math.max(...points.map((one) => one[axis])) - Math.min(...points.map((one) => one[axis])));

/** Spread points out where their frame has no room for all boxes, which would be pushed far from their places. */
function grown(points, boxes) {
  const [width, height] = extentOf(points);
  const area = boxes.reduce((sum, [wide, high]) => sum + (wide + GAP[0]) * (high + GAP[1]), 0);
  const factor = Math.min(4, Math.max(1, Math.sqrt((1.5 * area) / (width * height || Infinity))));
  return points.map(([x, y]) => [x * factor, y * factor]);
}

/** Turn points by the best of 24 angles, stretched: few lie flat, and many fill a frame of the wanted shape. */
function turned(points, stretch) {
  const turns = Array.from({ length: 24 }, (_, turn) => {
    const [sine, cosine] = [Math.sin((turn * Math.PI) / 24), Math.cos((turn * Math.PI) / 24)];
    const flat = points.map(([x, y]) => [(x * cosine - y * sine) * stretch, x * sine + y * cosine]);
    const [width, height] = extentOf(flat);
    return { flat, size: points.length > 6 ? frameOf(width, height) : height };
  });
  return least(turns, (turn) => turn.size).flat;
}

/** Push overlapping boxes apart along the axis where they overlap less, until none do. */
function pushApart(points, boxes, stretch, rounds = 300) {
  const order = points.map((_, at) => at);
  const widest = Math.max(...boxes.map(([width]) => width)) + GAP[0];
  for (let moved = true; moved && rounds > 0; rounds--) {
    moved = false;
    order.sort((one, other) => points[one][0] - points[other][0] || one - other);
    for (let at = 0; at < order.length; at++) {
      const [here, box] = [points[order[at]], boxes[order[at]]];
      for (let next = at + 1; next < order.length; next++) { // a box further on begins beyond the end of this one
        const [there, other] = [points[order[next]], boxes[order[next]]];
        const [dx, dy] = [there[0] - here[0], there[1] - here[1]];
        if (dx >= widest) break;
        const down = (box[1] + other[1]) / 2 + GAP[1] - Math.abs(dy);
        if (down <= 0.1) continue;
        const across = (box[0] + other[0]) / 2 + GAP[0] - Math.abs(dx);
        if (across <= 0.1) continue;
        const axis = across < down * stretch ? 0 : 1;
        const push = axis ? (dy < 0 ? -0.5 : 0.5) * (down + 0.2) : (dx < 0 ? -0.5 : 0.5) * (across + 0.2);
        here[axis] -= push;
        there[axis] += push;
        moved = true;
      }
    }
  }
}

/** Move components into rows, the highest first; the length of the rows is the one that fills a frame best. */
function pack(centres, boxes, parts) {
  const bound = (part, axis, side, pick) => pick(...part.map((box) => centres[box][axis] + (side * boxes[box][axis]) / 2));
  const items = parts.map((part) => {
    const corner = [0, 1].map((axis) => bound(part, axis, -1, Math.min));
    return { part, corner, size: [0, 1].map((axis) => bound(part, axis, 1, Math.max) - corner[axis] + 3 * GAP[axis]) };
  }).sort((one, other) => other.size[1] - one.size[1]);
  const widths = items.map((item) => item.size[0]);
  const [narrow, wide] = [Math.max(...widths), widths.reduce((sum, one) => sum + one, 0)];
  const tries = Array.from({ length: 40 }, (_, at) => rowsOf(items, narrow + ((wide - narrow) * at) / 39));
  least(tries, (one) => frameOf(one.width, one.height)).spots.forEach((spot, at) => {
    const { part, corner } = items[at];
    for (const box of part) for (const axis of [0, 1]) centres[box][axis] += spot[axis] - corner[axis];
  });
}

/** Return the upper left corners of items in rows no longer than `most`, and the size of the whole. */
function rowsOf(items, most) {
  let [x, y, high, width] = [0, 0, 0, 0];
  const spots = items.map(({ size }) => {
    if (x && x + size[0] > most + 1e-6) [x, y, high] = [0, y + high, 0];
    const spot = [x, y];
    [x, high] = [x + size[0], Math.max(high, size[1])];
    width = Math.max(width, x);
    return spot;
  });
  return { spots, width, height: y + high };
}

/** Set the places of a picture's nodes and edges. Each label is a box of its own, linked to both ends of its edge. */
function layOut(picture) {
  const { nodes, edges, joins } = picture;
  const boxes = nodes.map((node) => [node.w, node.h]);
  const links = [...joins];
  for (const edge of edges) {
    if (edge.shown) {
      links.push([edge.from, boxes.length], [boxes.length, edge.to]);
      boxes.push([edge.w, edge.h]);
    } else links.push([edge.from, edge.to]);
  }
  const places = boxCentres(boxes, links);
  nodes.forEach((node, at) => ([node.x, node.y] = places[at]));
  let label = nodes.length;
  const between = new Map();
  for (const edge of edges) {
    if (edge.shown) {
      [edge.x, edge.y] = places[label++];
      continue;
    }
    // facts between the same two entities fan out
    const pair = [edge.from, edge.to].sort().join();
    const fan = (between.get(pair) ?? -1) + 1;
    between.set(pair, fan);
    const [from, to] = [nodes[edge.from], nodes[edge.to]];
    edge.x = (from.x + to.x) / 2 + 9 * fan;
    edge.y = (from.y + to.y) / 2 - (edge.from === edge.to ? 34 : 14 * fan);
  }
  return picture;
}

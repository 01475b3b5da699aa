// Makes elements. Whatever comes from a document is put into a page as text, never as markup.
const $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");

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
// a title of another direction, or with marks that turn one, turns no word around it
const isolated = (text) => make("bdi", {}, text);
const words = (name) => name.replaceAll("_", " ");
// spans count characters, while strings count UTF-16 units
const slice = (text, start, end) => Array.from(text).slice(start, end).join("");

/** A passage with characters `start` to `end` marked. */
const excerpt = (text, start, end) =>
  end > start ? [slice(text, 0, start), make("mark", {}, slice(text, start, end)), slice(text, end)] : [text];

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

/** The address, if it is one of the web; a passage may say anything of itself. */
function webAddress(text) {
  if (typeof text !== "string" || !/^https?:\/\//i.test(text)) return "";
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) && !url.username && !url.password ? url.href : "";
  } catch {
    return "";
  }
}

/** Where a passage comes from: its file or address, its page, and a link if there is one. */
function sourceOf(passage, files = {}) {
  const about = passage.metadata ?? {};
  const link = [about.url, about.source, about.path].map(webAddress).find(Boolean) ?? "";
  const named = [about.path, about.file, about.source, webAddress(about.url)].find((one) => typeof one === "string" && one.trim());
  const id = String(passage.document_id || passage.id || "");
  const record = id.match(/\.\w{1,8}:(\d+)$/); // a record of a table or of JSON lines
  const name = record ? String(named || id.slice(0, id.lastIndexOf(":"))) : String(named || id);
  const page = ["number", "string"].includes(typeof about.page) && about.page !== "" ? String(about.page) : "";
  const part = page ? `page ${page}` : record ? `line ${record[1]}` : "";
  const file = Object.hasOwn(files, passage.document_id) ? files[passage.document_id] : "";
  const place = /\.pdf$/i.test(decodeURI(file)) && /^\d+$/.test(page) ? `#page=${page}` : "";
  return { name, page, part, link: link || (file && file + place) };
}

/** "guide.pdf, page 3", as a link where there is one. */
function sourceLine(passage, files) {
  const { name, part, link } = sourceOf(passage, files);
  const text = [name, part].filter(Boolean).join(", ");
  const plain = (one) => one.toLowerCase().replace(/[\s_-]+/g, " ").trim();
  if (!text || (!link && plain(text) === plain(passage.title || ""))) return ""; // a record whose id is its title
  return make("p", { class: "source" }, link ? make("a", { href: link, rel: "noopener noreferrer", target: "_blank" }, isolated(text)) : isolated(text));
}

/** Put a text on the clipboard; return whether that was allowed. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = make("textarea", { class: "unseen", "aria-hidden": "true", readonly: true });
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy"); // where the page is not from a secure place
    box.remove();
    return done;
  }
}

/**
 * A pane that opens in front of the reader: `write(children)` fills it, without children it closes. Who was at something
 * goes on in the pane, and is back there when it closes.
 */
function paneOf(element) {
  let opener = null;
  return (children) => {
    const at = document.activeElement;
    const inside = element.contains(at);
    const busy = inside || (at && at !== document.body && !at.matches("input, textarea")); // who types goes on typing
    if (!inside && busy && children.length) opener = at;
    element.hidden = !children.length;
    element.replaceChildren(...children);
    if (children.length && busy) element.querySelector("h3")?.focus({ preventScroll: true });
    if (!children.length) {
      if (inside && opener?.isConnected) opener.focus({ preventScroll: true });
      opener = null;
    }
  };
}

/** Say something to a screen reader. */
function announce(text) {
  const place = $("said");
  if (place) place.textContent = text;
}

function copyButton(what, text) {
  const button = make("button", { class: "copy", title: "Copy", "aria-label": `Copy ${what}`, type: "button" }, "copy");
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    const done = await copied(typeof text === "function" ? text() : text);
    button.textContent = done ? "copied" : "not allowed";
    announce(done ? `Copied ${what}` : "The browser does not allow copying here");
    setTimeout(() => (button.textContent = "copy"), 1600);
  });
  return button;
}

/** What an answer that abstained suggests, on a line of its own. */
function writeSuggestion(suggestion) {
  $("suggestion").hidden = !suggestion;
  $("suggestion").replaceChildren(...(suggestion ? ["Perhaps: ", make("b", {}, suggestion)] : []));
}

/** A button that keeps a text as a file. */
function saveButton(before, text) {
  const button = make("button", { class: "copy", title: "Save as a file", "aria-label": "Save the answer", type: "button" }, "save");
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    const address = URL.createObjectURL(new Blob([before, text(), "\n"], { type: "text/plain" }));
    make("a", { href: address, download: "answer.txt" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  });
  return button;
}

/** Light or dark as the reader chose, else as the system is. */
function chooseLook() {
  const root = document.documentElement;
  const kept = () => { try { return localStorage.getItem("look") ?? ""; } catch { return ""; } };
  $("light-or-dark").value = root.dataset.look = kept();
  $("light-or-dark").addEventListener("change", ({ target }) => {
    root.dataset.look = target.value;
    try { localStorage.setItem("look", target.value); } catch { /* it holds for this page */ }
  });
}

// The menus of the page: documents, which are found, added and removed, and conversations, which are opened, named and forgotten.

/** Documents by their files: the records of one file are one document. */
function filesOf({ documents, files: labels = [] }) {
  const files = new Map();
  for (const [at, id] of documents.entries()) {
    const file = labels[at] || id.replace(/(\.\w{1,8}):\d+$/, "$1");
    if (!files.has(file)) files.set(file, { id: file, name: file.split("/").pop(), records: [] });
    files.get(file).records.push(id);
  }
  return [...files.values()];
}

/** A button that asks once more before it does what cannot be undone. */
function sureButton(text, sure, act) {
  const button = make("button", { type: "button" }, text);
  button.addEventListener("click", () => {
    if (button.textContent === sure) return act(button);
    button.textContent = sure;
    setTimeout(() => (button.textContent = text), 4000);
  });
  return button;
}

// ---- documents

const MOST_SHOWN = 200;

async function listDocuments() {
  const containing = $("containing").value.trim();
  const listed = await getJSON(`api/documents?${new URLSearchParams({ containing, limit: "1000" })}`);
  const { documents, total } = listed;
  if (containing !== $("containing").value.trim()) return;
  const files = filesOf(listed);
  $("upload").hidden = !now.about?.changes;
  $("library").replaceChildren(
    ...files.slice(0, MOST_SHOWN).map(documentRow),
    ...(total ? [] : [make("li", {}, containing ? "No document is called that." : "No documents yet.")]),
    ...(files.length > MOST_SHOWN || total > documents.length ? [make("li", { class: "note" }, "There are more: find them by their names.")] : []));
}

function documentRow(file) {
  const many = file.records.length > 1 || file.records[0] !== file.id;
  const row = make("li", {},
    make("span", { title: file.id }, file.name, many ? make("small", { class: "note" }, ` ${count(file.records.length, "record")}`) : ""));
  if (now.about?.changes) {
    row.append(sureButton("Remove", "Remove it?", async (button) => {
      button.disabled = true;
      try {
        for (const id of many ? file.records : [file.id]) await request(`api/documents?${new URLSearchParams({ id })}`, { method: "DELETE" });
        announce(`Removed ${file.name}`);
        await listDocuments();
      } catch (error) {
        row.append(make("p", { class: "note alarm", role: "alert" }, error.message));
        button.disabled = false;
      }
    }));
  }
  return row;
}

/** Send files one by one, so that each has a status of its own and a bad one keeps no other out. */
async function upload(files) {
  const rows = files.map((file) => {
    const status = make("span", { class: "note" }, "waits …");
    $("uploads").append(make("li", {}, `${file.name} `, status));
    return [file, status];
  });
  for (const [file, status] of rows) {
    status.textContent = "is being read …";
    const body = new FormData();
    body.append("files", file);
    try {
      const done = await (await request("api/documents", { method: "POST", body })).json();
      const skipped = done.skipped.map((one) => one.reason).join("; ");
      status.textContent = done.documents_unchanged && !done.documents_written ? "was there already"
        : `${count(done.passages_written, "passage")} added${skipped ? `; not read: ${skipped}` : ""}${done.graph ? "; the stored graph follows with the next “ras-agent kg build”" : ""}`;
    } catch (error) {
      status.textContent = error.message;
      status.classList.add("alarm");
    }
  }
  $("files").value = "";
  await listDocuments();
  introduce();
}

// ---- conversations

async function listThreads() {
  const { threads } = await getJSON("api/threads?limit=50");
  $("threads").replaceChildren(...threads.map(threadRow), ...(threads.length ? [] : [make("li", {}, "No conversations yet.")]));
}

function threadRow({ thread, name, question, began }) {
  const label = name || question || thread;
  const row = make("li", {});
  const failed = (error) => row.append(make("p", { class: "note alarm", role: "alert" }, error.message));
  const rename = () => {
    const field = make("input", { "aria-label": "Name of the conversation", maxlength: 200 });
    field.value = label;
    const form = make("form", {}, field, make("button", {}, "Save"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await request(`api/threads/${thread}`, { method: "PATCH", body: JSON.stringify({ name: field.value }) }).then(listThreads, failed);
    });
    row.replaceChildren(form);
    field.select();
  };
  row.append(
    make("button", { type: "button", class: "open", title: new Date(began).toLocaleString(), "aria-current": thread === now.thread && "true", click: () => location.assign(`#thread=${thread}`) }, label),
    make("button", { type: "button", "aria-label": `Rename ${label}`, click: rename }, "Rename"),
    sureButton("Delete", "Delete it?", () => request(`api/threads/${thread}`, { method: "DELETE" }).then(() => (thread === now.thread ? location.assign(location.pathname) : listThreads()), failed)));
  return row;
}

function openMenus() {
  const opening = (menu, list) => $(menu).addEventListener("toggle", () => $(menu).open && list().catch((error) => {
    $(menu).open = false;
    showTrouble(error, () => ($(menu).open = true));
  }));
  opening("documents", listDocuments);
  opening("conversations", listThreads);
  $("containing").addEventListener("input", () => listDocuments().catch(showTrouble));
  $("files").addEventListener("change", () => upload([...$("files").files]).catch(showTrouble));
  $("upload").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("click", (event) => { // a click beside an open menu closes it
    for (const menu of document.querySelectorAll("details[name=menu][open]")) if (!menu.contains(event.target) && event.target.isConnected) menu.open = false;
  });
  addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.activeElement?.closest("details[name=menu][open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

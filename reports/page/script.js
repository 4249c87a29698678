"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const texts = JSON.parse($("texts").textContent);
  const fields = ["q", "severity", "rule", "kind", "folder"].map($).filter(Boolean);
  const files = all(".file").map((element) => ({ element, name: element.dataset.name.toLowerCase(),
    hunks: all(".hunk", element).map((hunk) => ({ element: hunk, places: all(".notes > li", hunk) })) }));
  const groups = all(".group");
  const total = files.reduce((sum, file) => sum + file.hunks.reduce((n, hunk) => n + hunk.places.length, 0), 0);

  let last = {};
  function tell(values) {
    last = values;
    const reviewed = marks.filter((box) => box.checked).length;
    const form = reviewed ? `${values.form}, ${texts.reviewed}` : values.form;
    $("count").textContent = form.replace(/\{(\w+)\}/g, (_, key) => ({ ...values, reviewed })[key].toLocaleString("en"));
  }

  // Reviewed is what reviewed.json lists; what was ticked since is kept by the browser.
  const known = new Set(JSON.parse($("reviewed").textContent)), kept = `npumigrate-reviewed ${document.title}`;
  const marks = all(".mark");
  let ticked = {};
  try { ticked = JSON.parse(localStorage.getItem(kept)) || {}; } catch { /* file: */ }
  const isReviewed = (mark) => ticked[mark] ?? known.has(mark);
  function mark(box) {
    const item = box.closest("li");
    box.checked = isReviewed(box.value);
    item.dataset.kinds = `${item.dataset.kinds.replace(/ (open|reviewed)$/, "")} ${box.checked ? "reviewed" : "open"}`;
  }
  function tick(box, value) {
    ticked[box.value] = value;
    mark(box);
    try { localStorage.setItem(kept, JSON.stringify(ticked)); } catch { /* file: */ }
    tell(last);
  }
  function save() {
    const reviewed = [...new Set([...known, ...Object.keys(ticked)])].filter(isReviewed).sort();
    const content = JSON.stringify({ schema: 1, reviewed }, null, 1) + "\n";
    const link = Object.assign(document.createElement("a"), { download: "reviewed.json" });
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // A file's locations get their tools when it is opened: a page may have very many.
  const place = (item) => `${item.closest(".file").dataset.name}:${parseInt(item.dataset.line)}`;
  const inEditor = (item) => document.body.dataset.source && location.protocol === "file:"
    && `vscode://file${new URL(document.body.dataset.source, location).pathname}${place(item).split("/").map(encodeURIComponent).join("/").replace("%3A", ":")}`;
  function equip(file) {
    for (const item of all(".notes > li", file)) {
      if (item.querySelector(".more")) continue;
      const more = item.appendChild(Object.assign(document.createElement("span"), { className: "more" }));
      more.appendChild(Object.assign(document.createElement("button"), { type: "button", textContent: texts.copy }))
        .addEventListener("click", () => navigator.clipboard?.writeText(place(item)));
      const address = inEditor(item);
      if (address) more.appendChild(Object.assign(document.createElement("a"), { href: address, textContent: texts.open }));
    }
  }

  // Filters: a place is shown where it is all that is asked for, a hunk and a file where one of their places is.
  const has = (element, key, value) => !value || (element.dataset[key] || "").split(" ").includes(value);
  const text = (item) => (item.text ??= item.element.textContent.toLowerCase());
  const fits = (element, want) => has(element, "rules", want.rule) && has(element, "severities", want.severity)
    && has(element, "kinds", want.kind);
  const wanted = () => Object.fromEntries(fields.map((field) => [field.id, field.value.trim()]));

  function filter() {
    const want = wanted(), words = want.q.toLowerCase().split(/\s+/).filter(Boolean);
    const active = fields.some((field) => field.value.trim());
    let shownFiles = 0, places = 0;
    for (const file of files) {
      let own = 0;
      for (const hunk of file.hunks) {
        const there = (!want.folder || file.element.dataset.folder === want.folder)
          && words.every((word) => file.name.includes(word) || text(hunk).includes(word));
        for (const place of hunk.places) place.hidden = !(there && fits(place, want));
        const fit = hunk.places.filter((place) => !place.hidden).length;
        hunk.element.hidden = !fit;
        own += fit;
      }
      file.element.hidden = !own;
      if (own) { shownFiles += 1; places += own; }
    }
    for (const group of groups) {
      group.hidden = !(fits(group, want) && words.every((word) => group.textContent.toLowerCase().includes(word)));
    }
    const form = active ? (shownFiles || groups.some((group) => !group.hidden) ? texts.some : texts.none) : texts.all;
    tell({ form, files: shownFiles, all_files: files.length, places, all_places: total });
    $("clear").hidden = !active;
  }
  function clear() { for (const field of fields) field.value = ""; filter(); }
  function remember() {
    const query = new URLSearchParams(Object.entries(wanted()).filter(([, value]) => value)).toString();
    try { history.replaceState(null, "", query ? `#files?${query}` : location.pathname + location.search); } catch { /* file: */ }
  }

  // Addresses: #files?rule=NPU101 sets the filters; any other opens what it names.
  function follow() {
    const address = location.hash.slice(1), [name, query] = address.split("?");
    if (query !== undefined) {
      const given = new URLSearchParams(query);
      for (const field of fields) field.value = given.get(field.id) || "";
      filter();
      $(name || "files")?.scrollIntoView();
      return;
    }
    let target = null;
    try { target = address && $(decodeURIComponent(address)); } catch { return; }
    if (!target) return;
    if (target.closest("[hidden]")) clear();
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    all(".here").forEach((each) => each.classList.remove("here"));
    if (target.matches(".line")) target.closest("li").classList.add("here");
    target.scrollIntoView({ block: target.matches(".line") ? "center" : "start" });
  }

  const open = (value) => { for (const file of files) if (!file.element.hidden) file.element.open = value; };
  function theme() {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("npumigrate-theme", document.documentElement.dataset.theme); } catch { /* file: */ }
  }
  function move(step) {
    const rows = all(".group > summary, .file > summary, .rule > summary").filter((row) => !row.parentElement.hidden);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    if (next) { next.focus({ preventScroll: true }); next.scrollIntoView({ block: "center" }); }
  }
  function copy() { // of the location that has the focus, or that an address has led to
    const link = document.activeElement.closest(".notes .line, .places a") || document.querySelector(".here .line");
    const file = link?.closest(".file");
    if (link) navigator.clipboard?.writeText(file ? `${file.dataset.name}:${parseInt(link.id.slice(link.id.lastIndexOf(":") + 1))}` : link.textContent);
  }
  const here = () => (document.activeElement.closest(".notes > li") || document.querySelector(".notes > .here"));
  const keys = { x: () => here() && tick(here().querySelector(".mark"), !here().querySelector(".mark").checked),
    o: () => { const address = here() && inEditor(here()); if (address) location.href = address; }, "/": () => $("q").focus(), j: () => move(1), k: () => move(-1), e: () => open(true), c: () => open(false),
    y: copy, t: theme, "?": () => $("keys").showModal() };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !$("keys").open) { clear(); remember(); document.activeElement.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, dialog")) return;
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  let waiting;
  for (const field of fields) field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { filter(); remember(); }, field.id === "q" ? 120 : 0);
  });
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => { clear(); remember(); });
  document.addEventListener("change", (event) => { if (event.target.matches(".mark")) tick(event.target, event.target.checked); });
  document.addEventListener("toggle", (event) => { if (event.target.matches(".file[open]")) equip(event.target); }, true);
  $("save").addEventListener("click", save);
  $("expand").addEventListener("click", () => open(true));
  $("collapse").addEventListener("click", () => open(false));
  $("theme").addEventListener("click", theme);
  $("help").addEventListener("click", () => $("keys").showModal());
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => { // a link to where the page is already
    const link = event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not([open])"); closed.forEach((each) => { each.open = true; }); });
  addEventListener("afterprint", () => { closed.forEach((each) => { each.open = false; }); });
  try {
    const own = localStorage.getItem("npumigrate-theme");
    if (own) document.documentElement.dataset.theme = own;
  } catch { /* file: */ }
  marks.forEach(mark);
  filter();
  follow();
})();

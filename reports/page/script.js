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
    const values = { files: shownFiles, all_files: files.length, places, all_places: total };
    const form = active ? (shownFiles || groups.some((group) => !group.hidden) ? texts.some : texts.none) : texts.all;
    $("count").textContent = form.replace(/\{(\w+)\}/g, (_, key) => values[key].toLocaleString("en"));
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
  const keys = { "/": () => $("q").focus(), j: () => move(1), k: () => move(-1), e: () => open(true), c: () => open(false),
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
    const kept = localStorage.getItem("npumigrate-theme");
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* file: */ }
  filter();
  follow();
})();

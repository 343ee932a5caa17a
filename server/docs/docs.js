// Progressive enhancement of the documentation: every page works without this script.

const COPIED_MS = 2000;

/** Copies what `read` returns when the button is clicked. */
function prepareCopying(button, read) {
  const label = button.innerHTML;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(await read());
    button.textContent = "Copied";
    setTimeout(() => {
      button.innerHTML = label;
    }, COPIED_MS);
  });
}

for (const block of document.querySelectorAll(".block")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "quiet small", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy code");
  prepareCopying(button, () => block.querySelector("code").textContent);
  block.append(button);
}

for (const button of document.querySelectorAll("[data-markdown]"))
  prepareCopying(button, async () => (await fetch(button.dataset.markdown)).text());

// The chosen language is the same on all pages. Private windows may refuse to store it.
const LANGUAGE = "docs-language";
const radios = document.querySelectorAll(".switch > input");

function choose(language) {
  for (const radio of radios) if (radio.value === language) radio.checked = true;
}

for (const radio of radios)
  radio.addEventListener("change", () => {
    const { top } = radio.parentElement.getBoundingClientRect();
    choose(radio.value);
    // The tabs above have another height now.
    scrollBy({ top: radio.parentElement.getBoundingClientRect().top - top, behavior: "instant" });
    try {
      localStorage.setItem(LANGUAGE, radio.value);
    } catch {}
  });
try {
  choose(localStorage.getItem(LANGUAGE));
} catch {}

const sidebar = document.querySelector(".sidebar");
const current = sidebar.querySelector("[aria-current]");
if (current) sidebar.scrollTop = current.offsetTop - sidebar.clientHeight / 2;

const form = document.querySelector(".finder");
const input = form.querySelector("input");
const list = document.createElement("ul");
const status = document.createElement("p");
Object.assign(list, { className: "sheet results", hidden: true });
Object.assign(status, { className: "visually-hidden", role: "status" });
form.append(list, status);
if (matchMedia("(hover: hover)").matches) input.placeholder = "Type / to search";

let loading;

/** Loads MiniSearch, which the module contains, and the index. */
function load() {
  loading ??= Promise.all([import("./search.js"), fetch("/docs/search.json")]).then(
    async ([{ default: MiniSearch, find, OPTIONS }, response]) => {
      const index = MiniSearch.loadJS(await response.json(), OPTIONS);
      return (query) => find(index, query);
    },
  );
  return loading;
}

function toItem({ href, page, title, excerpt }) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = href;
  const add = (tag, textContent, className = "") =>
    link.append(Object.assign(document.createElement(tag), { textContent, className }));
  add("strong", title || page);
  add("small", title && page, "soft");
  add("small", excerpt, "soft clipped");
  return item;
}

const noteOf = (textContent) => Object.assign(document.createElement("li"), { textContent });

async function showResults() {
  const query = input.value.trim();
  // The first search of a server takes seconds: it builds the index.
  if (list.hidden) list.replaceChildren(noteOf("Searching…"));
  list.hidden = query === "";
  const find = await load();
  if (query !== input.value.trim()) return;
  const results = query === "" ? [] : find(query);
  list.replaceChildren(...(results.length > 0 ? results.map(toItem) : [noteOf("No page matches.")]));
  status.textContent = query === "" ? "" : `${results.length} results`;
}

input.addEventListener("focus", load, { once: true });
input.addEventListener("input", showResults);

form.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")];
  const index = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") links[Math.min(index + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp") (links[index - 1] ?? input).focus();
  else if (event.key === "Escape") {
    list.hidden = true;
    input.focus();
    input.value = "";
  } else return;
  event.preventDefault();
});

document.addEventListener("click", ({ target }) => {
  if (!form.contains(target)) list.hidden = true;
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  input.select();
});

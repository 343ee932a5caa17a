// Progressive enhancement of the documentation: every page works without this script.

const COPIED_MS = 2000;

function showCopied(button) {
  const label = button.innerHTML;
  button.textContent = "Copied";
  setTimeout(() => {
    button.innerHTML = label;
  }, COPIED_MS);
}

for (const block of document.querySelectorAll(".block")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "quiet small", textContent: "Copy" });
  button.setAttribute("aria-label", "Copy code");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    showCopied(button);
  });
  block.append(button);
}

const copyPage = document.querySelector("[data-markdown]");
if (copyPage) {
  copyPage.hidden = false;
  copyPage.addEventListener("click", async () => {
    const response = await fetch(copyPage.dataset.markdown);
    await navigator.clipboard.writeText(await response.text());
    showCopied(copyPage);
  });
}

// The chosen language is the same on all pages. Private windows may refuse to store it.
const LANGUAGE = "docs-language";

function choose(language) {
  for (const radio of document.querySelectorAll(".tabs > input"))
    if (radio.value === language) radio.checked = true;
}

for (const radio of document.querySelectorAll(".tabs > input"))
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
list.className = "sheet results";
list.hidden = true;
const status = document.createElement("p");
status.className = "visually-hidden";
status.setAttribute("role", "status");
form.append(list, status);
form.querySelector("kbd").hidden = false;

let loading;

/** Resolves to a function that returns the results for a text. The module contains MiniSearch. */
async function loadSearch() {
  const [{ default: MiniSearch, find, OPTIONS }, response] = await Promise.all([
    import("./search.js"),
    fetch("/docs/search.json"),
  ]);
  const index = MiniSearch.loadJS(await response.json(), OPTIONS);
  return (query) => find(index, query);
}

function search() {
  loading ??= loadSearch();
  return loading;
}

function toItem({ href, page, title, excerpt }) {
  const [item, link, name, where, text] = ["li", "a", "strong", "small", "span"].map((tag) =>
    document.createElement(tag),
  );
  link.href = href;
  name.textContent = title || page;
  where.textContent = title ? page : "";
  text.textContent = excerpt;
  link.append(name, where, text);
  item.append(link);
  return item;
}

async function showResults() {
  const query = input.value.trim();
  const findResults = await search();
  if (query !== input.value.trim()) return;
  const results = query === "" ? [] : findResults(query);
  list.replaceChildren(...results.map(toItem));
  if (query !== "" && results.length === 0) {
    const none = document.createElement("li");
    none.textContent = "No page matches.";
    list.append(none);
  }
  list.hidden = query === "";
  status.textContent = query === "" ? "" : `${results.length} results`;
}

function closeResults() {
  list.hidden = true;
}

input.addEventListener("focus", search, { once: true });
input.addEventListener("input", showResults);

form.addEventListener("keydown", (event) => {
  const links = [...list.querySelectorAll("a")];
  const index = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") links[Math.min(index + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp") (links[index - 1] ?? input).focus();
  else if (event.key === "Escape") {
    closeResults();
    input.focus();
    input.value = "";
  } else return;
  event.preventDefault();
});

document.addEventListener("click", ({ target }) => {
  if (!form.contains(target)) closeResults();
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  input.focus();
  input.select();
});

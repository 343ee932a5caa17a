// Keys of the dashboard, and the box that goes anywhere (Ctrl+K or ⌘K). Pages work without them.

// Key → its name, what it does, and what the page must have for it.
const KEYS = {
  "/": ["Search", search],
  c: ["Create a link", createLink, ".sections a[href$='/links']"],
  e: ["Edit", edit, "main a[href$='/edit']"],
  j: ["Next row", () => move(1), "tbody tr a[href]"],
  k: ["Previous row", () => move(-1), "tbody tr a[href]"],
  x: ["Select the row", selectRow, "tbody [type=checkbox]"],
  "?": ["Show the shortcuts", showHelp],
};

/** Goes to the search of the page, or to the one of everything. */
function search() {
  const field = document.querySelector("#search");
  if (field) field.focus();
  else openBox();
}

/** On the page of links, the form takes over what was typed. */
function createLink() {
  const link = document.querySelector("[data-create]");
  if (link) link.click();
  else location.href = `${document.querySelector(".sections a[href$='/links']").href}/new`;
}

/** Edits what the row is about that has the focus, or the page. */
function edit() {
  const place = rowOf(document.activeElement) ?? document.querySelector("main .title");
  place.querySelector("a[href$='/edit']")?.click();
}

function selectRow() {
  rowOf(document.activeElement)?.querySelector("[type=checkbox]")?.click();
}

function worksHere([, , needed]) {
  return !needed || document.querySelector(needed) !== null;
}

function rowOf(element) {
  return element?.closest("tbody tr");
}

function move(step) {
  const rows = [...document.querySelectorAll("tbody tr")];
  const index = rows.indexOf(rowOf(document.activeElement));
  const row = rows[index === -1 ? 0 : index + step];
  row?.querySelector("a:not([href^='#'])")?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return openBox();
  }
  const isTyping = event.target.matches?.("input:not([type=checkbox]), select, textarea, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  const key = KEYS[event.key];
  if (!key || !worksHere(key)) return;
  event.preventDefault();
  key[1]();
});

function createDialog(label, content) {
  const dialog = document.createElement("dialog");
  dialog.className = "box";
  dialog.setAttribute("aria-label", label);
  dialog.append(...content);
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

function create(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

document.querySelector("[data-box]").addEventListener("click", openBox);

function showHelp() {
  const keys = [
    ...Object.entries(KEYS).flatMap(([key, value]) => (worksHere(value) ? [[key, value[0]]] : [])),
    ["Ctrl K", "Go to a page, a link or an action"],
  ];
  createDialog("Keyboard shortcuts", [
    create("h2", {}, "Keyboard shortcuts"),
    create(
      "dl",
      { className: "facts" },
      ...keys.flatMap(([key, name]) => [create("dt", {}, create("kbd", {}, key)), create("dd", {}, name)]),
    ),
    create("form", { method: "dialog" }, create("button", { className: "quiet" }, "Close")),
  ]);
}

const SEARCH_DELAY_MS = 150;

// What the navigation doesn't name: name, section that links to it, path below that section, other words for it.
const PLACES = [
  [
    "Two-factor authentication and passkeys",
    "account",
    "",
    "second factor 2fa mfa totp authenticator app recovery codes",
  ],
  ["Password", "account", "", "change"],
  ["Create link", "links", "/new", "new add shorten"],
  ["Add domain", "domains", "/new", "new create host"],
  ["Create webhook", "webhooks", "/new", "new add endpoint"],
  ["Credentials", "client", "", "client secret id"],
  ["Rotate secret", "client", "/rotate", "new client secret"],
  ["Public keys", "client", "/keys", "jwks private_key_jwt"],
  ["Redirect URIs", "client", "/redirect-uris", "callback url"],
  ["Workload identity", "client", "/../workload-identity", "github actions gitlab kubernetes ci trust rules"],
  ["Rotate a signing secret", "webhooks", "", "webhook"],
  ["Invite a member", "members", "", "invitation user"],
  ["Require two-factor authentication", "settings", "#second-factor", "second factor 2fa mfa"],
  ["Import links", "links", "/import", "csv upload"],
  ["Export links", "links", "", "csv download"],
];

/** Returns the places on pages that this user may open. */
function findPlaces() {
  return PLACES.flatMap(([name, section, path, words]) => {
    const link = document.querySelector(`:is(.sections, .sheet) a[href$="/${section}"]`);
    return link ? [{ name, href: new URL(link.href + path).href, words }] : [];
  });
}

// What the page has in its navigation, its menus and beside its heading.
const DECLARED = [".sections a", "main > .title :is(.button, .inline button)", ".top .sheet :is(a, button)"];

/** Goes to a section, an organization or a link, or presses a button of the page, by a part of its name. */
function openBox() {
  if (document.querySelector("dialog[open]")) return;
  const input = create("input", {
    type: "search",
    placeholder: "Find a page, a link or an action",
    autocomplete: "off",
  });
  input.setAttribute("aria-label", "Go to");
  const list = create("ul", {});
  const dialog = createDialog("Go to a page, a link or an action", [input, list]);
  const declared = DECLARED.flatMap((selector) => [...document.querySelectorAll(selector)]);
  const pages = declared.map((link) => ({
    // Without the initial of an organization.
    name: (link.querySelector("bdi") ?? link).textContent.trim(),
    href: link.href,
    press: () => link.click(),
  }));
  const places = findPlaces();
  let links = [];
  let timer;

  function show() {
    const text = input.value.trim().toLowerCase();
    const matches = ({ name, words = "" }) => {
      const known = `${name} ${words}`.toLowerCase();
      return text.split(/\s+/).every((word) => known.includes(word));
    };
    const known = [...pages, ...(text ? places : [])].filter(matches);
    const found = [...new Map(known.map((one) => [one.href ?? one.name, one])).values(), ...links];
    const optionOf = ({ name, href, press }) =>
      href ? create("a", { href }, name) : create("button", { type: "button", onclick: press }, name);
    list.replaceChildren(...found.map((one) => create("li", {}, optionOf(one))));
    if (found.length === 0) list.append(create("li", { className: "soft" }, "Nothing found"));
    list.querySelector("a, button")?.classList.add("first");
  }

  async function searchLinks() {
    const path = document.querySelector(".sections a[href$='/links']")?.href;
    const search = input.value.trim();
    if (!path || search.length < 2) links = [];
    else {
      const response = await fetch(`${path}?${new URLSearchParams({ search, limit: "5" })}`, {
        headers: { accept: "application/json" },
      });
      const { data = [] } = response.ok ? await response.json() : {};
      if (search !== input.value.trim()) return;
      links = data.map(({ id, slug, title }) => ({
        name: title ? `/${slug} – ${title}` : `/${slug}`,
        href: `${path}/${id}`,
      }));
    }
    show();
  }

  input.addEventListener("input", () => {
    show();
    clearTimeout(timer);
    timer = setTimeout(searchLinks, SEARCH_DELAY_MS);
  });
  dialog.addEventListener("keydown", (event) => {
    const options = [...list.querySelectorAll("a, button")];
    const index = options.indexOf(document.activeElement);
    if (event.key === "Enter" && document.activeElement === input) options[0]?.click();
    else if (event.key === "ArrowDown") options[Math.min(index + 1, options.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (options[index - 1] ?? input).focus();
    else return;
    event.preventDefault();
  });
  show();
}

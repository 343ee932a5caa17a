// Keys of the dashboard, and the box that goes anywhere (Ctrl+K or ⌘K). Pages work without them.

const KEYS = {
  "/": ["Search", () => document.querySelector("#search")?.focus()],
  c: ["Create a link", () => document.querySelector("[data-create]")?.click()],
  j: ["Next row", () => move(1)],
  k: ["Previous row", () => move(-1)],
  x: ["Select the row", () => rowOf(document.activeElement)?.querySelector("[type=checkbox]")?.click()],
  "?": ["Show the shortcuts", () => showHelp()],
};

function rowOf(element) {
  return element?.closest("tbody tr");
}

function move(step) {
  const rows = [...document.querySelectorAll("tbody tr")];
  const index = rows.indexOf(rowOf(document.activeElement));
  const row = rows[index === -1 ? 0 : index + step];
  row?.querySelector("a[href]")?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return openBox();
  }
  const isTyping = event.target.matches?.("input:not([type=checkbox]), select, textarea, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  const action = KEYS[event.key]?.[1];
  if (!action) return;
  event.preventDefault();
  action();
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

const opener = document.querySelector("[data-box]");
opener.hidden = false;
opener.addEventListener("click", openBox);

function showHelp() {
  const keys = [
    ...Object.entries(KEYS).map(([key, [name]]) => [key, name]),
    ["Ctrl K", "Go to a page or link"],
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
  ["Credentials", "client", "", "rotate client secret id"],
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

/** Goes to a section, an organization or a link, by a part of its name. */
function openBox() {
  if (document.querySelector("dialog[open]")) return;
  const input = create("input", { type: "search", placeholder: "Go to…", autocomplete: "off" });
  input.setAttribute("aria-label", "Go to");
  const list = create("ul", {});
  const dialog = createDialog("Go to a page or link", [input, list]);
  const pages = [
    ...document.querySelectorAll(".sections a"),
    ...document.querySelectorAll(".top .sheet a"),
  ].map((link) => ({
    // Without the initial of an organization.
    name: (link.querySelector("bdi") ?? link).textContent.trim(),
    href: link.href,
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
    const found = [...pages.filter(matches), ...(text ? places.filter(matches) : []), ...links];
    list.replaceChildren(...found.map(({ name, href }) => create("li", {}, create("a", { href }, name))));
    if (found.length === 0) list.append(create("li", { className: "soft" }, "Nothing found"));
    list.querySelector("a")?.classList.add("first");
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
    const options = [...list.querySelectorAll("a")];
    const index = options.indexOf(document.activeElement);
    if (event.key === "Enter" && document.activeElement === input) options[0]?.click();
    else if (event.key === "ArrowDown") options[Math.min(index + 1, options.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (options[index - 1] ?? input).focus();
    else return;
    event.preventDefault();
  });
  show();
}

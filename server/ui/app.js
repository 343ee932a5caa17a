// Progressive enhancement: every page works without this script.

function prepareCopying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    const label = button.innerHTML;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => {
        button.innerHTML = label;
      }, 2000);
    });
  }
}

const DAY = new Intl.DateTimeFormat("en-US", { dateStyle: "medium" });
const TIME = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "short" });

/** Shows times in the reader's zone, and the exact time in UTC on hover. Relative ones have that already. */
function localizeTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(element.dateTime);
    const isDay = element.dataset.precision === "day";
    element.title = `${element.dateTime.slice(0, 19).replace("T", " ")} UTC`;
    element.textContent = (isDay ? DAY : TIME).format(at);
  }
}

/** Scrolls the navigation of narrow screens to the current section. */
function showCurrentSection() {
  const current = document.querySelector(".sections [aria-current]");
  const navigation = current?.closest(".sections");
  if (!navigation) return;
  const [inner, outer] = [current.getBoundingClientRect(), navigation.getBoundingClientRect()];
  navigation.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
}

/** Counts the selected rows, and selects all of them. Those of other pages are offered once all of this one are. */
function prepareSelection(root) {
  const list = root.querySelector(".linklist");
  if (!list) return;
  const all = list.querySelector("[data-all]");
  const boxes = [...list.querySelectorAll("tbody [type=checkbox]")];
  const others = list.querySelector("[data-others]");
  const othersBox = others?.querySelector("input");
  const show = () => {
    const count = boxes.filter(({ checked }) => checked).length;
    all.checked = count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
    if (others) others.hidden = !all.checked;
    if (othersBox && !all.checked) othersBox.checked = false;
    const selected = othersBox?.checked ? others.dataset.others : count;
    list.querySelector(".chosen").textContent = `${selected} selected`;
  };
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    show();
  });
  for (const box of boxes) box.addEventListener("change", show);
  othersBox?.addEventListener("change", show);
  show();
}

function prepare(root) {
  prepareCopying(root);
  localizeTimes(root);
  prepareSelection(root);
}

prepare(document);
showCurrentSection();

const FILTER_DELAY_MS = 200;

/** Shows what a form of the page leads to while the user types. */
function prepareFilter(form) {
  let timer;
  let request;
  form.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    timer = setTimeout(apply, target.matches("select") ? 0 : FILTER_DELAY_MS);
  });

  async function apply() {
    request?.abort();
    request = new AbortController();
    const fields = [...new FormData(form)].filter(([, value]) => value !== "");
    const url = `${form.action}?${new URLSearchParams(fields)}`;
    try {
      const response = await fetch(url, { headers: { accept: "text/html" }, signal: request.signal });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const results = page.querySelectorAll("[data-live]");
      if (results.length === 0) return form.submit();
      for (const [index, shown] of document.querySelectorAll("[data-live]").entries())
        shown.replaceWith(results[index]);
      history.replaceState(null, "", url);
      showErrors(form, page);
      for (const result of results) prepare(result);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  }
}

/** Says at the fields of a form what is wrong with them, as the page that it leads to does. */
function showErrors(form, page) {
  for (const field of form.querySelectorAll("[name][id]")) {
    const [before, error] = [document, page].map((one) => one.getElementById(`${field.id}-error`));
    before?.remove();
    for (const name of ["aria-invalid", "aria-describedby"]) {
      const value = page.getElementById(field.id)?.getAttribute(name);
      if (value) field.setAttribute(name, value);
      else field.removeAttribute(name);
    }
    if (error) field.after(Object.assign(error, { role: "alert" }));
  }
}

for (const form of document.querySelectorAll("[data-filter]")) prepareFilter(form);

// The form with all fields has what was typed in the one with only a URL.
for (const link of document.querySelectorAll("[data-create]"))
  link.addEventListener("click", () => {
    const { value } = link.closest("form").elements.url;
    if (value) link.search = new URLSearchParams({ url: value });
  });

const TOAST_MS = 6000;
const UNDO_MS = 20_000;

// A confirmation disappears by itself, and isn't repeated when the page is loaded again. One with a button stays
// longer, and while the button may be about to be pressed.
for (const notice of document.querySelectorAll("[data-toast]")) {
  const undo = notice.querySelector("button");
  undo?.focus();
  const delay = undo ? UNDO_MS : TOAST_MS;
  const close = () => {
    if (notice.matches(":hover, :focus-within")) return setTimeout(close, TOAST_MS);
    notice.remove();
    const url = new URL(location.href);
    for (const name of ["done", "undo", "signature"]) url.searchParams.delete(name);
    history.replaceState(null, "", url);
  };
  setTimeout(close, delay);
}

// Ignores the second click of a double click on a submit button.
const DOUBLE_CLICK_MS = 3000;
const submitted = new WeakSet();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (submitted.has(form)) return event.preventDefault();
  submitted.add(form);
  setTimeout(() => submitted.delete(form), DOUBLE_CLICK_MS);
});

// A page that is shown only once must not reappear from the back/forward cache.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted && document.querySelector("[data-once]")) location.reload();
});

// After a rejected form, typing starts in the field to fix; with several of them, the summary links to each.
const invalid = [...document.querySelectorAll("[aria-invalid='true']")];
const summary = document.querySelector("#error");
if (summary && invalid.length > 1) {
  summary.append(...invalid.flatMap((field) => [" ", linkTo(field)]));
  summary.tabIndex = -1;
  summary.focus();
} else invalid[0]?.focus();

function linkTo(field) {
  const link = document.createElement("a");
  link.href = `#${field.id}`;
  link.textContent = field.labels?.[0]?.textContent ?? field.name;
  return link;
}

const openMenus = () => document.querySelectorAll("details.menu[open]");

document.addEventListener("click", ({ target }) => {
  for (const menu of openMenus()) if (!menu.contains(target)) menu.open = false;
});

document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const menu of openMenus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// Progressive enhancement: every page works without this script.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  const label = button.innerHTML;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => {
      button.innerHTML = label;
    }, 2000);
  });
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

// Scrolls the current section into view where the navigation doesn't fit.
const sections = document.querySelector(".sections");
const current = sections?.querySelector("[aria-current]");
if (current) sections.scrollLeft = current.offsetLeft - (sections.clientWidth - current.offsetWidth) / 2;

// After a rejected form, typing starts in the first field to fix.
document.querySelector("[aria-invalid='true']")?.focus();

const menus = document.querySelectorAll("details.menu");

document.addEventListener("click", ({ target }) => {
  for (const menu of menus) if (!menu.contains(target)) menu.open = false;
});

document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const menu of menus) {
    if (!menu.open) continue;
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

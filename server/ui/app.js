// Comfort for those whose browser runs scripts; every page works without it.

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

// A second click on a button that sends a form counts as the same one.
const SAME_CLICK_MS = 3000;
const sent = new WeakSet();
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (sent.has(form)) return event.preventDefault();
  sent.add(form);
  setTimeout(() => sent.delete(form), SAME_CLICK_MS);
});

// What the server shows once must not come back from the back/forward cache.
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted && document.querySelector("[data-once]")) location.reload();
});

// Where the sections do not fit, the current one is in sight.
const sections = document.querySelector(".sections");
const current = sections?.querySelector("[aria-current]");
if (current) sections.scrollLeft = current.offsetLeft - (sections.clientWidth - current.offsetWidth) / 2;

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

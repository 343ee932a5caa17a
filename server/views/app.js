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

// Shows the values of a chart, which are also in the table below it: by pointer, touch, and the arrow keys.

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity };

/** Covers the bars with a slider, whose value is the bar that a tooltip describes. */
function prepareChart(plot) {
  const bars = [...plot.querySelectorAll("svg[role=img] > g")];
  const slider = document.createElement("div");
  const tip = document.createElement("div");
  slider.className = "scrubber";
  tip.className = "tip";
  tip.hidden = true;
  slider.tabIndex = 0;
  slider.role = "slider";
  slider.ariaLabel = "Clicks";
  slider.ariaValueMin = 0;
  slider.ariaValueMax = bars.length - 1;
  let current = bars.length - 1;

  function select(index) {
    bars[current].classList.remove("current");
    current = Math.max(0, Math.min(bars.length - 1, index));
    const text = bars[current].querySelector("title").textContent;
    slider.ariaValueNow = current;
    slider.ariaValueText = text;
    tip.textContent = text;
    slider.style.setProperty("--at", (current + 0.5) / bars.length);
  }

  function show() {
    bars[current].classList.add("current");
    tip.hidden = false;
  }

  function hide() {
    bars[current].classList.remove("current");
    tip.hidden = true;
  }

  function point({ clientX }) {
    const { left, width } = slider.getBoundingClientRect();
    select(Math.floor(((clientX - left) / width) * bars.length));
    show();
  }

  slider.addEventListener("pointermove", point);
  slider.addEventListener("pointerdown", point);
  slider.addEventListener("pointerleave", ({ pointerType }) => {
    // A finger that is lifted leaves as well.
    if (pointerType === "mouse" && document.activeElement !== slider) hide();
  });
  slider.addEventListener("focus", show);
  slider.addEventListener("blur", hide);
  slider.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    select(current + step);
    show();
  });
  select(current);
  slider.append(tip);
  plot.append(slider);
}

for (const plot of document.querySelectorAll(".plot:not(:has(.scrubber))")) prepareChart(plot);

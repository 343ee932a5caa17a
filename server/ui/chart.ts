import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { type Html, html } from "../html.ts";
import { table } from "./table.ts";

type Day = AnalyticsView["days"][number];

// In the units of the picture, which is stretched to the room that there is.
const DAY = 10;
const BAR = 7;
const HEIGHT = 100;
// More days than these are too narrow for an outline.
const DENSE = 92;

/**
 * Clicks by day as bars: filled for people, outlined for bots, so that no colour is needed to tell them apart. The same
 * numbers stand in a table below it.
 */
export function chart(days: Day[]): Html {
  const top = roundUp(Math.max(...days.map(({ clicks, bots }) => clicks + bots)));
  const width = days.length * DAY;
  const hasBots = days.some(({ bots }) => bots > 0);
  return html`<figure class="chart">
<div class="plot">
<div class="scale" aria-hidden="true"><span>${top.toLocaleString("en")}</span><span>${(top / 2).toLocaleString("en")}</span><span>0</span></div>
<svg role="img"${days.length > DENSE ? html` class="dense"` : html``} aria-label="${summaryOf(days)}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
${[0, HEIGHT / 2, HEIGHT].map((y) => html`<line class="grid" x1="0" x2="${width}" y1="${y}" y2="${y}"/>`)}
${days.map((day, index) => bars(day, index * DAY, HEIGHT / top))}
</svg>
<div class="span" aria-hidden="true"><span>${days[0]?.date}</span><span>${days.at(-1)?.date}</span></div>
</div>
${hasBots ? html`<p class="key hint"><span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="people" width="10" height="10"/></svg>people</span> <span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="bots" x="1" y="1" width="8" height="8"/></svg>known bots</span></p>` : html``}
<details class="more"><summary class="opener">The same as a table</summary>
${table(
  "Clicks by day",
  [
    { head: "Day", cell: ({ date }: Day) => date },
    { head: "Clicks", cell: ({ clicks }: Day) => clicks.toLocaleString("en") },
    ...(hasBots ? [{ head: "Bots", cell: ({ bots }: Day) => bots.toLocaleString("en") }] : []),
  ],
  days.toReversed(),
)}</details>
</figure>`;
}

function bars({ date, clicks, bots }: Day, left: number, scale: number): Html {
  const [people, machines] = [clicks * scale, bots * scale];
  const bar = (kind: string, top: number, height: number) =>
    height > 0
      ? html`<rect class="${kind}" x="${left + (DAY - BAR) / 2}" y="${top.toFixed(2)}" width="${BAR}" height="${height.toFixed(2)}"/>`
      : html``;
  const title = `${date}: ${clicks} ${clicks === 1 ? "click" : "clicks"}${bots > 0 ? `, ${bots} of bots` : ""}`;
  return html`<g><title>${title}</title><rect class="day" x="${left}" y="0" width="${DAY}" height="${HEIGHT}"/>${bar("people", HEIGHT - people, people)}${bar("bots", HEIGHT - people - machines, machines)}</g>
`;
}

function summaryOf(days: Day[]): string {
  const total = days.reduce((sum, { clicks }) => sum + clicks, 0);
  const best = days.reduce((most, day) => (day.clicks > most.clicks ? day : most), days[0] as Day);
  const peak = total > 0 ? `, most of them on ${best.date}: ${best.clicks}` : "";
  return `Clicks by day from ${days[0]?.date} to ${days.at(-1)?.date}: ${total} in all${peak}.`;
}

/** The next number that a scale is easily read with, and its half too. */
function roundUp(most: number): number {
  const atLeast = Math.max(2, most);
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return power * ([1, 1.2, 1.6, 2, 4, 6, 8].find((step) => step * power >= atLeast) ?? 10);
}

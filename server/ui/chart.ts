import type { AnalyticsView } from "../../resources/links/analytics.ts";
import { formatDay } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { table } from "./table.ts";

type Day = AnalyticsView["days"][number];

// In viewBox units; the SVG is stretched to the available width.
const DAY = 10;
const BAR = 7;
const HEIGHT = 100;
// Above this many days, bars are too narrow for an outline.
const MAX_OUTLINED_DAYS = 92;

/** Fills bars for people and outlines those for bots, so the difference does not depend on color. */
export function chart(days: Day[]): Html {
  const top = roundUp(Math.max(...days.map(({ clicks, bots }) => clicks + bots)));
  const width = days.length * DAY;
  const hasBots = days.some(({ bots }) => bots > 0);
  return html`<figure class="chart">
<div class="plot">
<div class="scale" aria-hidden="true"><span>${top.toLocaleString("en")}</span><span>${(top / 2).toLocaleString("en")}</span><span>0</span></div>
<svg role="img"${days.length > MAX_OUTLINED_DAYS && html` class="dense"`} aria-label="${summaryOf(days)}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
${[0, HEIGHT / 2, HEIGHT].map((y) => html`<line class="grid" x1="0" x2="${width}" y1="${y}" y2="${y}"/>`)}
${days.map((day, index) => bars(day, index * DAY, HEIGHT / top))}
</svg>
<div class="span" aria-hidden="true"><span>${dayName(days[0])}</span><span>${dayName(days.at(-1))}</span></div>
</div>
${hasBots && html`<p class="key hint"><span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="people" width="10" height="10"/></svg>clicks</span> <span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="bots" x="1" y="1" width="8" height="8"/></svg>known bots</span></p>`}
<details class="more"><summary class="opener">View as table</summary>
${table(
  "Clicks per day",
  {
    Day: dayName,
    Clicks: ({ clicks }) => clicks.toLocaleString("en"),
    ...(hasBots && { Bots: ({ bots }: Day) => bots.toLocaleString("en") }),
  },
  days.toReversed(),
)}</details>
</figure>`;
}

function bars(day: Day, left: number, scale: number): Html {
  const { clicks, bots } = day;
  const [people, crawlers] = [clicks * scale, bots * scale];
  const bar = (kind: string, top: number, height: number) =>
    height > 0
      ? html`<rect class="${kind}" x="${left + (DAY - BAR) / 2}" y="${top.toFixed(2)}" width="${BAR}" height="${height.toFixed(2)}"/>`
      : html``;
  const botClicks = bots > 0 ? ` · ${bots} from known bots` : "";
  const title = `${dayName(day)}: ${clicks} ${clicks === 1 ? "click" : "clicks"}${botClicks}`;
  return html`<g><title>${title}</title><rect class="day" x="${left}" y="0" width="${DAY}" height="${HEIGHT}"/>${bar("people", HEIGHT - people, people)}${bar("bots", HEIGHT - people - crawlers, crawlers)}</g>
`;
}

function summaryOf(days: Day[]): string {
  const total = days.reduce((sum, { clicks }) => sum + clicks, 0);
  const best = days.reduce((most, day) => (day.clicks > most.clicks ? day : most), days[0] as Day);
  const peak = total > 0 ? `, with a peak of ${best.clicks} on ${dayName(best)}` : "";
  return `Clicks per day from ${dayName(days[0])} to ${dayName(days.at(-1))}: ${total} in total${peak}.`;
}

function dayName(day: Day | undefined): string {
  return day ? formatDay(Date.parse(day.date)) : "";
}

function roundUp(value: number): number {
  const atLeast = Math.max(2, value);
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return power * ([1, 1.2, 1.6, 2, 4, 6, 8].find((step) => step * power >= atLeast) ?? 10);
}

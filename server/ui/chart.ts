import { pluralize } from "./controls.ts";
import { type Html, html } from "./html.ts";
import { table } from "./table.ts";

/** The clicks of an hour or a day. */
export type ChartPoint = {
  name: string;
  clicks: number;
  bot_clicks: number;
  /** Stands below the chart, if there is room for it. */
  tick?: string | undefined;
  /** Whether more clicks may follow. */
  isOpen?: boolean | undefined;
};

type Chart = { unit: "day" | "hour"; range: string; points: ChartPoint[] };

// In viewBox units; the SVG is stretched to the available width.
const STEP = 10;
const BAR = 7;
const HEIGHT = 100;
// Above this many bars, they are too narrow for an outline.
const MAX_OUTLINED = 92;

/** Fills bars for people and outlines those for bots, so the difference does not depend on color. */
export function chart({ unit, range, points }: Chart): Html {
  const top = roundUp(Math.max(...points.map(({ clicks, bot_clicks }) => clicks + bot_clicks)));
  const width = points.length * STEP;
  const label = unit === "day" ? "Day" : "Hour (UTC)";
  return html`<figure class="chart">
<div class="plot">
<div class="scale" aria-hidden="true"><span>${top.toLocaleString("en")}</span><span>${(top / 2).toLocaleString("en")}</span><span>0</span></div>
<svg role="img"${points.length > MAX_OUTLINED && html` class="dense"`} aria-label="${summaryOf(unit, range, points)}" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none">
<defs><pattern id="hatched" width="4" height="4" patternUnits="userSpaceOnUse"><path class="hatching" d="M0 4 4 0M-1 1 1-1M3 5 5 3"/></pattern></defs>
${[0, HEIGHT / 2, HEIGHT].map((y) => html`<line class="grid" x1="0" x2="${width}" y1="${y}" y2="${y}"/>`)}
${points.map((point, index) => bars(point, index * STEP, HEIGHT / top))}
</svg>
<svg class="ticks" aria-hidden="true">${points.map((point, index) => tick(point, index / points.length, index === points.length - 1))}</svg>
</div>
${keyOf(points)}
<details class="more"><summary class="opener">View as table</summary>
${table(
  `Clicks per ${unit}`,
  {
    [label]: ({ name }) => name,
    Clicks: { number: ({ clicks }) => clicks },
    ...(hasBots(points) && { "Known bots": { number: ({ bot_clicks }: ChartPoint) => bot_clicks } }),
  },
  unit === "day" ? points.toReversed() : points,
)}</details>
</figure>`;
}

function bars({ name, clicks, bot_clicks, isOpen }: ChartPoint, left: number, scale: number): Html {
  const [people, bots] = [clicks * scale, bot_clicks * scale];
  const bar = (kind: string, top: number, height: number, fill = html``) =>
    height > 0
      ? html`<rect class="${kind}" x="${left + (STEP - BAR) / 2}" y="${top.toFixed(2)}" width="${BAR}" height="${height.toFixed(2)}"${fill}/>`
      : html``;
  const ofBots = bot_clicks > 0 ? ` · ${bot_clicks.toLocaleString("en")} from known bots` : "";
  const title = `${name}${isOpen ? ", so far" : ""}: ${pluralize(clicks, "click")}${ofBots}`;
  const peopleBar = isOpen
    ? bar("open", HEIGHT - people, people, html` fill="url(#hatched)"`)
    : bar("people", HEIGHT - people, people);
  return html`<g><title>${title}</title><rect class="day" x="${left}" y="0" width="${STEP}" height="${HEIGHT}"/>${peopleBar}${bar("bots", HEIGHT - people - bots, bots)}</g>
`;
}

function tick({ tick: text }: ChartPoint, share: number, isLast: boolean): Html {
  if (text === undefined) return html``;
  if (isLast) return html`<text x="100%" y="17" text-anchor="end">${text}</text>`;
  const x = html`${(share * 100).toFixed(2)}%`;
  return html`<line class="grid" x1="${x}" x2="${x}" y1="0" y2="4"/><text x="${x}" y="17">${text}</text>`;
}

function keyOf(points: ChartPoint[]): Html | false {
  const isOpen = points.some((point) => point.isOpen && point.clicks > 0);
  if (!hasBots(points) && !isOpen) return false;
  const entry = (text: string, mark: Html) =>
    html`<span><svg viewBox="0 0 10 10" aria-hidden="true">${mark}</svg>${text}</span> `;
  return html`<p class="key hint">${entry("clicks", html`<rect class="people" width="10" height="10"/>`)}${
    isOpen && entry("so far", html`<rect class="open" width="10" height="10" fill="url(#hatched)"/>`)
  }${hasBots(points) && entry("known bots", html`<rect class="bots" x="1" y="1" width="8" height="8"/>`)}</p>`;
}

function hasBots(points: ChartPoint[]): boolean {
  return points.some(({ bot_clicks }) => bot_clicks > 0);
}

function summaryOf(unit: string, range: string, points: ChartPoint[]): string {
  const total = points.reduce((sum, { clicks }) => sum + clicks, 0);
  const best = points.reduce((most, point) => (point.clicks > most.clicks ? point : most));
  const when = unit === "day" ? `on ${best.name}` : `at ${best.name}`;
  const peak = total > 0 ? `, with a peak of ${best.clicks} ${when}` : "";
  return `Clicks per ${unit}, ${range}: ${total} in total${peak}.`;
}

function roundUp(value: number): number {
  const atLeast = Math.max(2, value);
  const power = 10 ** Math.floor(Math.log10(atLeast));
  return power * ([1, 1.2, 1.6, 2, 4, 6, 8].find((step) => step * power >= atLeast) ?? 10);
}

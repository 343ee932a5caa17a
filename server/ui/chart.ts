import { nowIn } from "../../resources/time-zone.ts";
import { assetAddress } from "./asset-files.ts";
import { type Html, html } from "./html.ts";
import { table } from "./table.ts";
import { formatDay, pluralize, toDate } from "./text.ts";

type Clicks = { clicks: number; bot_clicks: number };

/** The clicks of each day of a range, and of each hour if that is a single day. */
type Clicked = {
  time_zone: string;
  days: (Clicks & { date: string })[];
  hours?: (Clicks & { hour: number })[] | undefined;
};

type ChartPoint = Clicks & {
  name: string;
  /** Stands below the chart, if there is room for it. */
  tick: string | undefined;
  /** What isn't over, so more clicks may follow; undefined if it is. */
  open: "today so far" | "this hour so far" | undefined;
};

const HOUR_MS = 60 * 60 * 1000;
// With more days, the months are below the chart instead of the first and last day.
const MAX_DAY_TICKS = 62;
// The date of the last day is below the rest of the chart.
const MONTHS_END = 0.7;
// With more, there is room for every other month on a phone.
const MAX_MONTHS = 6;
const HOURS_PER_TICK = 6;
const DAYS = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
const MONTHS = new Intl.DateTimeFormat("en-US", { month: "short", timeZone: "UTC" });

// In viewBox units; the SVG is stretched to the available width.
const STEP = 10;
const BAR = 7;
const HEIGHT = 100;
// Above this many bars, they are too narrow for an outline.
const MAX_OUTLINED = 92;

/** Fills bars for people and outlines those for bots, so the difference does not depend on color. */
export function chart({ time_zone, days, hours }: Clicked, range: string): Html {
  const unit = hours ? "hour" : "day";
  const now = nowIn(time_zone);
  const points = hours ? pointsOfHours(days[0]?.date ?? "", hours, now) : pointsOfDays(days, now);
  const top = roundUp(Math.max(...points.map(({ clicks, bot_clicks }) => clicks + bot_clicks)));
  const width = points.length * STEP;
  const label = unit === "day" ? "Day" : `Hour (${time_zone})`;
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
<script type="module" src="${assetAddress("chart-values.js")}"></script>
</figure>`;
}

function pointsOfHours(date: string, hours: NonNullable<Clicked["hours"]>, now: number): ChartPoint[] {
  const currentHour = Math.floor((now - Date.parse(date)) / HOUR_MS);
  return hours.map(({ hour, ...clicks }) => {
    const name = `${String(hour).padStart(2, "0")}:00`;
    const tick = hour % HOURS_PER_TICK === 0 ? name : undefined;
    return { name, ...clicks, tick, open: hour === currentHour ? "this hour so far" : undefined };
  });
}

function pointsOfDays(days: Clicked["days"], now: number): ChartPoint[] {
  const today = toDate(now);
  const months = new Set(days.map(({ date }) => date.slice(0, 7)));
  const skipped = months.size > MAX_MONTHS ? 2 : 1;
  return days.map(({ date, ...clicks }, index) => {
    const at = Date.parse(date);
    const isMonthTick = date.endsWith("-01") && new Date(at).getUTCMonth() % skipped === 0;
    const isDayTick = index === 0 || index === Math.floor(days.length / 2);
    const isLast = index === days.length - 1;
    const isMonths = days.length > MAX_DAY_TICKS;
    const tick =
      isLast || (!isMonths && isDayTick)
        ? DAYS.format(at)
        : isMonths && isMonthTick && index < days.length * MONTHS_END && monthOf(at);
    return {
      name: formatDay(at),
      ...clicks,
      tick: tick || undefined,
      open: date === today ? "today so far" : undefined,
    };
  });
}

function monthOf(at: number): string {
  const date = new Date(at);
  return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : MONTHS.format(date);
}

function bars({ name, clicks, bot_clicks, open }: ChartPoint, left: number, scale: number): Html {
  const [people, bots] = [clicks * scale, bot_clicks * scale];
  const bar = (kind: string, top: number, height: number, fill = html``) =>
    height > 0
      ? html`<rect class="${kind}" x="${left + (STEP - BAR) / 2}" y="${top.toFixed(2)}" width="${BAR}" height="${height.toFixed(2)}"${fill}/>`
      : html``;
  const ofBots = bot_clicks > 0 ? ` · ${bot_clicks.toLocaleString("en")} from known bots` : "";
  const title = `${name}${open ? `, ${open}` : ""}: ${pluralize(clicks, "click")}${ofBots}`;
  const peopleBar = open
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
  const open = points.find((point) => point.open && point.clicks > 0)?.open;
  if (!hasBots(points) && !open) return false;
  const entry = (text: string, mark: Html) =>
    html`<span><svg viewBox="0 0 10 10" aria-hidden="true">${mark}</svg>${text}</span> `;
  return html`<p class="key hint">${entry("clicks", html`<rect class="people" width="10" height="10"/>`)}${
    open && entry(open, html`<rect class="open" width="10" height="10" fill="url(#hatched)"/>`)
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

/** Returns an even number that is close above a value. */
function roundUp(value: number): number {
  const atLeast = Math.max(2, value);
  const power = 10 ** Math.floor(Math.log10(atLeast));
  const isTop = (step: number) => step * power >= atLeast && (step * power) % 2 === 0;
  return power * ([1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8].find(isTop) ?? 10);
}

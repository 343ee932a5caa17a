import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { FieldErrors } from "../../dashboard/answers.ts";
import { type Html, html } from "../html.ts";
import { chart } from "./chart.ts";
import { field, linkButton } from "./controls.ts";
import { table } from "./table.ts";

type ClicksPanel = {
  title: string;
  /** What is said where nobody clicked. */
  empty: string;
  /** Where there is more to see. */
  more?: Html;
  /** Whether to tell where they came from as well. */
  isWhole?: boolean;
};

type Place = { name: string; clicks: number };

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });

/** Clicks as a picture, and where they came from. */
export function clicksPanel(
  analytics: AnalyticsView,
  { title, empty, more = html``, isWhole = true }: ClicksPanel,
): Html {
  const { total, bots, days } = analytics;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  if (total + bots === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}</p></section>`;
  return html`<section class="panel group">${heading}
<p><strong class="figure">${total.toLocaleString("en")}</strong> ${total === 1 ? "click" : "clicks"}${
    bots > 0
      ? html` <span class="soft">and ${bots.toLocaleString("en")} of known bots, which are counted apart</span>`
      : html``
  }</p>
${chart(days)}
${total > 0 && isWhole ? places(analytics) : html``}
</section>`;
}

function places({ total, referrers, countries }: AnalyticsView): Html {
  const from = referrers.map(({ referrer, clicks }) => ({
    name: referrer ?? "Directly, or not said",
    clicks,
  }));
  const isKnown = countries.some(({ country }) => country !== null);
  const where = countries.map(({ country, clicks }) => ({ name: nameOf(country), clicks }));
  return html`<div class="tiles places">
<div><h3>Where they came from</h3>${shares("Referrer", from, total)}</div>
${isKnown ? html`<div><h3>Countries</h3>${shares("Country", where, total)}</div>` : html``}
</div>`;
}

function shares(head: string, rows: Place[], total: number): Html {
  return html`<div class="shares">${table(
    head,
    [
      { head, cell: ({ name }) => name },
      {
        head: "Clicks",
        cell: ({ clicks }) => html`<span class="number">${clicks.toLocaleString("en")}</span>`,
      },
      { head: "Share", cell: ({ clicks }) => share(clicks / total) },
    ],
    rows,
  )}</div>`;
}

function share(part: number): Html {
  const percent = part > 0 && part < 0.01 ? "< 1 %" : `${Math.round(part * 100)} %`;
  return html`<span class="share"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="${Math.max(1, part * 100).toFixed(1)}" height="8"/></svg>${percent}</span>`;
}

function nameOf(country: string | null): string {
  if (country === null) return "Not known";
  return COUNTRIES.of(country) ?? country;
}

type AnalyticsPage = {
  path: string;
  /** The page that this one belongs to. */
  back: string;
  typed: { from?: string | undefined; to?: string | undefined };
  errors: FieldErrors;
  analytics: AnalyticsView;
};

/** Clicks of the days that are asked for. */
export function analyticsPage({ path, back, typed, errors, analytics }: AnalyticsPage): Html {
  const { days } = analytics;
  return html`<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From", type: "date", value: typed.from, error: errors.from })}
${field({ name: "to", label: "To", type: "date", value: typed.to, error: errors.to })}
<button type="submit" class="quiet">Show these days</button>
</form>
${clicksPanel(analytics, {
  title: `${days[0]?.date} to ${days.at(-1)?.date}`,
  empty: "Nobody clicked on these days.",
})}
<p>${linkButton(back, "Back", "quiet")}</p>`;
}

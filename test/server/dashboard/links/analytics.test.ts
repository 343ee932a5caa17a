import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { isProblem, type LinkBody } from "../../harness/api.ts";
import { linksInBrowser } from "../../harness/pages.ts";
import type { Page } from "../../harness/person.ts";
import { startTestService } from "../../harness/service.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const service = await startTestService({ TRUST_PROXY: "1" });
test.after.always(() => service.close());

const TODAY = new Date().toISOString().slice(0, 10);

async function click({ short_url }: LinkBody, headers: Record<string, string> = {}) {
  await fetch(short_url, { redirect: "manual", headers: { "user-agent": BROWSER, ...headers } });
}

/** A link that five people and a bot have followed, and one that nobody has. */
async function withClicks() {
  const team = await linksInBrowser(service);
  const [link, other] = [await team.create({ title: "Followed" }), await team.create()];
  for (const headers of [
    { referer: "https://news.example/a", "cf-ipcountry": "SE" },
    { referer: "https://news.example/b", "cf-ipcountry": "SE" },
    { referer: "https://news.example/c", "cf-ipcountry": "DE" },
    { referer: "https://social.example/" },
    {},
    { "user-agent": "Googlebot/2.1" },
  ]) {
    await click(link, headers as Record<string, string>);
  }
  return { ...team, link, other };
}

const textsOf = ({ html }: Page, selector: string) =>
  html.querySelectorAll(selector).map(({ text }) => text.trim());

test("the clicks of a link, and of all, are told to programs as the API tells them", async (t) => {
  const { member, base, path, link, other, create } = await withClicks();
  const analytics = async (address: string) => (await member.api.get<AnalyticsView>(address)).body;
  const { days, ...sums } = await analytics(`${path}/${link.id}/analytics`);
  t.deepEqual(sums, {
    total: 5,
    bots: 1,
    referrers: [
      { referrer: "news.example", clicks: 3 },
      { referrer: null, clicks: 1 },
      { referrer: "social.example", clicks: 1 },
    ],
    countries: [
      { country: null, clicks: 2 },
      { country: "SE", clicks: 2 },
      { country: "DE", clicks: 1 },
    ],
  });
  t.is(days.length, 30);
  t.deepEqual(days.at(-1), { date: TODAY, clicks: 5, bots: 1 });
  t.is((await analytics(`${path}/${other.id}/analytics`)).total, 0);
  await click(await create());
  t.is((await analytics(`${base}/analytics`)).total, 6);
  t.is((await analytics(`${base}/analytics?from=2026-01-01&to=2026-01-31`)).days.length, 31);
});

test("the page of a link has its picture of 30 days, which can be read without seeing it", async (t) => {
  const { open, link } = await withClicks();
  const page = await open(`/${link.id}`);
  const picture = page.html.querySelector("svg[role=img]");
  t.regex(picture?.attributes["aria-label"] ?? "", /: 5 in all, most of them on \d{4}-\d\d-\d\d: 5\.$/);
  t.is(page.html.querySelectorAll("svg[role=img] g").length, 30);
  t.is(page.html.querySelectorAll("svg[role=img] .people").length, 1);
  t.is(page.html.querySelectorAll("svg[role=img] .bots").length, 1);
  t.deepEqual(textsOf(page, "svg[role=img] g:last-of-type title"), [`${TODAY}: 5 clicks, 1 of bots`]);
  t.is(page.html.querySelectorAll(".chart tbody tr").length, 30);
  t.deepEqual(textsOf(page, ".chart tbody tr:first-child td"), [TODAY, "5", "1"]);
  t.is(page.html.querySelectorAll("[style], style").length, 0);
});

test("the page of a link tells where people came from", async (t) => {
  const { open, link } = await withClicks();
  const page = await open(`/${link.id}`);
  t.deepEqual(textsOf(page, '[data-head="Referrer"]'), [
    "news.example",
    "Directly, or not said",
    "social.example",
  ]);
  t.deepEqual(textsOf(page, '[data-head="Country"]'), ["Not known", "Sweden", "Germany"]);
  t.deepEqual(textsOf(page, '[data-head="Share"]'), ["60 %", "20 %", "20 %", "40 %", "40 %", "20 %"]);
});

test("a link that nobody has followed has no picture, but a word of it", async (t) => {
  const { open, other } = await withClicks();
  const page = await open(`/${other.id}`);
  t.is(page.html.querySelector(".chart"), null);
  t.regex(page.text, /Nobody has followed the link yet/);
});

test("the overview of the organization has the totals of all links", async (t) => {
  const { person, base, create, link } = await withClicks();
  await click(await create());
  await person.press(await person.open(`${service.url}${base}/links/${link.id}/delete`), "Delete link");
  const page = await person.open(service.url + base);
  t.deepEqual(textsOf(page, ".tiles .figure"), ["Growth", "2", "0", "3"]);
  t.is(page.html.querySelector("p strong.figure")?.text, "6");
  t.regex(page.html.querySelector("svg[role=img]")?.attributes["aria-label"] ?? "", /: 6 in all/);
});

test("other days are asked for on a page of their own", async (t) => {
  const { person, open, link, base } = await withClicks();
  for (const page of [
    await open(`/${link.id}/analytics`),
    await person.open(`${service.url}${base}/analytics`),
  ]) {
    t.is(page.html.querySelector("p strong.figure")?.text, "5");
    const then = await person.open(`${page.url}?from=2026-01-01&to=2026-01-31`);
    t.is(then.html.querySelector("[name=from]")?.attributes.value, "2026-01-01");
    t.is(then.html.querySelector("[name=to]")?.attributes.value, "2026-01-31");
    t.regex(then.text, /Nobody clicked on these days/);
    const emptied = await person.open(`${page.url}?from=&to=`);
    t.is(emptied.html.querySelector("p strong.figure")?.text, "5");
  }
});

const WRONG_DAYS: [query: string, code: string, field: string][] = [
  ["from=2026-02-01&to=2026-01-01", "invalid_from", "from"],
  ["from=2020-01-01&to=2026-01-01", "invalid_from", "from"],
  ["from=yesterday", "invalid_from", "from"],
  ["to=2026-02-30", "invalid_to", "to"],
  ["day=2026-01-01", "unknown_field", "day"],
];

for (const [query, code, field] of WRONG_DAYS) {
  test(`clicks of ${query} are refused, with what is wrong`, async (t) => {
    const { member, base, path, link, person } = await withClicks();
    for (const address of [`${base}/analytics`, `${path}/${link.id}/analytics`]) {
      const reply = await member.api.send("GET", `${address}?${query}`);
      isProblem(t, reply, { status: 422, code, fields: [field] });
      const page = await person.open(`${service.url}${address}?${query}`);
      t.is(page.status, 422);
      t.truthy(page.html.querySelector("[role=alert]"));
      if (field !== "day") t.truthy(page.html.querySelector(`#${field}-error`));
      t.is(page.html.querySelector("p strong.figure")?.text, "5");
    }
  });
}

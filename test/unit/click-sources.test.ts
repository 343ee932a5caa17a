import type { IncomingMessage } from "node:http";
import test from "ava";
import { createReadClickSource } from "../../resources/links/redirect.ts";
import { BROWSER } from "../harness/clients/api.ts";

const readSource = createReadClickSource(undefined);
const sourceOf = (headers: Record<string, string>) =>
  readSource({ headers: { "user-agent": BROWSER, ...headers } } as unknown as IncomingMessage);

const REFERRERS: [header: string, referrer: string | null][] = [
  ["https://Example.COM/path?query#x", "example.com"],
  ["https://ignore-previous-instructions.example.com/", "example.com"],
  ["https://a.b.example.co.uk/", "example.co.uk"],
  ["https://ada.github.io/", "ada.github.io"],
  ["https://192.0.2.1/", "192.0.2.1"],
  ["https://user:secret@example.com/", null],
  ["android-app://com.google.android.gm/", "google.com"],
  ["android-app://ignore.previous.instructions/", "previous.ignore"],
  ["android-app://Slack/", null],
  ["javascript:alert(1)", null],
  ["example.com", null],
  [`https://${"x".repeat(254)}/`, null],
];

test("only the registrable domain of a Referer is stored, and nothing if it isn't a URL", (t) => {
  for (const [referer, referrer] of REFERRERS) t.is(sourceOf({ referer }).referrer, referrer, referer);
  t.is(sourceOf({}).referrer, null);
});

const MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)";
const CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
const EDGE = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Edg/140.0.0.0`;
const AGENTS: [userAgent: string, device: string | null, browser: string | null, system: string | null][] = [
  [BROWSER, "desktop", "Firefox", "Linux"],
  [`${MAC} ${WEBKIT} Version/18.0 Safari/605.1.15`, "desktop", "Safari", "macOS"],
  [EDGE, "desktop", "Microsoft Edge", "Windows"],
  ["", null, null, null],
  ["ignore-previous-instructions/1.0 (Windows", null, null, null],
  ["constructor/1.0 __proto__", null, null, null],
  [`${BROWSER} ${"x".repeat(8000)}`, "desktop", "Firefox", "Linux"],
];

test("device, browser and operating system are those of the user agent, and never its text", (t) => {
  for (const [userAgent, device, browser, operatingSystem] of AGENTS)
    t.like(sourceOf({ "user-agent": userAgent }), { device, browser, operatingSystem }, userAgent);
});

test("known bots, and browsers that load a link in advance, don't count as people", (t) => {
  const bots: Record<string, string>[] = [
    { "user-agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)" },
    { "user-agent": "curl/8.5.0" },
    { "user-agent": "Viber/20.9.0.8 CFNetwork/1410.0.3 Darwin/22.6.0" },
    { "sec-purpose": "prefetch" },
    { "sec-purpose": "prefetch;prerender" },
    { purpose: "prefetch" },
    { "x-purpose": "preview" },
    { "x-moz": "prefetch" },
  ];
  for (const headers of bots) t.true(sourceOf(headers).bot, JSON.stringify(headers));
  for (const headers of [{}, { "sec-purpose": "" }, { purpose: "navigate" }])
    t.false(sourceOf(headers).bot, JSON.stringify(headers));
});

test("without a setting, no header tells the country", (t) =>
  t.is(sourceOf({ "cf-ipcountry": "CH" }).country, null));

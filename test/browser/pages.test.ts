import type { Browser, Page } from "playwright-core";
import { useChromium } from "../harness/browser/chromium.ts";
import { createGallery } from "../harness/browser/gallery.ts";
import { type GalleryPage, galleryPages } from "../harness/browser/gallery-pages.ts";
import { isReadable, openSignedIn } from "../harness/browser/readable.ts";
import { slowClock } from "../harness/clock.ts";
import { freePort } from "../harness/program.ts";
import { providerSettings, startWithProvider } from "../harness/providers/identity-provider.ts";
import { IS_THOROUGH } from "../harness/rounds.ts";
import { startTestService, type TestUser } from "../harness/service.ts";
import { startReceiver } from "../harness/webhooks.ts";

// Some pages need a recent sign-in, and a busy machine takes longer than that to open all.
slowClock(10);

const receiver = await startReceiver();
const { service } = await startWithProvider({ WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).hostname });
const gallery = await createGallery(service, receiver);
// A service without self-service, whose identity provider is unavailable.
const strict = await startTestService({
  ...providerSettings(`http://localhost:${await freePort()}`),
  REGISTRATION: "closed",
  SELF_SERVICE_PLANS: "off",
});

const inChromium = useChromium({ sharesPages: true });

const { users } = gallery;
const PAGES = galleryPages(service, strict, gallery, receiver);

const MAX_BYTES = 130 * 1024;
/** What the network sends for a page, with its style, font, icons and scripts. */
const BYTES = `["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`;

const SHIFTS_MAX = 0.02;
// Narrower ones only in a thorough run, for pages with an address: they are opened again.
const WIDTHS = IS_THOROUGH ? [1280, 768, 390] : [1280];
/** Adds up how far what is painted moves by itself (Cumulative Layout Shift). */
const OBSERVER = `window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifts += value;
  }).observe({ type: "layout-shift", buffered: true })`;
const PAINTED = `new Promise((resolve) =>
  new PerformanceObserver(() => resolve()).observe({ type: "paint", buffered: true }))`;

const visitors = new Map<GalleryPage[1], ReturnType<typeof openSignedIn>>();
const visited = new Set<string>();
const linked = new Map<string, { page: Page; from: string; href: string }>();

/** Returns the browser page of a user, who is signed in there, with its errors and warnings. */
function pageOf(browser: Browser, who: GalleryPage[1]) {
  const known = visitors.get(who) ?? openObserved(browser, who === "visitor" ? undefined : users[who]);
  visitors.set(who, known);
  return known;
}

/** Scripts arrive after the first paint, as on a slow network: what they move then is seen. */
async function openObserved(browser: Browser, user?: TestUser) {
  const opened = await openSignedIn(browser, service.url, user);
  await opened.page.addInitScript(OBSERVER);
  await opened.page.route(/\.js\?/, async (route) => {
    await opened.page.evaluate(PAINTED).catch(() => {});
    await route.continue();
  });
  return opened;
}

/** Returns the path of a page without its ids. */
function kindOf(url: string): string {
  return new URL(url).pathname.replaceAll(/(?<=\/)([a-z]{3}_\w{20,}|[\w-]{43}(?=\/|$))/g, "…");
}

// Pages of its own, which test/browser/docs.test.ts checks.
const DOCUMENTATION = `${service.url}/docs/`;

for (const [name, who, open] of PAGES)
  inChromium(
    `the page “${name}” is accessible, still and fits, light and dark, without errors`,
    async (t, browser) => {
      const { page, complaints } = await pageOf(browser, who);
      for (const width of typeof open === "string" ? WIDTHS.toReversed() : [1280]) {
        await page.setViewportSize({ width, height: 900 });
        await (typeof open === "string" ? page.goto(open) : open(page));
        const shifts = await page.evaluate<number>("shifts");
        t.true(shifts < SHIFTS_MAX, `what is painted moves at ${width} px: ${shifts}`);
      }
      t.is(await page.locator("h1").count(), 1);
      // Before the other theme loads its pictures.
      const bytes = await page.evaluate<number>(BYTES);
      t.true(bytes < MAX_BYTES, `${bytes} bytes`);
      await isReadable(t, page, name);
      // The status of a page that explains an outage is logged as an error.
      const isOutage = /provider-unavailable$/.test(name);
      const errors = complaints.splice(0).filter((one) => !isOutage || !one.includes("a status of 503"));
      t.deepEqual(errors, []);
      visited.add(kindOf(page.url()));
      const links = await page.evaluate<string[]>("[...document.links].map(({ href }) => href)");
      for (const href of links)
        if (href.startsWith(service.url) && !href.startsWith(DOCUMENTATION))
          linked.set(kindOf(href), { page, from: name, href });
    },
  );

inChromium("every linked page is checked", async (t) => {
  const missing = [];
  for (const [kind, { page, from, href }] of linked) {
    if (visited.has(kind)) continue;
    const response = await page.request.get(href, { maxRedirects: 0, headers: { accept: "text/html" } });
    const isPage = response.headers()["content-type"]?.startsWith("text/html");
    if (isPage && response.status() < 300) missing.push(`${kind}, from ${from}`);
  }
  t.deepEqual(missing, []);
});

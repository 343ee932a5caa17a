import type { Browser, Locator } from "playwright-core";
import { openPage, useChromium } from "../harness/browser/chromium.ts";
import { isReadable, violationsOf } from "../harness/browser/readable.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const inChromium = useChromium();

async function open(browser: Browser, path: string) {
  const opened = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await opened.page.goto(`${service.url}/docs${path}`);
  return opened;
}

async function hrefsOf(links: Locator): Promise<string[]> {
  return Promise.all((await links.all()).map(async (link) => (await link.getAttribute("href")) ?? ""));
}

inChromium("the chosen language is that of all tabs, and of the next page", async (t, browser) => {
  const { page, complaints } = await open(browser, "/quick-start");
  await page.locator("label", { hasText: "TypeScript" }).first().click();
  t.is(await page.locator(".switch pre:visible", { hasText: "curl " }).count(), 0);
  await page.goto(`${service.url}/docs/api/create-link`);
  t.true(await page.getByText("import { createClient }").isVisible());
  await page.reload();
  t.true(await page.getByText("import { createClient }").isVisible());
  t.deepEqual(complaints, []);
});

inChromium("an example is copied as it is shown, and a page as Markdown", async (t, browser) => {
  const { page } = await open(browser, "/api/create-link");
  const block = page.locator(".block:visible").first();
  await block.hover();
  await block.getByRole("button", { name: "Copy code" }).click();
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  t.is(copied, (await block.locator("code").textContent()) ?? "");
  t.regex(copied, /^curl http/);
  await page.getByRole("button", { name: "Copy page" }).click();
  await page.locator("[data-markdown]", { hasText: "Copied" }).waitFor();
  t.regex(await page.evaluate<string>("navigator.clipboard.readText()"), /^# Create a link\n/);
});

inChromium("the search finds pages while the user types, with the keyboard only", async (t, browser) => {
  const { page, complaints } = await open(browser, "");
  await page.keyboard.press("/");
  await page.keyboard.type("slug_taken");
  const results = page.locator(".results a");
  await results.first().waitFor();
  t.deepEqual(await violationsOf(page), []);
  await page.keyboard.press("Escape");
  t.false(await results.first().isVisible());
  t.is(await page.getByRole("searchbox").inputValue(), "");
  await page.keyboard.type("secret urls");
  await results.getByText("Secret URLs").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/webhooks#secret-urls$/);
  t.deepEqual(complaints, []);
});

inChromium("what is found with JavaScript is found without it", async (t, browser) => {
  const { page } = await open(browser, "/search?q=rate+limits");
  const found = page.locator(".found a");
  const without = await hrefsOf(found);
  t.true(without.length > 0);
  await page.getByRole("searchbox").press("End");
  await page.keyboard.type(" ");
  await page.locator(".results a").first().waitFor();
  const results = page.locator(".results a");
  t.deepEqual(await hrefsOf(results), without);
});

const PAGES = [
  ...["", "/quick-start", "/webhooks", "/mcp", "/settings", "/security/asvs", "/search?q=token"],
  ...["/api", "/api/create-link", "/api/get-analytics", "/api/events", "/errors", "/errors/invalid_request"],
];

inChromium("without JavaScript, a phone's navigation and search work", async (t, browser) => {
  const viewport = { width: 390, height: 800 };
  const { page } = await openPage(browser, { javaScriptEnabled: false, viewport });
  await page.goto(`${service.url}/docs`);
  t.false(await page.locator(".sidebar").isVisible());
  await page.getByText("All pages").click();
  await page.locator(".sidebar").getByRole("link", { name: "Rate limits" }).click();
  t.is(await page.locator("h1").textContent(), "Rate limits");
  await page.getByRole("searchbox").fill("slug_taken");
  await page.keyboard.press("Enter");
  await page.locator(".found a").first().click();
  t.true(page.url().endsWith("/docs/errors/slug_taken"));
});

for (const path of PAGES)
  inChromium(`/docs${path} fits at every width, and is accessible in light and dark`, async (t, browser) => {
    const { page } = await openPage(browser, { reducedMotion: "reduce" });
    await page.goto(`${service.url}/docs${path}`);
    for (const width of [320, 390, 801, 961, 1100, 1281, 1360]) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      t.true(overflow <= 0, `${overflow} px too wide at ${width} px`);
    }
    await isReadable(t, page, `docs${path.replaceAll(/\W/g, "-")}`);
  });

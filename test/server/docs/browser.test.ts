import test from "ava";
import type { Browser, Locator, Page } from "playwright-core";
import { violationsOf } from "../../harness/browser/axe.ts";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { ANSWERS } from "../../harness/documentation.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

async function open(browser: Browser, path: string) {
  const opened = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await opened.page.goto(`${service.url}/docs${path}`);
  return opened;
}

function copied(page: Page): Promise<string> {
  return page.evaluate<string>("navigator.clipboard.readText()");
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

inChromium("tabs change with the arrow keys", async (t, browser) => {
  const { page } = await open(browser, "/api/create-link");
  await page.getByRole("radio", { name: "curl" }).focus();
  await page.keyboard.press("ArrowRight");
  t.true(await page.getByText("await linkgate.createLink").isVisible());
  t.false(await page.getByText("curl http").isVisible());
});

inChromium("an example is copied as it is shown", async (t, browser) => {
  const { page } = await open(browser, "/api/create-link");
  const block = page.locator(".block:visible").first();
  await block.hover();
  await block.getByRole("button", { name: "Copy code" }).click();
  t.is(await copied(page), (await block.locator("code").textContent()) ?? "");
  t.regex(await copied(page), /^curl http/);
});

inChromium("a page is copied as Markdown", async (t, browser) => {
  const { page } = await open(browser, "/webhooks");
  await page.getByRole("button", { name: "Copy page" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  t.is(await copied(page), await (await fetch(`${service.url}/docs/webhooks.md`)).text());
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

inChromium("each question is answered by the search on a phone", async (t, browser) => {
  const { page } = await open(browser, "");
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [question, answer] of Object.entries(ANSWERS)) {
    await page.goto(`${service.url}/docs`);
    await page.getByRole("searchbox").fill(question);
    const results = page.locator(".results a");
    await results.first().waitFor();
    const paths = await hrefsOf(results);
    const found = paths.slice(0, 3).findIndex((path) => answer.test(path));
    t.not(found, -1, `${question}: ${paths}`);
    await results.nth(found).click();
    await page.waitForURL((url) => answer.test(url.pathname + url.hash));
    t.true(await page.locator("main h1").isVisible());
  }
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

import test from "ava";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { isReadable } from "../../harness/browser/readable.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

const PAGES = [
  "",
  "/quick-start",
  "/webhooks",
  "/mcp",
  "/settings",
  "/security/asvs",
  "/api",
  "/api/create-link",
  "/api/get-analytics",
  "/api/events",
  "/errors",
  "/errors/invalid_request",
  "/search?q=token",
];

inChromium(
  "without JavaScript, the type of an error leads to its code, and examples can be opened",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(`${service.url}/docs/errors/slug_taken`);
    t.is(await page.locator("h1").textContent(), "slug_taken");
    await page.getByRole("link", { name: "Create a link" }).click();
    await page.locator("label", { hasText: "TypeScript" }).click();
    t.true(await page.getByText("import { createClient }").isVisible());
    t.false(await page.getByText("curl http").isVisible());
    t.deepEqual(complaints, []);
  },
);

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

inChromium("the table of contents works with the keyboard", async (t, browser) => {
  const { page } = await openPage(browser, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${service.url}/docs/webhooks`);
  const contents = page.getByRole("navigation", { name: "On this page" });
  const link = contents.getByRole("link", { name: "Secret URLs" });
  await link.focus();
  await page.keyboard.press("Enter");
  t.true(page.url().endsWith("#secret-urls"));
  t.true(await page.getByRole("heading", { name: "Secret URLs" }).isVisible());
});

inChromium("on wide screens, all pages are listed without opening them", async (t, browser) => {
  const { page } = await openPage(browser, { viewport: { width: 1360, height: 900 } });
  await page.goto(`${service.url}/docs/webhooks`);
  const navigation = page.getByRole("navigation", { name: "Documentation" });
  t.true(await navigation.getByRole("link", { name: "Rate limits" }).isVisible());
  t.is(await navigation.locator("[aria-current=page]").textContent(), "Webhooks");
});

inChromium("the documentation fits at every width", async (t, browser) => {
  const { page } = await openPage(browser);
  for (const path of PAGES) {
    await page.goto(`${service.url}/docs${path}`);
    for (const width of [320, 390, 801, 961, 1100, 1281, 1360]) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      t.true(overflow <= 0, `${path}: ${overflow} px too wide at ${width} px`);
    }
  }
});

for (const path of PAGES)
  inChromium(`/docs${path} is accessible, in light and dark`, async (t, browser) => {
    const { page } = await openPage(browser, { reducedMotion: "reduce" });
    await page.goto(`${service.url}/docs${path}`);
    await isReadable(t, page, `docs${path.replaceAll(/\W/g, "-")}`);
  });

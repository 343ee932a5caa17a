import test from "ava";
import { openPage, useChromium } from "../../harness/browser/chromium.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

inChromium(
  "without JavaScript, the type of an error leads to its code, and examples can be opened",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(`${service.url}/docs#slug_taken`);
    const code = page.locator("#slug_taken");
    const { y = -1 } = (await code.boundingBox()) ?? {};
    t.true(y >= 0 && y < 720, `${y}`);

    const [example] = await page.locator("#createLink details summary").all();
    await example?.click();
    t.true(await page.locator("#createLink details pre").isVisible());
    t.deepEqual(complaints, []);
  },
);

inChromium("the table of contents works with the keyboard", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.goto(`${service.url}/docs`);
  const link = page.getByRole("navigation", { name: "Contents" }).getByRole("link", { name: "Rate limits" });
  await link.focus();
  await page.keyboard.press("Enter");
  t.true(page.url().endsWith("#rate-limits"));
  t.true(await page.getByRole("heading", { name: "Rate limits" }).isVisible());
});

inChromium("the documentation fits at every width", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.goto(`${service.url}/docs`);
  for (const width of [360, 801, 820, 900, 1000, 1100, 1200, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    t.true(overflow <= 0, `${overflow} px too wide at ${width} px`);
  }
});

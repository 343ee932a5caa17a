import test from "ava";
import { openPage, useChromium } from "../../harness/chromium.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

inChromium(
  "without JavaScript a code is explained where its type leads, and an example is read in full",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(`${service.url}/docs#slug_taken`);
    const code = page.locator("#slug_taken");
    const { y = -1 } = (await code.boundingBox()) ?? {};
    t.true(y >= 0 && y < 720, `${y}`);

    const [answer] = await page.locator("#createLink details summary").all();
    await answer?.click();
    t.true(await page.locator("#createLink details pre").isVisible());
    t.deepEqual(complaints, []);
  },
);

inChromium("the contents lead to each chapter with the keyboard", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.goto(`${service.url}/docs`);
  const link = page.getByRole("navigation", { name: "Contents" }).getByRole("link", { name: "Rate limits" });
  await link.focus();
  await page.keyboard.press("Enter");
  t.true(page.url().endsWith("#rate-limits"));
  t.true(await page.getByRole("heading", { name: "Rate limits" }).isVisible());
});

import test from "ava";
import { openPage, tabTo, useChromium } from "../../../harness/browser/chromium.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
const { base, member } = await createTeam(service);
test.after.always(() => service.close());
const inChromium = useChromium();

inChromium("a link can be created, copied and viewed with only the keyboard", async (t, browser) => {
  const { page, complaints } = await openPage(browser, {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await page.goto(`${service.url}/auth/login`);
  await tabTo(page, "Username");
  await page.keyboard.type(member.username);
  await tabTo(page, "Password");
  await page.keyboard.type(member.password);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/dashboard/);

  await page.goto(`${service.url}${base}/links`);
  await tabTo(page, "Shorten a URL");
  await page.keyboard.type("https://example.com/a");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/links\/lnk_\w+\?done=link-created$/);
  const shortLink = (await page.locator(".copyable code").textContent()) ?? "";

  await tabTo(page, "Copy the short link");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Copied" }).waitFor();
  t.is(await page.evaluate("navigator.clipboard.readText()"), shortLink);

  t.true((await page.evaluate<number>("document.querySelector('.qr img').naturalWidth")) > 0);
  await fetch(shortLink, { redirect: "manual", headers: { "user-agent": "Mozilla/5.0 Firefox/140.0" } });
  await page.reload();
  const chart = page.getByRole("img", { name: /Clicks per day .* 1 in total/ });
  t.true(((await chart.boundingBox())?.height ?? 0) > 100);
  await tabTo(page, "View as table");
  await page.keyboard.press("Enter");
  t.is(await page.locator(".chart tbody tr").count(), 30);
  t.true(await page.locator(".chart tbody tr").first().isVisible());
  t.deepEqual(complaints, []);
});

import { buffer } from "node:stream/consumers";
import test from "ava";
import { openPage, tabTo, useChromium } from "../../../harness/browser/chromium.ts";
import { fill, press } from "../../../harness/browser/page-actions.ts";
import { readQrPng } from "../../../harness/browser/qr.ts";
import { openSignedIn } from "../../../harness/browser/readable.ts";
import type { LinkBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

export const stage = "browser";

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
  const chart = page.getByRole("img", { name: /Clicks per day, .* 1 in total/ });
  t.true(((await chart.boundingBox())?.height ?? 0) > 100);
  await tabTo(page, "View as table");
  await page.keyboard.press("Enter");
  t.is(await page.locator(".chart tbody tr").count(), 30);
  t.true(await page.locator(".chart tbody tr").first().isVisible());
  t.deepEqual(complaints, []);
});

inChromium(
  "the form of a link takes the expiry in local time, builds UTM parameters, and previews the link",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser, {
      baseURL: service.url,
      timezoneId: "America/New_York",
    });
    await page.goto("/auth/login");
    await fill(page, { username: member.username, password: member.password });
    await press(page, "Sign in");
    await page.waitForURL(/\/dashboard/);
    await page.goto(`${base}/links/new`);

    const url = page.getByLabel("Destination URL");
    const preview = page.locator(".preview dd");
    await fill(page, { url: "example.com/a%20b?x=1&utm_source=old#top", slug: "local", title: "Local" });
    await page.getByText("UTM parameters").click();
    t.is(await page.getByLabel("Source").inputValue(), "old");
    await fill(page, { utm_source: "new", utm_campaign: "spring & summer" });
    t.is(
      await url.inputValue(),
      "example.com/a%20b?x=1&utm_source=new&utm_campaign=spring%20%26%20summer#top",
    );
    t.deepEqual(await preview.allTextContents(), [
      `${new URL(service.url).host}/local`,
      "example.com/a%20b?x=1&utm_source=new&utm_campaign=spring%20%26%20summer#top",
      "Local",
    ]);
    await fill(page, { utm_campaign: "" });
    await page.getByText("More options").click();
    await page.getByLabel("Expires (your time, America/New_York)").fill("2030-07-01T14:00");
    await press(page, "Create link");
    await page.waitForURL(/done=link-created/);

    const { pathname } = new URL(page.url());
    const read = async () => (await member.api.get<LinkBody>(pathname)).body;
    const created = await read();
    t.like(created, {
      url: "https://example.com/a%20b?x=1&utm_source=new#top",
      expires_at: "2030-07-01T18:00:00.000Z",
    });

    // Another field is changed, and the seconds that the form doesn't show remain.
    const json = { expires_at: "2030-12-01T18:00:30.000Z" };
    await member.api.send("PATCH", pathname, { json });
    await page.goto(`${pathname}/edit`);
    t.is(await page.locator("#expires_at").inputValue(), "2030-12-01T13:00");
    await fill(page, { title: "Changed" });
    await press(page, "Save link");
    await page.waitForURL(/done=link-saved/);
    t.like(await read(), { title: "Changed", ...json });

    await page.goto(`${pathname}/edit`);
    await page.locator("#expires_at").fill("");
    await press(page, "Save link");
    await page.waitForURL(/done=link-saved/);
    t.is((await read()).expires_at, null);
    t.deepEqual(complaints, []);
  },
);

inChromium(
  "a QR code is downloaded in the chosen size and color, and browsers show it",
  async (t, browser) => {
    const json = { url: "https://example.com/", slug: "scanned" };
    const { id, short_url } = (await member.api.send<LinkBody>("POST", `${base}/links`, { json })).body;
    const page = await openSignedIn(browser, service.url, member);
    await page.goto(`${base}/links/${id}`);
    await page.getByText("Size and color").click();
    await fill(page, { size: "300", color: "#1f5fbf" });
    const [download] = await Promise.all([page.waitForEvent("download"), press(page, "Download PNG")]);
    t.is(download.suggestedFilename(), "scanned.png");
    const png = await buffer(await download.createReadStream());
    t.deepEqual(readQrPng(png), { text: short_url, size: 300, color: "1f5fbf" });
    await page.goto(`${base}/links/${id}/qr.png?size=300`);
    t.is(await page.evaluate<number>("document.images[0].naturalWidth"), 300);
  },
);

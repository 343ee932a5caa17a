import test from "ava";
import type { Browser } from "playwright-core";
import { openPage, useChromium } from "../../../harness/browser/chromium.ts";
import { isReadable, openSignedIn } from "../../../harness/browser/readable.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { startTestService } from "../../../harness/service.ts";

export const stage = "browser";

const service = await startTestService();
test.after.always(() => service.close());
const inChromium = useChromium();

type Team = Awaited<ReturnType<typeof createTeam>>;

async function createLink({ base, owner }: Team, slug?: string): Promise<void> {
  await owner.api.send("POST", `${base}/links`, { json: { url: "https://example.com/", slug } });
}

/** Opens the list of three links: docs, news and shop. */
async function openList(browser: Browser) {
  const team = await createTeam(service);
  const slugs = ["docs", "news", "shop"].map((name) => `${name}-${team.organization.id.slice(-8)}`);
  for (const slug of slugs) await createLink(team, slug);
  const page = await openSignedIn(browser, service.url, team.owner);
  await page.goto(`${team.base}/links`);
  return { page, slugs, base: team.base };
}

inChromium("the list is filtered while the user types", async (t, browser) => {
  const { page, slugs } = await openList(browser);
  await page.evaluate("window.isSamePage = true");
  t.is(await page.locator("tbody tr").count(), 3);
  t.false(await page.getByRole("button", { name: "Apply" }).isVisible());
  await page.getByLabel("Search").pressSequentially(slugs[1] as string);
  await page.waitForURL((url) => url.searchParams.get("search") === slugs[1]);
  t.is(await page.locator("tbody tr").count(), 1);
  t.true(await page.evaluate("window.isSamePage"));
  t.is(await page.locator("[data-export]").textContent(), "Export 1 link as CSV");
  await page.reload();
  t.is(await page.locator("tbody tr").count(), 1);
});

inChromium("selected rows have actions, and say how many they are", async (t, browser) => {
  const { page, slugs } = await openList(browser);
  const bar = page.getByRole("group", { name: "Selected links" });
  t.false(await bar.isVisible());
  await page.getByLabel(`/${slugs[0]}`).check();
  t.true(await bar.isVisible());
  t.is(await bar.getByRole("status").textContent(), "1 selected");
  await page.getByLabel("Select all").check();
  t.is(await bar.getByRole("status").textContent(), "3 selected");
  await bar.getByRole("button", { name: "Archive" }).click();
  await page.getByText("3 links archived.").waitFor();
  t.is(await page.locator("tbody tr").count(), 0);
});

inChromium(
  "on a phone, the actions on selected rows take two rows, and leave the number of links visible",
  async (t, browser) => {
    const { page } = await openList(browser);
    await page.setViewportSize({ width: 390, height: 844 });
    t.true(((await page.getByLabel("Sort").boundingBox())?.width ?? 0) >= 140);
    await page.goto(`${page.url()}?limit=2&archived=all`);
    await page.getByLabel("Select all", { exact: true }).check();
    const bar = page.getByRole("group", { name: "Selected links" });
    t.true(((await bar.boundingBox())?.height ?? Infinity) < 90);
    await bar.getByRole("button", { name: "Delete" }).focus();
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    const [count, actions] = [await page.getByText("of 3 links").boundingBox(), await bar.boundingBox()];
    t.true((count?.y ?? 0) >= (actions?.y ?? Infinity) + (actions?.height ?? Infinity));
  },
);

inChromium("all links that match are offered once the page is selected", async (t, browser) => {
  const { page } = await openList(browser);
  await page.goto(`${page.url()}?limit=2`);
  const bar = page.getByRole("group", { name: "Selected links" });
  const others = bar.getByLabel("Select all 3 links");
  await page.locator("tbody [type=checkbox]").first().check();
  t.false(await others.isVisible());
  await page.getByLabel("Select all", { exact: true }).check();
  t.is(await bar.getByRole("status").textContent(), "2 selected");
  await others.check();
  t.is(await bar.getByRole("status").textContent(), "3 selected");
  await isReadable(t, page, "links-select-all");
  await page.locator("tbody [type=checkbox]").first().uncheck();
  t.false(await others.isVisible());
  t.is(await bar.getByRole("status").textContent(), "1 selected");
  await page.locator("tbody [type=checkbox]").first().check();
  t.false(await others.isChecked());
  await others.check();
  await bar.getByRole("button", { name: "Archive" }).click();
  await page.getByText("3 links archived.").waitFor();
  t.is(await page.locator("tbody tr").count(), 0);
});

inChromium("the Undo button of the confirmation restores archived links", async (t, browser) => {
  const { page, slugs } = await openList(browser);
  await page.getByLabel(`/${slugs[0]}`).check();
  await page.getByRole("button", { name: "Archive" }).click();
  const toast = page.getByRole("status").filter({ hasText: "1 link archived." });
  await isReadable(t, page, "links-undo");
  // A new selection takes its place.
  await page.getByLabel(`/${slugs[1]}`).check();
  t.false(await toast.isVisible());
  await page.getByLabel(`/${slugs[1]}`).uncheck();
  await toast.getByRole("button", { name: "Undo" }).click();
  await page.getByText("1 link restored.").waitFor();
  t.is(await page.locator("tbody tr").count(), 3);
});

inChromium("a whole page is selected on a phone", async (t, browser) => {
  const { page } = await openList(browser);
  await page.setViewportSize({ width: 360, height: 800 });
  await page.getByLabel("Select all", { exact: true }).check();
  t.is(await page.locator(".selection").getByRole("status").textContent(), "3 selected");
});

inChromium("links are selected, archived and restored without scripts", async (t, browser) => {
  const team = await createTeam(service);
  for (let number = 0; number < 3; number++) await createLink(team);
  const context = await browser.newContext({ baseURL: service.url, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto("/auth/login");
  await page.getByLabel("Username").fill(team.owner.username);
  await page.getByLabel("Password").fill(team.owner.password);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/dashboard/);
  await page.goto(`${team.base}/links?limit=2`);
  t.is(await page.locator("thead [type=checkbox]:visible").count(), 0, "it needs a script");
  await page.locator("tbody [type=checkbox]").first().check();
  await page.getByLabel("Select all 3 links").check();
  await page.getByRole("button", { name: "Archive" }).click();
  await page.getByText("3 links archived.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("3 links restored.").waitFor();
  t.is(await page.locator(".pages .soft").textContent(), "1–2 of 3 links");
});

inChromium("keys search, create, move, select and go anywhere", async (t, browser) => {
  const { page, slugs, base } = await openList(browser);
  const focused = () =>
    page.evaluate<string>("document.activeElement.id || document.activeElement.textContent");
  await page.keyboard.press("/");
  t.is(await focused(), "search");
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  t.true((await focused()).endsWith(`/${slugs[1]}`));
  await page.keyboard.press("k");
  await page.keyboard.press("x");
  t.true(await page.getByLabel(`/${slugs[2]}`).isChecked());
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");

  await page.keyboard.press("Control+k");
  const box = page.getByRole("dialog", { name: "Go to a page or link" });
  await box.getByRole("link", { name: "Team", exact: true }).waitFor();
  const found = () => box.getByRole("link").allTextContents();
  for (const [words, place] of PLACES) {
    await box.getByLabel("Go to").fill(words);
    t.true((await found()).includes(place), words);
  }
  await box.getByLabel("Go to").fill("");
  await box.getByLabel("Go to").pressSequentially(slugs[0] as string);
  await box.getByRole("link", { name: `/${slugs[0]}` }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/links\/lnk_\w+$/);
  await page.goto(`${base}/links`);
  await page.keyboard.press("c");
  await page.waitForURL(/\/links\/new$/);
});

const PLACES = [
  ["two-factor", "Second factor and passkeys"],
  ["second factor", "Require a second factor"],
  ["rotate secret", "Credentials"],
  ["redirect", "Redirect URIs"],
  ["GitHub Actions", "Workload identity"],
  ["invite", "Invite a member"],
  ["import", "Import links"],
  ["documentation", "Documentation"],
] as const;

inChromium("times are local, and exact on hover", async (t, browser) => {
  const { page, complaints } = await openPage(browser, { timezoneId: "Asia/Tokyo" });
  const team = await createTeam(service);
  await createLink(team);
  await page.goto(`${service.url}/auth/login`);
  await page.getByLabel("Username").fill(team.owner.username);
  await page.getByLabel("Password").fill(team.owner.password);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/dashboard/);
  await page.goto(`${service.url}${team.base}/links`);
  const created = page.locator("tbody time").last();
  t.regex((await created.textContent()) ?? "", /^(just now|\d min\. ago)$/);
  t.regex((await created.getAttribute("title")) ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
  await page.locator("tbody a").first().click();
  const exact = page.locator(".facts time").first();
  const at = new Date((await exact.getAttribute("datetime")) ?? "");
  const inTokyo = at.toLocaleString("en-US", {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: "Asia/Tokyo",
  });
  t.is(await exact.textContent(), inTokyo);
  t.deepEqual(complaints, []);
});

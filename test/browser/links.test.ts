import type { Browser, Page } from "playwright-core";
import { openPage, tabTo, useChromium } from "../harness/browser/chromium.ts";
import { fill, press, waitForError } from "../harness/browser/page-actions.ts";
import { isReadable, openSignedIn } from "../harness/browser/readable.ts";
import { startCallbackServer } from "../harness/callback.ts";
import type { LinkBody } from "../harness/clients/api.ts";
import { createTeam } from "../harness/clients/dashboard.ts";
import { storeDomain } from "../harness/domains.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { base, organization, member } = await createTeam(service);
await storeDomain(service.storage, organization.id, "go.acme.example");
const inChromium = useChromium();

inChromium("a link can be created, copied and viewed with only the keyboard", async (t, browser) => {
  const permissions = ["clipboard-read", "clipboard-write"];
  const { page, complaints } = await openSignedIn(browser, service.url, member, { permissions });
  await page.goto(`${base}/links`);
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
  const [slider, tip] = [page.getByRole("slider", { name: "Clicks" }), page.locator(".tip")];
  t.false(await tip.isVisible());
  await tabTo(page, (await tip.textContent()) ?? "");
  t.regex((await tip.textContent()) ?? "", /, today so far: 1 click$/);
  await page.keyboard.press("ArrowLeft");
  t.regex((await slider.getAttribute("aria-valuetext")) ?? "", /\d: 0 clicks$/);
  await page.keyboard.press("Escape");
  t.false(await tip.isVisible());
  const { x, y, width } = (await slider.boundingBox()) as { x: number; y: number; width: number };
  await page.mouse.move(x + width - 1, y + 1);
  t.regex((await tip.textContent()) ?? "", /, today so far: 1 click$/);
  await slider.dispatchEvent("pointerdown", { pointerType: "touch", clientX: x + 1 });
  await slider.dispatchEvent("pointerleave", { pointerType: "touch" });
  t.regex((await tip.textContent()) ?? "", /\d: 0 clicks$/);
  t.true(await tip.isVisible());
  await tabTo(page, "View as table");
  await page.keyboard.press("Enter");
  t.is(await page.locator(".chart tbody tr").count(), 30);
  t.true(await page.locator(".chart tbody tr").first().isVisible());
  t.deepEqual(complaints, []);
});

inChromium("the form of a link takes local times, builds UTM parameters and previews", async (t, browser) => {
  const timezoneId = "America/New_York";
  const { page, complaints } = await openSignedIn(browser, service.url, member, { timezoneId });
  await page.goto(`${base}/links/new`);

  const url = page.getByLabel("Destination URL");
  const preview = page.locator(".preview dd");
  await fill(page, { url: "example.com/a%20b?x=1&utm_source=old#top", slug: "local", title: "Local" });
  await page.getByText("UTM parameters").click();
  t.is(await page.getByLabel("Source").inputValue(), "old");
  await fill(page, { utm_source: "new", utm_campaign: "spring & summer" });
  t.is(await url.inputValue(), "example.com/a%20b?x=1&utm_source=new&utm_campaign=spring%20%26%20summer#top");
  t.deepEqual(await preview.allTextContents(), [
    `${new URL(service.url).host}/local`,
    "example.com/a%20b?x=1&utm_source=new&utm_campaign=spring%20%26%20summer#top",
    "Local",
  ]);
  for (const host of ["go.acme.example", new URL(service.url).host]) {
    await page.getByLabel("Domain").selectOption(host);
    t.is(await preview.first().textContent(), `${host}/local`);
  }
  await fill(page, { utm_campaign: "" });
  await page.getByText("More options", { exact: true }).click();
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
});

inChromium("a visitor enters the password of a link, and lands at another origin", async (t, browser) => {
  const destination = await startCallbackServer();
  const json = { url: destination.url, password: "früh 🌷", redirect_type: 308 };
  const { body } = await member.api.send<LinkBody>("POST", `${base}/links`, { json });
  const { page, complaints } = await openPage(browser);
  await page.goto(`${body.short_url}?utm_source=mail#top`);
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await waitForError(page);
  t.is(await page.getByRole("alert").textContent(), "The password is wrong.");
  t.deepEqual(destination.arrived, []);
  await page.keyboard.type("früh 🌷");
  await press(page, "Continue");
  await page.getByRole("heading", { name: "Back in the app" }).waitFor();
  t.is(page.url(), `${destination.url}?utm_source=mail#top`);
  t.deepEqual(destination.arrived, ["/callback?utm_source=mail"]);
  t.deepEqual(await page.context().cookies(), []);
  t.deepEqual(complaints, []);
});

type Team = Awaited<ReturnType<typeof createTeam>>;

async function createLink({ base, owner }: Team, slug?: string): Promise<void> {
  await owner.api.send("POST", `${base}/links`, { json: { url: "https://example.com/", slug } });
}

/** Opens the list of three links: docs, news and shop. */
async function openList(browser: Browser) {
  const team = await createTeam(service);
  const slugs = ["docs", "news", "shop"].map((name) => `${name}-${team.organization.id.slice(-8)}`);
  for (const slug of slugs) await createLink(team, slug);
  const { page } = await openSignedIn(browser, service.url, team.owner);
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
  t.is(await page.locator("a[data-live]").textContent(), "Export 1 link as CSV");
  await page.reload();
  t.is(await page.locator("tbody tr").count(), 1);
  await page.locator("#archived").selectOption("true");
  await page.waitForURL(/archived=true/);
});

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
  await bar.getByRole("button", { name: "Archive" }).click();
  await page.getByText("3 links archived.").waitFor();
  t.is(await page.locator("tbody tr").count(), 0);
});

const focusedText = (page: Page) =>
  page.evaluate<string>("document.activeElement.textContent.trim() || document.activeElement.id");

/** Presses a key until an element with the text has the focus, and returns how often. */
async function countPresses(page: Page, key: string, text: string): Promise<number> {
  for (let presses = 1; presses <= 30; presses++) {
    await page.keyboard.press(key);
    if ((await focusedText(page)) === text) return presses;
  }
  return Infinity;
}

inChromium(
  "the actions are few keys from each selected row, and Undo has the focus after one",
  async (t, browser) => {
    const { page, slugs } = await openList(browser);
    const box = (index: number) => page.getByLabel(`Select ${new URL(service.url).host}/${slugs[index]}`);
    await box(2).focus();
    await page.keyboard.press("Space");
    t.true((await countPresses(page, "Shift+Tab", "Archive")) <= 10, "upward from the first row");
    await box(2).uncheck();
    await box(0).focus();
    await page.keyboard.press("Space");
    t.is(await countPresses(page, "Tab", "Go to actions"), 1, "from the last row");
    await page.keyboard.press("Enter");
    t.is(await focusedText(page), "Archive");
    await page.keyboard.press("Enter");
    const toast = page.getByRole("status").filter({ hasText: "1 link archived." });
    await toast.waitFor();
    t.is(await focusedText(page), "Undo");
    await isReadable(t, page, "links-undo");
    // A new selection takes its place.
    await box(1).check();
    t.false(await toast.isVisible());
    await box(1).uncheck();
    await toast.getByRole("button", { name: "Undo" }).press("Enter");
    await page.getByText("1 link restored.").waitFor();
    t.is(await page.locator("tbody tr").count(), 3);
  },
);

inChromium(
  "the menu of a row opens, copies and closes by keys, also after the list was filtered",
  async (t, browser) => {
    const { page, slugs } = await openList(browser);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByLabel("Search").pressSequentially(slugs[1] as string);
    await page.waitForURL((url) => url.searchParams.get("search") === slugs[1]);
    const menu = page.locator("tbody summary");
    await menu.press("Enter");
    await isReadable(t, page, "links-menu");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator(".sheet").getByText("Copied").waitFor();
    t.is(await page.evaluate("navigator.clipboard.readText()"), `${service.url}/${slugs[1]}`);
    await page.keyboard.press("Escape");
    t.false(await page.getByRole("link", { name: "QR code" }).isVisible());
    t.is(await page.evaluate("document.activeElement.localName"), "summary");
  },
);

inChromium(
  "a QR code is shown in its color while it is chosen, and a light one refused",
  async (t, browser) => {
    const { page } = await openList(browser);
    await page.locator("tbody summary").first().click();
    await page.getByRole("link", { name: "QR code" }).click();
    const color = page.getByLabel("Color");
    await color.fill("#1f5fbf");
    await page.locator("img[src$='color=%231f5fbf']").waitFor();
    await color.fill("#ffee00");
    await page.getByRole("alert").filter({ hasText: "Must be darker" }).waitFor();
    t.is(await color.getAttribute("aria-invalid"), "true");
    t.is(await page.locator("img[src*=qr]").count(), 0);
    await color.fill("#000000");
    await page.locator("img[src$='color=%23000000']").waitFor();
    t.is(await page.locator("#color-error").count(), 0);
  },
);

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
  const helped = async () => {
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    const keys = await help.locator("kbd").allTextContents();
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "hidden" });
    return keys.join(" ");
  };
  t.is(await helped(), "/ c e j k x ? Ctrl K");

  await page.keyboard.press("Control+k");
  const box = page.getByRole("dialog", { name: "Go to a page, a link or an action" });
  await box.getByRole("link", { name: "Team", exact: true }).waitFor();
  const found = () => box.getByRole("link").allTextContents();
  for (const [words, place] of PLACES) {
    await box.getByLabel("Go to", { exact: true }).fill(words);
    t.true((await found()).includes(place), words);
  }
  await box.getByLabel("Go to", { exact: true }).fill("");
  await box.getByLabel("Go to", { exact: true }).pressSequentially(slugs[0] as string);
  await box.getByRole("link", { name: `/${slugs[0]}` }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/links\/lnk_\w+$/);
  await page.keyboard.press("e");
  await page.waitForURL(/\/links\/lnk_\w+\/edit$/);
  await page.waitForFunction("document.activeElement.name === 'url'");
  await page.goto(`${base}/links`);
  await page.keyboard.press("j");
  await page.keyboard.press("e");
  await page.waitForURL(/\/links\/lnk_\w+\/edit$/);
  await page.goto(`${base}/settings`);
  t.is(await helped(), "/ c ? Ctrl K", "no rows");
  await page.keyboard.press("/");
  await box.waitFor();
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "hidden" });
  await page.keyboard.press("c");
  await page.waitForURL(/\/links\/new$/);
  await page.waitForFunction("document.activeElement.name === 'url'");
  await page.keyboard.press("Control+k");
  await box.getByLabel("Go to", { exact: true }).fill("sign out");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/auth\/login/);
});

const PLACES = [
  ["two-factor", "Two-factor authentication and passkeys"],
  ["rotate secret", "Rotate secret"],
  ["redirect", "Redirect URIs"],
  ["GitHub Actions", "Workload identity"],
  ["documentation", "Documentation"],
] as const;

inChromium("times are local, and exact on hover", async (t, browser) => {
  const team = await createTeam(service);
  await createLink(team);
  const timeZone = "Asia/Tokyo";
  const { page, complaints } = await openSignedIn(browser, service.url, team.owner, { timezoneId: timeZone });
  await page.goto(`${team.base}/links`);
  const created = page.locator("tbody time").last();
  t.regex((await created.textContent()) ?? "", /^(just now|\d min ago)$/);
  t.regex((await created.getAttribute("title")) ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
  await page.locator("tbody .short").first().click();
  const exact = page.locator(".facts time").first();
  const at = new Date((await exact.getAttribute("datetime")) ?? "");
  const inTokyo = at.toLocaleString("en-US", { dateStyle: "medium", timeStyle: "short", timeZone });
  t.is(await exact.textContent(), inTokyo);
  t.deepEqual(complaints, []);
});

import { openPage, tabTo, useChromium } from "../harness/browser/chromium.ts";
import { press } from "../harness/browser/page-actions.ts";
import { openSignedIn } from "../harness/browser/readable.ts";
import { startCallbackServer } from "../harness/callback.ts";
import { authorizeUrl } from "../harness/clients/authorization-request.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const service = await startTestService();
const { url: CALLBACK } = await startCallbackServer();
const app = await service.createOrganization("Third Party & Co");
await service.storage.clients.setRedirectUris(app.id, ["http://127.0.0.1/callback"], OPERATOR);

const ORGANIZATION = `/dashboard/organizations/${app.id}`;
const owner = () => service.createUser([app.id], undefined, "owner");

const inChromium = useChromium();

inChromium("a user signs in and allows access with only the keyboard", async (t, browser) => {
  const { page, complaints } = await openPage(browser);
  const first = await service.createOrganization("First");
  const second = await service.createOrganization("Second");
  const user = await service.createUser([first.id, second.id]);
  await page.goto(authorizeUrl(service, app, { redirect_uri: CALLBACK }));
  t.is(await page.locator(":focus").getAttribute("id"), "username", "the first field has the focus");
  await page.keyboard.type(user.username);
  await page.keyboard.press("Tab");
  await page.keyboard.type("not the password");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[role=alert]");
  t.is(await page.inputValue("#username"), user.username);
  t.is(await page.inputValue("#password"), "");
  t.is(await page.locator(":focus").getAttribute("id"), "password", "the username is filled in");
  await page.keyboard.type(user.password);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /^Allow / }).waitFor();
  await tabTo(page, "First");
  await page.keyboard.press("ArrowDown");
  t.is(await page.locator("[name=organization_id]:checked").inputValue(), second.id);
  await tabTo(page, "Allow");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${CALLBACK}?**code=**`);
  t.deepEqual(complaints, []);
});

inChromium(
  "the first screen of a consent page has its button, with many organizations and permissions",
  async (t, browser) => {
    const own = await Promise.all(
      Array.from({ length: 6 }, (_, index) => service.createOrganization(`Studio ${index}`)),
    );
    const user = await service.createUser(own.map(({ id }) => id));
    const scope = "openid offline_access links:write domains:write webhooks:write";
    const { page } = await openSignedIn(browser, service.url, user);
    await page.goto(authorizeUrl(service, app, { redirect_uri: CALLBACK, scope, prompt: "consent" }));
    for (const [width, height] of [
      [390, 844],
      [1440, 900],
    ] as const) {
      await page.setViewportSize({ width, height });
      const box = await page.getByRole("button", { name: "Allow" }).boundingBox();
      t.true(box !== null && box.y > 0 && box.y + box.height <= height, `${width}: ${JSON.stringify(box)}`);
    }
  },
);

inChromium("after a rejected form, the first invalid field has the focus", async (t, browser) => {
  const { page } = await openSignedIn(browser, service.url, await owner());
  await page.goto(`${ORGANIZATION}/settings`);
  await page.getByLabel("Organization name").fill(" ");
  await press(page, "Rename organization");
  await page.getByText("Must be 1 to 100 characters long.").waitFor();
  t.is(await page.locator(":focus").getAttribute("name"), "name");
});

inChromium("the content and the menus are reachable with the keyboard only", async (t, browser) => {
  const user = await service.createUser([app.id]);
  const { page, complaints } = await openSignedIn(browser, service.url, user);
  await page.waitForSelector(".sections");
  await page.keyboard.press("Tab");
  const skip = page.locator(":focus");
  t.is(await skip.textContent(), "Skip to content");
  t.true(((await skip.boundingBox())?.y ?? -1) >= 0, "visible while focused");
  await page.keyboard.press("Enter");
  t.is(await page.locator(":focus").getAttribute("id"), "content");

  // Begins above the content again.
  await page.goto("/dashboard");
  await tabTo(page, `Account: ${user.username}`);
  const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
  t.is(outline, "solid", "focus is visible");
  await page.keyboard.press("Enter");
  t.true(await page.getByRole("link", { name: "Your account" }).isVisible());
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  t.false(await page.getByRole("link", { name: "Your account" }).isVisible());
  t.is(
    await page.evaluate<string>("document.activeElement.localName"),
    "summary",
    "focus returns to the menu",
  );
  t.deepEqual(complaints, []);
});

inChromium(
  "a phone's navigation shows the current section, and fades where it continues",
  async (t, browser) => {
    const { page } = await openSignedIn(browser, service.url, await owner(), {
      viewport: { width: 390, height: 844 },
    });
    await page.goto(`${ORGANIZATION}/webhooks`);
    const { x = -1, width = 0 } = (await page.locator(".sections [aria-current]").boundingBox()) ?? {};
    t.true(x > 0 && x + width < 390, `${x} to ${x + width}`);
    const mask = `getComputedStyle(document.querySelector(".sections")).maskImage`;
    t.regex(await page.evaluate<string>(mask), /^linear-gradient\(/);
  },
);

inChromium("the items of a menu look the same", async (t, browser) => {
  await service.createUser([app.id]);
  const { page } = await openSignedIn(browser, service.url, await owner());
  await page.goto(`${ORGANIZATION}/members`);
  const looks = await page.evaluate<string[]>(`[...document.querySelectorAll("td .sheet :is(a, button)")]
    .map((item) => { const { fontSize, paddingInline } = getComputedStyle(item); return fontSize + paddingInline; })`);
  t.true(looks.length > 3);
  t.is(new Set(looks).size, 1, looks.join());
});

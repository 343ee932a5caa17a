import test from "ava";
import { allow } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp, type Fields } from "../../harness/clients/authorization-request.ts";
import { redeemCode } from "../../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const service = await startTestService();

const scopesOn = ({ html }: Page) => html.querySelectorAll(".scopes li").map((item) => item.text.trim());
const textOf = ({ html }: Page) => (html.querySelector("main")?.structuredText ?? "").replaceAll(/\s+/g, " ");

/** Whether the page says only what changed. */
const isBrief = (page: Page) => {
  if (!page.html.querySelector("h1")?.text.startsWith("Allow "))
    throw new Error(`no consent page: ${page.text}`);
  return / already has access to /.test(textOf(page));
};

/** Creates an app that a user has allowed. `open` sends another request that has to be answered. */
async function allowedApp(first: Fields = {}) {
  const created = await createApp(service);
  const browser = new TestBrowser(service.url);
  await allow(service, created.user, authorizeUrl(service, created.app, first), { browser });
  const open = (changes: Fields = {}) =>
    browser.open(authorizeUrl(service, created.app, { ...first, prompt: "consent", ...changes }));
  return { ...created, browser, open };
}

function followLink(browser: TestBrowser, page: Page, text: string): Promise<Page> {
  const link = page.html.querySelectorAll("main a").find((one) => one.text === text);
  return browser.open(new URL(link?.attributes.href ?? "", page.url).href);
}

async function scopeAfter(browser: TestBrowser, page: Page, app: Parameters<typeof redeemCode>[1]) {
  const code = new URL((await browser.press(page, "Allow")).url).searchParams.get("code") ?? "";
  return String((await redeemCode(service, app, code)).body.scope);
}

test("an app that asks for the same again is allowed with one button, and gets the same", async (t) => {
  const { app, own, user, browser, open } = await allowedApp({ scope: "links:read links:write" });
  const page = await open();
  t.true(isBrief(page));
  t.true(
    textOf(page).includes(`already has access to ${own.name} as ${user.username}, and asks for nothing new.`),
  );
  t.regex(textOf(page), /You’ll be redirected to/);
  t.deepEqual(scopesOn(page), []);
  t.deepEqual(
    page.html.querySelectorAll("button").map(({ text }) => text),
    ["Allow", "Cancel"],
  );
  t.is(await scopeAfter(browser, page, app), "links:read links:write");
});

test("what an app asks for in addition is listed, without what it already has", async (t) => {
  const { app, browser, open } = await allowedApp({ scope: "openid links:write" });
  const page = await open({ scope: "openid links:read links:write webhooks:read" });
  t.true(isBrief(page));
  t.regex(textOf(page), /asks for more\. It will also be able to:/);
  t.deepEqual(scopesOn(page), ["View webhooks"]);
  t.is(await scopeAfter(browser, page, app), "openid links:read links:write webhooks:read");
});

test("fewer scopes are granted if fewer are requested", async (t) => {
  const { app, browser, open } = await allowedApp({ scope: "links:write webhooks:write" });
  const page = await open({ scope: "links:read" });
  t.regex(textOf(page), /asks for nothing new\./);
  t.is(await scopeAfter(browser, page, app), "links:read");
});

test("the whole request is one link away, and shown for an answer that isn't valid", async (t) => {
  const { app, browser, open } = await allowedApp({ scope: "links:read" });
  const page = await open();
  const whole = await followLink(browser, page, "Show all permissions");
  t.false(isBrief(whole));
  t.deepEqual(scopesOn(whole), ["View links and their clicks"]);
  const refused = await browser.press(page, "Allow", { organization_id: "org_unknown" });
  t.is(refused.status, 422);
  t.false(isBrief(refused));
  t.is(await scopeAfter(browser, whole, app), "links:read");
});

test("another organization can be chosen, and after that the user chooses each time", async (t) => {
  const { user, app, own, browser, open } = await allowedApp();
  const second = await service.createOrganization();
  await service.storage.organizations.addMember(second.id, user.id, "owner", OPERATOR);
  const page = await open();
  t.true(isBrief(page));
  const whole = await followLink(browser, page, "Choose another organization");
  const choices = whole.html.querySelectorAll("[name=organization_id]");
  t.deepEqual(choices.map(({ attributes }) => attributes.value).sort(), [own.id, second.id].sort());
  await allow(service, user, authorizeUrl(service, app), { browser, organizationId: second.id });
  t.false(isBrief(await open()));
});

test("the whole request is shown if another resource is requested", async (t) => {
  const { open } = await allowedApp({ resource: `${service.url}/v1` });
  t.false(isBrief(await open({ resource: service.urls.mcp })));
});

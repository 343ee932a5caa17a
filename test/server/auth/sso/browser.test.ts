import test from "ava";
import type { Page } from "playwright-core";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { openPage, useChromium } from "../../../harness/browser/chromium.ts";
import { startCallbackServer } from "../../../harness/callback.ts";
import { authorizeUrl, createApp } from "../../../harness/clients/oauth.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { freePort } from "../../../harness/port.ts";
import { providerSettings } from "../../../harness/providers/identity-provider.ts";
import { startOidcProvider } from "../../../harness/providers/oidc-identity-provider.ts";
import { startTestService } from "../../../harness/service.ts";

export const stage = "browser";

const port = await freePort();
const service = await startTestService(providerSettings(`http://localhost:${port}`));
const provider = await startOidcProvider(service, port);
const callback = await startCallbackServer();
const inChromium = useChromium();
test.after.always(async () => {
  callback.close();
  await service.close();
  await provider.stop();
});

const ACCOUNT = `${service.url}/dashboard/account`;

/** Signs in at the provider. */
async function signInThere(page: Page, name: string) {
  await page.waitForURL(`${provider.issuer}/**`);
  await page.fill("[name=username]", name);
  await page.keyboard.press("Enter");
}

async function isSignedIn(page: Page): Promise<boolean> {
  await page.goto(ACCOUNT);
  return page.url() === ACCOUNT;
}

inChromium(
  "a user signs in at the identity provider, reaches the dashboard and signs out",
  async (t, browser) => {
    const { page, complaints } = await openPage(browser);
    await page.goto(ACCOUNT);
    await page.click("text=Continue with Example ID");
    await signInThere(page, "ada");
    await page.waitForURL(ACCOUNT);
    t.regex((await page.textContent("header")) ?? "", /ada/);
    const cookies = await page.context().cookies(service.url);
    const session = cookies.find(({ name }) => name === "session");
    t.like(session, { httpOnly: true, sameSite: "Lax", path: "/" });
    t.is(await page.evaluate<string>("document.cookie"), "", "no cookie is readable by scripts");

    await page.click("summary:has-text('ada')");
    await page.click("text=Sign out");
    await page.waitForURL("**/auth/login");
    t.false(await isSignedIn(page));
    t.deepEqual(complaints, []);
  },
);

inChromium("a callback with another browser's state gets a 400 page and no session", async (t, browser) => {
  const [{ page }, { page: other }] = [await openPage(browser), await openPage(browser)];
  const sent = page.waitForRequest((request) => request.url().startsWith(`${provider.issuer}/auth?`));
  await page.goto(`${service.url}/auth/sso`);
  const back = await provider.answerAs("grace", (await sent).url(), new TestBrowser(provider.issuer));

  for (const visit of ["without a pending sign-in", "with its own pending sign-in"]) {
    const answer = await other.goto(back);
    t.is(answer?.status(), 400, visit);
    t.is(other.url(), back, "no redirect");
    t.is(await other.textContent("h1"), "This sign-in has expired");
    t.false((await other.context().cookies(service.url)).some(({ name }) => name === "session"));
    t.false(await isSignedIn(other));
    await other.goto(`${service.url}/auth/sso`);
  }

  await page.goto(back);
  t.true(await isSignedIn(page), "it is valid in the browser that started it");
});

inChromium(
  "the sign-in step of an authorization offers SSO, and shares the session of the dashboard",
  async (t, browser) => {
    const { app, own } = await createApp(service);
    await service.storage.clients.setRedirectUris(app.id, [callback.url], OPERATOR);
    const { page, complaints } = await openPage(browser);
    await page.goto(`${service.url}/auth/sso`);
    await signInThere(page, "lin");
    await page.waitForURL(`${service.url}/dashboard/**`);
    const lin = await service.storage.accounts.findByUsername("lin");
    await service.storage.organizations.addMember(own.id, lin?.id as string, "member", OPERATOR);
    await page.context().clearCookies({ name: /^session/ });

    await page.goto(authorizeUrl(service, app, { redirect_uri: callback.url }));
    await page.click("text=Continue with Example ID");
    await page.waitForSelector("text=Allow access?");
    await page.click("text=Allow >> nth=-1");
    await page.waitForSelector("text=Back in the app");
    t.regex(page.url(), /[?&]code=/);
    t.true(await isSignedIn(page), "also in the dashboard");
    t.deepEqual(complaints, []);
  },
);

inChromium("an identity can be linked and unlinked on the account page", async (t, browser) => {
  const user = await service.createUser([]);
  const { page, complaints } = await openPage(browser);
  await page.goto(ACCOUNT);
  await page.fill("#username", user.username);
  await page.fill("#password", user.password);
  await page.keyboard.press("Enter");
  await page.waitForURL(ACCOUNT);
  await page.click("text=Link Example ID");
  await page.click("text=Continue to Example ID");
  await signInThere(page, "edsger");
  await page.waitForURL(ACCOUNT);
  t.regex((await page.textContent("main")) ?? "", /edsger/);
  await page.click("button:has-text('Unlink')");
  await page.waitForURL(`${ACCOUNT}?done=*`);
  t.notRegex((await page.textContent("main")) ?? "", /edsger/);
  t.deepEqual(complaints, []);
});

const SITES = {
  "another site": "https://evil.example",
  // Sends the cookies of this host: another port is still the same site.
  "another port of this host": "http://localhost:1",
};

for (const [what, site] of Object.entries(SITES)) {
  inChromium(`a page of ${what} can't change anything or sign a user in`, async (t, browser) => {
    const [user, attacker] = [await service.createUser([]), await service.createUser([])];
    const { page } = await openPage(browser);
    await page.goto(ACCOUNT);
    await page.fill("#username", user.username);
    await page.fill("#password", user.password);
    await page.keyboard.press("Enter");
    await page.waitForURL(ACCOUNT);

    const attacks: [path: string, fields: Record<string, string>][] = [
      ["/dashboard/organizations", { name: "Of the attacker" }],
      ["/auth/logout", {}],
      ["/auth/login", { username: attacker.username, password: attacker.password }],
      ["/auth/register", { username: `${user.username}-evil`, password: attacker.password }],
    ];
    for (const [path, fields] of attacks) {
      const inputs = Object.entries(fields).map(([name, value]) => `<input name="${name}" value="${value}">`);
      const body = `<form method="post" action="${service.url}${path}">${inputs.join("")}<button>Win</button></form>`;
      await page.route(`${site}/**`, (route) => route.fulfill({ contentType: "text/html", body }));
      await page.goto(`${site}/trap`);
      const answer = page.waitForResponse(service.url + path);
      await page.click("button");
      t.true([303, 401, 403].includes((await answer).status()), path);
      await page.unroute(`${site}/**`);
      t.true(await isSignedIn(page), path);
      t.regex((await page.textContent("header")) ?? "", new RegExp(user.username), path);
    }
    t.deepEqual(await service.storage.organizations.listByUser(user.id), []);
    t.is(await service.storage.accounts.findByUsername(`${user.username}-evil`), undefined);
  });
}

inChromium("no page can be framed by another site", async (t, browser) => {
  const { page } = await openPage(browser);
  const paths = ["/auth/login", "/auth/register", "/dashboard/account"];
  const frames = paths.map((path) => `<iframe src="${service.url}${path}"></iframe>`).join("");
  const route = { contentType: "text/html", body: frames };
  await page.route("https://evil.example/**", (trap) => trap.fulfill(route));
  await page.goto("https://evil.example/trap");
  t.is(page.frames().length, 1 + paths.length);
  for (const frame of page.frames().slice(1)) t.false(frame.url().startsWith(service.url), frame.url());
});

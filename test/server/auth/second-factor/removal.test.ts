import test from "ava";
import { OPERATOR } from "../../../../resources/events/types.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { createColleague } from "../../../harness/clients/dashboard.ts";
import {
  addTotp,
  createProtected,
  logIn,
  type Protected,
  proveFactor,
} from "../../../harness/clients/second-factor.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const ACCOUNT = `${service.url}/dashboard/account`;

/** Signs in with the password, and with a second factor if the account has one. */
async function signIn(user: Protected, factor?: Record<string, string>): Promise<TestBrowser> {
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(await browser.open(ACCOUNT), user);
  if (!factor) return browser;
  const form =
    "recovery_code" in factor
      ? await browser.open(`${service.url}/auth/second-factor?method=recovery_code`)
      : page;
  await browser.press(form, "Continue", factor);
  return browser;
}

async function statusOf(browser: TestBrowser, path = "/dashboard/account"): Promise<number> {
  return (await browser.open(service.url + path, { headers: { accept: "application/json" } })).status;
}

test.serial(
  "removing the authenticator app ends the other sessions and tokens that were proved with it",
  async (t) => {
    const user = await createProtected(service);
    const [code = ""] = user.recoveryCodes;
    const other = await signIn(user, { totp: user.code() });
    const recovered = await signIn(user, { recovery_code: code });
    t.deepEqual([await statusOf(other), await statusOf(recovered)], [200, 200]);
    const page = await recovered.open(ACCOUNT);
    const form = page.html.querySelector("form[action='/dashboard/account/totp/delete']");
    t.is((await recovered.submit(page, {}, form)).status, 200);
    t.deepEqual([await statusOf(other), await statusOf(recovered)], [401, 200]);
  },
);

test.serial("removing it with the token of a program keeps that token and revokes the others", async (t) => {
  const user = await createProtected(service);
  const tokens = [];
  for (const fields of [{ totp: user.code() }, { recovery_code: user.recoveryCodes[0] }]) {
    const { login_token } = (await logIn(service, user)).body;
    tokens.push((await proveFactor(service, login_token, fields)).body.access_token);
  }
  const [byApp, byCode] = tokens.map((token) => apiAt(service.url, token));
  t.is((await byCode?.send("DELETE", "/dashboard/account/totp"))?.status, 204);
  t.is((await byCode?.get("/dashboard/me"))?.status, 200);
  t.is((await byApp?.get("/dashboard/me"))?.status, 401);
});

test.serial("the session that removed the second factor no longer counts as proved with it", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id, "owner"));
  await service.storage.secondFactorRequirement.set(own.id, true, OPERATOR);
  const browser = await signIn(user, { totp: user.code() });
  const path = `/dashboard/organizations/${own.id}`;
  t.is(await statusOf(browser, path), 200);
  const page = await browser.open(ACCOUNT);
  await browser.submit(page, {}, page.html.querySelector("form[action='/dashboard/account/totp/delete']"));
  t.is(await statusOf(browser), 200);
  t.is(await statusOf(browser, path), 403);
});

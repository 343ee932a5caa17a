import test from "ava";
import { addAuthenticator } from "../harness/browser/authenticator.ts";
import { openPage, useChromium } from "../harness/browser/chromium.ts";
import { fill, press } from "../harness/browser/page-actions.ts";
import { apiAt, isProblem } from "../harness/clients/api.ts";
import { firstPartyToken } from "../harness/clients/dashboard.ts";
import {
  addTotp,
  createProtected,
  logIn,
  type Protected,
  proveFactor,
} from "../harness/clients/second-factor.ts";
import { startCluster } from "../harness/cluster.ts";
import { rounds } from "../harness/rounds.ts";

export const databases = "all";

const cluster = await startCluster();
test.after.always(() => cluster.close());

const inChromium = useChromium();
const [here, there] = cluster.authorization;
const ROUNDS = rounds(4, 20);

/** Sends the same second factor of two logins, which began at different servers, to both servers at the same time. */
async function proveTwice(user: Protected, fields: object) {
  const logins = await Promise.all([logIn(here, user), logIn(there, user)]);
  const [first, second] = logins.map(({ body }) => body.login_token);
  return Promise.all([
    proveFactor(there, first as string, fields),
    proveFactor(here, second as string, fields),
  ]);
}

test("an authenticator app that was set up at one server is required and accepted by the other", async (t) => {
  const user = await here.createUser([]);
  const token = await firstPartyToken(there, user);
  const app = await addTotp(here, { ...user, token });
  const asked = await logIn(there, user);
  t.like(asked.body, { status: 403, code: "second_factor_required" });
  const proved = await proveFactor(here, asked.body.login_token, { totp: app.code() });
  t.is(proved.status, 200, proved.text);

  // Only the login with the second factor is recent, at each server.
  for (const { url } of [here, there]) {
    const path = "/dashboard/account/recovery-codes";
    const weak = await apiAt(url, token).send("POST", path);
    isProblem(t, weak, { status: 403, code: "reauthentication_required" });
    t.is((await apiAt(url, proved.body.access_token).send("POST", path)).status, 200);
  }
});

test("a code of an authenticator app is accepted once, also by two servers at the same time", async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const user = await createProtected(round % 2 ? here : there);
    const answers = await proveTwice(user, { totp: user.code() });
    t.deepEqual(
      answers.map(({ status }) => status).sort(),
      [200, 401],
      answers.map(({ text }) => text).join(),
    );
    t.is(answers.find(({ status }) => status === 401)?.body.code, "invalid_second_factor");
  }
});

test("a recovery code is accepted once, also by two servers at the same time", async (t) => {
  const user = await createProtected(here);
  for (const recovery_code of user.recoveryCodes.slice(0, ROUNDS)) {
    const answers = await proveTwice(user, { recovery_code });
    t.deepEqual(
      answers.map(({ status }) => status).sort(),
      [200, 401],
      answers.map(({ text }) => text).join(),
    );
  }
});

inChromium("a passkey challenge of one server is answered at the other, and once", async (t, browser) => {
  const user = await cluster.createUser([]);
  const { page } = await openPage(browser, { baseURL: cluster.url });
  const useServer = (server: number) => page.setExtraHTTPHeaders({ "x-backend": `${server}` });
  const authenticator = await addAuthenticator(page);
  await useServer(0);
  await page.goto("/auth/login?return_to=/dashboard/account/passkeys/new");
  await fill(page, { username: user.username, password: user.password });
  await press(page, "Sign in");
  await page.locator("form[data-passkey] [name=name]").fill("Laptop");
  await useServer(1);
  await press(page, "Add passkey");
  await page.getByRole("alert").or(page.locator(".codes")).first().waitFor();
  t.regex(page.url(), /recovery-codes/, (await page.textContent("main")) ?? "");
  t.is((await authenticator.credentials()).length, 1);

  await page.context().clearCookies();
  await page.goto("/auth/login?return_to=/dashboard/account");
  const sent = page.waitForRequest(/\/auth\/passkey$/);
  await page.route(/\/auth\/passkey$/, (route) => route.abort());
  await press(page, "Sign in with a passkey");
  // Says why, if the browser refused.
  const refused = page.getByRole("alert").textContent();
  const answer = await Promise.race([sent, refused.then((text) => Promise.reject(new Error(`${text}`)))]);
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const statuses = await Promise.all(
    [here, there, here, there].map(async ({ url }) => {
      const headers = { cookie, origin: cluster.url, "content-type": "application/x-www-form-urlencoded" };
      const body = answer.postData() ?? "";
      const posted = { method: "POST", headers, body, redirect: "manual" as const };
      return (await fetch(`${url}/auth/passkey`, posted)).status;
    }),
  );
  t.deepEqual(statuses.sort(), [303, 400, 400, 400]);
});

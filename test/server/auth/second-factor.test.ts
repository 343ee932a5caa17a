import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import {
  addTotp,
  codeOf,
  createProtected,
  logIn,
  type Protected,
  proveFactor,
} from "../../harness/clients/second-factor.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { rounds } from "../../harness/rounds.ts";
import { populate, startTestService } from "../../harness/service.ts";

const service = await startTestService();

test.after.always(() => service.close());

const HOME = `${service.url}/dashboard`;

async function isSignedIn(browser: TestBrowser): Promise<boolean> {
  const page = await browser.open(HOME, { headers: { accept: "application/json" } });
  return page.status === 200;
}

test("after the right password, a program gets no tokens until it sends the second factor", async (t) => {
  const user = await createProtected(service);
  const asked = await logIn(service, user);
  t.is(asked.status, 403);
  t.is(asked.headers.get("content-type"), "application/problem+json");
  t.like(asked.body, {
    code: "second_factor_required",
    expires_in: 300,
    methods: ["totp", "recovery_code"],
  });
  t.is(asked.body.access_token, undefined);
  t.deepEqual(asked.headers.getSetCookie(), []);
  t.is((await apiAt(service.url, asked.body.login_token).send("GET", "/dashboard/me")).status, 401);

  for (const fields of [{}, { totp: "000000", recovery_code: "x" }, { totp: {} }]) {
    const refused = await proveFactor(service, asked.body.login_token, fields);
    isProblem(t, refused as never, { status: 422, code: "invalid_totp", fields: ["totp"] });
  }
  for (const fields of [{ totp: "12345" }, { totp: user.usedCode }, { recovery_code: "wrong" }]) {
    const refused = await proveFactor(service, asked.body.login_token, fields);
    isProblem(t, refused as never, { status: 401, code: "invalid_second_factor" });
  }
  const done = await proveFactor(service, asked.body.login_token, { totp: user.code() });
  t.is(done.status, 200, done.text);
  t.is((await apiAt(service.url, done.body.access_token).send("GET", "/dashboard/me")).status, 200);
});

test("a login token is for one login, of one account, and can't be forged", async (t) => {
  const [user, other] = [await createProtected(service), await createProtected(service)];
  const { login_token } = (await logIn(service, user)).body;
  const stranger = await proveFactor(service, login_token, { totp: other.code() });
  isProblem(t, stranger as never, { status: 401, code: "invalid_second_factor" });
  t.is((await proveFactor(service, login_token, { totp: user.code() })).status, 200);
  const again = await proveFactor(service, login_token, { recovery_code: user.recoveryCodes[0] });
  isProblem(t, again as never, { status: 401, code: "invalid_login_token" });
  const changed = `${login_token.slice(0, -2)}AA`;
  for (const wrong of ["", "v1.AAAA", changed, "x".repeat(5000)]) {
    const refused = await proveFactor(service, wrong, { totp: user.code() });
    isProblem(t, refused as never, { status: 401, code: "invalid_login_token" });
  }
});

test("a login token ends with the password that it was issued for", async (t) => {
  const user = await createProtected(service);
  const { login_token } = (await logIn(service, user)).body;
  const reset = await service.storage.accounts.createResetToken(user.id, 60_000);
  t.true(await service.storage.accounts.resetPassword(reset, "a hash"));
  const refused = await proveFactor(service, login_token, { totp: user.code() });
  isProblem(t, refused as never, { status: 401, code: "invalid_credentials" });
});

test("after a password reset, the second factor is still asked for", async (t) => {
  const user = await createProtected(service);
  const token = await service.storage.accounts.createResetToken(user.id, 60_000);
  const password = "an entirely new password";
  const { status } = await fetch(`${service.url}/auth/reset-password/${token}`, {
    method: "POST",
    body: new URLSearchParams({ password }),
  });
  t.is(status, 200);
  const asked = await logIn(service, { ...user, password });
  t.like(asked.body, { status: 403, code: "second_factor_required", access_token: undefined });
  t.is((await proveFactor(service, asked.body.login_token, { totp: user.code() })).status, 200);
});

test("of ten concurrent uses of a code, one succeeds", async (t) => {
  const user = await createProtected(service);
  const tokens = await Promise.all(Array.from({ length: 10 }, async () => (await logIn(service, user)).body));
  const totp = user.code();
  for (const fields of [{ totp }, { recovery_code: user.recoveryCodes[0] }]) {
    const replies = await Promise.all(
      tokens.map(({ login_token }) => proveFactor(service, login_token, fields)),
    );
    const statuses = replies.map(({ status }) => status).sort();
    t.deepEqual(statuses, [200, ...Array.from({ length: 9 }, () => 401)], Object.keys(fields)[0]);
    tokens.splice(
      replies.findIndex(({ status }) => status === 200),
      1,
    );
    tokens.push((await logIn(service, user)).body);
  }
});

test("of concurrent codes with one login token, one succeeds and the others stay unused", async (t) => {
  for (let round = 0; round < rounds(3, 30); round++) {
    const user = await createProtected(service);
    const { login_token } = (await logIn(service, user)).body;
    const codes = user.recoveryCodes.slice(0, 6).map((recovery_code) => ({ recovery_code }));
    const replies = await Promise.all(
      [...codes, { totp: user.code() }].map((fields) => proveFactor(service, login_token, fields)),
    );
    const refused = replies.filter(({ status }) => status !== 200);
    t.is(refused.length, 6);
    for (const reply of refused) isProblem(t, reply as never, { status: 401, code: "invalid_login_token" });
    const later = (await logIn(service, user)).body.login_token;
    if (replies.at(-1)?.status !== 200)
      t.is((await proveFactor(service, later, { totp: user.code() })).status, 200);
    const { recoveryCodes } = await service.storage.secondFactors.find(user.id);
    t.is(recoveryCodes, replies.at(-1)?.status === 200 ? 10 : 9);
  }
});

test("a recovery code signs in once, in any spelling, and is recorded in the audit log", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  t.is(user.recoveryCodes.length, 10);
  t.is(new Set(user.recoveryCodes).size, 10);
  const [first = ""] = user.recoveryCodes;
  t.regex(first, /^([0-9a-z]{6}-){3}[0-9a-z]{6}$/);
  const { login_token } = (await logIn(service, user)).body;
  const spelled = first.toUpperCase().replaceAll("-", " ");
  t.is((await proveFactor(service, login_token, { recovery_code: spelled })).status, 200);
  const again = (await logIn(service, user)).body.login_token;
  t.is((await proveFactor(service, again, { recovery_code: first })).status, 401);
  const entries = await service.storage.audit.list(own.id, {}, 10);
  const types = entries.map(({ type }) => type);
  t.true(types.includes("member.recovery_code_used"));
  t.true(types.includes("member.second_factor_added"));
});

test("in a browser, the second factor is asked for after the password, and only then a session starts", async (t) => {
  const user = await createProtected(service);
  const browser = new TestBrowser(service.url);
  const account = `${service.url}/dashboard/account`;
  const page = await browser.signIn(await browser.open(account), user);
  t.is(page.url, `${service.url}/auth/second-factor`);
  t.false(await isSignedIn(browser));
  const wrong = await browser.press(page, "Continue", { totp: "000000" });
  t.is(wrong.status, 400);
  t.regex(wrong.text, /Incorrect code/);
  t.false(await isSignedIn(browser));
  const done = await browser.press(wrong, "Continue", { totp: user.code() });
  t.is(done.url, account);
  t.regex(done.text, /Password \+ authenticator app/);

  const other = new TestBrowser(service.url);
  const asked = await other.signIn(await other.open(account), user);
  const recovery = await other.open(`${asked.url}?method=recovery_code`);
  const recovered = await other.press(recovery, "Continue", { recovery_code: user.recoveryCodes[3] ?? "" });
  t.is(recovered.url, account);
  t.regex(recovered.text, /9 unused codes/);
});

test("without a pending sign-in, or with one of another browser, there is nothing to confirm", async (t) => {
  const user = await createProtected(service);
  const browser = new TestBrowser(service.url);
  const asked = await browser.signIn(await browser.open(HOME), user);
  const stranger = new TestBrowser(service.url);
  const refused = await stranger.submit(asked, { totp: user.code() });
  t.is(refused.status, 400);
  t.false(await isSignedIn(stranger));
  t.is((await stranger.open(`${service.url}/auth/second-factor`)).status, 400);
});

test("the pending sign-in of a browser is none of a program, and the reverse", async (t) => {
  const user = await createProtected(service);
  const browser = new TestBrowser(service.url);
  const asked = await browser.signIn(await browser.open(HOME), user);
  const cookies = await browser.jar.getCookies(asked.url);
  const kept = cookies.find(({ key }) => key === "second-factor")?.value ?? "";
  t.truthy(kept);
  const refused = await proveFactor(service, kept, { totp: user.code() });
  isProblem(t, refused as never, { status: 401, code: "invalid_login_token" });

  const { login_token } = (await logIn(service, user)).body;
  const other = new TestBrowser(service.url);
  await other.jar.setCookie(`second-factor=${login_token}; path=/auth`, service.url);
  t.is((await other.open(asked.url)).status, 400);
});

test("an unconfirmed authenticator app doesn't count, and a wrong code doesn't confirm it", async (t) => {
  const user = await createColleague(service, undefined);
  const started = await user.api.send<{ secret: string; uri: string }>("POST", "/dashboard/account/totp");
  t.is(started.status, 201);
  t.true(started.body.uri.startsWith("otpauth://totp/linkgate:"));
  const wrong = await user.api.send("POST", "/dashboard/account/totp/confirm", { json: { code: "000000" } });
  isProblem(t, wrong, { status: 422, code: "invalid_code", fields: ["code"] });
  t.is((await logIn(service, user)).status, 200);
});

test("the pages set up an authenticator app and show its recovery codes once", async (t) => {
  const user = await service.createUser([]);
  const browser = new TestBrowser(service.url);
  const account = `${service.url}/dashboard/account`;
  const before = await browser.signIn(await browser.open(account), user);
  const setup = await browser.press(before, "Set up authenticator app");
  t.truthy(setup.html.querySelector(".qr svg"));
  const secret = setup.html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
  const wrong = await browser.press(setup, "Confirm code", { code: "000000" });
  t.is(wrong.status, 422);
  const shown = await browser.press(wrong, "Confirm code", { code: codeOf(secret) });
  t.is(shown.html.querySelectorAll(".codes li").length, 10);
  t.is((await browser.open(shown.url)).status, 410);
  const after = await browser.open(account);
  t.regex(after.text, /10 unused codes/);
  t.false((await browser.open(`${account}/totp`)).text.includes(secret), "the key is not shown again");
  const renewed = await browser.press(after, "Create new recovery codes");
  t.is(renewed.html.querySelectorAll(".codes li").length, 10);
  const removed = await browser.press(await browser.open(account), "Remove authenticator app");
  t.regex(removed.text, /Authenticator app removed/);
  t.false(removed.text.includes("unused codes"));
  t.is((await logIn(service, user)).status, 200);
});

test("guesses of a second factor are limited per account", async (t) => {
  const limited = await startTestService({ RATE_LIMIT: "on" });
  t.teardown(() => limited.close());
  const { createUser } = populate(limited.url, limited.storage);
  const user = await createUser([]);
  const { access_token: token = "" } = (await logIn(limited, user)).body;
  const guarded = await addTotp(limited, { ...user, token });
  const { login_token } = (await logIn(limited, guarded)).body;
  for (let guess = 0; guess < 10; guess++) {
    t.is((await proveFactor(limited, login_token, { totp: `00000${guess}` })).status, 401);
  }
  const refused = await proveFactor(limited, login_token, { totp: guarded.code() });
  isProblem(t, refused as never, { status: 429, code: "too_many_requests" });
  t.truthy(refused.headers.get("retry-after"));
});

// Serial, because they move the clock.
test.serial("a login token expires after five minutes", async (t) => {
  const user = await createProtected(service);
  const { login_token } = (await logIn(service, user)).body;
  advanceClock(5 * 60_000);
  const refused = await proveFactor(service, login_token, { totp: user.code() });
  isProblem(t, refused as never, { status: 401, code: "invalid_login_token" });
});

test.serial("a code is accepted in its own, the previous and the next time step", async (t) => {
  const user = await createProtected(service);
  for (const [steps, status] of [
    [-2, 401],
    [2, 401],
    [1, 200],
  ] as const) {
    const { login_token } = (await logIn(service, user)).body;
    t.is((await proveFactor(service, login_token, { totp: user.code(steps) })).status, status, `${steps}`);
  }
});

test("wrong codes after the right password are recorded in the audit log, twice an hour at most", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  const failures = async () =>
    (await service.storage.audit.list(own.id, { types: ["member.second_factor_failed"] }, 10)).map(
      ({ actor, address, data }) => ({ actor, hasAddress: address !== null, data }),
    );
  const { login_token } = (await logIn(service, user)).body;
  for (const fields of [{ totp: "000000" }, { recovery_code: "wrong" }, { totp: user.usedCode }])
    t.is((await proveFactor(service, login_token, fields)).status, 401);
  t.is((await proveFactor(service, login_token, { totp: user.code() })).status, 200);
  const entry = (attempts: number) => ({
    actor: "anonymous",
    hasAddress: true,
    data: { user_id: user.id, attempts },
  });
  t.deepEqual(await failures(), [entry(2), entry(1)]);
});

test("a passkey that isn't accepted as the second factor is recorded in the audit log", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  const browser = new TestBrowser(service.url);
  const page = await browser.signIn(await browser.open(HOME), user);
  t.is((await browser.submit(page, { passkey: "{}" })).status, 400);
  await browser.press(page, "Continue", { totp: user.code() });
  const [entry] = await service.storage.audit.list(own.id, { types: ["member.second_factor_failed"] }, 10);
  t.deepEqual(entry?.data, { user_id: user.id, attempts: 1 });
});

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
  await service.storage.organizationSettings.change(own.id, { requiresSecondFactor: true }, OPERATOR);
  const browser = await signIn(user, { totp: user.code() });
  const path = `/dashboard/organizations/${own.id}`;
  t.is(await statusOf(browser, path), 200);
  const page = await browser.open(ACCOUNT);
  await browser.submit(page, {}, page.html.querySelector("form[action='/dashboard/account/totp/delete']"));
  t.is(await statusOf(browser), 200);
  t.is(await statusOf(browser, path), 403);
});

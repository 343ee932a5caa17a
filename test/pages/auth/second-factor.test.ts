import test, { type ExecutionContext } from "ava";
import { UNAVAILABLE } from "../../../resources/http/problem.ts";
import { apiAt, isProblem, type Reply } from "../../harness/clients/api.ts";
import { createColleague } from "../../harness/clients/dashboard.ts";
import { secretOn } from "../../harness/clients/form-filling.ts";
import { addTotp, codeOf, createProtected, logIn, proveFactor } from "../../harness/clients/second-factor.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { cookieOf, follow, isSignedIn } from "../../harness/clients/visits.ts";
import { advanceClock } from "../../harness/clock.ts";
import { rounds } from "../../harness/rounds.ts";
import { OPERATOR, postForm, startTestService, type TestUser } from "../../harness/service.ts";

const service = await startTestService();

const ACCOUNT = `${service.url}/dashboard/account`;
const isIn = (browser: TestBrowser) => isSignedIn(service, browser);
const loginTokenOf = async (user: TestUser) => (await logIn(service, user)).body.login_token;
const prove = async (user: TestUser, factor: object) =>
  proveFactor(service, await loginTokenOf(user), factor);
const isRefused = (t: ExecutionContext, reply: Reply<unknown>, code: string) =>
  isProblem(t, reply, { status: 401, code });

/** Signs in with the password in a browser; the page asks for the second factor if the account has one. */
async function ask(user: TestUser) {
  const browser = new TestBrowser(service.url);
  return { browser, page: await browser.signIn(await browser.open(ACCOUNT), user) };
}

async function signIn(user: TestUser & { code(): string }) {
  const { browser, page } = await ask(user);
  return { browser, page: await browser.press(page, "Continue", { totp: user.code() }) };
}

test("after the right password, a program gets no tokens until it sends the second factor", async (t) => {
  const user = await createProtected(service);
  const asked = await logIn(service, user);
  t.is(asked.status, 403);
  t.is(asked.headers.get("content-type"), "application/problem+json");
  const methods = ["totp", "recovery_code"];
  t.like(asked.body, { code: "second_factor_required", expires_in: 300, methods });
  t.is(asked.body.access_token, undefined);
  t.deepEqual(asked.headers.getSetCookie(), []);
  t.is((await apiAt(service.url, asked.body.login_token).send("GET", "/dashboard/me")).status, 401);

  for (const fields of [{}, { totp: "000000", recovery_code: "x" }, { totp: {} }]) {
    const refused = await proveFactor(service, asked.body.login_token, fields);
    isProblem(t, refused, { status: 422, code: "invalid_totp", fields: ["totp"] });
  }
  for (const fields of [{ totp: "12345" }, { totp: user.usedCode }, { recovery_code: "wrong" }])
    isRefused(t, await proveFactor(service, asked.body.login_token, fields), "invalid_second_factor");
  const done = await proveFactor(service, asked.body.login_token, { totp: user.code() });
  t.is(done.status, 200, done.text);
  t.is((await apiAt(service.url, done.body.access_token).send("GET", "/dashboard/me")).status, 200);
});

test("a login token is for one login, of one account, and can't be forged", async (t) => {
  const [user, other] = [await createProtected(service), await createProtected(service)];
  const login_token = await loginTokenOf(user);
  isRefused(t, await proveFactor(service, login_token, { totp: other.code() }), "invalid_second_factor");
  t.is((await proveFactor(service, login_token, { totp: user.code() })).status, 200);
  const recovery = { recovery_code: user.recoveryCodes[0] };
  isRefused(t, await proveFactor(service, login_token, recovery), "invalid_login_token");
  for (const wrong of ["", "v1.AAAA", login_token.slice(0, -2), "x".repeat(5000)])
    isRefused(t, await proveFactor(service, wrong, { totp: user.code() }), "invalid_login_token");
});

test("a password reset ends the login tokens of before, and the second factor is still asked for", async (t) => {
  const user = await createProtected(service);
  const login_token = await loginTokenOf(user);
  const token = await service.storage.accounts.createResetToken(user.id, 60_000);
  const password = "an entirely new password";
  t.is((await postForm(`${service.url}/auth/reset-password/${token}`, { password })).status, 200);
  const recovery = { recovery_code: user.recoveryCodes[0] };
  isRefused(t, await proveFactor(service, login_token, recovery), "invalid_credentials");
  const asked = await logIn(service, { ...user, password });
  t.like(asked.body, { status: 403, code: "second_factor_required", access_token: undefined });
  t.is((await proveFactor(service, asked.body.login_token, { totp: user.code() })).status, 200);
});

test("of concurrent codes with one login token, one succeeds and the others stay unused", async (t) => {
  for (let round = 0; round < rounds(3, 30); round++) {
    const user = await createProtected(service);
    const login_token = await loginTokenOf(user);
    const codes = user.recoveryCodes.slice(0, 6).map((recovery_code) => ({ recovery_code }));
    const factors = [...codes, { totp: user.code() }];
    const replies = await Promise.all(factors.map((one) => proveFactor(service, login_token, one)));
    const refused = replies.filter(({ status }) => status !== 200);
    t.is(refused.length, 6);
    for (const reply of refused) isRefused(t, reply, "invalid_login_token");
    const isTotpUsed = replies.at(-1)?.status === 200;
    if (!isTotpUsed) t.is((await prove(user, { totp: user.code() })).status, 200);
    const { recoveryCodes } = await service.storage.secondFactors.find(user.id);
    t.is(recoveryCodes, isTotpUsed ? 10 : 9);
  }
});

test("a recovery code signs in once, in any spelling, and is recorded in the audit log", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  t.is(user.recoveryCodes.length, 10);
  t.is(new Set(user.recoveryCodes).size, 10);
  const [first = ""] = user.recoveryCodes;
  t.regex(first, /^([0-9a-z]{6}-){3}[0-9a-z]{6}$/);
  const spelled = first.toUpperCase().replaceAll("-", " ");
  t.is((await prove(user, { recovery_code: spelled })).status, 200);
  t.is((await prove(user, { recovery_code: first })).status, 401);
  const types = (await service.storage.audit.list(own.id, {}, 10)).map(({ type }) => type);
  t.true(types.includes("member.recovery_code_used"));
  t.true(types.includes("member.second_factor_added"));
});

test("in a browser, the second factor is asked for after the password, and only then a session starts", async (t) => {
  const user = await createProtected(service);
  const { browser, page } = await ask(user);
  t.is(page.url, `${service.url}/auth/second-factor`);
  t.false(await isIn(browser));
  const wrong = await browser.press(page, "Continue", { totp: "000000" });
  t.is(wrong.status, 400);
  t.regex(wrong.text, /code is incorrect/);
  t.false(await isIn(browser));
  const done = await browser.press(wrong, "Continue", { totp: user.code() });
  t.is(done.url, ACCOUNT);
  t.regex(done.text, /Password \+ authenticator app/);
});

test("a pending sign-in belongs to its browser, and is none of a program", async (t) => {
  const user = await createProtected(service);
  const { browser, page: asked } = await ask(user);
  const stranger = new TestBrowser(service.url);
  t.is((await stranger.submit(asked, { totp: user.code() })).status, 400);
  t.false(await isIn(stranger));
  t.is((await stranger.open(asked.url)).status, 400, "without a pending sign-in");

  const { value = "" } = (await cookieOf(asked, browser, "second-factor")) ?? {};
  t.truthy(value);
  isRefused(t, await proveFactor(service, value, { totp: user.code() }), "invalid_login_token");
  await stranger.jar.setCookie(`second-factor=${await loginTokenOf(user)}; path=/auth`, service.url);
  t.is((await stranger.open(asked.url)).status, 400, "with the token of a program");
});

test("the pages set up an authenticator app, show its recovery codes once, and lead back to the account", async (t) => {
  const user = await service.createUser([]);
  const { browser, page: before } = await ask(user);
  const setup = await browser.press(before, "Set up authenticator app");
  t.truthy(setup.html.querySelector(".qr svg"));
  const secret = secretOn(setup);
  const wrong = await browser.press(setup, "Confirm code", { code: "000000" });
  t.is(wrong.status, 422);
  t.is((await logIn(service, user)).status, 200, "an unconfirmed app doesn't count");
  const shown = await browser.press(wrong, "Confirm code", { code: codeOf(secret) });
  t.is(shown.html.querySelectorAll(".codes li").length, 10);
  t.is((await follow(browser, shown, "Done")).url, ACCOUNT);
  t.is((await browser.press(wrong, "Confirm code", { code: "000000" })).url, ACCOUNT, "also if sent twice");
  t.is((await browser.open(shown.url)).status, 410);
  const after = await browser.open(ACCOUNT);
  t.regex(after.text, /10 unused codes/);
  t.false((await browser.open(`${ACCOUNT}/totp`)).text.includes(secret), "the key is not shown again");
  const renewed = await browser.press(after, "Create new recovery codes");
  t.is(renewed.html.querySelectorAll(".codes li").length, 10);
  const removed = await browser.press(await browser.open(ACCOUNT), "Remove authenticator app");
  t.false(removed.text.includes("unused codes"));
  t.is((await logIn(service, user)).status, 200);
});

// Serial, because they move the clock.
test.serial("a login token expires after five minutes", async (t) => {
  const user = await createProtected(service);
  const login_token = await loginTokenOf(user);
  advanceClock(5 * 60_000);
  isRefused(t, await proveFactor(service, login_token, { totp: user.code() }), "invalid_login_token");
});

test("wrong codes and passkeys after the right password are recorded in the audit log before the sign-in, twice an hour at most", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id));
  const failures = async () =>
    (await service.storage.audit.list(own.id, { types: ["member.second_factor_failed"] }, 10)).map(
      ({ actor, address, data }) => [actor, address !== null, data.user_id, data.attempts],
    );
  for (const fields of [{ totp: "000000" }, { recovery_code: "wrong" }, { totp: user.usedCode }])
    t.is((await prove(user, fields)).status, 401);
  t.is((await prove(user, { totp: user.code() })).status, 200);
  t.deepEqual(await failures(), [
    ["anonymous", true, user.id, 2],
    ["anonymous", true, user.id, 1],
  ]);
  const [newest] = await service.storage.audit.list(own.id, {}, 1);
  t.is(newest?.type, "member.signed_in");

  const other = await addTotp(service, await createColleague(service, own.id));
  const { browser, page } = await ask(other);
  t.is((await browser.submit(page, { passkey: "{}" })).status, 400);
  await browser.press(page, "Continue", { totp: other.code() });
  t.deepEqual((await failures())[0], ["anonymous", true, other.id, 1]);
});

test.serial("removing the app ends other sessions with it, and what it proved in the own one", async (t) => {
  const own = await service.createOrganization();
  const user = await addTotp(service, await createColleague(service, own.id, "owner"));
  await service.storage.organizationSettings.change(own.id, { requiresSecondFactor: true }, OPERATOR);
  const { browser: other } = await signIn(user);
  advanceClock(30_000); // for another code
  const { browser, page } = await signIn(user);
  const headers = { accept: "application/json" };
  const open = () => browser.open(`${service.url}/dashboard/organizations/${own.id}`, { headers });
  t.deepEqual([await isIn(other), (await open()).status], [true, 200]);
  t.is((await browser.press(page, "Remove authenticator app")).status, 200);
  t.deepEqual([await isIn(other), await isIn(browser), (await open()).status], [false, true, 403]);
});

test.serial("removing it with the token of a program keeps that token and revokes the others", async (t) => {
  const user = await createProtected(service);
  const factors = [{ totp: user.code() }, { recovery_code: user.recoveryCodes[0] }];
  const tokens = [];
  for (const factor of factors) tokens.push((await prove(user, factor)).body.access_token);
  const [byApp, byCode] = tokens.map((token) => apiAt(service.url, token));
  t.is((await byCode?.send("DELETE", "/dashboard/account/totp"))?.status, 204);
  t.is((await byCode?.get("/dashboard/me"))?.status, 200);
  t.is((await byApp?.get("/dashboard/me"))?.status, 401);
});

const CREDENTIAL_ID = "Y3JlZGVudGlhbA";
const client = (type: string, challenge: unknown = "x") =>
  Buffer.from(JSON.stringify({ type, challenge, origin: service.url })).toString("base64url");

/** Returns what a browser sends of a passkey at sign-in (`get`) or for a new one (`create`), with changes. */
const passkeyOf = (use: "get" | "create", response: object = {}, changes: object = {}) => ({
  id: CREDENTIAL_ID,
  rawId: CREDENTIAL_ID,
  type: "public-key",
  clientExtensionResults: {},
  response: {
    clientDataJSON: client(`webauthn.${use}`),
    ...(use === "get" ? { authenticatorData: "AA", signature: "AA" } : { attestationObject: "oA" }),
    ...response,
  },
  ...changes,
});

const NO_PASSKEYS: Record<string, unknown> = {
  "no JSON": "{",
  null: null,
  "an array": [],
  "no response": { id: CREDENTIAL_ID },
};
const CHANGES: Record<string, [response: object, changes?: object]> = {
  "a response that is a text": [{}, { response: "x" }],
  "an object as the user handle": [{ userHandle: { length: 3 } }],
  "an object as the id": [{}, { id: { toString: 1 }, rawId: {} }],
  "a NUL in the id": [{}, { id: "\0", rawId: "\0" }],
  "an object as the client data": [{ clientDataJSON: {} }],
  "a number as the challenge at sign-in": [{ clientDataJSON: client("webauthn.get", 1) }],
  "a number as the challenge of a new one": [{ clientDataJSON: client("webauthn.create", 1) }],
  "numbers as data": [{ authenticatorData: 1, signature: 2 }],
  "objects as transports": [{ transports: [{}] }],
  "an object as the attestation": [{ attestationObject: {} }],
};

test.before(async () => {
  const { id } = await service.createUser([]);
  const passkey = { credentialId: CREDENTIAL_ID, publicKey: "AA", counter: 0, transports: [], synced: false };
  await service.storage.secondFactors.passkeys.add({ ...passkey, name: "key" }, { id });
});

const postPasskey = (passkey: string, cookie = "") =>
  postForm(`${service.url}/auth/passkey`, { passkey }, { accept: "text/html", origin: service.url, cookie });

test("a malformed passkey is neither accepted at sign-in nor registered", async (t) => {
  const { api } = await createColleague(service, undefined);
  const malformed = (use: "get" | "create") => [
    ...Object.entries(NO_PASSKEYS),
    ...Object.entries(CHANGES).map(([what, changes]) => [what, passkeyOf(use, ...changes)] as const),
  ];
  const textOf = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  for (const [what, value] of malformed("get")) t.is((await postPasskey(textOf(value))).status, 400, what);
  for (const [what, value] of malformed("create")) {
    const json = { name: "another", passkey: textOf(value) };
    t.is((await api.send("POST", "/dashboard/account/passkeys", { json })).status, 422, what);
  }
});

test.serial("an outage while a passkey is verified isn't reported as a wrong passkey", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/login`);
  const options = page.html.querySelector("form[data-passkey]")?.attributes["data-options"] ?? "";
  const { challenge } = JSON.parse(options) as { challenge: string };
  const passkey = JSON.stringify(passkeyOf("get", { clientDataJSON: client("webauthn.get", challenge) }));
  const { replays } = service.storage;
  const { useOnce } = replays;
  t.teardown(() => Object.assign(replays, { useOnce }));
  Object.assign(replays, {
    useOnce: () => Promise.reject(Object.assign(new Error("an outage"), { code: UNAVAILABLE })),
  });
  t.is((await postPasskey(passkey, await browser.jar.getCookieString(service.url))).status, 503);
});

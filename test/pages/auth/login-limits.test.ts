import test from "ava";
import { createVerifyPassword } from "../../../server/auth/verify-password.ts";
import { createAuthenticationLimits } from "../../../server/rate-limits/authentication.ts";
import { createRateLimitStore } from "../../../server/rate-limits/store.ts";
import { deviceCookie, newAddress } from "../../harness/clients/addresses.ts";
import { apiAt, isProblem, type Reply, read } from "../../harness/clients/api.ts";
import { shareApp } from "../../harness/clients/authorization.ts";
import { authorizeUrl } from "../../harness/clients/authorization-request.ts";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { OPERATOR, postForm } from "../../harness/service.ts";

const { service, app, own, user } = await shareApp({
  RATE_LIMIT: "on",
  TRUST_PROXY: "1",
  SMTP_URL: "smtp://127.0.0.1:9",
  SMTP_FROM: "linkgate@example.com",
});

function post(path: string, json: object, address: string, { token = "", cookie = "" } = {}) {
  const headers = { "x-forwarded-for": address, ...(cookie && { cookie }) };
  return apiAt(service.url, token).send<{ access_token: string }>("POST", path, { json, headers });
}

const signIn = (username: string, password: string, address: string, cookie = "") =>
  post("/auth/login", { username, password }, address, { cookie });

async function visit(username: string, password: string, address = newAddress()): Promise<Page> {
  const browser = new TestBrowser(service.url);
  const open = browser.open.bind(browser);
  browser.open = (url, init = {}) =>
    open(url, { ...init, headers: { ...init.headers, "x-forwarded-for": address } });
  const page = await browser.open(authorizeUrl(service, app));
  return browser.press(page, "Sign in", { username, password });
}

function isThrottled(t: Parameters<typeof isProblem>[0], reply: Reply<unknown>) {
  isProblem(t, reply, { status: 429, code: "too_many_requests" });
  const seconds = Number(reply.headers.get("retry-after"));
  t.true(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `${seconds}`);
}

/** Returns usernames that no password signs in, and the password that comes nearest. */
async function hopeless(): Promise<Record<string, [username: string, password: string]>> {
  const { accounts, disabledAccounts } = service.storage;
  const disabled = await service.createUser([own.id]);
  await disabledAccounts.disable(disabled.id, null, OPERATOR);
  const external = await accounts.create(crypto.randomUUID(), null, OPERATOR);
  return {
    unknown: ["no-such-user", "not the password"],
    disabled: [disabled.username, disabled.password],
    "SSO-only": [external?.username ?? "", ""],
    "SSO-only with a guess": [external?.username ?? "", "not the password"],
    empty: [user.username, ""],
    "with a NUL": ["a\u0000b", "not the password"],
  };
}

/** Returns what a stranger sees of a response, without what is random. */
function seen(
  { status, headers, text }: { status: number; headers: Headers; text: string },
  username: string,
) {
  const cookies = headers.getSetCookie().map((line) => line.replace(/=[^;]*/, ""));
  const volatile = /^(date|x-request-id|keep-alive|content-length|etag|retry-after|set-cookie)$/;
  const stable = [...headers].filter(([name]) => !volatile.test(name));
  const body = text
    .replaceAll(username || "USERNAME", "USERNAME")
    .replaceAll(/[\w-]{8}-[\w-]{4}-[\w-]{4}-[\w-]{4}-[\w-]{12}/g, "REQUEST")
    .replaceAll(/\b\d+ (second|minute)s?\b/g, "N $1s")
    .replace(/(?<=name="username" [^>]*value=")[^"]*|(?<=id="username"[^>]*value=")[^"]*/, "USERNAME")
    .replace(/(?<=action=")[^"]*/, "ACTION")
    .replaceAll(/v1\.[\w.-]{20,}|[\w-]{22,}(\.[\w-]+)*/g, "RANDOM");
  return { status, cookies, headers: stable, hasRetryAfter: headers.has("retry-after"), body };
}

// Serial, because some tests move the clock and only a few passwords are verified concurrently.
test.serial("unknown, disabled and SSO-only users and wrong passwords get the same response", async (t) => {
  const page = seen(await visit(user.username, "not the password"), user.username);
  t.is(page.status, 400);
  const json = seen(await signIn(user.username, "not the password", newAddress()), user.username);
  t.is(json.status, 401);
  for (const [what, [username, password]] of Object.entries(await hopeless())) {
    if (!username.includes("\0")) t.deepEqual(seen(await visit(username, password), username), page, what);
    t.deepEqual(seen(await signIn(username, password, newAddress()), username), json, what);
  }
  for (const fields of [{ username: user.username }, { username: [user.username], password: "x" }, {}])
    t.deepEqual(seen(await post("/auth/login", fields, newAddress()), user.username), json);
});

test.serial("each of them costs one password verification", async (t) => {
  let checks = 0;
  const passwords = {
    async verify() {
      checks++;
      return false;
    },
  };
  const off = { RATE_LIMIT: false, REDIS_URL: undefined };
  const { signIn: limits } = createAuthenticationLimits(await createRateLimitStore(off));
  const devices = { tokenOf: () => undefined };
  const verify = createVerifyPassword({ ...service.storage, devices, passwords, limits, isLimited: false });
  const ctx = { ip: "203.0.113.1", set() {} } as unknown as Parameters<typeof verify>[0];
  for (const [what, [username]] of Object.entries({ ...(await hopeless()), wrong: [user.username] })) {
    checks = 0;
    await t.throwsAsync(verify(ctx, username ?? "", "not the password"), { code: "invalid_credentials" });
    t.is(checks, 1, what);
  }
});

const REQUESTS: [what: string, path: string, count: number, isDistributed: boolean][] = [
  ["a wrong password from one network", "/auth/login", 8, false],
  // Only the delays of the account apply.
  ["a wrong password from many networks", "/auth/login", 14, true],
  ["a forgotten password", "/auth/forgot-password", 12, false],
];

for (const [what, path, count, isDistributed] of REQUESTS)
  test.serial(`${what} doesn't reveal whether the username exists, up to the limits`, async (t) => {
    for (const accept of ["text/html", "application/json"]) {
      const known = await service.createUser([]);
      let [here, there] = [newAddress(), newAddress()];
      const send = async (username: string, address: string) => {
        const headers = { accept, "x-forwarded-for": address, origin: service.url };
        const fields = { username, ...(path === "/auth/login" && { password: "wrong" }) };
        return seen(await read(await postForm(service.url + path, fields, headers)), username);
      };
      const statuses = new Set<number>();
      for (let attempt = 0; attempt < count; attempt++) {
        if (isDistributed) [here, there] = [newAddress(), newAddress()];
        const one = await send(known.username, here);
        t.deepEqual(one, await send(`unknown-${known.username}`, there), `${accept}, attempt ${attempt}`);
        statuses.add(one.status);
      }
      const refusal = path !== "/auth/login" ? 202 : accept === "text/html" ? 400 : 401;
      t.deepEqual([...statuses], [refusal, 429]);
    }
  });

test.serial("after five wrong passwords, the page says when an address may try again", async (t) => {
  const address = newAddress();
  const guess = (password: string) => visit(user.username, password, address);
  for (let count = 0; count < 5; count++) t.is((await guess(`guess number ${count}`)).status, 400);
  const page = await guess(user.password);
  t.is(page.status, 429);
  t.true(page.text.includes(`Try again in ${page.headers.get("retry-after")} seconds.`));
  t.truthy(page.html.querySelector("#password"), "the form is shown");
});

test.serial("guesses at the pages, for tokens and for the current password share one limit", async (t) => {
  const { username, password } = await service.createUser([]);
  const address = newAddress();
  const { access_token: token } = (await signIn(username, password, address)).body;
  const guess = { current_password: "guess", new_password: "an entirely new one" };
  const form = { username, password: "guess" };
  const headers = { accept: "text/html", origin: service.url, "x-forwarded-for": address };
  const ways = [
    () => signIn(username, "guess", address),
    () => post("/dashboard/account/password", guess, address, { token }),
    async () => read(await postForm(`${service.url}/auth/login`, form, headers)),
  ];
  const statuses = [];
  for (let count = 0; count < 8; count++) statuses.push((await ways[count % 3]?.())?.status);
  t.deepEqual(statuses, [401, 422, 400, 401, 422, 429, 429, 429]);
  isThrottled(t, await post("/dashboard/account/password", guess, address, { token }));
});

test.serial("changes in the dashboard are limited per user, and reads are not", async (t) => {
  const { username, password } = await service.createUser([]);
  const { access_token: token } = (await signIn(username, password, newAddress())).body;
  const create = () => post("/dashboard/organizations", { name: "" }, newAddress(), { token });
  for (let batch = 0; batch < 20; batch++)
    for (const { status } of await atOnce(30, create)) t.is(status, 422);
  isThrottled(t, await create());
  t.is((await apiAt(service.url, token).get("/dashboard/me")).status, 200);
});

test.serial("a known device can sign in despite a flood of guesses from its own network", async (t) => {
  const { username, password } = await service.createUser([]);
  const cookie = await deviceCookie(service, { username, password }, "192.0.2.1");
  const addressOf = (subnet: number) => `2001:db8:1:${subnet.toString(16)}::1`;
  const replies = [];
  for (let subnet = 0; subnet < 25; subnet++)
    replies.push(...(await atOnce(5, (index) => signIn(username, `guess ${index}`, addressOf(subnet)))));
  t.true(replies.some(({ status }) => status === 429));
  for (const address of ["192.0.2.1", addressOf(3)])
    t.is((await signIn(username, password, address, cookie)).status, 200, address);
});

test.serial("a flood from one /48 doesn't block the sign-ins of others", async (t) => {
  advanceClock(61_000);
  const users = await atOnce(20, () => service.createUser([]));
  const flood = atOnce(150, (index) =>
    signIn(`flood-${index}`, "guess", `2001:db8:5:${index.toString(16)}::1`),
  );
  const signIns = users.map(({ username, password }) => signIn(username, password, newAddress()));
  for (const { status } of await Promise.all(signIns)) t.is(status, 200);
  const isRefused = (await flood).some(({ status }) => status === 503);
  t.true(isRefused, "the flood itself has to wait");
});

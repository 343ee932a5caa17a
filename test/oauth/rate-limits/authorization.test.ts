import test from "ava";
import { parse } from "node-html-parser";
import { openConsent } from "../../harness/clients/authorization.ts";
import type { Fields } from "../../harness/clients/authorization-request.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { advanceClock } from "../../harness/clock.ts";
import { startServiceWithDatabase } from "../../harness/database/service.ts";

const settings = { TRUST_PROXY: "1", RATE_LIMIT: "on" };
const { service, knex } = await startServiceWithDatabase(settings);
const { app, user } = await createApp(service);

const ADDRESS = "198.51.100.1";
const TABLES = ["sessions", "interactions", "grants", "tokens", "events", "known_devices"] as const;

async function rowsOf(table: (typeof TABLES)[number]): Promise<number> {
  const [row] = await knex(table).count({ total: "*" });
  return Number(row?.total);
}

function request(path: string, headers: Record<string, string> = {}, address = ADDRESS) {
  return fetch(new URL(path, service.url), {
    headers: { accept: "text/html", "x-forwarded-for": address, ...headers },
    redirect: "manual",
  });
}

async function linkOf(response: Response): Promise<URL> {
  const link = parse(await response.text()).querySelector("main a.button");
  return new URL(link?.getAttribute("href") ?? "");
}

async function signIn(): Promise<TestBrowser> {
  const browser = new TestBrowser(service.url);
  await openConsent(browser, user, authorizeUrl(service, app));
  return browser;
}

const endSessions = () => knex("sessions").where({ user_id: user.id }).update({ destroyed_at: Date.now() });

test.serial("neither the cookie of an ended session nor an invalid request stores a row", async (t) => {
  const cookie = await (await signIn()).jar.getCookieString(service.url);
  await endSessions();
  t.regex(cookie, /session=/);
  const countAll = () => Promise.all(TABLES.map(rowsOf));
  const before = await countAll();
  for (const headers of [{ cookie }, {}] as Record<string, string>[])
    for (let times = 0; times < 5; times++) {
      const invalid = authorizeUrl(service, app, { response_type: "token" });
      t.is((await request(invalid, headers)).status, 303);
      const unknown = authorizeUrl(service, app, { client_id: "lgc_unknown" });
      t.is((await request(unknown, headers)).status, 400);
      for (const path of ["/oauth/authorize", "/dashboard", "/auth/login"]) {
        const answer = await request(path, { ...headers, "user-agent": "x".repeat(10_000) });
        const cookies = answer.headers.getSetCookie();
        t.false(cookies.join("\n").includes("session="), path);
      }
    }
  t.deepEqual(await countAll(), before);
});

test.serial("a user can sign in with the cookie of an ended session in the browser", async (t) => {
  const browser = await signIn();
  await endSessions();
  const page = await openConsent(browser, user, authorizeUrl(service, app));
  const end = new URL((await browser.press(page, "Allow")).url);
  t.true(end.searchParams.has("code"));
});

test.serial("a long user agent is truncated before it is stored", async (t) => {
  const browser = await signIn();
  // Each request of the authorization flow records the use of the session.
  await browser.open(`${service.url}/oauth/authorize`, { headers: { "user-agent": "y".repeat(10_000) } });
  const rows = await knex("sessions").whereNull("destroyed_at").select("payload");
  t.true(rows.length > 0);
  for (const { payload } of rows) t.true(payload.length < 2000, String(payload.length));
  t.true(rows.some(({ payload }) => payload.includes("y".repeat(255))));
});

test.serial("a state of more than 2,048 bytes is rejected before anything is stored", async (t) => {
  const fits = await request(authorizeUrl(service, app, { state: "s".repeat(2048) }));
  t.is(fits.status, 303);
  t.regex(String(fits.headers.get("location")), /\/interaction\//);
  const signedIn = await signIn();
  const before = await rowsOf("interactions");
  for (const state of ["s".repeat(2049), "é".repeat(1025), "s".repeat(12_000)]) {
    const end = new URL((await signedIn.open(authorizeUrl(service, app, { state }))).url);
    t.is(end.origin, "https://app.example.com");
    t.is(end.searchParams.get("error"), "invalid_request");
    t.is(end.searchParams.get("error_description"), "state must be at most 2048 bytes");
    t.is(end.searchParams.get("state"), state);
  }
  // Too long for the URL of a sign-in.
  const page = await request(authorizeUrl(service, app, { state: "s".repeat(12_000) }));
  t.is(page.status, 400);
  t.is((await linkOf(page)).searchParams.get("error"), "invalid_request");
  t.is(await rowsOf("interactions"), before);
});

test.serial("so are parameters of more than 4,096 bytes, and pushed requests of either size", async (t) => {
  const signedIn = await signIn();
  const before = await rowsOf("interactions");
  const changes = { login_hint: "h".repeat(4096) };
  const { searchParams } = new URL((await signedIn.open(authorizeUrl(service, app, changes))).url);
  t.is(searchParams.get("error"), "invalid_request");
  t.regex(String(searchParams.get("error_description")), /at most 4096 bytes/);
  t.is(await rowsOf("interactions"), before);
  const push = (more: Fields) => {
    const query = new URL(authorizeUrl(service, app, more)).searchParams;
    return postAsClient(service, "par", app, Object.fromEntries(query));
  };
  t.is((await push({ state: "s".repeat(2048) })).status, 201);
  for (const more of [{ state: "s".repeat(2049) }, changes]) {
    const { status, body } = await push(more);
    t.is(`${status} ${body.error}`, "400 invalid_request", JSON.stringify(more));
    t.regex(String(body.error_description), /at most \d+ bytes/, JSON.stringify(more));
  }
});

test.serial("authorization requests are limited per network before anything is stored", async (t) => {
  const address = "203.0.113.7";
  for (let sent = 0; sent < 300; sent++) {
    const { status } = await request("/oauth/authorize", {}, address);
    t.is(status, 400);
  }
  const before = await rowsOf("interactions");
  const limited = await request(authorizeUrl(service, app), {}, address);
  t.is(limited.status, 429);
  t.regex(String(limited.headers.get("retry-after")), /^[1-9]\d?$/);
  t.is(limited.headers.get("cache-control"), "no-store");
  t.regex(await limited.text(), /too many requests/);
  const neighbor = await request(authorizeUrl(service, app), {}, "203.0.113.200");
  t.is(neighbor.status, 429, "the network shares one limit");
  t.is(await rowsOf("interactions"), before);
  const otherNetwork = await request(authorizeUrl(service, app), {}, "192.0.2.1");
  t.is(otherNetwork.status, 303);
});

test.serial("the pages of an authorization have their own limit per network", async (t) => {
  const address = "2001:db8:1:2::1";
  for (let sent = 0; sent < 1200; sent += 100) {
    const paths = Array.from({ length: 100 }, (_, index) =>
      index % 2 ? "/interaction/unknown" : "/oauth/authorize/unknown",
    );
    const answers = await Promise.all(paths.map((path) => request(path, {}, address)));
    t.true(answers.every(({ status }) => status === 400));
  }
  for (const path of ["/interaction/unknown", "/interaction/unknown/consent", "/oauth/authorize/unknown"]) {
    const { status, headers } = await request(path, {}, "2001:db8:1:2::ffff");
    t.is(status, 429, path);
    t.truthy(headers.get("retry-after"), path);
    t.is(headers.get("cache-control"), "no-store", path);
  }
  t.is((await request(authorizeUrl(service, app), {}, address)).status, 303);
});

test.serial("a network has a bounded number of pending authorizations", async (t) => {
  const address = "203.0.114.7";
  const before = await rowsOf("interactions");
  const start = () => request(authorizeUrl(service, app), {}, address);
  let limited: Response | undefined;
  for (let minute = 0; minute < 9 && !limited; minute++) {
    for (let batch = 0; batch < 5 && !limited; batch++) {
      const answers = await Promise.all(Array.from({ length: 50 }, start));
      limited = answers.find(({ status }) => status === 429);
    }
    advanceClock(61_000);
  }
  t.true(Number(limited?.headers.get("retry-after")) > 60);
  t.is((await rowsOf("interactions")) - before, 1500);
  advanceClock(15 * 60_000);
  t.is((await start()).status, 303);
});

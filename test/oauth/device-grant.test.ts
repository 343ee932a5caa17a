import test from "ava";
import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { tokenKey } from "../../adapters/oauth/token-row.ts";
import { shareApp } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { isAcceptedByApi, postAsClient, read, register, requestTokens } from "../harness/clients/oauth.ts";
import { type Page, TestBrowser } from "../harness/clients/test-browser.ts";
import { advanceClock } from "../harness/clock.ts";
import { postForm, startTestService } from "../harness/service.ts";

export const databases = "all";

const { service, app: own, user } = await shareApp({ DYNAMIC_REGISTRATION: "stateless" });
const app = await register(service, {
  redirect_uris: ["http://127.0.0.1/callback"],
  client_name: "Terminal",
});

type Started = {
  device_code: string;
  user_code: string;
  verification_uri_complete: string;
  expires_in: number;
  interval: number;
};

async function start(fields: Record<string, string> = {}): Promise<Started> {
  const parameters = { client_id: app.clientId, scope: "links:read", resource: service.urls.api, ...fields };
  const { body } = await read(postForm(`${service.url}/oauth/device`, new URLSearchParams(parameters)));
  return body as Started;
}

const poll = ({ device_code }: Started) =>
  requestTokens(service, app, { grant_type: DEVICE_GRANT, device_code });
const errorOf = async (started: Started) => (await poll(started)).body.error;
const titleOf = ({ html }: Page) => html.querySelector("h1")?.text;

async function enter(browser: TestBrowser, { user_code }: Pick<Started, "user_code">): Promise<Page> {
  return browser.submit(await browser.open(`${service.url}/device`), { user_code });
}

async function answer(started: Started, decision: "Allow" | "Cancel", by = user) {
  const { browser } = await browserOf(service, by);
  const consent = await enter(browser, started);
  return titleOf(await browser.press(consent, decision));
}

test("a device gets a token once its user has entered the code and allowed access", async (t) => {
  const { browser } = await browserOf(service, user);
  const started = await start();
  t.regex(started.user_code, /^[B-Z]{4}-[B-Z]{4}$/);
  t.is(started.expires_in, 600);
  t.is(started.interval, 5);
  t.is(await errorOf(started), "authorization_pending");
  const form = await browser.open(started.verification_uri_complete);
  t.is(titleOf(form), "Connect a device");
  t.is(form.html.querySelector("#user_code")?.attributes.value, started.user_code);
  const consent = await browser.submit(form, {});
  t.regex(titleOf(consent) ?? "", /^Allow /);
  t.regex(
    consent.text,
    /A device asks for access: <strong><bdi>node<\/bdi><\/strong> at <strong>127\.0\.0\.1</,
  );
  t.is(titleOf(await browser.press(consent, "Allow")), "Device connected");
  const { status, body } = await poll(started);
  t.is(status, 200);
  t.is(body.scope, "links:read");
  t.true(await isAcceptedByApi(service, body.access_token));
});

test.serial("a device code is redeemed once, and a later use revokes its grant", async (t) => {
  const started = await start();
  t.is(await answer(started, "Allow"), "Device connected");
  const answers = await Promise.all(Array.from({ length: 4 }, () => poll(started)));
  const [won, ...others] = answers.toSorted((one, other) => one.status - other.status);
  t.is(won?.status, 200);
  t.deepEqual(
    others.map(({ body }) => body.error),
    ["invalid_grant", "invalid_grant", "invalid_grant"],
  );
  advanceClock(11_000);
  t.is(await errorOf(started), "invalid_grant");
  t.false(await isAcceptedByApi(service, won?.body.access_token));
});

test("a device whose user denies access gets access_denied", async (t) => {
  const started = await start();
  t.is(await answer(started, "Cancel"), "Access denied");
  t.is(await errorOf(started), "access_denied");
});

test("a user who closed the page enters the code again", async (t) => {
  const started = await start();
  const { browser } = await browserOf(service, user);
  t.regex(titleOf(await enter(browser, started)) ?? "", /^Allow /);
  t.is(await answer(started, "Allow"), "Device connected");
  t.is((await poll(started)).status, 200);
});

test("a user without a session signs in, and finds the code of the link filled in", async (t) => {
  const started = await start();
  const browser = new TestBrowser(service.url);
  const login = await browser.open(started.verification_uri_complete);
  t.regex(login.url, /\/auth\/login\?return_to=/);
  const form = await browser.submit(login, { username: user.username, password: user.password });
  t.is(form.html.querySelector("#user_code")?.attributes.value, started.user_code);
});

test.serial("a code that is wrong, expired or used is refused with the reason", async (t) => {
  const { browser } = await browserOf(service, user);
  const messageFor = async (user_code: string) => {
    const page = await enter(browser, { user_code });
    t.is(page.status, 422);
    return page.html.querySelector("[role=alert]")?.text;
  };
  t.is(await messageFor("BBBB-BBBB"), "This code isn’t valid. Compare it with the one on your device.");
  t.is(await messageFor(""), "Enter the code.");
  const used = await start();
  await answer(used, "Allow");
  t.is(
    await messageFor(used.user_code.toLowerCase()),
    "This code has already been used. Start again on your device.",
  );
  const expired = await start();
  advanceClock(601_000);
  t.is(await errorOf(expired), "expired_token");
  t.is(await messageFor(expired.user_code), "This code isn’t valid. Compare it with the one on your device.");
});

test("a form of another site enters no code", async (t) => {
  const started = await start();
  const { browser } = await browserOf(service, user);
  const form = await browser.open(`${service.url}/device`);
  const body = new URLSearchParams({ user_code: started.user_code, confirm: "yes" });
  const headers = { origin: "https://evil.example" };
  t.is((await browser.open(form.url, { method: "POST", body, headers })).status, 403);
  const ownOrigin = { origin: service.url };
  const withoutToken = await browser.open(form.url, { method: "POST", body, headers: ownOrigin });
  t.is(titleOf(withoutToken), "Connect a device");
  t.is(withoutToken.status, 422);
});

test("who can read the database can redeem no device code", async (t) => {
  const started = await start();
  await answer(started, "Allow");
  const device_code = `hashed:${tokenKey(started.device_code)}`;
  t.is(await errorOf({ ...started, device_code }), "invalid_grant");
  t.is((await poll(started)).status, 200);
});

test("only public clients use the device grant", async (t) => {
  const { body } = await postAsClient(service, "device", own, { scope: "links:read" });
  t.is(body.error, "unauthorized_client");
});

test("DEVICE_GRANT=off turns the grant off", async (t) => {
  const without = await startTestService({ DEVICE_GRANT: "off", DYNAMIC_REGISTRATION: "stateless" });
  const metadata = (await (
    await fetch(`${without.url}/.well-known/oauth-authorization-server`)
  ).json()) as Record<string, string[]>;
  t.is(metadata.device_authorization_endpoint, undefined);
  t.false(metadata.grant_types_supported?.includes(DEVICE_GRANT));
  for (const path of ["/device", "/oauth/device"]) t.is((await fetch(without.url + path)).status, 404);
});

test("a device that polls too often gets slow_down, and guesses of codes are limited", async (t) => {
  const limited = await startTestService({ RATE_LIMIT: "on", DYNAMIC_REGISTRATION: "stateless" });
  const { user: guesser } = await createApp(limited);
  const client = await register(limited, { redirect_uris: ["http://127.0.0.1/callback"] });
  const { body } = await read(
    postForm(`${limited.url}/oauth/device`, new URLSearchParams({ client_id: client.clientId })),
  );
  const errorAfterPoll = async () =>
    (
      await requestTokens(limited, client, {
        grant_type: DEVICE_GRANT,
        device_code: String(body.device_code),
      })
    ).body.error;
  t.is(await errorAfterPoll(), "authorization_pending");
  t.is(await errorAfterPoll(), "slow_down");
  const { browser } = await browserOf(limited, guesser);
  const statuses: number[] = [];
  for (let guess = 0; guess < 21; guess++) {
    const form = await browser.open(`${limited.url}/device`);
    statuses.push((await browser.submit(form, { user_code: "BBBB-BBBB" })).status);
  }
  t.deepEqual(statuses, [...Array(20).fill(422), 429]);
});

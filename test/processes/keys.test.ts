import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { openStorage } from "../../adapters/index.ts";
import { parseEncryptionKeys } from "../../server/settings/setting-types.ts";
import { startBalancer } from "../harness/balancer.ts";
import { apiAt } from "../harness/clients/api.ts";
import { codeFor } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { browserOf } from "../harness/clients/dashboard.ts";
import { redeemCode } from "../harness/clients/oauth.ts";
import type { TestBrowser } from "../harness/clients/test-browser.ts";
import { prepareServers } from "../harness/new-server.ts";
import { freePort, resultOf, runCommand, temporaryFolder } from "../harness/program.ts";
import { serviceAt } from "../harness/two-versions.ts";
import type { NewWebhookBody } from "../harness/webhooks.ts";

// Two servers on one database, whose encryption keys are in one file. Clients reach them in turn, so what one process
// signs is verified by the other.
const folder = temporaryFolder("keys");
const keyFile = path.join(folder, "keys");
const ports = [await freePort(), await freePort()];
const balancer = await startBalancer({ authorization: ports, resources: ports });
const changes = { BASE_URL: balancer.url, LOG_LEVEL: "silent" };
const { settings, storage, start } = await prepareServers(changes, { keyFile });
await Promise.all(ports.map((port) => start({ PORT: String(port) })));
const addresses = await Promise.all(ports.map((port) => balancer.pin(port)));
const readKeys = () => parseEncryptionKeys(readFileSync(keyFile, "utf8")) ?? [];
const { url } = balancer;
const service = serviceAt(url, storage);

type Key = { kid: string; state: string };
type Result = { signing: Key[]; cookies: Key[]; encryption: object };
const linkgate = (...words: string[]) => resultOf<Result>(words, { settings });

async function fetchKeys(address: string): Promise<JSONWebKeySet> {
  const response = await fetch(`${address}/oauth/jwks`);
  if (response.headers.get("cache-control") !== "public, max-age=300") throw new Error("not cacheable");
  return (await response.json()) as JSONWebKeySet;
}

const kidOf = (token: string) => decodeProtectedHeader(token).kid as string;
const kidsOf = ({ keys }: JSONWebKeySet) => keys.map(({ kid }) => kid);

/** Waits until both servers publish these keys, in any order. */
async function published(kids: string[]): Promise<void> {
  // Each key has one on P-256 beside it.
  const expected = kids
    .flatMap((kid) => [kid, `${kid}-es256`])
    .sort()
    .join();
  for (;;) {
    const sets = await Promise.all(addresses.map(fetchKeys));
    if (sets.every((set) => kidsOf(set).sort().join() === expected)) return;
    await pause(100);
  }
}

/** Returns whether a server, or the next one in turn, accepts the session of a browser. */
async function isSignedIn(browser: TestBrowser, server?: number): Promise<boolean> {
  const headers = { accept: "application/json", ...(server !== undefined && { "x-backend": `${server}` }) };
  const { status } = await browser.open(`${url}/dashboard/me`, { headers });
  return status === 200;
}

const cookieKeyStates = async () => (await linkgate("keys", "list")).cookies.map(({ state }) => state);

// Before the others: until both servers have the new key, a sign-in that began at one of them can't end at the other.
test.serial("sessions end when the cookie keys are compromised", async (t) => {
  const { user } = await createApp(service);
  // A browser per server: the first one that rejects a cookie deletes it.
  const sessions = await Promise.all(ports.map(() => browserOf(service, user)));
  await linkgate("keys", "rotate", "cookies", "--compromised");
  for (const [server, { browser }] of sessions.entries())
    while (await isSignedIn(browser, server)) await pause(100);
  t.deepEqual(await cookieKeyStates(), ["active"]);
  const { browser } = await browserOf(service, user);
  for (const server of ports.keys()) t.true(await isSignedIn(browser, server));
});

test("a new signing key is published before it signs, and id_tokens of the old one stay valid", async (t) => {
  const { app, user } = await createApp(service);
  const { browser } = await browserOf(service, user);

  /** Gets an id_token, and verifies it with the keys that each server publishes at that time. */
  async function issue(): Promise<string> {
    const code = await codeFor(service, app, user, { browser, changes: { scope: "openid" } });
    const { status, body, text } = await redeemCode(service, app, code);
    t.is(status, 200, text);
    const token = String(body.id_token);
    for (const address of addresses)
      await jwtVerify(token, createLocalJWKSet(await fetchKeys(address)), { issuer: url });
    return token;
  }

  const before = await issue();
  const oldKid = kidOf(before);
  await published([oldKid]);
  const rotated = await linkgate("keys", "rotate", "signing", "--publish-for", "10s");
  t.like(rotated.signing, { 0: { state: "published" }, 1: { kid: oldKid, state: "active" } });
  const newKid = rotated.signing[0]?.kid ?? "";
  await published([newKid, oldKid]);

  // Without a pause: no request fails while the servers change the key, each at its own time.
  const kids: string[] = [];
  while (kids.slice(-4).filter((kid) => kid === newKid).length < 4) kids.push(kidOf(await issue()));
  t.deepEqual([...new Set(kids)], kids.includes(oldKid) ? [oldKid, newKid] : [newKid]);
  await jwtVerify(before, createLocalJWKSet(await fetchKeys(url)), { issuer: url });

  await linkgate("keys", "rotate", "signing", "--compromised");
  const { signing } = await linkgate("keys", "list");
  t.is(signing.length, 1);
  await published([signing[0]?.kid ?? ""]);
  await issue();
  await t.throwsAsync(jwtVerify(before, createLocalJWKSet(await fetchKeys(url))), {
    code: "ERR_JWKS_NO_MATCHING_KEY",
  });
});

test("sessions survive a rotation of the cookie keys", async (t) => {
  const { user } = await createApp(service);
  const { browser } = await browserOf(service, user);

  await linkgate("keys", "rotate", "cookies");
  t.deepEqual((await cookieKeyStates()).slice(0, 2), ["published", "active"]);
  while ((await cookieKeyStates())[0] !== "active") {
    t.true(await isSignedIn(browser));
    // Both servers accept the cookies of a new session, whichever key signed them.
    const { browser: another } = await browserOf(service, user);
    for (let request = 0; request < 4; request++)
      t.is((await another.open(`${url}/dashboard/account`)).status, 200);
  }
  t.true(await isSignedIn(browser));
});

test("stored secrets are encrypted with a new key while the servers run, and the old key can be removed", async (t) => {
  const [oldKey] = readKeys();
  const organization = await service.createOrganization();
  const api = apiAt(url, await service.token(organization));
  const create = async (name: string) => {
    const answer = await api.send<NewWebhookBody>("POST", "/v1/webhooks", {
      json: { url: `http://127.0.0.1:9/${name}`, events: ["link.created"] },
      headers: { "idempotency-key": name },
    });
    t.is(answer.status, 201, answer.text);
    return answer.body;
  };
  const first = await create("before");

  const running = linkgate("keys", "rotate", "encryption");
  // Each server uses the new key at its own time; the other one can always read what it wrote.
  let count = 0;
  let isRotated = false;
  void running.finally(() => (isRotated = true));
  while (!isRotated) {
    const { id } = await create(`during-${count++}`);
    for (let request = 0; request < 2; request++)
      t.is((await api.send("POST", `/v1/webhooks/${id}/test`)).status, 202);
    t.is((await api.send("DELETE", `/v1/webhooks/${id}`)).status, 204);
  }
  t.like(await running, { encryption: { keys: 2, unreadable: 0 } });
  t.is(readKeys().length, 2);
  t.deepEqual(readKeys()[1], oldKey, "the new key comes first");

  // The servers may have used the old key for a few seconds more.
  for (;;) {
    const { code, stderr } = await runCommand(["keys", "prune", "--json"], { settings });
    if (code === 0) break;
    t.is(JSON.parse(stderr).error.code, "keys_in_use");
    await pause(500);
  }
  t.is(readKeys().length, 1);
  const current = openStorage(settings.DATABASE_URL, readKeys());
  t.is(await current.countOutdatedCiphertexts(), 0);
  t.true((await current.keys.check()) > 0);
  await current.close();
  t.is((await api.send("POST", `/v1/webhooks/${first.id}/rotate-secret`)).status, 200);
});

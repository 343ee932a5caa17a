import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { hasChecksum } from "../../adapters/crypto/ids.ts";
import type { NewClient } from "../../adapters/oauth/clients.ts";
import { runCodeFlow, tokensFor } from "../harness/clients/authorization.ts";
import { createApp } from "../harness/clients/authorization-request.ts";
import { browserOf, createTeam } from "../harness/clients/dashboard.ts";
import { basic, isAcceptedByApi, outcomeOf, postAsClient, read, refresh } from "../harness/clients/oauth.ts";
import { advanceClock } from "../harness/clock.ts";
import { atOnce } from "../harness/database/storage.ts";
import { ROOT, temporaryFolder } from "../harness/program.ts";
import { postForm, startTestService } from "../harness/service.ts";

const scanner = generateKeyPairSync("ec", { namedCurve: "P-256" });
const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
const KEY_ID = "the-key-of-the-scanner";
const folder = temporaryFolder("scanner");
const file = path.join(folder, "keys.json");
const key = scanner.publicKey.export({ type: "spki", format: "pem" });
writeFileSync(file, JSON.stringify({ public_keys: [{ key_identifier: KEY_ID, key, is_current: true }] }));

const service = await startTestService({ LEAK_REPORT_KEYS: file, TRUST_PROXY: "1" });
const closed = await startTestService();

const URL_OF_LEAK = "https://github.example/octo/repo/blob/main/.env";

const KEY = "github-public-key-identifier";
const SIGNATURE = "github-public-key-signature";
const signatureOf = (body: string, privateKey = scanner.privateKey) =>
  sign("sha256", Buffer.from(body), privateKey).toString("base64");

function post(body: string, signed: Record<string, string>, url = service.url) {
  const headers = { "content-type": "application/json", ...signed };
  return read(fetch(`${url}/oauth/leaked-credentials`, { method: "POST", body, headers }));
}

type SendOptions = { privateKey?: KeyObject; keyId?: string; url?: string };

const send = (body: string, { privateKey, keyId = KEY_ID, url }: SendOptions = {}) =>
  post(body, { [KEY]: keyId, [SIGNATURE]: signatureOf(body, privateKey) }, url);

/** Reports credentials; returns the label of each, and fails if the response has another hash or a credential. */
async function report(...found: string[]): Promise<string[]> {
  const type = { type: "linkgate", source: "commit", url: URL_OF_LEAK };
  const { status, text } = await send(JSON.stringify(found.map((token) => ({ token, ...type }))));
  if (status !== 200 || found.some((token) => text.includes(token))) throw new Error(text);
  const labels = JSON.parse(text) as { token_hash: string; token_type: string; label: string }[];
  const hashes = found.map((token) => createHash("sha256").update(token).digest("base64"));
  if (labels.some(({ token_hash }, index) => token_hash !== hashes[index])) throw new Error("another hash");
  return labels.map(({ label }) => label);
}

test("a leaked client secret is revoked with the tokens of its client, and the owners are notified", async (t) => {
  const team = await createClient();
  const { owner, member, rotate } = team;
  const organization = { ...team.organization, ...(await rotate()) };
  const token = await service.token(organization);
  const ofMember = await tokensFor(service, organization, member, { organizationId: organization.id });
  for (const one of [token, ofMember.access_token]) t.true(await isAcceptedByApi(service, one));
  const labels = await Promise.all(Array.from({ length: 10 }, () => report(organization.clientSecret)));
  t.deepEqual(labels.flat().sort(), [...Array(9).fill("false_positive"), "true_positive"], "revoked once");
  for (const one of [token, ofMember.access_token]) t.false(await isAcceptedByApi(service, one));
  t.deepEqual(await service.storage.grants.listByUser(member.id), [], "members have to consent again");
  const again = postAsClient(service, "token", organization, { grant_type: "client_credentials" });
  t.is(await outcomeOf(again), "401 invalid_client");

  const types = ["client.secret_leaked"] as const;
  const [entry, ...others] = await service.storage.audit.list(organization.id, { types: [...types] }, 9);
  t.deepEqual(others, []);
  const last4 = organization.clientSecret.slice(-4);
  t.like(entry?.data, { client_id: organization.clientId, last4, source: "commit", url: URL_OF_LEAK });
  const noticesOf = async ({ api }: typeof owner) => {
    const { body } = await api.get<{ data: { kind: string }[] }>("/dashboard/notices");
    return body.data.map(({ kind }) => kind);
  };
  t.true((await noticesOf(owner)).includes("credential_leaked"));
  t.false((await noticesOf(member)).includes("credential_leaked"));

  // The organization gets a new secret as after any other revocation.
  t.true(await isAcceptedByApi(service, await service.token(await rotate())));
});

test("a leaked token of a user ends its whole authorization, and no other", async (t) => {
  const { app, user } = await createApp(service);
  for (const kind of ["accessToken", "refreshToken"] as const) {
    const changes = { prompt: "consent" };
    const leaked = await runCodeFlow(service, app, user, { changes });
    const other = await runCodeFlow(service, app, user, { changes });
    t.deepEqual(await report(leaked[kind]), ["true_positive"]);
    t.false(await isAcceptedByApi(service, leaked.accessToken));
    t.is((await refresh(service, app, leaked.refreshToken)).status, 400);
    t.true(await isAcceptedByApi(service, other.accessToken));
    t.deepEqual(await report(leaked[kind]), ["false_positive"], "it is no longer valid");
  }
  t.true(await isAcceptedByApi(service, await service.token(app)));
});

test("a leaked token of a client is revoked, and no other", async (t) => {
  const { app } = await createApp(service);
  const [leaked, other] = [await service.token(app), await service.token(app)];
  const labels = await report(leaked, "lga_unknown", "ghp_0123456789", `${leaked.slice(0, -1)}~`);
  t.deepEqual(labels, ["true_positive", ...Array(3).fill("false_positive")]);
  t.false(await isAcceptedByApi(service, leaked));
  t.true(await isAcceptedByApi(service, other));
});

test("a report that isn't signed with a known key revokes nothing", async (t) => {
  const { app } = await createApp(service);
  const token = await service.token(app);
  const body = JSON.stringify([{ token }]);
  const named = { [KEY]: KEY_ID };
  for (const sending of [
    send(body, { privateKey: stranger.privateKey }),
    send(body, { keyId: "unknown" }),
    post(body, {}),
    post(body, named),
    post(body, { ...named, [SIGNATURE]: "not a signature" }),
    post(`${body} `, { ...named, [SIGNATURE]: signatureOf(body) }),
    // None of these is parsed.
    send("[", { privateKey: stranger.privateKey }),
    post("[".repeat(100_000), named),
    post("x".repeat(600_000), {}),
  ])
    t.is(await outcomeOf(sending), "401 invalid_signature");
  t.true(await isAcceptedByApi(service, token));
});

test("a report that is no list of at most 1,000 tokens, or over the size limit, is refused", async (t) => {
  const long = JSON.stringify(Array(1001).fill({ token: "lga_x" }));
  for (const body of ["{}", '[{"type":"a"}]', "[", long]) {
    const { status, body: answer } = await send(body);
    t.is(status, 400);
    t.regex(String(answer.error_description), /must be a JSON array of at most 1000 objects with a token/);
  }
  t.is((await send(JSON.stringify([{ token: "x".repeat(600_000) }]))).status, 413);
});

test("without keys, there is no such endpoint", async (t) => {
  t.is((await fetch(`${closed.url}/oauth/leaked-credentials`, { method: "POST", body: "[]" })).status, 404);
});

test.serial("while the scanner's keys can't be read again, the known ones are used", async (t) => {
  const copy = path.join(folder, "copy.json");
  copyFileSync(file, copy);
  const own = await startTestService({ LEAK_REPORT_KEYS: copy });
  const body = JSON.stringify([{ token: "lga_unknown" }]);
  t.is((await send(body, { url: own.url })).status, 200);
  writeFileSync(copy, "no keys");
  advanceClock(2 * 60 * 60 * 1000);
  t.is((await send(body, { url: own.url })).status, 200);
  t.is((await send(body, { url: own.url, keyId: "unknown" })).status, 401);
});

async function createClient() {
  const team = await createTeam(service);
  const { organization, owner } = team;
  const options = { overlapMs: 3_600_000, compromised: false };
  const rotate = () =>
    service.storage.clients.rotateSecret(organization.id, options, owner) as Promise<NewClient>;
  return { ...team, rotate };
}

async function use(client: NewClient, userAgent: string, address: string): Promise<void> {
  const headers = { ...basic(client), "user-agent": userAgent, "x-forwarded-for": address };
  const fields = { grant_type: "client_credentials" };
  const { status } = await postForm(`${service.url}/oauth/token`, fields, headers);
  if (status !== 200) throw new Error(`no token: ${status}`);
}

type Callers = { last4: string; callers: { program: string; network: string }[] }[];

type Client = Awaited<ReturnType<typeof createClient>>;

/** Waits until the uses of a client are stored, which is after the response. */
async function secretsOf({ owner, base }: Client, count: number): Promise<Callers> {
  for (;;) {
    const { body } = await owner.api.get<{ secrets: Callers }>(`${base}/client`);
    if (body.secrets.flatMap(({ callers }) => callers).length === count) return body.secrets;
  }
}

test("each secret lists the programs and networks that used it, most recent first", async (t) => {
  const client = await createClient();
  const first = await client.rotate();
  await use(first, "python-requests/2.32.3", "203.0.113.7");
  await secretsOf(client, 1);
  await use(first, "python-requests/2.33.0", "203.0.113.200");
  await use(first, "curl/8.5.0", "2001:db8:1:2:3:4:5:6");
  const [secret] = await secretsOf(client, 2);
  t.is(secret?.last4, first.clientSecret.slice(-4));
  const callers = secret?.callers.map(({ program, network }) => `${program} ${network}`);
  t.deepEqual(callers, ["curl 2001:db8:1:2::/64", "python-requests 203.0.113.0/24"]);
});

test("a secret keeps its 20 most recent callers", async (t) => {
  const client = await createClient();
  const secret = await client.rotate();
  for (let index = 0; index < 24; index++) await use(secret, `program-${index}`, "203.0.113.7");
  for (;;) {
    const [stored] = await secretsOf(client, 20);
    if (stored?.callers.some(({ program }) => program === "program-23")) break;
  }
  t.pass();
});

test("during an overlap, the page says whether the previous secret is still used, and by whom", async (t) => {
  const client = await createClient();
  const { browser } = await browserOf(service, client.owner);
  const open = () => browser.open(`${service.url}${client.base}/client`);
  const previous = await client.rotate();
  const current = await client.rotate();
  await use(current, "current-program", "198.51.100.7");
  await secretsOf(client, 1);
  t.regex((await open()).text, /hasn’t been used since the rotation\. You can revoke it/);
  await use(previous, "<script>old-program", "203.0.113.7");
  await use(previous, "old-program/1.0", "203.0.113.7");
  await secretsOf(client, 3);
  const page = await open();
  t.regex(page.text, /is still in use/);
  t.regex(page.html.textContent, /old-program from 203\.0\.113\.0\/24/);
  t.false(page.text.includes("<script>old"));
});

test("a use of the previous secret just before the rotation may hide later ones, which the page says", async (t) => {
  const client = await createClient();
  const { browser } = await browserOf(service, client.owner);
  const previous = await client.rotate();
  await use(previous, "old-program/1.0", "203.0.113.7");
  await secretsOf(client, 1);
  const current = await client.rotate();
  await use(current, "current-program", "198.51.100.7");
  await use(previous, "old-program/1.0", "203.0.113.7");
  await secretsOf(client, 2);
  const { text } = await browser.open(`${service.url}${client.base}/client`);
  t.regex(text, /was used less than a minute before the rotation/);
  t.notRegex(text, /You can revoke it/);
});

test.serial("a caller with a new User-Agent for each request doesn't cause a write each", async (t) => {
  const secret = await (await createClient()).rotate();
  let writes = 0;
  const stop = service.onStatement((sql) => {
    if (/^update .client_secrets. set .last_used_at./.test(sql)) writes++;
  });
  t.teardown(stop);
  for (let batch = 0; batch < 15; batch++)
    await atOnce(10, (index) => use(secret, `agent-${batch}-${index}`, "203.0.113.7"));
  t.true(writes <= 60, `${writes} writes`);
});

async function documentedCheck(): Promise<(text: string) => boolean> {
  const document = readFileSync(`${ROOT}docs/leaked-credentials.md`, "utf8");
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(document) ?? [];
  const module = path.join(folder, "check.mjs");
  writeFileSync(module, code);
  return (await import(module)).isCredential;
}

test("the documented check accepts every new credential, and nothing that differs by a character", async (t) => {
  const isCredential = await documentedCheck();
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  for (const credential of [app.clientSecret, await service.token(app), accessToken, refreshToken]) {
    t.true(isCredential(credential), credential.slice(0, 4));
    t.true(hasChecksum(credential), credential.slice(0, 4));
    for (let position = 0; position < credential.length; position++) {
      const other = credential[position] === "A" ? "B" : "A";
      const changed = credential.slice(0, position) + other + credential.slice(position + 1);
      t.false(isCredential(changed), `${credential.slice(0, 4)} ${position}`);
      t.false(hasChecksum(changed), `${credential.slice(0, 4)} ${position}`);
    }
  }
  t.false(hasChecksum("lga_x"));
  t.true(await isAcceptedByApi(service, accessToken));
});

import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { hasChecksum, withChecksum } from "../../../adapters/crypto/ids.ts";
import type { NewClient } from "../../../adapters/oauth/clients.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { browserOf, createTeam } from "../../harness/clients/dashboard.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import {
  createApp,
  isAcceptedByApi,
  postAsClient,
  read,
  refresh,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { advanceClock } from "../../harness/clock.ts";
import { ROOT } from "../../harness/program.ts";
import { postForm, startTestService } from "../../harness/service.ts";

const scanner = generateKeyPairSync("ec", { namedCurve: "P-256" });
const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
const KEY_ID = "the-key-of-the-scanner";
const folder = mkdtempSync(path.join(tmpdir(), "linkgate-scanner-"));
const file = path.join(folder, "keys.json");
const key = scanner.publicKey.export({ type: "spki", format: "pem" });
writeFileSync(file, JSON.stringify({ public_keys: [{ key_identifier: KEY_ID, key, is_current: true }] }));

const service = await startTestService({ LEAK_REPORT_KEYS: file, TRUST_PROXY: "1" });
const closed = await startTestService();

test.after.always(async () => {
  await Promise.all([service.close(), closed.close()]);
  rmSync(folder, { recursive: true });
});

type Report = { token: string; type?: string; source?: string; url?: string }[];
const URL_OF_LEAK = "https://github.example/octo/repo/blob/main/.env";

type SendOptions = { privateKey?: KeyObject; keyId?: string; url?: string };

function send(
  body: string,
  { privateKey = scanner.privateKey, keyId = KEY_ID, url = service.url }: SendOptions = {},
) {
  return read(
    fetch(`${url}/oauth/leaked-credentials`, {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        "github-public-key-identifier": keyId,
        "github-public-key-signature": sign("sha256", Buffer.from(body), privateKey).toString("base64"),
      },
    }),
  );
}

async function report(...found: string[]): Promise<string[]> {
  const findings: Report = found.map((token) => ({
    token,
    type: "linkgate",
    source: "commit",
    url: URL_OF_LEAK,
  }));
  const { status, text } = await send(JSON.stringify(findings));
  if (status !== 200) throw new Error(text);
  for (const token of found) if (text.includes(token)) throw new Error("the response repeats a credential");
  const labels = JSON.parse(text) as { token_hash: string; token_type: string; label: string }[];
  labels.forEach(({ token_hash }, index) => {
    if (
      token_hash !==
      createHash("sha256")
        .update(found[index] as string)
        .digest("base64")
    )
      throw new Error("another hash");
  });
  return labels.map(({ label }) => label);
}

test("a leaked client secret is revoked with the tokens of its client, and the owners are notified", async (t) => {
  const team = await createTeam(service);
  const { owner, member, base } = team;
  const rotate = () =>
    service.storage.clients.rotateSecret(
      team.organization.id,
      { overlapMs: 0, compromised: false },
      { id: owner.id },
    );
  const organization = { ...team.organization, ...((await rotate()) as NewClient) };
  const token = await service.token(organization);
  t.true(await isAcceptedByApi(service, token));
  const ofMember = await tokensFor(service, organization, member, { organizationId: organization.id });
  t.true(await isAcceptedByApi(service, ofMember.access_token));
  const labels = await Promise.all(Array.from({ length: 10 }, () => report(organization.clientSecret)));
  t.deepEqual(labels.flat().sort(), [...Array(9).fill("false_positive"), "true_positive"], "revoked once");
  t.false(await isAcceptedByApi(service, token));
  t.false(await isAcceptedByApi(service, ofMember.access_token));
  t.deepEqual(await service.storage.grants.listByUser(member.id), [], "members have to consent again");
  const again = await postAsClient(service, "token", organization, { grant_type: "client_credentials" });
  t.is(again.status, 401);

  const { body } = await owner.api.get<{ data: { type: string; actor: unknown; data: object }[] }>(
    `${base}/audit`,
  );
  const entries = body.data.filter(({ type }) => type === "client.secret_leaked");
  t.is(entries.length, 1);
  t.like(entries[0]?.data, {
    client_id: organization.clientId,
    last4: organization.clientSecret.slice(-4),
    source: "commit",
    url: URL_OF_LEAK,
  });
  const noticesOf = async (user: typeof owner) =>
    (await user.api.get<{ data: { kind: string }[] }>("/dashboard/notices")).body.data.map(
      ({ kind }) => kind,
    );
  t.true((await noticesOf(owner)).includes("credential_leaked"));
  t.false((await noticesOf(member)).includes("credential_leaked"));

  // The organization gets a new secret as after any other revocation.
  const client = (await rotate()) as NewClient;
  t.true(await isAcceptedByApi(service, await service.token(client)));
});

test("a leaked token of a user ends its whole authorization, and no other", async (t) => {
  for (const kind of ["accessToken", "refreshToken"] as const) {
    const { app, user } = await createApp(service);
    const leaked = await runCodeFlow(service, app, user);
    const other = await runCodeFlow(service, app, user, { changes: { prompt: "consent" } });
    t.deepEqual(await report(leaked[kind]), ["true_positive"]);
    t.false(await isAcceptedByApi(service, leaked.accessToken));
    t.is((await refresh(service, app, leaked.refreshToken)).status, 400);
    t.true(await isAcceptedByApi(service, other.accessToken));
    t.deepEqual(await report(leaked[kind]), ["false_positive"], "it is no longer valid");
    const api = apiAt(service.url, await service.token(app));
    t.is((await api.get("/v1/organization")).status, 200);
  }
});

test("a leaked token of a client is revoked, and no other", async (t) => {
  const { app } = await createApp(service);
  const [leaked, other] = [await service.token(app), await service.token(app)];
  t.deepEqual(await report(leaked, "lga_unknown", "ghp_0123456789", `${leaked.slice(0, -1)}~`), [
    "true_positive",
    "false_positive",
    "false_positive",
    "false_positive",
  ]);
  t.false(await isAcceptedByApi(service, leaked));
  t.true(await isAcceptedByApi(service, other));
});

test("a report that isn't signed with a known key revokes nothing", async (t) => {
  const { app } = await createApp(service);
  const token = await service.token(app);
  const body = JSON.stringify([{ token }]);
  const signature = sign("sha256", Buffer.from(body), scanner.privateKey).toString("base64");
  const headers = { "content-type": "application/json" };
  const unsigned = { ...headers, "github-public-key-identifier": KEY_ID };
  const post = (sent: string, all: Record<string, string>) =>
    read(fetch(`${service.url}/oauth/leaked-credentials`, { method: "POST", body: sent, headers: all }));
  const refused = [
    await send(body, { privateKey: stranger.privateKey }),
    await send(body, { keyId: "unknown" }),
    await post(body, headers),
    await post(body, unsigned),
    await post(body, { ...unsigned, "github-public-key-signature": "not a signature" }),
    // None of these is parsed.
    await send("[", { privateKey: stranger.privateKey }),
    await post("[".repeat(100_000), unsigned),
    await post("x".repeat(600_000), headers),
    await post(`${body} `, { ...unsigned, "github-public-key-signature": signature }),
  ];
  for (const { status, body: answer } of refused) t.is(`${status} ${answer.error}`, "401 invalid_signature");
  t.true(await isAcceptedByApi(service, token));
});

for (const [what, body] of [
  ["an object", "{}"],
  ["an entry without a token", '[{"type":"a"}]'],
  ["more than 1,000 entries", JSON.stringify(Array(1001).fill({ token: "lga_x" }))],
  ["malformed JSON", "["],
] as const) {
  test(`a report with ${what} is refused`, async (t) => {
    const { status, body: answer } = await send(body);
    t.is(status, 400);
    t.regex(String(answer.error_description), /must be a JSON array of at most 1000 objects with a token/);
  });
}

test("a report over the size limit is refused", async (t) => {
  t.is((await send(JSON.stringify([{ token: "x".repeat(600_000) }]))).status, 413);
});

test("without keys, there is no such endpoint", async (t) => {
  t.is((await fetch(`${closed.url}/oauth/leaked-credentials`, { method: "POST", body: "[]" })).status, 404);
});

test.serial("while the scanner's keys can't be read again, the known ones are used", async (t) => {
  const copy = path.join(folder, "copy.json");
  copyFileSync(file, copy);
  const own = await startTestService({ LEAK_REPORT_KEYS: copy });
  t.teardown(own.close);
  const body = JSON.stringify([{ token: "lga_unknown" }]);
  t.is((await send(body, { url: own.url })).status, 200);
  writeFileSync(copy, "no keys");
  advanceClock(2 * 60 * 60 * 1000);
  t.is((await send(body, { url: own.url })).status, 200);
  t.is((await send(body, { url: own.url, keyId: "unknown" })).status, 401);
});

async function createClient() {
  const team = await createTeam(service);
  const rotate = async () =>
    (await service.storage.clients.rotateSecret(
      team.organization.id,
      { overlapMs: 3_600_000, compromised: false },
      { id: team.owner.id },
    )) as NewClient;
  return { ...team, rotate };
}

async function use({ clientId, clientSecret }: NewClient, userAgent: string, address: string): Promise<void> {
  const { status } = await postForm(
    `${service.url}/oauth/token`,
    { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret },
    { "user-agent": userAgent, "x-forwarded-for": address },
  );
  if (status !== 200) throw new Error(`no token: ${status}`);
}

type Callers = { last4: string; callers: { program: string; network: string }[] }[];

/** Waits until the uses of a client are stored, which is after the response. */
async function secretsOf(
  { owner, base }: Awaited<ReturnType<typeof createClient>>,
  count: number,
): Promise<Callers> {
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

test.serial("a caller with a new User-Agent for each request doesn't cause a write each", async (t) => {
  const client = await createClient();
  const secret = await client.rotate();
  let writes = 0;
  const stop = service.onStatement((sql) => {
    if (/^update .client_secrets. set .last_used_at./.test(sql)) writes++;
  });
  t.teardown(stop);
  for (let batch = 0; batch < 15; batch++) {
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => use(secret, `agent-${batch}-${index}`, "203.0.113.7")),
    );
  }
  t.true(writes <= 60, `${writes} writes`);
});

/** Loads the function that the documentation shows. */
async function documentedCheck(): Promise<(text: string) => boolean> {
  const document = readFileSync(`${ROOT}docs/leaked-credentials.md`, "utf8");
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(document) ?? [];
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-checksum-"));
  const file = path.join(folder, "check.mjs");
  writeFileSync(file, code);
  const { isCredential } = await import(file);
  rmSync(folder, { recursive: true });
  return isCredential;
}

test("the documented check accepts every new credential, and nothing that differs by a character", async (t) => {
  const isCredential = await documentedCheck();
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const credentials = [app.clientSecret, await service.token(app), accessToken, refreshToken];
  for (const credential of credentials) {
    t.true(isCredential(credential), credential.slice(0, 4));
    for (let position = 0; position < credential.length; position++) {
      const other = credential[position] === "A" ? "B" : "A";
      const changed = credential.slice(0, position) + other + credential.slice(position + 1);
      t.false(isCredential(changed), `${credential.slice(0, 4)} ${position}`);
    }
  }
  t.true(await isAcceptedByApi(service, accessToken));
});

test("the checksum is the CRC-32 in base 62", (t) => {
  // The check value of CRC-32 (ISO/IEC 13239): the CRC of these nine digits.
  let number = 0;
  for (const digit of withChecksum("123456789").slice(-6)) {
    number = number * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit);
  }
  t.is(number, 0xcbf43926);
  t.true(hasChecksum(withChecksum("lga_x")));
  t.false(hasChecksum("lga_x"));
});

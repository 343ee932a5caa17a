import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import type { NewClient } from "../../../adapters/oauth/clients.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { createTeam } from "../../harness/clients/dashboard.ts";
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
import { startTestService } from "../../harness/service.ts";

const scanner = generateKeyPairSync("ec", { namedCurve: "P-256" });
const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
const KEY_ID = "the-key-of-the-scanner";
const folder = mkdtempSync(path.join(tmpdir(), "linkgate-scanner-"));
const file = path.join(folder, "keys.json");
const key = scanner.publicKey.export({ type: "spki", format: "pem" });
writeFileSync(file, JSON.stringify({ public_keys: [{ key_identifier: KEY_ID, key, is_current: true }] }));

const service = await startTestService({ LEAK_REPORT_KEYS: file });
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

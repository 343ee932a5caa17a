import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  type NewWebhookBody,
  type WebhookBody,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString("base64url");
const { url: DATABASE_URL, drop } = await createTestDatabase();
const receiver = await startReceiver();
const service = await startTestService({ DATABASE_URL, ENCRYPTION_KEY, WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const organization = await service.createOrganization();
const caller = async (): Promise<Api> => apiAt(service.url, await service.token(organization));
test.after.always(async () => {
  await service.close();
  await receiver.close();
  await drop();
});

const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;
const HOUR_MS = 60 * 60 * 1000;

async function rotate(api: Api, { id }: WebhookBody): Promise<string> {
  const { status, body } = await api.send<NewWebhookBody>("POST", `/v1/webhooks/${id}/rotate-secret`);
  if (status !== 200) throw new Error(`no rotation: ${status}`);
  return body.secret;
}

/** Sends a test event and returns the request that arrives. */
async function nextTest(api: Api, { id, url }: WebhookBody): Promise<Received> {
  const path = new URL(url).pathname;
  const before = receiver.received(path).length;
  const { status } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`);
  if (status !== 202) throw new Error(`no test: ${status}`);
  return (await receiver.waitFor(path, before + 1)).at(-1) as Received;
}

const signaturesOf = ({ headers }: Received) => (headers["webhook-signature"] ?? "").split(" ");

test.serial("a secret is returned only at creation and by the rotation", async (t) => {
  const api = await caller();
  const created = await createWebhook(api, receiver.url("/shown"));
  t.regex(created.secret, SECRET);
  t.is(Buffer.from(created.secret.slice("whsec_".length), "base64").length, 32);
  const rotated = await rotate(api, created);
  t.regex(rotated, SECRET);
  t.not(rotated, created.secret);
  const { id } = created;
  const test = await api.send("POST", `/v1/webhooks/${id}/test`);
  const others = [
    await api.get(`/v1/webhooks/${id}`),
    await api.get("/v1/webhooks"),
    await api.send("PATCH", `/v1/webhooks/${id}`, { json: { enabled: false } }),
    await api.send("PATCH", `/v1/webhooks/${id}`, { json: { enabled: true } }),
    test,
    await api.get(`/v1/webhooks/${id}/deliveries`),
  ];
  for (const { text, status } of others) {
    t.true(status < 300);
    t.false(text.includes("secret") || text.includes("whsec_"), text);
  }
});

test("a response with a secret may not be stored", async (t) => {
  const api = await caller();
  const webhook = await api.send<NewWebhookBody>("POST", "/v1/webhooks", {
    json: { url: receiver.url("/unstored"), events: ["link.created"] },
  });
  const rotated = await api.send("POST", `/v1/webhooks/${webhook.body.id}/rotate-secret`);
  for (const { text, headers } of [webhook, rotated]) {
    t.true(text.includes("whsec_"));
    t.is(headers.get("cache-control"), "no-store");
  }
});

test.serial("both secrets sign for a day after a rotation, then only the new one", async (t) => {
  const api = await caller();
  const webhook = await createWebhook(api, receiver.url("/rotated"));
  const first = webhook.secret;
  t.is(signaturesOf(await nextTest(api, webhook)).length, 1);
  const second = await rotate(api, webhook);
  const during = await nextTest(api, webhook);
  t.is(signaturesOf(during).length, 2);
  for (const signature of signaturesOf(during)) t.regex(signature, /^v1,[A-Za-z0-9+/]{43}=$/);
  for (const secret of [first, second]) t.like(verify(during, secret), { type: "webhook.test" });

  advanceClock(24 * HOUR_MS - 60_000);
  const late = await nextTest(await caller(), webhook);
  for (const secret of [first, second]) t.truthy(verify(late, secret));
  advanceClock(2 * 60_000);
  const after = await nextTest(await caller(), webhook);
  t.is(signaturesOf(after).length, 1);
  t.truthy(verify(after, second));
  t.throws(() => verify(after, first));
});

test.serial("a second rotation within a day immediately ends the oldest secret", async (t) => {
  const api = await caller();
  const webhook = await createWebhook(api, receiver.url("/twice"));
  const [second, third] = [await rotate(api, webhook), await rotate(api, webhook)];
  const request = await nextTest(api, webhook);
  for (const secret of [second, third]) t.truthy(verify(request, secret));
  t.throws(() => verify(request, webhook.secret));
  t.is(signaturesOf(request).length, 2);
});

test.serial(
  "a database dump contains no secret, and an encrypted one can only be decrypted in its own row",
  async (t) => {
    const api = await caller();
    const [one, other] = [
      await createWebhook(api, receiver.url("/encrypted")),
      await createWebhook(api, receiver.url("/other")),
    ];
    const secrets = [one.secret, await rotate(api, one), other.secret];
    await nextTest(api, one);
    const { knex, close } = openDatabase(DATABASE_URL);
    const tables = ["webhooks", "deliveries", "events", "idempotency_keys"];
    const dump = JSON.stringify(await Promise.all(tables.map((table) => knex(table).select("*"))));
    t.true(dump.includes(one.id));
    t.false(dump.includes("whsec_"));
    for (const secret of secrets) {
      const bytes = Buffer.from(secret.slice("whsec_".length), "base64");
      for (const encoding of ["base64", "base64url", "hex"] as const)
        t.false(dump.includes(bytes.toString(encoding)), encoding);
    }

    // Write access to the database is not enough to have deliveries signed with a known secret.
    const stored = await knex("webhooks").where({ id: other.id }).first("secret");
    await knex("webhooks")
      .where({ id: one.id })
      .update({ ...stored, previous_secret: null });
    await close();
    const before = receiver.received("/encrypted").length;
    await api.send("POST", `/v1/webhooks/${one.id}/test`);
    const { attempts } = await waitForDelivery(api, one, ({ status }) => status === "failed");
    t.is(attempts[0]?.error, "Not sent: the signing secret can't be decrypted. Rotate it.");
    await nextTest(api, other);
    t.is(receiver.received("/encrypted").length, before);
    const rotatedSecret = await rotate(api, one);
    t.truthy(verify(await nextTest(api, one), rotatedSecret));
  },
);

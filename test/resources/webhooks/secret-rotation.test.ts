import test from "ava";
import { openDatabase } from "../../../adapters/database.ts";
import { type Api, apiAt } from "../../harness/api.ts";
import { advanceClock } from "../../harness/clock.ts";
import { createTestDatabase } from "../../harness/database.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  delivery,
  type NewWebhookBody,
  type WebhookBody,
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

/** What arrives of a test event that is sent now. */
async function nextTest(api: Api, { id, url }: WebhookBody): Promise<Received> {
  const path = new URL(url).pathname;
  const before = receiver.received(path).length;
  const { status } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${id}/test`);
  if (status !== 202) throw new Error(`no test: ${status}`);
  return (await receiver.waitFor(path, before + 1)).at(-1) as Received;
}

const signaturesOf = ({ headers }: Received) => (headers["webhook-signature"] ?? "").split(" ");

test.serial(
  "sec 128: a secret is shown when it is made and when it is replaced, and never again",
  async (t) => {
    const api = await caller();
    const made = await createWebhook(api, receiver.url("/shown"));
    t.regex(made.secret, SECRET);
    t.is(Buffer.from(made.secret.slice("whsec_".length), "base64").length, 32);
    const replaced = await rotate(api, made);
    t.regex(replaced, SECRET);
    t.not(replaced, made.secret);
    const { id } = made;
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
  },
);

test.serial(
  "sec 132: while a secret is being replaced both sign, and after a day the new one alone",
  async (t) => {
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
  },
);

test.serial("sec 132: of two replacements on one day the oldest secret ends at once", async (t) => {
  const api = await caller();
  const webhook = await createWebhook(api, receiver.url("/twice"));
  const [second, third] = [await rotate(api, webhook), await rotate(api, webhook)];
  const request = await nextTest(api, webhook);
  for (const secret of [second, third]) t.truthy(verify(request, secret));
  t.throws(() => verify(request, webhook.secret));
  t.is(signaturesOf(request).length, 2);
});

test.serial(
  "sec 129: a dump of the database holds no secret, and a sealed one opens in its own row alone",
  async (t) => {
    const api = await caller();
    const [one, other] = [
      await createWebhook(api, receiver.url("/sealed")),
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

    // Whoever may write to the database cannot have our deliveries signed with a secret that he or she knows.
    const [{ secret }] = await knex("webhooks").where({ id: other.id }).select("secret");
    await knex("webhooks").where({ id: one.id }).update({ secret, previous_secret: null });
    await close();
    const before = receiver.received("/sealed").length;
    await api.send("POST", `/v1/webhooks/${one.id}/test`);
    const { attempts } = await delivery(api, one, ({ status }) => status === "failed");
    t.is(attempts[0]?.error, "Not sent: the secret cannot be read. Replace it.");
    await nextTest(api, other);
    t.is(receiver.received("/sealed").length, before);
    const mended = await rotate(api, one);
    t.truthy(verify(await nextTest(api, one), mended));
  },
);

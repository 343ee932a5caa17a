import test from "ava";
import { type Api, apiAt } from "../../harness/clients/api.ts";
import { advanceClock, HOUR_MS } from "../../harness/clock.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { NewWebhookBody, Received, WebhookBody } from "../../harness/webhooks.ts";
import { createWebhook, verify, waitForDelivery } from "../../harness/webhooks.ts";

const { service, receiver, knex } = await startWebhookService();
const organization = await service.createOrganization();
const caller = async (): Promise<Api> => apiAt(service.url, await service.token(organization));

const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

async function rotate(api: Api, { id }: WebhookBody): Promise<string> {
  const path = `/v1/webhooks/${id}/rotate-secret`;
  const { status, body, headers } = await api.send<NewWebhookBody>("POST", path);
  if (status !== 200) throw new Error(`no rotation: ${status}`);
  if (headers.get("cache-control") !== "no-store") throw new Error("the secret may be stored");
  return body.secret;
}

async function nextTest(api: Api, { id, url }: WebhookBody): Promise<Received> {
  const path = new URL(url).pathname;
  const before = receiver.received(path).length;
  const { status } = await api.send("POST", `/v1/webhooks/${id}/test`);
  if (status !== 202) throw new Error(`no test: ${status}`);
  return (await receiver.waitFor(path, before + 1)).at(-1) as Received;
}

const signaturesOf = ({ headers }: Received) => (headers["webhook-signature"] ?? "").split(" ");

test.serial(
  "a delivery of a link is accepted by the standard verifier, with its own secret only",
  async (t) => {
    const api = await caller();
    const { secret } = await createWebhook(api, receiver.url("/created"));
    const link = await api.createLink({ title: "delivered" });
    const [request] = (await receiver.waitFor("/created", 1)) as [Received];
    const message = verify(request, secret);
    t.deepEqual(Object.keys(message), ["type", "timestamp", "data"]);
    t.true(Date.parse(message.timestamp) >= Date.parse(link.created_at));
    t.is(request.method, "POST");
    t.regex(request.headers["user-agent"] ?? "", /^linkgate\/\d/);
    t.regex(request.headers["webhook-id"] ?? "", /^evt_[0-9A-Z]{26}$/);
    const other = await createWebhook(api, receiver.url("/created-too"));
    t.throws(() => verify(request, other.secret));
  },
);

test.serial("a secret is returned only at creation and by the rotation, and may not be stored", async (t) => {
  const api = await caller();
  const json = { url: receiver.url("/shown"), events: ["link.created"] };
  const { body: created, headers } = await api.send<NewWebhookBody>("POST", "/v1/webhooks", { json });
  t.regex(created.secret, SECRET);
  t.is(headers.get("cache-control"), "no-store");
  const rotated = await rotate(api, created);
  t.regex(rotated, SECRET);
  t.not(rotated, created.secret);
  const path = `/v1/webhooks/${created.id}`;
  for (const { text, status } of [
    await api.get(path),
    await api.get("/v1/webhooks"),
    await api.send("PATCH", path, { json: { events: ["link.deleted"] } }),
    await api.send("POST", `${path}/test`),
    await api.get(`${path}/deliveries`),
  ]) {
    t.true(status < 300);
    t.false(text.includes("secret") || text.includes("whsec_"), text);
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

  const [third, fourth] = [await rotate(await caller(), webhook), await rotate(await caller(), webhook)];
  const twice = await nextTest(await caller(), webhook);
  for (const secret of [third, fourth]) t.truthy(verify(twice, secret));
  t.throws(() => verify(twice, second), undefined, "a second rotation ends the oldest one");
});

test.serial("the encrypted secret of a webhook is of no use in the row of another", async (t) => {
  const api = await caller();
  const [one, other] = [
    await createWebhook(api, receiver.url("/encrypted")),
    await createWebhook(api, receiver.url("/other")),
  ];
  // Write access to the database is not enough to have deliveries signed with a known secret.
  const stored = await knex("webhooks").where({ id: other.id }).first("secret");
  const swapped = { ...stored, previous_secret: null };
  await knex("webhooks").where({ id: one.id }).update(swapped);
  const before = receiver.received("/encrypted").length;
  await api.send("POST", `/v1/webhooks/${one.id}/test`);
  const { attempts } = await waitForDelivery(api, one, ({ status }) => status === "failed");
  t.is(attempts[0]?.error, "Not sent: the signing secret can't be decrypted. Rotate it.");
  t.is(receiver.received("/encrypted").length, before);
  const rotated = await rotate(api, one);
  t.truthy(verify(await nextTest(api, one), rotated));
});

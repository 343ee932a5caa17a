import { readFileSync } from "node:fs";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { apiAt, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { freePort } from "../../harness/port.ts";
import { Program, ROOT, stopPrograms } from "../../harness/program.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  until,
  waitForDelivery,
} from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });

test.after.always(() => receiver.close());
test.after.always(() => {
  stopPrograms();
  return service.close();
});

/** Creates an organization for one test. */
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));

test("a delivery of a link is accepted by the standard verifier", async (t) => {
  const api = await createApi();
  const { secret, id } = await createWebhook(api, receiver.url("/created"));
  const link = await api.createLink({ title: "delivered" });
  const [request] = await receiver.waitFor("/created", 1);
  if (!request) return t.fail();
  const message = verify(request, secret);
  t.deepEqual(Object.keys(message), ["type", "timestamp", "data"]);
  t.is(message.type, "link.created");
  t.true(Date.parse(message.timestamp) >= Date.parse(link.created_at));
  t.deepEqual(message.data, link);
  t.is(request.method, "POST");
  t.is(request.headers["content-type"], "application/json");
  t.regex(request.headers["user-agent"] ?? "", /^linkgate\/\d/);
  t.regex(request.headers["webhook-id"] ?? "", /^evt_[0-9A-Z]{26}$/);

  const delivered = await waitForDelivery(api, { id }, ({ status }) => status === "succeeded");
  t.is(delivered.id, request.headers["webhook-id"] as string);
  t.is(JSON.stringify(delivered.request), request.text);
  t.is(delivered.next_attempt_at, null);
  t.like(delivered.attempts, [{ status: 204 }]);
});

test("each webhook has its own secret, and a modified request is not accepted", async (t) => {
  const api = await createApi();
  const one = await createWebhook(api, receiver.url("/one"));
  const other = await createWebhook(api, receiver.url("/other"));
  t.regex(one.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  t.not(one.secret, other.secret);
  await api.createLink();
  const [request] = await receiver.waitFor("/one", 1);
  if (!request) return t.fail();
  t.truthy(verify(request, one.secret));
  t.throws(() => verify(request, other.secret));
  t.throws(() => verify({ ...request, text: request.text.replace("created", "deleted") }, one.secret));
  const headers = { ...request.headers, "webhook-id": "evt_other" };
  t.throws(() => verify({ ...request, headers }, one.secret));
});

test("a webhook receives only the events that it subscribes to", async (t) => {
  const api = await createApi();
  const everything = ["link.created", "link.updated", "link.deleted"];
  const all = await createWebhook(api, receiver.url("/all"), everything);
  const deleted = await createWebhook(api, receiver.url("/deleted"), ["link.deleted"]);
  const link = await api.createLink();
  const { body: changed } = await api.send<LinkBody>("PATCH", `/v1/links/${link.id}`, {
    json: { title: "new" },
  });
  await api.send("DELETE", `/v1/links/${link.id}`);
  const [gone] = await receiver.waitFor("/deleted", 1);
  t.is(gone?.body.type, "link.deleted");
  t.deepEqual(gone?.body.data, changed);
  const delivered = (await receiver.waitFor("/all", 3)).map((request) => verify(request, all.secret));
  t.deepEqual(delivered.map(({ type }) => type).sort(), everything.toSorted());
  t.deepEqual(delivered.find(({ type }) => type === "link.updated")?.data, changed);
  t.true((await deliveriesOf(api, deleted)).every(({ type }) => type === "link.deleted"));
});

test("a webhook receives secret rotations and authorizations, without any secret", async (t) => {
  const own = await service.createOrganization();
  const caller = apiAt(service.url, await service.token(own));
  const events = ["client.secret_rotated", "authorization.granted", "authorization.revoked"];
  const { secret } = await createWebhook(caller, receiver.url("/security"), events);
  const user = await service.createUser([own.id]);
  const tokens = await tokensFor(service, own, user);
  const [granted] = await receiver.waitFor("/security", 1);
  t.like(granted?.body, { type: "authorization.granted", data: { user_id: user.id } });
  const rotation = await service.storage.clients.rotateSecret(
    own.id,
    { overlapMs: 3_600_000, compromised: true },
    OPERATOR,
  );
  const all = await receiver.waitFor("/security", 3);
  t.deepEqual(all.map((request) => verify(request, secret).type).sort(), events.sort());
  const text = all.map((request) => request.text).join();
  for (const hidden of [rotation?.clientSecret, own.clientSecret, tokens.access_token, secret]) {
    t.false(text.includes(hidden as string));
  }
});

test("a rejected request is not delivered", async (t) => {
  const caller = await createApi();
  const webhook = await createWebhook(caller, receiver.url("/rejected"), ["link.created", "link.updated"]);
  const { id, slug } = await caller.createLink();
  t.is((await caller.send("POST", "/v1/links", { json: { url: "https://example.com", slug } })).status, 409);
  t.is((await caller.send("POST", "/v1/links", { json: { url: "ftp://example.com" } })).status, 422);
  const stale = { json: { title: "x" }, headers: { "if-match": '"99"' } };
  t.is((await caller.send("PATCH", `/v1/links/${id}`, stale)).status, 412);
  await waitForDelivery(caller, webhook, ({ status }) => status === "succeeded");
  t.is((await deliveriesOf(caller, webhook)).length, 1);
  t.is(receiver.received("/rejected").length, 1);
});

test("webhooks of another organization receive nothing", async (t) => {
  const api = await createApi();
  const stranger = await createApi();
  const webhook = await createWebhook(stranger, receiver.url("/stranger"));
  await api.createLink();
  await stranger.createLink({ title: "own" });
  const [request] = await receiver.waitFor("/stranger", 1);
  t.is(request?.body.data.title, "own");
  t.is((await deliveriesOf(stranger, webhook)).length, 1);
});

test("a test event goes to one webhook only, even without a subscription", async (t) => {
  const api = await createApi();
  const tested = await createWebhook(api, receiver.url("/tested"), ["link.deleted"]);
  const other = await createWebhook(api, receiver.url("/untested"), ["webhook.test"]);
  const reply = await api.send<DeliveryBody>("POST", `/v1/webhooks/${tested.id}/test`);
  t.is(reply.status, 202);
  t.like(reply.body, { type: "webhook.test", status: "pending", attempts: [] });
  const [request] = await receiver.waitFor("/tested", 1);
  if (!request) return t.fail();
  t.is(request.headers["webhook-id"], reply.body.id);
  t.deepEqual(verify(request, tested.secret).data, { webhook_id: tested.id, verification: false });
  t.deepEqual(await deliveriesOf(api, other), []);
});

test("a resent delivery has the same ID and body, and its log has both attempts", async (t) => {
  const api = await createApi();
  const webhook = await createWebhook(api, receiver.url("/again"), ["webhook.test"]);
  const { body } = await api.send<DeliveryBody>("POST", `/v1/webhooks/${webhook.id}/test`);
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  const again = await api.send<DeliveryBody>(
    "POST",
    `/v1/webhooks/${webhook.id}/deliveries/${body.id}/resend`,
  );
  t.is(again.status, 202);
  t.like(again.body, { id: body.id, status: "pending" });
  const [first, second] = await receiver.waitFor("/again", 2);
  t.is(second?.text, first?.text as string);
  t.is(second?.headers["webhook-id"], body.id);
  const delivered = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  t.is(delivered.attempts.length, 2);
  t.is((await deliveriesOf(api, webhook)).length, 1);
});

test("the documented receiver accepts our deliveries and rejects forged ones", async (t) => {
  const [, code = ""] = /```js\n(.*?)```/s.exec(readFileSync(`${ROOT}docs/webhooks.md`, "utf8")) ?? [];
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/hook`;
  const webhook = await createWebhook(api, url, ["link.created"]);
  const receiver = new Program(process.execPath, ["--input-type=module", "--eval", code], {
    settings: { PORT: String(port), WEBHOOK_SECRET: webhook.secret },
  });
  const send = (headers: Record<string, string>) =>
    fetch(url, { method: "POST", body: "{}", headers }).catch(() => undefined);
  await until(() => send({}));

  const { slug } = await api.createLink({ title: "schön" });
  const { id } = await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  await receiver.says(new RegExp(`^${id} link\\.created`, "m"));
  await receiver.says(new RegExp(`slug: '${slug}'`));
  const timestamp = String(Math.floor(Date.now() / 1000));
  for (const forged of [
    {},
    { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": "v1,AAAA" },
  ])
    t.is((await send(forged as Record<string, string>))?.status, 401);
  await receiver.stop();
});

import test from "ava";
import { apiAt, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { postAsClient } from "../../harness/clients/oauth.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import type { DeliveryBody, MessageBody } from "../../harness/webhooks.ts";
import { createWebhook, deliveriesOf, until, verify, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const settings = { COUNTRY_HEADER: "CF-IPCountry" };
const { service, receiver, subscribe } = await startWebhookService(settings);
const visitor = apiAt(service.url);

async function listen(...events: string[]) {
  const subscribed = await subscribe(events);
  const { api, webhook, path } = subscribed;
  /** Waits for a number of requests and until no delivery is pending; returns the verified messages. */
  async function receive(number: number): Promise<MessageBody[]> {
    await receiver.waitFor(path, number);
    await until(async () => {
      const page = await deliveriesOf(api, webhook);
      return page.every(({ status }) => status === "succeeded") || undefined;
    });
    return receiver.received(path).map((request) => verify(request, webhook.secret));
  }
  return { ...subscribed, receive };
}

const LINKS = ["link.created", "link.updated", "link.deleted"];
const typesOf = (messages: MessageBody[]) => messages.map(({ type }) => type).sort();
const find = (messages: MessageBody[], type: string) =>
  messages.find((message) => message.type === type)?.data;

test("link.created, link.updated and link.deleted carry the link as the API returns it", async (t) => {
  const { api, receive } = await listen(...LINKS);
  const fields = { title: "Title", tags: ["a", "b"], metadata: { key: "value" }, max_clicks: 5 };
  const created = await api.createLink(fields);
  t.like(created, fields);
  const path = `/v1/links/${created.id}`;
  const json = { title: null, archived: true };
  const { body: updated } = await api.send<LinkBody>("PATCH", path, { json });
  await api.send("DELETE", path);
  const messages = await receive(3);
  t.deepEqual(typesOf(messages), LINKS.toSorted());
  t.deepEqual(find(messages, "link.created"), created);
  t.deepEqual(find(messages, "link.updated"), updated);
  t.deepEqual(find(messages, "link.deleted"), updated);
});

test("authorization.granted and authorization.revoked carry client, user and scopes", async (t) => {
  const { organization, receive } = await listen("authorization.granted", "authorization.revoked");
  const user = await service.createUser([organization.id]);
  const tokens = await tokensFor(service, organization, user, { parameters: { scope: "links:read" } });
  const [granted] = await receive(1);
  const { grant_id: _, ...rest } = granted?.data ?? {};
  t.is(granted?.type, "authorization.granted");
  t.deepEqual(rest, { client_id: organization.clientId, user_id: user.id, scopes: ["links:read"] });
  await postAsClient(service, "revoke", organization, { token: tokens.access_token });
  const messages = await receive(2);
  t.deepEqual(typesOf(messages), ["authorization.granted", "authorization.revoked"]);
  t.deepEqual(find(messages, "authorization.revoked"), granted?.data);
  t.false(JSON.stringify(messages).includes(tokens.access_token));
});

test("exactly the changes of links are delivered, each once", async (t) => {
  const { api, webhook, receive } = await listen(...LINKS);
  const json = { url: "https://example.com/" };
  const [taken, invalid] = [{ ...json, slug: "bulk-one" }, { url: "ftp://example.com" }];
  await api.send("POST", "/v1/links/bulk", { json: { links: [json, taken, taken, invalid] } });
  for (const title of ["one", "two", "two"])
    await api.send("PUT", "/v1/links/by-external-id/upsert", { json: { ...json, title } });
  const { id, slug } = await api.createLink({ title: "same" });
  await visitor.get(`/${slug}`);
  for (const same of [{}, { title: "same" }]) await api.send("PATCH", `/v1/links/${id}`, { json: same });
  const headers = { "if-match": '"99"' };
  await api.send("PATCH", `/v1/links/${id}`, { json: { title: "other" }, headers });
  for (const refused of [taken, invalid]) await api.send("POST", "/v1/links", { json: refused });
  t.deepEqual(typesOf(await receive(5)), [...Array(4).fill("link.created"), "link.updated"]);
  t.is((await deliveriesOf(api, webhook)).length, 5);
});

test("a webhook receives only the events of its organization that it subscribes to", async (t) => {
  const [mine, theirs] = [await listen("link.deleted"), await listen(...LINKS)];
  const { id } = await mine.api.createLink();
  await mine.api.send("DELETE", `/v1/links/${id}`);
  const { id: other } = await theirs.api.createLink();
  t.deepEqual(typesOf(await mine.receive(1)), ["link.deleted"]);
  const received = (await theirs.receive(1)).map(({ data }) => data.id);
  t.deepEqual(received, [other]);
});

test("a test event goes to one webhook only, also without a subscription, and is resent as it was", async (t) => {
  const { api, webhook, path, address } = await listen("link.deleted");
  const other = await createWebhook(api, receiver.url(`${path}-other`), ["webhook.test"]);
  const { status, body } = await api.send<DeliveryBody>("POST", `${address}/test`);
  t.is(status, 202);
  t.like(body, { type: "webhook.test", status: "pending", attempts: [] });
  const isDelivered = (delivery: DeliveryBody) => delivery.status === "succeeded";
  await waitForDelivery(api, webhook, isDelivered);
  t.deepEqual(await deliveriesOf(api, other), []);

  const again = await api.send<DeliveryBody>("POST", `${address}/deliveries/${body.id}/resend`);
  t.is(again.status, 202);
  t.like(again.body, { id: body.id, status: "pending" });
  for (const request of await receiver.waitFor(path, 2)) {
    t.is(request.headers["webhook-id"], body.id);
    t.deepEqual(verify(request, webhook.secret).data, { webhook_id: webhook.id, verification: false });
  }
  t.is((await waitForDelivery(api, webhook, isDelivered)).attempts.length, 2);
  t.is((await deliveriesOf(api, webhook)).length, 1);
});

test("a click is delivered with its link, time, referrer and country", async (t) => {
  const { api, webhook, path } = await subscribe(["link.clicked"]);
  const { id, slug, url, short_url } = await api.createLink();
  const before = Date.now();
  await visitor.get(`/${slug}`, { referer: "https://News.example/story?id=1", "cf-ipcountry": "CH" });
  const [request] = await receiver.waitFor(path, 1);
  if (!request) return t.fail();
  const { type, data } = verify(request, webhook.secret);
  const { clicked_at, ...rest } = data;
  t.is(type, "link.clicked");
  t.deepEqual(rest, {
    link_id: id,
    clicks: 1,
    bot_clicks: 0,
    slug,
    url,
    short_url,
    referrer: "news.example",
    country: "CH",
    device: "desktop",
    browser: "Firefox",
    operating_system: "Linux",
  });
  t.true(Date.parse(clicked_at as string) >= before && Date.parse(clicked_at as string) <= Date.now());
});

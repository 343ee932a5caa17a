import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { type Api, apiAt, BROWSER, type LinkBody } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/flow.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { type MessageBody, startReceiver, verify } from "../../harness/receiver.ts";
import { postForm, startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, until, waitForDelivery } from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([service.close(), receiver.close()]));

let count = 0;

/** Creates an organization with a webhook that subscribes to the events. */
async function subscribe(...events: string[]) {
  const path = `/events-${++count}`;
  const organization = await service.createOrganization();
  const token = await service.token(organization);
  const api = apiAt(service.url, token);
  const webhook = await createWebhook(api, receiver.url(path), events);
  /** Waits for a number of requests and until no delivery is pending; returns the verified messages. */
  async function receive(number: number): Promise<MessageBody[]> {
    await receiver.waitFor(path, number);
    await until(async () => {
      const page = await deliveriesOf(api, webhook);
      return page.every(({ status }) => status === "succeeded") || undefined;
    });
    return receiver.received(path).map((request) => verify(request, webhook.secret));
  }
  return { organization, token, api, webhook, receive };
}

const LINKS = ["link.created", "link.updated", "link.deleted"];
const typesOf = (messages: MessageBody[]) => messages.map(({ type }) => type).sort();
const find = (messages: MessageBody[], type: string) =>
  messages.find((message) => message.type === type)?.data;

test("link.created, link.updated and link.deleted carry the link as the API returns it", async (t) => {
  const { api, receive } = await subscribe(...LINKS);
  const fields = {
    title: "Title",
    tags: ["a", "b"],
    external_id: "ext",
    metadata: { key: "value" },
    expires_at: "2099-01-01T00:00:00.000Z",
    max_clicks: 5,
    redirect_type: 308,
  };
  const created = await api.createLink(fields);
  t.like(created, fields);
  const { body: updated } = await api.send<LinkBody>("PATCH", `/v1/links/${created.id}`, {
    json: { title: null, archived: true },
  });
  await api.send("DELETE", `/v1/links/${created.id}`);
  const messages = await receive(3);
  t.deepEqual(typesOf(messages), LINKS.toSorted());
  t.deepEqual(find(messages, "link.created"), created);
  t.deepEqual(find(messages, "link.updated"), updated);
  t.deepEqual(find(messages, "link.deleted"), updated);
});

test("link.clicked carries the link, time, source and number of clicks", async (t) => {
  const { api, receive, webhook } = await subscribe("link.clicked");
  const { id, slug, url, short_url } = await api.createLink({ max_clicks: 2 });
  const headers = { referer: "https://News.example.com/story?id=1", "user-agent": BROWSER };
  for (let click = 0; click < 3; click++) await apiAt(service.url).send("GET", `/${slug}`, { headers });
  await apiAt(service.url).send("HEAD", `/${slug}`);
  // Clicks of one second may share an event.
  const countOf = (messages: MessageBody[]) =>
    messages.reduce((sum, { data }) => sum + (data.clicks as number), 0);
  let messages = await receive(1);
  while (countOf(messages) < 2) messages = await receive(messages.length + 1);
  t.is(countOf(messages), 2, "a request without a redirect is not a click");
  for (const { type, timestamp, data } of messages) {
    t.is(type, "link.clicked");
    t.true(Math.abs(Date.parse(timestamp) - Date.parse(data.clicked_at as string)) < 10_000);
    const { clicked_at, clicks, ...rest } = data;
    t.deepEqual(rest, {
      link_id: id,
      slug,
      url,
      short_url,
      referrer: "example.com",
      country: null,
      bot_clicks: 0,
      device: "desktop",
      browser: "Firefox",
      operating_system: "Linux",
    });
  }
  t.is((await deliveriesOf(api, webhook)).length, messages.length);
});

test("client.secret_rotated carries the expiry of the previous secret and no secret", async (t) => {
  const { organization, receive } = await subscribe("client.secret_rotated");
  const rotation = await service.storage.clients.rotateSecret(
    organization.id,
    { overlapMs: 3_600_000, compromised: false },
    OPERATOR,
  );
  const [message] = await receive(1);
  t.deepEqual(message?.data, {
    client_id: organization.clientId,
    compromised: false,
    previous_expires_at: new Date(rotation?.previousExpiresAt ?? 0).toISOString(),
  });
});

const REVOCATIONS: [name: string, revoke: (parts: Parts) => Promise<unknown>][] = [
  [
    "the app revokes its token",
    ({ organization, accessToken }) =>
      postForm(`${service.url}/oauth/revoke`, {
        token: accessToken,
        client_id: organization.clientId,
        client_secret: organization.clientSecret,
      }),
  ],
  [
    "the organization revokes it",
    ({ organization, grantId }) => service.storage.grants.revoke(organization.id, grantId, OPERATOR),
  ],
  [
    "the user leaves the organization",
    ({ organization, userId }) =>
      service.storage.members.remove({
        organizationId: organization.id,
        userId,
        manageableRoles: ["member"],
        actor: OPERATOR,
      }),
  ],
];
type Parts = Pick<Awaited<ReturnType<typeof subscribe>>, "organization"> & {
  accessToken: string;
  grantId: string;
  userId: string;
};
for (const [name, revoke] of REVOCATIONS) {
  test(`authorization.granted and authorization.revoked carry client, user and scopes when ${name}`, async (t) => {
    const { organization, receive } = await subscribe("authorization.granted", "authorization.revoked");
    const user = await service.createUser([organization.id]);
    const tokens = await tokensFor(service, organization, user, { parameters: { scope: "links:read" } });
    const [granted] = await receive(1);
    const { grant_id, ...rest } = granted?.data ?? {};
    t.is(granted?.type, "authorization.granted");
    t.deepEqual(rest, { client_id: organization.clientId, user_id: user.id, scopes: ["links:read"] });
    await revoke({
      organization,
      accessToken: tokens.access_token,
      grantId: grant_id as string,
      userId: user.id,
    });
    const messages = await receive(2);
    t.deepEqual(typesOf(messages), ["authorization.granted", "authorization.revoked"]);
    t.deepEqual(find(messages, "authorization.revoked"), granted?.data);
  });
}

const json = { url: "https://example.com/" };
const CHANGES: [name: string, change: (api: Api, token: string) => Promise<unknown>, types: string[]][] = [
  [
    "a bulk request delivers an event for each created link",
    (api) =>
      api.send("POST", "/v1/links/bulk", {
        json: { links: [json, { ...json, slug: "bulk-one" }, { ...json, slug: "bulk-one" }, { url: "x" }] },
      }),
    ["link.created", "link.created"],
  ],
  [
    "an upsert delivers what it did",
    async (api) => {
      for (const title of ["one", "two", "two"])
        await api.send("PUT", "/v1/links/by-external-id/upsert", { json: { ...json, title } });
    },
    ["link.created", "link.updated"],
  ],
  [
    "changes by an MCP client are delivered",
    async (_api, token) => {
      const agent = await connectMcp(`${service.url}/mcp`, token);
      const created = await agent.callTool({ name: "create_link", arguments: json });
      const { id } = created.structuredContent as LinkBody;
      await agent.callTool({ name: "update_link", arguments: { id, title: "x" } });
      await agent.callTool({ name: "delete_link", arguments: { id } });
      await agent.close();
    },
    LINKS,
  ],
  [
    "an update that changes nothing is not delivered",
    async (api) => {
      const { id } = await api.createLink({ title: "same" });
      for (const change of [{}, { title: "same" }])
        await api.send("PATCH", `/v1/links/${id}`, { json: change });
    },
    ["link.created"],
  ],
  [
    "a click does not deliver link.updated",
    async (api) => {
      const { slug } = await api.createLink();
      await apiAt(service.url).get(`/${slug}`);
    },
    ["link.created"],
  ],
  [
    "a request repeated with the same Idempotency-Key is delivered once",
    async (api) => {
      const headers = { "idempotency-key": "one-and-the-same" };
      for (let sent = 0; sent < 2; sent++) await api.send("POST", "/v1/links", { json, headers });
    },
    ["link.created"],
  ],
];
for (const [name, change, types] of CHANGES) {
  test(name, async (t) => {
    const { api, token, webhook, receive } = await subscribe(...LINKS);
    await change(api, token);
    t.deepEqual(typesOf(await receive(types.length)), types.toSorted());
    await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
    t.is((await deliveriesOf(api, webhook)).length, types.length);
  });
}

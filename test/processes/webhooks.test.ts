import test from "ava";
import { apiAt } from "../harness/clients/api.ts";
import { tokensFor } from "../harness/clients/flow.ts";
import { startCluster } from "../harness/cluster.ts";
import { atOnce } from "../harness/database/storage.ts";
import { startReceiver, verify } from "../harness/receiver.ts";
import {
  createWebhook,
  type DeliveryBody,
  deliveriesOf,
  type NewWebhookBody,
  uniqueUrl,
  until,
  type WebhookPage,
} from "../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const cluster = await startCluster({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
test.after.always(() => Promise.all([cluster.close(), receiver.close()]));

/** Creates an organization; `turn` alternates between the two resource servers. */
async function newOrganization() {
  const app = await cluster.createOrganization();
  const token = await cluster.token(app);
  const apis = cluster.resources.map(({ url }) => apiAt(url, token));
  return { app, turn: (index: number) => apis[index % 2] as (typeof apis)[0] };
}

test.serial("four processes deliver each event to each endpoint once", async (t) => {
  const { turn } = await newOrganization();
  const paths = ["/one", "/two", "/three"];
  const webhooks = await Promise.all(
    paths.map((path, index) => createWebhook(turn(index), receiver.url(path))),
  );
  const links = await atOnce(150, (index) => turn(index).createLink());
  const ids = links.map(({ id }) => id).sort();
  for (const [index, path] of paths.entries()) {
    const webhook = webhooks[index] as NewWebhookBody;
    await receiver.waitFor(path, ids.length);
    await until(async () => {
      const page = await deliveriesOf(turn(index), webhook);
      return page.every(({ status }) => status === "succeeded") || undefined;
    });
    const requests = receiver.received(path);
    t.deepEqual(requests.map((request) => verify(request, webhook.secret).data.id).sort(), ids);
    t.is(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, ids.length);
  }
});

test.serial("of 50 concurrent creations on two servers, exactly 20 succeed", async (t) => {
  for (let round = 0; round < 3; round++) {
    const { turn } = await newOrganization();
    const answers = await atOnce(50, (index) => {
      const json = { url: uniqueUrl(), events: ["link.created"] };
      return turn(index).send("POST", "/v1/webhooks", { json });
    });
    const statuses = answers.map(({ status }) => status).sort();
    t.deepEqual(statuses, [...Array(20).fill(201), ...Array(30).fill(409)]);
    t.is((await turn(1).get<WebhookPage>("/v1/webhooks?limit=100")).body.data.length, 20);
  }
});

test.serial("a secret rotated on one server signs the deliveries of all others", async (t) => {
  const { turn } = await newOrganization();
  const webhook = await createWebhook(turn(0), receiver.url("/replaced"), ["webhook.test"]);
  const { body } = await turn(1).send<NewWebhookBody>("POST", `/v1/webhooks/${webhook.id}/rotate-secret`);
  for (let round = 0; round < 10; round++)
    await turn(round).send<DeliveryBody>("POST", `/v1/webhooks/${webhook.id}/test`);
  for (const request of await receiver.waitFor("/replaced", 10)) {
    for (const secret of [webhook.secret, body.secret]) t.truthy(verify(request, secret));
  }
});

test.serial("an event of the authorization server is delivered like one of a resource server", async (t) => {
  const { app, turn } = await newOrganization();
  const { secret } = await createWebhook(turn(0), receiver.url("/granted"), ["authorization.granted"]);
  const user = await cluster.createUser([app.id]);
  await tokensFor(cluster, app, user);
  const [request] = await receiver.waitFor("/granted", 1);
  if (!request) return t.fail();
  t.like(verify(request, secret), { type: "authorization.granted", data: { user_id: user.id } });
});

test.serial(
  "a webhook created, updated or deleted on one server is immediately so on all others",
  async (t) => {
    const { turn } = await newOrganization();
    for (let round = 0; round < 10; round++) {
      const [here, there] = [turn(round), turn(round + 1)];
      const webhook = await createWebhook(here, receiver.url(`/created-${round}`));
      await there.createLink();
      await receiver.waitFor(`/created-${round}`, 1);
      await here.send("PATCH", `/v1/webhooks/${webhook.id}`, {
        json: { url: receiver.url(`/moved-${round}`) },
      });
      await there.createLink();
      await receiver.waitFor(`/moved-${round}`, 1);
      t.is((await there.send("DELETE", `/v1/webhooks/${webhook.id}`)).status, 204);
      await here.createLink();
      t.is(receiver.received(`/created-${round}`).length, 1);
      t.is(receiver.received(`/moved-${round}`).length, 1);
    }
  },
);

import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf } from "../../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1", TRUST_PROXY: "1" });
const createApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const visitor = apiAt(service.url);
test.after.always(() => service.close());
test.after.always(() => receiver.close());

test("a click is delivered with its link, time, referrer and country", async (t) => {
  const api = await createApi();
  const { secret } = await createWebhook(api, receiver.url("/one"), ["link.clicked"]);
  const { id, slug, url, short_url } = await api.createLink();
  const before = Date.now();
  await visitor.get(`/${slug}`, {
    referer: "https://News.example/story?id=1",
    "cf-ipcountry": "CH",
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
  });
  const [request] = await receiver.waitFor("/one", 1);
  if (!request) return t.fail();
  const { type, data } = verify(request, secret);
  const { clicked_at, ...rest } = data;
  t.is(type, "link.clicked");
  t.deepEqual(rest, {
    link_id: id,
    slug,
    url,
    short_url,
    referrer: "news.example",
    country: "CH",
    bot: false,
  });
  t.true(Date.parse(clicked_at as string) >= before && Date.parse(clicked_at as string) <= Date.now());
});

test("150 concurrent clicks are delivered as 150 distinct events", async (t) => {
  const api = await createApi();
  await createWebhook(api, receiver.url("/many"), ["link.clicked"]);
  const { slug } = await api.createLink();
  await atOnce(150, () => visitor.get(`/${slug}`));
  const requests = await receiver.waitFor("/many", 150);
  t.is(new Set(requests.map(({ headers }) => headers["webhook-id"])).size, 150);
});

test("of 60 concurrent clicks on a link with max_clicks 20, exactly 20 are delivered", async (t) => {
  const api = await createApi();
  await createWebhook(api, receiver.url("/limited"), ["link.clicked", "link.deleted"]);
  const { id, slug } = await api.createLink({ max_clicks: 20 });
  await atOnce(60, () => visitor.get(`/${slug}`));
  await api.send("DELETE", `/v1/links/${id}`);
  const requests = await receiver.waitFor("/limited", 21);
  const types = requests.map(({ body }) => body.type).sort();
  t.deepEqual(types, [...Array(20).fill("link.clicked"), "link.deleted"]);
});

test("a HEAD request, a rejected click and another organization's click are not delivered", async (t) => {
  const [api, other] = [await createApi(), await createApi()];
  const webhook = await createWebhook(api, receiver.url("/quiet"), ["link.clicked", "link.deleted"]);
  const [link, archived, foreign] = [
    await api.createLink(),
    await api.createLink(),
    await other.createLink(),
  ];
  await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
  await visitor.send("HEAD", `/${link.slug}`);
  await visitor.send("POST", `/${link.slug}`);
  await visitor.get(`/${archived.slug}`);
  await visitor.get(`/${foreign.slug}`);
  await visitor.get(`/${link.slug}-unknown`);
  await api.send("DELETE", `/v1/links/${link.id}`);
  await visitor.get(`/${link.slug}`);
  await receiver.waitFor("/quiet", 1);
  t.is((await api.get(`/v1/links/${archived.id}`)).body.clicks, 0, "all counted clicks are stored by now");
  t.deepEqual(
    (await deliveriesOf(api, webhook)).map(({ type }) => type),
    ["link.deleted"],
  );
});

import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { atOnce } from "../../harness/database/storage.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { type Received, startReceiver, verify } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, deliveriesOf, until } from "../../harness/webhooks.ts";

export const databases = "all";

const receiver = await startReceiver();
const service = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  COUNTRY_HEADER: "CF-IPCountry",
});
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

/** Returns the events of clicks that a path has received, each once. A delivery may be repeated. */
const eventsOn = (path: string): Received[] => [
  ...new Map(
    receiver
      .received(path)
      .filter(({ body }) => body.type === "link.clicked")
      .map((request) => [request.headers["webhook-id"], request]),
  ).values(),
];
const clicksOn = (path: string) =>
  eventsOn(path).reduce((sum, { body }) => sum + (body.data.clicks as number), 0);

// Serial, because the test stops the clock that limits events.
test.serial(
  "300 clicks on a link with several webhooks are delivered in at most one event per second",
  async (t) => {
    const api = await createApi();
    const paths = ["/many-1", "/many-2", "/many-3"];
    const webhooks = [];
    for (const path of paths) webhooks.push(await createWebhook(api, receiver.url(path), ["link.clicked"]));
    const { id, slug } = await api.createLink();
    const { now } = performance;
    t.teardown(() => {
      performance.now = now;
    });
    let time = performance.now();
    performance.now = () => time;
    for (const clicks of [150, 300]) {
      await atOnce(150, () => visitor.get(`/${slug}`));
      t.is((await api.get(`/v1/links/${id}`)).body.clicks, clicks);
      for (const path of paths) await receiver.waitFor(path, 1);
      for (const path of paths) t.is(eventsOn(path).length, 1, "all other clicks are of the same second");
    }
    time += 1001;
    for (const [index, path] of paths.entries()) {
      await until(async () => clicksOn(path) >= 300 || undefined);
      t.is(clicksOn(path), 300);
      t.is(eventsOn(path).length, 2);
      for (const request of receiver.received(path)) verify(request, webhooks[index]?.secret ?? "");
    }
  },
);

test("clicks of a second that are not yet delivered are delivered before the service ends", async (t) => {
  const { url, drop } = await createTestDatabase();
  const ENCRYPTION_KEY = Buffer.alloc(32, 1).toString("base64url");
  const other = await startTestService({
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    DATABASE_URL: url,
    ENCRYPTION_KEY,
  });
  const app = await other.createOrganization();
  const api = apiAt(other.url, await other.token(app));
  await createWebhook(api, receiver.url("/ended"), ["link.clicked"]);
  const { slug } = await api.createLink();
  await apiAt(other.url).get(`/${slug}`);
  await receiver.waitFor("/ended", 1);
  await atOnce(5, () => apiAt(other.url).get(`/${slug}`));
  await other.close();
  const database = openDatabase(url);
  t.teardown(async () => {
    await database.close();
    await drop();
  });
  const events = await database.knex("events").where({ type: "link.clicked" });
  t.is(
    events.reduce((sum, { data }) => sum + JSON.parse(data).clicks, 0),
    6,
  );
});

test("of 60 concurrent clicks on a link with max_clicks 20, exactly 20 are delivered", async (t) => {
  const api = await createApi();
  await createWebhook(api, receiver.url("/limited"), ["link.clicked", "link.deleted"]);
  const { id, slug } = await api.createLink({ max_clicks: 20 });
  await atOnce(60, () => visitor.get(`/${slug}`));
  await api.send("DELETE", `/v1/links/${id}`);
  await until(async () => clicksOn("/limited") >= 20 || undefined);
  await receiver.waitFor("/limited", 2);
  t.is(clicksOn("/limited"), 20);
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

import test from "ava";
import { apiAt } from "../../harness/clients/api.ts";
import { verify } from "../../harness/receiver.ts";
import { startWebhookService } from "../../harness/webhook-service.ts";
import { deliveriesOf } from "../../harness/webhooks.ts";

export const databases = "all";

const { service, receiver, subscribe, newApi, close } = await startWebhookService({
  COUNTRY_HEADER: "CF-IPCountry",
});
test.after.always(close);
const visitor = apiAt(service.url);

test("a click is delivered with its link, time, referrer and country", async (t) => {
  const { api, webhook, path } = await subscribe(["link.clicked"]);
  const { id, slug, url, short_url } = await api.createLink();
  const before = Date.now();
  await visitor.get(`/${slug}`, {
    referer: "https://News.example/story?id=1",
    "cf-ipcountry": "CH",
  });
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

test("a HEAD request, a rejected click and another organization's click are not delivered", async (t) => {
  const { api, webhook, path } = await subscribe(["link.clicked", "link.deleted"]);
  const [link, archived] = [await api.createLink(), await api.createLink()];
  const foreign = await (await newApi()).createLink();
  await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
  await visitor.send("HEAD", `/${link.slug}`);
  await visitor.send("POST", `/${link.slug}`);
  await visitor.get(`/${archived.slug}`);
  await visitor.get(`/${foreign.slug}`);
  await visitor.get(`/${link.slug}-unknown`);
  await api.send("DELETE", `/v1/links/${link.id}`);
  await visitor.get(`/${link.slug}`);
  await receiver.waitFor(path, 1);
  t.is((await api.get(`/v1/links/${archived.id}`)).body.clicks, 0, "all counted clicks are stored by now");
  const types = (await deliveriesOf(api, webhook)).map(({ type }) => type);
  t.deepEqual(types, ["link.deleted"]);
});

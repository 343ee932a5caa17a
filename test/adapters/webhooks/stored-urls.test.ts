import test from "ava";
import { OPERATOR, SYSTEM } from "../../../resources/events/types.ts";
import { limitsOf } from "../../../resources/plans.ts";
import { newWebhookSecret } from "../../../resources/webhooks/signature.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { atOnce, createTestStorage } from "../../harness/database/storage.ts";

const { first, second, database, close } = await createTestStorage();
test.after.always(() => close());

// The path is the password, as at Slack and Teams.
const SECRET_PATH = "T024BE7LD-xoCGnpTkCm2qTzSlzXJ1aVQ";
const URL_OF = `https://hooks.example.com/services/${SECRET_PATH}?sig=${SECRET_PATH}`;

async function newOrganization() {
  const { organization } = await first.organizations.create("Stored", "growth", OPERATOR);
  const create = (url: string, storage = first) => {
    const fields = { url, events: ["link.created" as const], enabled: true };
    return storage.webhooks.create(organization.id, OPERATOR, fields, newWebhookSecret(), limitsOf);
  };
  return { id: organization.id, create };
}

test.serial(
  "neither the database nor the audit log contains the path or query of a webhook's URL",
  async (t) => {
    const { id, create } = await newOrganization();
    const { id: webhookId, url } = (await create(URL_OF)) as Webhook;
    t.is(url, URL_OF);
    await second.webhooks.update(id, webhookId, { events: ["link.deleted"] }, OPERATOR);
    await second.webhooks.rotateSecret(id, webhookId, newWebhookSecret(), 1, OPERATOR);
    await second.webhooks.viewSecret(id, webhookId, OPERATOR);
    t.is((await second.webhooks.find(id, webhookId))?.url, URL_OF);
    const limits = { max: 9, perWebhook: 9, perHost: 9, perOrganization: 9 };
    const failing = { max: 9, perWebhook: 9, perHost: 9, perOrganization: 9 };
    await second.webhooks.test(id, webhookId, OPERATOR);
    const [leased] = await second.deliveries.lease({
      ...limits,
      failing,
      inFlight: new Map(),
      slow: new Set(),
      limitsOf,
      actor: SYSTEM,
    });
    t.is(leased?.url, URL_OF);
    const gone = { status: "failed", disable: "The endpoint responded with 410 Gone." } as const;
    if (leased) await second.deliveries.settle(leased, { at: 0, status: 410, ms: 1 }, gone, SYSTEM);
    t.true(
      await second.webhooks.remove(id, ((await create("https://example.com/other")) as Webhook).id, OPERATOR),
    );
    const stored = JSON.stringify([
      await database.knex("webhooks").where({ organization_id: id }),
      await database.knex("events").where({ organization_id: id }),
      await database.knex("deliveries"),
    ]);
    t.false(stored.includes(SECRET_PATH));
    const entries = await first.audit.list(id, {}, 100);
    const urls = entries.map(({ data }) => data.url).filter((shown) => shown !== undefined);
    t.deepEqual([...new Set(urls)].sort(), ["https://example.com/…", "https://hooks.example.com/…"]);
    t.is(urls.length, 7);
  },
);

test.serial(
  "of 20 concurrent webhooks with one URL, exactly one is created, and no other takes its URL",
  async (t) => {
    const { id, create } = await newOrganization();
    const results = await atOnce(20, (index) => create(URL_OF, index % 2 ? first : second));
    t.is(results.filter((result) => "id" in result).length, 1);
    t.is(results.filter((result) => "isDuplicate" in result).length, 19);
    const others = (await atOnce(6, (index) => create(`https://example.com/${index}`))) as Webhook[];
    const taken = await second.webhooks.update(id, others[0]?.id ?? "", { url: URL_OF }, OPERATOR);
    t.deepEqual(taken, { isDuplicate: true });
    const url = "https://example.com/moved";
    const moved = await Promise.all(
      others.map((other, index) =>
        (index % 2 ? first : second).webhooks.update(id, other.id, { url }, OPERATOR),
      ),
    );
    t.is(moved.filter((result) => result && "id" in result).length, 1);
    t.is(await first.webhooks.count(id), 7);
    const { create: createElsewhere } = await newOrganization();
    t.true("id" in (await createElsewhere(URL_OF)), "another organization may use the same URL");
  },
);

test.serial("a webhook for the same host with a trailing dot is a duplicate", async (t) => {
  const { id, create } = await newOrganization();
  const { url } = (await create("https://dotted.example.com./hook")) as Webhook;
  t.is(url, "https://dotted.example.com./hook", "the URL is kept as it was given");
  for (const same of ["https://dotted.example.com/hook", "https://DOTTED.example.com.:443/hook"])
    t.deepEqual(await create(same), { isDuplicate: true }, same);
  for (const other of ["https://dotted.example.com/hook./", "https://dotted.example.com/other"])
    t.true("id" in (await create(other)), other);
  const hosts = await database.knex("webhooks").where({ organization_id: id }).distinct("host").pluck("host");
  t.deepEqual(hosts, ["dotted.example.com"], "the limit per host is the same, too");
});

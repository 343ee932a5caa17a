import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const storage = await createTestStorage();
test.after.always(() => storage.close());

test("concurrent creations of links with one slug succeed exactly once, and all others succeed", async (t) => {
  const { organization } = await storage.first.organizations.create("Neighbors", "growth", OPERATOR);
  for (let round = 0; round < 5; round++) {
    const slugOf = (index: number) =>
      index % 5 === 0 ? `shared-${round}-${index % 3}` : `own-${round}-${index}`;
    const answers = await atOnce(50, (index) =>
      storage.first.links.create(
        organization.id,
        OPERATOR,
        linkFields({ slug: slugOf(index), title: `${index}` }),
      ),
    );
    const created = new Map<string, string | null>();
    for (const [index, answer] of answers.entries()) {
      if ("taken" in answer) {
        t.deepEqual(answer, { taken: "slug" });
        t.is(index % 5, 0);
        continue;
      }
      t.is(answer.slug, slugOf(index));
      t.false(created.has(answer.slug), "a slug was assigned twice");
      created.set(answer.slug, answer.id);
    }
    t.is(created.size, 40 + 3);
    for (const [slug, id] of created) t.is((await storage.second.links.resolve(slug))?.id, id as string);
  }
});

test("concurrent creations in two processes assign each slug exactly once", async (t) => {
  const { organization } = await storage.first.organizations.create("Two", "growth", OPERATOR);
  for (let round = 0; round < 10; round++) {
    const answers = await atOnce(50, (index) =>
      (index % 2 ? storage.first : storage.second).links.create(
        organization.id,
        OPERATOR,
        linkFields({ slug: `two-${round}-${index % 10}` }),
      ),
    );
    t.is(answers.filter((answer) => !("taken" in answer)).length, 10);
    t.deepEqual(
      [...new Set(answers.flatMap((answer) => ("taken" in answer ? [answer.taken] : [])))],
      ["slug"],
    );
  }
});

test("concurrent conflicts on slugs and external ids are distinguished", async (t) => {
  const { organization } = await storage.first.organizations.create("Ids", "growth", OPERATOR);
  const create = (slug: string, externalId: string) =>
    storage.first.links.create(organization.id, OPERATOR, linkFields({ slug, externalId }));
  await create("ids-1", "one");
  const [slug, externalId, fine] = await Promise.all([
    create("ids-1", "two"),
    create("ids-2", "one"),
    create("ids-3", "three"),
  ]);
  t.deepEqual(slug, { taken: "slug" });
  t.deepEqual(externalId, { taken: "external_id" });
  t.true(fine && "id" in fine);
});

test("text with NUL and lone surrogates is stored as a parameter of a statement would be, and stays provable", async (t) => {
  const { links, organizations, verifyAuditLogs } = storage.first;
  const { organization } = await organizations.create("Text", "growth", OPERATOR);
  const fields = {
    slug: "odd-text",
    title: 'half \ud83d NUL \0 quote " \\u0000 🚀',
    tags: ["a", "b"],
    metadata: { note: "\0\ud83d\\u0000" },
  };
  const [created] = await Promise.all([
    links.create(organization.id, OPERATOR, linkFields(fields)),
    links.create(organization.id, OPERATOR, linkFields({ slug: "plain-text" })),
  ]);
  if (!created || "taken" in created) return t.fail();
  const found = await links.find(organization.id, created.id);
  const nul = engine === "postgres" ? "\ufffd" : "\0";
  t.is(found?.title, `half \ufffd NUL ${nul} quote " \\u0000 🚀`);
  t.like(found, { tags: ["a", "b"], metadata: fields.metadata });
  t.like((await verifyAuditLogs(organization.id))[0], { ok: true, last_seq: 4 });
});

test("an invalid row does not fail the other rows of its batch", async (t) => {
  const tokens = storage.first.oidcAdapter("AccessToken");
  const exp = Math.floor(Date.now() / 1000) + 60;
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) =>
      tokens.upsert(`token-${index}`, { clientId: "lgc_a", exp: index === 7 ? Number.NaN : exp }, 60),
    ),
  );
  for (const [index, { status }] of results.entries()) {
    t.is(status, index === 7 ? "rejected" : "fulfilled");
    t.is(Boolean(await storage.second.oidcAdapter("AccessToken").find(`token-${index}`)), index !== 7);
  }
});

// SQLite has one writer.
if (engine !== "sqlite") {
  test.serial(
    "batches that create the same slugs in opposite order wait for each other without a deadlock",
    async (t) => {
      const { first, second } = storage;
      const { organization } = await first.organizations.create("Order", "growth", OPERATOR);
      const slugs = ["order-a", "order-m", "order-z"];
      const createAll = (storage: typeof first, order: string[]) =>
        Promise.all(
          order.map((slug) => storage.links.create(organization.id, OPERATOR, linkFields({ slug }))),
        );
      await first.links.create(organization.id, OPERATOR, linkFields({ slug: "order-m" }));

      const { knex } = storage.database;
      let statements = 0;
      for (const each of [first, second])
        t.teardown(each.onStatement((sql) => void (/insert into .links/.test(sql) && statements++)));
      // While this transaction is open, "order-m" cannot be created.
      const holder = await knex.transaction();
      await holder("links").where({ slug: "order-m" }).delete();
      const created = Promise.all([createAll(first, slugs), createAll(second, slugs.toReversed())]);
      while ((await waitingStatements()) < 2) await sleep(10);
      await holder.commit();

      const answers = (await created).flat();
      t.is(answers.filter((answer) => "id" in answer).length, 3);
      t.is(statements, 2 + 3, "one batch succeeds; of the other, each row is tried once more by itself");

      async function waitingStatements() {
        const { rows, 0: found } = await knex.raw(
          engine === "postgres"
            ? "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            : `select id from information_schema.processlist
             where db = database() and info like 'insert into%' and time_ms > 200`,
        );
        return (rows ?? found).length;
      }
    },
  );

  test.serial("batches that wait for a lock don't hold up the others", async (t) => {
    const { first, database } = storage;
    const { organization } = await first.organizations.create("Stalled", "growth", OPERATOR);
    const create = (slug: string) => first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    await create("stalled");
    const holder = await database.knex.transaction();
    await holder("links").where({ slug: "stalled" }).delete();
    const stalled: Promise<unknown>[] = [];
    for (let index = 0; index < 3; index++) {
      const { promise: sent, resolve } = Promise.withResolvers<void>();
      const stop = first.onStatement((sql) => void (/insert into .links/.test(sql) && resolve()));
      stalled.push(create("stalled"));
      await sent;
      stop();
    }
    t.true("id" in (await create("not-stalled")));
    await holder.rollback();
    t.deepEqual(await Promise.all(stalled), Array(3).fill({ taken: "slug" }));
  });
}

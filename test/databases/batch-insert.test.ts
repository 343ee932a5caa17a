import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { OPERATOR } from "../../resources/events/types.ts";
import { atOnce, createTestStorage, linkFields, settledAtOnce } from "../harness/database/storage.ts";
import { engine } from "../harness/database/test-database.ts";

export const databases = "all";

const { first, second, knex, createOrganization } = await createTestStorage();

async function createCreator() {
  const id = await createOrganization();
  return (fields: { slug: string; externalId?: string }, by = first) =>
    by.links.create(id, OPERATOR, linkFields(fields));
}

test("concurrent creations of links with one slug succeed exactly once, and all others succeed", async (t) => {
  const create = await createCreator();
  for (let round = 0; round < 5; round++) {
    const slugOf = (index: number) => (index % 5 ? `own-${round}-${index}` : `shared-${round}-${index % 3}`);
    const answers = await atOnce(50, (index) => create({ slug: slugOf(index) }));
    const created = new Map(answers.flatMap((answer) => ("id" in answer ? [[answer.slug, answer.id]] : [])));
    t.is(created.size, 40 + 3);
    for (const [index, answer] of answers.entries()) {
      if ("id" in answer) t.is(answer.slug, slugOf(index));
      else t.deepEqual([answer, index % 5], [{ taken: "slug" }, 0]);
    }
    t.is(answers.filter((answer) => "id" in answer).length, created.size, "a slug was assigned twice");
    for (const [slug, id] of created) t.is((await second.links.resolve(slug as string))?.id, id);
  }
});

test("concurrent conflicts on slugs and external ids are distinguished", async (t) => {
  const create = await createCreator();
  await create({ slug: "ids-1", externalId: "one" });
  const [slug, externalId, fine] = await Promise.all([
    create({ slug: "ids-1", externalId: "two" }),
    create({ slug: "ids-2", externalId: "one" }),
    create({ slug: "ids-3", externalId: "three" }),
  ]);
  t.deepEqual([slug, externalId], [{ taken: "slug" }, { taken: "external_id" }]);
  t.true("id" in fine);
});

test("text with NUL and lone surrogates is stored as a parameter of a statement would be, and stays provable", async (t) => {
  const { links, verifyAuditLogs } = first;
  const id = await createOrganization();
  const fields = {
    slug: "odd-text",
    title: 'half \ud83d NUL \0 quote " \\u0000 🚀',
    tags: ["a", "b"],
    metadata: { note: "\0\ud83d\\u0000" },
  };
  const [created] = await Promise.all([
    links.create(id, OPERATOR, linkFields(fields)),
    links.create(id, OPERATOR, linkFields({ slug: "plain-text" })),
  ]);
  if (!("id" in created)) return t.fail();
  const found = await links.find(id, created.id);
  const nul = engine === "postgres" ? "\ufffd" : "\0";
  t.is(found?.title, `half \ufffd NUL ${nul} quote " \\u0000 🚀`);
  t.like(found, { tags: ["a", "b"], metadata: fields.metadata });
  t.like((await verifyAuditLogs(id))[0], { ok: true, last_seq: 4 });
});

test("an invalid row does not fail the other rows of its batch", async (t) => {
  const tokens = first.oidcAdapter("AccessToken");
  const exp = Math.floor(Date.now() / 1000) + 60;
  const results = await settledAtOnce(20, async (index) =>
    tokens.upsert(`token-${index}`, { clientId: "lgc_a", exp: index === 7 ? Number.NaN : exp }, 60),
  );
  for (const [index, { status }] of results.entries()) {
    t.is(status, index === 7 ? "rejected" : "fulfilled");
    t.is(Boolean(await second.oidcAdapter("AccessToken").find(`token-${index}`)), index !== 7);
  }
});

// SQLite has one writer.
if (engine !== "sqlite") {
  test.serial("batches with the same slugs in opposite order don't end in a deadlock", async (t) => {
    const create = await createCreator();
    const createAll = (by: typeof first, order: string[]) =>
      Promise.all(order.map((slug) => create({ slug }, by)));
    const slugs = ["order-a", "order-m", "order-z"];
    await create({ slug: "order-m" });

    let statements = 0;
    for (const each of [first, second])
      t.teardown(each.onStatement((sql) => void (/insert into .links/.test(sql) && statements++)));
    // While this transaction is open, "order-m" cannot be created.
    const holder = await knex.transaction();
    await holder("links").where({ address: "order-m" }).delete();
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
  });

  test.serial("batches that wait for a lock don't hold up the others", async (t) => {
    const create = await createCreator();
    await create({ slug: "stalled" });
    const holder = await knex.transaction();
    await holder("links").where({ address: "stalled" }).delete();
    const stalled: Promise<unknown>[] = [];
    for (let index = 0; index < 3; index++) {
      const { promise: sent, resolve } = Promise.withResolvers<void>();
      const stop = first.onStatement((sql) => void (/insert into .links/.test(sql) && resolve()));
      stalled.push(create({ slug: "stalled" }));
      await sent;
      stop();
    }
    t.true("id" in (await create({ slug: "not-stalled" })));
    await holder.rollback();
    t.deepEqual(await Promise.all(stalled), Array(3).fill({ taken: "slug" }));
  });
}

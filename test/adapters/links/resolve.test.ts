import { setImmediate } from "node:timers/promises";
import test from "ava";
import type { Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { ResolvedLink } from "../../../resources/links/types.ts";
import { atOnce, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const URL = "https://example.com/";

async function openLink() {
  const storage = await createTestStorage();
  const { organization } = await storage.first.organizations.create("resolved", "growth", OPERATOR);
  const { id: organizationId } = organization;
  const create = async (slug: string) => {
    const link = await storage.first.links.create(organizationId, OPERATOR, linkFields({ slug }));
    return (link as { id: string }).id;
  };
  return { ...storage, organizationId, create, id: await create("followed") };
}

const FOLLOWERS = 3;
const ROUNDS = 50;

const resolve = async ({ links }: Storage, slug = "followed") => (await links.resolve(slug)) as ResolvedLink;

const isLike = (link: ResolvedLink, expected: Partial<ResolvedLink>) =>
  Object.entries(expected).every(([name, value]) => link[name as keyof ResolvedLink] === value);

type Change = { title: string; run(storage: Storage, id: string, organizationId: string): Promise<unknown> };
const update = (title: string, changes: object): Change => ({
  title,
  run: ({ links }, id, organizationId) => links.update(organizationId, id, changes, OPERATOR),
});

// In this order, because a disabled link can't be updated, and a deleted organization has none.
const CHANGES: (Change & { expected: Partial<ResolvedLink> })[] = [
  { ...update("its URL", { url: `${URL}other` }), expected: { url: `${URL}other` } },
  { ...update("its redirect type", { redirectType: 301 }), expected: { redirectType: 301 } },
  { ...update("that it is archived", { archived: true }), expected: { archived: true } },
  { ...update("its expiry", { expiresAt: 1 }), expected: { expiresAt: 1 } },
  { ...update("its limit of clicks", { maxClicks: 3 }), expected: { maxClicks: 3 } },
  { ...update("the end of that limit", { maxClicks: null }), expected: { maxClicks: null } },
  {
    title: "that it is disabled",
    run: ({ disabledLinks }, id) => disabledLinks.disable(id, null, OPERATOR),
    expected: { isDisabled: true },
  },
  {
    title: "that it is enabled",
    run: ({ disabledLinks }, id) => disabledLinks.enable(id, OPERATOR),
    expected: { isDisabled: false },
  },
  {
    title: "that its organization is suspended",
    run: ({ suspensions }, _, organizationId) => suspensions.suspend(organizationId, null, OPERATOR),
    expected: { isDisabled: true },
  },
  {
    title: "that its organization is resumed",
    run: ({ suspensions }, _, organizationId) => suspensions.resume(organizationId, OPERATOR),
    expected: { isDisabled: false },
  },
  {
    title: "that it is deleted",
    run: ({ links }, id, organizationId) => links.remove(organizationId, id, OPERATOR),
    expected: { isDeleted: true },
  },
];

test("a redirect of another process knows each change of a link as soon as it is stored", async (t) => {
  const { first, second, database, organizationId, id, close } = await openLink();
  for (const { title, run, expected } of CHANGES) {
    for (const storage of [first, second]) t.false(isLike(await resolve(storage), expected), title);
    await run(first, id, organizationId);
    for (const storage of [second, first]) t.like(await resolve(storage), expected, title);
  }
  // As an operator, or another version, may change it.
  await database.knex("links").where({ id }).update({ deleted_at: null });
  for (const storage of [first, second]) t.like(await resolve(storage), { isDeleted: false });
  await database.knex("organizations").where({ id: organizationId }).update({ deleted_at: 1 });
  for (const storage of [first, second]) t.like(await resolve(storage), { isDeleted: true });
  await close();
});

test("redirects during changes are at least as new as the last change that was stored before them", async (t) => {
  const { first, second, organizationId, id, create, close } = await openLink();
  const others = await atOnce(20, (index) => create(`other-${index}`));
  let stored = 0;
  let finished = 0;
  let hasEnded = false;
  const numberOf = ({ url }: ResolvedLink) => Number(url.slice(URL.length));

  async function follow(storage: Storage) {
    for (let round = 1; !hasEnded; round++) {
      const before = stored;
      const [found, ...unchanged] = await Promise.all([
        resolve(storage),
        ...others.map((_, index) => resolve(storage, `other-${index}`)),
      ]);
      t.true(numberOf(found) >= before);
      t.true(unchanged.every(({ url }) => url === URL));
      if (round === ROUNDS) finished++;
    }
  }
  async function change() {
    while (finished < FOLLOWERS && !hasEnded) {
      const number = stored + 1;
      await first.links.update(organizationId, id, { url: URL + number }, OPERATOR);
      stored = number;
      await setImmediate();
    }
    hasEnded = true;
  }
  await Promise.all([change(), follow(first), follow(second), follow(second)]).finally(() => {
    hasEnded = true;
  });
  t.is(numberOf(await resolve(second)), stored);
  await close();
});

if (engine === "sqlite") {
  test("SQLite: everything that a redirect reads changes the version of links, and nothing else does", async (t) => {
    const { database, id, organizationId, close } = await openLink();
    const { knex } = database;
    const versionOf = async () => (await knex("link_changes"))[0]?.version as number;
    async function changing(table: "links" | "organizations", key: string) {
      const names: string[] = [];
      for (const name of Object.keys(await knex(table).columnInfo())) {
        const before = await versionOf();
        await knex(table)
          .where({ id: key })
          .update({ [name]: knex.ref(name) });
        if ((await versionOf()) !== before) names.push(name);
      }
      return names.sort();
    }
    // Clicks matter for links with a limit only, which aren't cached.
    t.deepEqual(await changing("links", id), [
      "archived",
      "deleted_at",
      "disabled_at",
      "expires_at",
      "id",
      "max_clicks",
      "organization_id",
      "redirect_type",
      "slug",
      "url",
    ]);
    t.deepEqual(await changing("organizations", organizationId), ["deleted_at", "suspended_at"]);
    const before = await versionOf();
    await knex("links").where({ id }).delete();
    t.true((await versionOf()) > before);
    await close();
  });

  test("SQLite: a link is read again only after a change", async (t) => {
    const { first, second, organizationId, id, create, close } = await openLink();
    const statements: string[] = [];
    first.onStatement((sql) => statements.push(sql));
    const tables = async (...slugs: string[]) => {
      statements.length = 0;
      await Promise.all(slugs.map((slug) => resolve(first, slug)));
      return statements.map((sql) => /from (\w+)/.exec(sql)?.[1]);
    };
    t.deepEqual(await tables("followed"), ["link_changes", "links"]);
    t.deepEqual(await tables("followed", "followed"), ["link_changes"]);
    await create("another");
    await second.links.update(organizationId, id, { title: "Another title" }, OPERATOR);
    t.deepEqual(await tables("followed", "another"), ["link_changes", "links"]);
    await second.links.update(organizationId, id, { maxClicks: 3 }, OPERATOR);
    // A limit has to be compared with the clicks of all processes.
    t.deepEqual(await tables("followed", "another"), ["link_changes", "links", "links"]);
    t.deepEqual(await tables("followed", "another"), ["link_changes", "links"]);
    t.is(await first.links.resolve("missing"), undefined);
    t.deepEqual(await tables("missing"), ["link_changes", "links"]);
    await close();
  });
}

import { setImmediate } from "node:timers/promises";
import test from "ava";
import type { Storage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Link, ResolvedLink } from "../../../resources/links/types.ts";
import { atOnce, clickAt, createTestStorage, domainFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

export const databases = "all";

const { first, second, knex, createOrganization, createLink } = await createTestStorage();

const URL = "https://example.com/";
const UPDATES = 60;

const resolve = async ({ links }: Storage, { slug }: Link) => (await links.resolve(slug)) as ResolvedLink;

const isLike = (link: ResolvedLink, expected: Partial<ResolvedLink>) =>
  Object.entries(expected).every(([name, value]) => link[name as keyof ResolvedLink] === value);

type Run = (storage: Storage, link: Link) => PromiseLike<unknown>;
const update =
  (changes: object): Run =>
  ({ links }, { organizationId, id }) =>
    links.update(organizationId, id, changes, OPERATOR);
const click: Run = async (storage, link) =>
  storage.links.click(await resolve(storage, link), clickAt(Date.now()));
const remove: Run = ({ links }, { organizationId, id }) => links.remove(organizationId, id, OPERATOR);
const suspend: Run = ({ suspensions }, link) => suspensions.suspend(link.organizationId, null, OPERATOR);
const resume: Run = ({ suspensions }, link) => suspensions.resume(link.organizationId, OPERATOR);
// As an operator, or another version, may change it.
const restore: Run = (_, { id }) => knex("links").where({ id }).update({ deleted_at: null });
const removeOwner: Run = (_, { organizationId: id }) =>
  knex("organizations").where({ id }).update({ deleted_at: 1 });

const [DISABLED, ENABLED] = [{ isDisabled: true }, { isDisabled: false }];
// In this order, because a disabled link can't be updated, and a deleted organization has none.
const CHANGES: [title: string, run: Run, expected: Partial<ResolvedLink>][] = [
  ["its URL", update({ url: `${URL}other` }), { url: `${URL}other` }],
  ["its redirect type", update({ redirectType: 301 }), { redirectType: 301 }],
  ["that it is archived", update({ archived: true }), { archived: true }],
  ["its card", update({ card: { title: "Card", description: null, image_url: null } }), { hasCard: true }],
  ["that it has no card", update({ card: null }), { hasCard: false }],
  ["its expiry", update({ expiresAt: 1 }), { expiresAt: 1 }],
  ["its limit of clicks", update({ maxClicks: 3 }), { maxClicks: 3 }],
  ["a click within that limit", click, { clicks: 1 }],
  ["the end of that limit", update({ maxClicks: null }), { maxClicks: null }],
  ["that it is disabled", ({ disabledLinks }, { id }) => disabledLinks.disable(id, null, OPERATOR), DISABLED],
  ["that it is enabled", ({ disabledLinks }, { id }) => disabledLinks.enable(id, OPERATOR), ENABLED],
  ["that its owner is suspended", suspend, DISABLED],
  ["that its owner is resumed", resume, ENABLED],
  ["that it is deleted", remove, { isDeleted: true }],
  ["that it is restored", restore, { isDeleted: false }],
  ["that its owner is deleted", removeOwner, { isDeleted: true }],
];

test("a redirect of another process knows each change of a link as soon as it is stored", async (t) => {
  const link = await createLink(await createOrganization());
  for (const [title, run, expected] of CHANGES) {
    for (const storage of [first, second]) t.false(isLike(await resolve(storage, link), expected), title);
    await run(first, link);
    for (const storage of [second, first]) t.like(await resolve(storage, link), expected, title);
  }
});

test("redirects during changes are at least as new as the last change that was stored before them", async (t) => {
  const organizationId = await createOrganization();
  const [link, ...others] = (await atOnce(21, () => createLink(organizationId))) as [Link, ...Link[]];
  const numberOf = ({ url }: ResolvedLink) => Number(url.slice(URL.length));
  let stored = 0;
  let isChanging = true;

  async function change() {
    while (stored < UPDATES) {
      await first.links.update(organizationId, link.id, { url: URL + (stored + 1) }, OPERATOR);
      stored++;
      await setImmediate();
    }
  }
  async function follow(storage: Storage) {
    while (isChanging) {
      const before = stored;
      const found = resolve(storage, link);
      const unchanged = await Promise.all(others.map((other) => resolve(storage, other)));
      t.true(numberOf(await found) >= before);
      t.true(unchanged.every(({ url }) => url === URL));
    }
  }
  const changing = change().finally(() => {
    isChanging = false;
  });
  await Promise.all([changing, follow(first), follow(second), follow(second)]);
  t.is(numberOf(await resolve(second, link)), UPDATES);
});

if (engine === "sqlite")
  test.serial("SQLite: exactly what a redirect reads changes the version of links", async (t) => {
    const { id, organizationId } = await createLink(await createOrganization());
    const versionOf = async () => (await knex("link_changes"))[0]?.version as number;
    async function changing(table: "links" | "organizations" | "domains", key: string) {
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
      ...["address", "archived", "card", "deleted_at", "disabled_at", "domain", "expires_at"],
      ...["forward_path", "forward_query", "id"],
      ...["max_clicks", "organization_id", "password_hash", "redirect_type", "rules", "slug", "url"],
    ]);
    t.deepEqual(await changing("organizations", organizationId), ["deleted_at", "suspended_at", "time_zone"]);
    const fields = domainFields("go.version.example");
    const domain = await first.domains.create({ organizationId, actor: OPERATOR }, fields);
    t.deepEqual(await changing("domains", (domain as { id: string }).id), [
      ...["case_sensitive", "id", "live_host", "not_found_url", "organization_id"],
      "root_redirect_url",
    ]);
    const before = await versionOf();
    await knex("links").where({ id }).delete();
    t.true((await versionOf()) > before);
  });

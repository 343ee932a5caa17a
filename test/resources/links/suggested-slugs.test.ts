import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createCursors } from "../../../resources/http/pagination.ts";
import { createLinkService } from "../../../resources/links/service.ts";
import { oldLinkId, storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

const { first: storage, database, close } = await createTestStorage();
test.after.always(close);

const links = createLinkService({
  store: storage.links,
  cursors: createCursors("secret"),
  ownHosts: new Set(),
  ownWords: new Set(),
});

async function createCaller() {
  const { organization } = await storage.organizations.create("Slugs", "growth", OPERATOR);
  return { organizationId: organization.id, actor: OPERATOR };
}

const create = async (caller: Awaited<ReturnType<typeof createCaller>>, slugs: string[]) => {
  for (const slug of slugs) await links.create(caller, { url: "https://example.com/", slug });
};

test("slugs with a prefix are suggested, those of the newest links first", async (t) => {
  const caller = await createCaller();
  await create(caller, ["spring-1", "Spring-2", "spring_3", "springx3", "autumn-spring"]);
  for (const [prefix, slugs] of [
    ["spring", ["springx3", "spring_3", "spring-1"]],
    ["spring_", ["spring_3"]],
    ["Spring", ["Spring-2"]],
    ["spring-1", ["spring-1"]],
    ["spring-10", []],
    ["", ["autumn-spring", "springx3", "spring_3", "Spring-2", "spring-1"]],
  ] as const) {
    t.deepEqual(await links.suggestSlugs(caller, prefix, 10), [...slugs], prefix);
  }
  t.deepEqual(await links.suggestSlugs(caller, "spring", 2), ["springx3", "spring_3"]);
});

test("slugs of deleted links and of other organizations are not suggested", async (t) => {
  const [caller, other] = [await createCaller(), await createCaller()];
  await create(other, ["shared-other"]);
  await create(caller, ["shared-kept"]);
  const deleted = await links.create(caller, { url: "https://example.com/", slug: "shared-deleted" });
  await links.remove(caller, deleted.id);
  t.deepEqual(await links.suggestSlugs(caller, "shared", 10), ["shared-kept"]);
});

for (const prefix of ["%", "a%", "a b", "é", "a\u0000", "x".repeat(65), "'"]) {
  test(`${JSON.stringify(prefix.slice(0, 10))} is no prefix of a slug, and suggests none`, async (t) => {
    const caller = await createCaller();
    t.deepEqual(await links.suggestSlugs(caller, prefix, 10), []);
  });
}

test("the slug of an old link is suggested among thousands of newer ones", async (t) => {
  const caller = await createCaller();
  await storeManyLinks(database.knex, caller.organizationId, 5000, (number) =>
    number === 3 ? { slug: "needle" } : {},
  );
  t.deepEqual(await links.suggestSlugs(caller, "nee", 10), ["needle"]);
  const found = await links.findBySlug(caller, "needle");
  t.is(found?.id, oldLinkId(3));
});

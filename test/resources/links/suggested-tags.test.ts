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
  const { organization } = await storage.organizations.create("Tagged", "growth", OPERATOR);
  return { organizationId: organization.id, actor: OPERATOR };
}

test("an organization without links has no suggested tags", async (t) => {
  t.deepEqual(await links.suggestTags(await createCaller()), []);
});

test("the 100 tags that most of the 1,000 newest links have are suggested, most used first", async (t) => {
  const caller = await createCaller();
  await storeManyLinks(database.knex, caller.organizationId, 1200, (number) => ({
    tags: [
      ...(number % 2 === 0 ? ["half"] : []),
      ...(number % 3 === 0 ? ["third, with a comma"] : []),
      ...(number < 200 ? ["too old"] : []),
      ...(number >= 300 && number < 700 ? [`rare ${number % 200}`] : []),
    ],
  }));
  await storage.links.update(caller.organizationId, oldLinkId(1199), { tags: ["new", "half"] }, OPERATOR);
  await storage.links.remove(caller.organizationId, oldLinkId(1199), OPERATOR);
  const tags = await links.suggestTags(caller);
  t.deepEqual(tags.slice(0, 2), ["half", "third, with a comma"]);
  t.is(tags.length, 100);
  t.true(tags.slice(2).every((tag) => tag.startsWith("rare")));
  t.deepEqual(await links.suggestTags(await createCaller()), []);
});

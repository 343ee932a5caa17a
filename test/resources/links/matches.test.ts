import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { createMatches } from "../../../resources/links/list.ts";
import { createWorkQueue } from "../../../resources/work-queue.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestStorage } from "../../harness/database/storage.ts";

export const databases = "all";

// As many as are counted, and one more.
const COUNT = 1001;
const { first: storage, database, close } = await createTestStorage();
test.after.always(close);

const matches = createMatches(storage.links, createWorkQueue());

test("links are counted up to a thousand", async (t) => {
  const { organization } = await storage.organizations.create("Many", "growth", OPERATOR);
  await storeManyLinks(database.knex, organization.id, COUNT, (number) => ({
    tags: number === 0 ? ["first"] : ["others"],
    title: number < 10 ? "one digit" : null,
  }));
  const caller = { organizationId: organization.id, actor: OPERATOR };
  t.deepEqual(await matches.count(caller, {}), { links: 1000, isExact: false });
  t.deepEqual(await matches.count(caller, { tag: "others" }), { links: 1000, isExact: true });
  t.deepEqual(await matches.count(caller, { search: "One Digit" }), { links: 10, isExact: true });
  t.deepEqual(await matches.count(caller, { archived: true }), { links: 0, isExact: true });
});

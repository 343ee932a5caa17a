import test from "ava";
import { openStorage } from "../../../adapters/index.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { atOnce, clickAt, createTestStorage, linkFields } from "../../harness/database/storage.ts";
import { engine } from "../../harness/database/test-database.ts";

const storage = await createTestStorage();
const { organization } = await storage.first.organizations.create("Commits", "growth", OPERATOR);
test.after.always(() => storage.close());

test.serial("a completed write is visible to other connections immediately", async (t) => {
  for (let round = 0; round < 50; round++) {
    const slug = `seen-${round}`;
    const link = await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    if ("taken" in link) throw new Error("taken");
    t.is((await storage.second.links.resolve(slug))?.id, link.id);
    await storage.second.links.update(organization.id, link.id, { title: "changed" }, OPERATOR, 1);
    t.is((await storage.first.links.find(organization.id, link.id))?.title, "changed");
    await storage.first.links.remove(organization.id, link.id, OPERATOR);
    t.is(await storage.second.links.find(organization.id, link.id), undefined);
  }
});

test.serial("each of many concurrent writes is visible once it completes", async (t) => {
  await atOnce(50, async (index) => {
    const slug = `alike-${index}`;
    await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug }));
    t.truthy(await storage.second.links.resolve(slug));
  });
});

test.serial("a clean shutdown stores all pending clicks", async (t) => {
  const other = openStorage(storage.url, storage.encryptionKey);
  const link = await other.links.create(organization.id, OPERATOR, linkFields({ slug: "last-clicks" }));
  const destination = await other.links.resolve("last-clicks");
  if ("taken" in link || !destination) throw new Error("no link");
  await atOnce(30, () => other.links.click(destination, clickAt(Date.now())));
  await other.close();
  t.is((await storage.first.links.find(organization.id, link.id))?.clicks, 30);
});

if (engine === "sqlite") {
  /** Returns a counter that each commit of another connection increments. */
  const version = async () => {
    const [{ data_version }] = await storage.database.knex.raw("pragma data_version");
    return data_version as number;
  };

  test.serial("SQLite: concurrent writes share one commit", async (t) => {
    await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: "warm" }));
    const before = await version();
    await atOnce(100, (index) =>
      storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `one-${index}` })),
    );
    t.is((await version()) - before, 1);
  });

  test.serial("SQLite: sequential writes are committed one by one", async (t) => {
    const before = await version();
    for (let index = 0; index < 5; index++) {
      await storage.first.links.create(organization.id, OPERATOR, linkFields({ slug: `each-${index}` }));
      t.is((await version()) - before, index + 1);
    }
  });
}

import test from "ava";
import { OPERATOR } from "../../resources/events.ts";
import { atOnce, createTestStorage, linkFields } from "../harness/storage.ts";

const storage = await createTestStorage();
test.after.always(() => storage.close());

test("of 50 links made at once those with a slug of their own are made, and one of each shared slug", async (t) => {
  const { organization } = await storage.first.organizations.create("Neighbours", "growth", OPERATOR);
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
    const made = new Map<string, string | null>();
    for (const [index, answer] of answers.entries()) {
      if ("taken" in answer) {
        t.deepEqual(answer, { taken: "slug" });
        t.is(index % 5, 0);
        continue;
      }
      t.is(answer.slug, slugOf(index));
      t.false(made.has(answer.slug), "a slug was given out twice");
      made.set(answer.slug, answer.id);
    }
    t.is(made.size, 40 + 3);
    for (const [slug, id] of made) t.is((await storage.second.links.resolve(slug))?.id, id as string);
  }
});

test("of 50 links made at once over two processes, each shared slug is given out once", async (t) => {
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

test("an external id that is taken is told from a slug that is taken, at the same moment", async (t) => {
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

test("a row that the database refuses does not fail its neighbours", async (t) => {
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

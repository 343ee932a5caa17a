import test from "ava";
import type { Link } from "../../../resources/links/types.ts";
import { atOnce, createTestStorage, linkFields, OPERATOR } from "../../harness/database/storage.ts";

export const databases = "all";

const MAX_BYTES = 4_000;
const { first, second, either, knex, createOrganization, createUser } = await createTestStorage({
  limitsOf: (plan) =>
    plan === "premium" ? { links: 240, link_bytes: 10 ** 9 } : { links: 20, link_bytes: MAX_BYTES },
});
let count = 0;

/** Creates a link, and resolves to the quota if it is exceeded. */
async function create(organizationId: string, index: number, metadata = {}): Promise<Link | string> {
  const fields = linkFields({ slug: `quota-${++count}`, metadata });
  return (either(index).links.create(organizationId, OPERATOR, fields) as Promise<Link>).catch((error) => {
    if (error.code !== "ERR_QUOTA_EXCEEDED") throw error;
    return `${error.quota} ${error.limit}`;
  });
}

const linksOf = (organizationId: string) =>
  knex("links").where({ organization_id: organizationId }).whereNull("deleted_at");

for (const [plan, rounds, atATime, limit] of [
  ["growth", 1, 60, 20],
  ["premium", 3, 100, 240],
] as const)
  test(`of concurrent creations in two processes, as many succeed as the quota of ${limit} allows`, async (t) => {
    const id = await createOrganization(plan);
    for (let round = 0; round < rounds; round++) await atOnce(atATime, (index) => create(id, index));
    t.is(await create(id, 0), `links ${limit}`);
    t.is((await linksOf(id)).length, limit);
    t.like(await second.links.usage(id), { links: limit });
  });

test("another organization's links are created although those of the same batch exceed a quota", async (t) => {
  const [full, other] = [await createOrganization(), await createOrganization()];
  await atOnce(20, (index) => create(full, index));
  const results = await atOnce(30, (index) => create(index % 3 ? full : other, 1));
  t.is(results.filter((result) => result === "links 20").length, 20);
  t.is((await linksOf(other)).length, 10);
});

test("a deleted link makes room for another one, immediately and in every process", async (t) => {
  const id = await createOrganization();
  const results = await atOnce(20, (index) => create(id, index));
  t.is(await create(id, 0), "links 20");
  await first.links.remove(id, (results[0] as Link).id, OPERATOR);
  const replaced = await atOnce(4, (index) => create(id, index));
  t.is(replaced.filter((result) => typeof result !== "string").length, 1);
});

test("the stored text is limited, for new links and for changes", async (t) => {
  const id = await createOrganization();
  const long = { note: "x".repeat(1_500) };
  const results = await atOnce(6, (index) => create(id, index, long));
  t.is(results.filter((result) => result === `link_bytes ${MAX_BYTES}`).length, 4);
  const link = results.find((result) => typeof result !== "string") as Link;
  const grow = (size: number) =>
    second.links.update(id, link.id, { metadata: { note: "x".repeat(size) } }, OPERATOR);
  await t.throwsAsync(grow(3_000), { code: "ERR_QUOTA_EXCEEDED" });
  t.deepEqual((await first.links.find(id, link.id))?.metadata, long);
  await grow(10);
  await grow(1_500);
  const before = await first.links.usage(id);
  t.true(before.link_bytes <= MAX_BYTES);
  const card = { title: "é", description: null, image_url: null };
  await second.links.update(id, link.id, { card }, OPERATOR);
  const added = Buffer.byteLength(JSON.stringify(card));
  t.is((await first.links.usage(id)).link_bytes, before.link_bytes + added);
  await second.links.update(id, link.id, { card: null }, OPERATOR);
  await first.links.remove(id, link.id, OPERATOR);
  t.deepEqual(await first.links.usage(id), { links: 1, link_bytes: before.link_bytes / 2 });
});

test("concurrent changes of one link are counted once each", async (t) => {
  const id = await createOrganization("premium");
  const link = (await create(id, 0)) as Link;
  const { link_bytes } = await first.links.usage(id);
  await atOnce(10, (index) =>
    either(index).links.update(id, link.id, { title: "t".repeat(index + 1) }, OPERATOR),
  );
  const { title } = (await first.links.find(id, link.id)) as Link;
  t.deepEqual(await first.links.usage(id), { links: 1, link_bytes: link_bytes + (title?.length ?? 0) });
});

test("a rejected link is not counted", async (t) => {
  const id = await createOrganization();
  const fields = linkFields({ slug: "quota-taken" });
  await first.links.create(id, OPERATOR, fields);
  t.deepEqual(await first.links.create(id, OPERATOR, fields), { taken: "slug" });
  t.is((await first.links.usage(id)).links, 1);
});

test("after a downgrade, links above the quota stay, and no more can be created", async (t) => {
  const id = await createOrganization("premium");
  const results = await atOnce(30, (index) => create(id, index));
  await first.organizations.setPlan(id, "growth", OPERATOR);
  t.deepEqual(await atOnce(3, (index) => create(id, index)), ["links 20", "links 20", "links 20"]);
  const { id: linkId } = results[0] as Link;
  t.truthy(await second.links.update(id, linkId, { title: null, archived: true }, OPERATOR));
  await first.organizations.setPlan(id, "premium", OPERATOR);
  t.is(typeof (await create(id, 0)), "object");
});

test("of concurrent organizations of one user, as many are created as the quota allows", async (t) => {
  const id = await createUser();
  const results = await atOnce(8, (index) =>
    either(index)
      .organizations.create(`Own ${index}`, "premium", { id }, id, { maxOwned: 3 })
      .catch((error) => error.code),
  );
  t.is(results.filter((result) => result === "ERR_QUOTA_EXCEEDED").length, 5);
  t.is((await first.organizations.listByUser(id)).length, 3);
});

test("members and pending invitations share one quota", async (t) => {
  const id = await createOrganization();
  const invitation = { organizationId: id, role: "member", lifetimeMs: 60_000, actor: OPERATOR } as const;
  const invite = (index: number) =>
    either(index)
      .invitations.create(invitation, () => ({ members: 4 }))
      .catch((error) => error.code);
  const results = await atOnce(8, invite);
  t.is(results.filter((result) => result === "ERR_QUOTA_EXCEEDED").length, 4);
  const pending = await first.invitations.list(id);
  await first.invitations.revoke(id, pending[0]?.id as string, ["member"], OPERATOR);
  t.not(await invite(0), "ERR_QUOTA_EXCEEDED");
});

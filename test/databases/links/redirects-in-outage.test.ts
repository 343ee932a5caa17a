import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { openStorage } from "../../../adapters/index.ts";
import type { Domain } from "../../../resources/domains/types.ts";
import type { Link, ResolvedLink } from "../../../resources/links/types.ts";
import { advanceClock } from "../../harness/clock.ts";
import { clickAt, createTestStorage, domainFields, OPERATOR } from "../../harness/database/storage.ts";
import { startTcpProxy } from "../../harness/tcp-proxy.ts";
import { until } from "../../harness/webhooks.ts";

// SQLite has no server that could be away.
export const databases = "servers";

const storage = await createTestStorage();
const proxy = await startTcpProxy(storage.url);
const own = openStorage(proxy.through(storage.url), storage.encryptionKey, { timeoutMs: 4000 });
const id = await storage.createOrganization();
const HOST = "go.outage.example";

test.after.always(async () => {
  await proxy.restore();
  await own.close();
  await proxy.close();
  await storage.close();
});
test.beforeEach(async () => {
  await proxy.restore();
  await until(() => own.organizations.find(id).catch(() => undefined));
});

const UNAVAILABLE = { name: "StorageUnavailable" };
const { first } = storage;

/** Resolves when the statistics of a link have so many clicks. */
async function untilCounted(linkId: string, expected: number) {
  const today = Math.floor(Date.now() / 86_400_000);
  return until(async () => {
    const { days } = await first.links.analytics(id, linkId, today - 1, today);
    return days.reduce((sum, { clicks }) => sum + clicks, 0) === expected || undefined;
  });
}

/** Follows a new link, as the process behind the proxy sees it. */
async function followed(fields: Parameters<typeof storage.createLink>[1] = {}) {
  const link = await storage.createLink(id, fields);
  await until(() => own.links.resolve(link.slug).catch(() => undefined));
  return link;
}

const assertUnavailable = (t: ExecutionContext, links: Pick<Link, "slug">[]) =>
  Promise.all(links.map(({ slug }) => t.throwsAsync(own.links.resolve(slug), UNAVAILABLE, slug)));

test.serial(
  "in an outage, links that were followed are redirected, and their clicks counted after it",
  async (t) => {
    const link = await followed();
    const created = (await first.domains.create(
      { organizationId: id, actor: OPERATOR },
      domainFields(HOST),
    )) as Domain;
    await first.domains.recordCheck(created.id, ["token"], OPERATOR);
    t.truthy(await until(() => own.domains.resolve(HOST).catch(() => undefined)));
    await proxy.cut();
    for (let clicks = 0; clicks < 10; clicks++) {
      const resolved = await own.links.resolve(link.slug);
      t.like(resolved, { id: link.id, url: link.url });
      if (resolved) t.true(await own.links.click(resolved, clickAt(Date.now())));
    }
    t.like(await own.domains.resolve(HOST), { id: created.id });
    await proxy.restore();
    t.true(await untilCounted(link.id, 10));
  },
);

test.serial(
  "in a long outage, 50,000 different clicks wait to be counted, and the others are named",
  async (t) => {
    const link = await followed();
    const resolved = (await own.links.resolve(link.slug)) as ResolvedLink;
    await proxy.cut();
    for (let site = 0; site < 50_010; site++)
      await own.links.click(resolved, clickAt(Date.now(), { referrer: `${site}.example` }));
    t.is(own.droppedClicks(), 10);
    await proxy.restore();
    t.true(await untilCounted(link.id, 50_000));
    t.is((await first.links.find(id, link.id))?.clicks, 50_000);
  },
);

test.serial("in an outage, only what needs no other read is redirected", async (t) => {
  const limited = await followed({ maxClicks: 10 });
  const guarded = await followed({ passwordHash: "a hash" });
  const unknown = await storage.createLink(id);
  await proxy.cut();
  await assertUnavailable(t, [limited, guarded, unknown]);
});

test.serial(
  "in an outage, what this process changed before is not redirected to its former destination",
  async (t) => {
    const [updated, deleted, disabled, other] = [
      await followed(),
      await followed(),
      await followed(),
      await followed(),
    ];
    await own.links.update(id, updated.id, { url: "https://example.com/new" }, OPERATOR);
    await own.links.remove(id, deleted.id, OPERATOR);
    await own.disabledLinks.disable(disabled.id, null, OPERATOR);
    await own.organizations.create("Another", "growth", OPERATOR);
    await proxy.cut();
    t.truthy(await own.links.resolve(other.slug));
    for (const { slug } of [updated, deleted, disabled])
      await t.throwsAsync(own.links.resolve(slug), UNAVAILABLE, slug);
    await proxy.restore();
    await until(() => own.organizations.find(id).catch(() => undefined));
    await own.suspensions.suspend(id, null, OPERATOR);
    await proxy.cut();
    await t.throwsAsync(own.links.resolve(other.slug), UNAVAILABLE);
    await proxy.restore();
    await first.suspensions.resume(id, OPERATOR);
  },
);

test.serial("after an outage, redirects know what another process changed in it", async (t) => {
  const link = await followed();
  await proxy.cut();
  t.like(await own.links.resolve(link.slug), { isDisabled: false });
  await first.disabledLinks.disable(link.id, null, OPERATOR);
  await proxy.restore();
  // Asked without a redirect.
  await sleep(1000);
  t.like(await own.links.resolve(link.slug), { isDisabled: true });
});

test.serial("a server that vanishes delays a redirect for two seconds, and hardly any other", async (t) => {
  const links = [await followed(), await followed(), await followed()] as const;
  await proxy.cut("freeze");
  const start = performance.now();
  t.truthy(await own.links.resolve(links[0].slug));
  const delay = performance.now() - start;
  t.true(delay > 1500 && delay < 3500, `${delay}`);
  for (let rounds = 0; rounds < 40; rounds++) {
    const before = performance.now();
    for (const { slug } of links) t.truthy(await own.links.resolve(slug));
    const took = performance.now() - before;
    t.true(took < 500, `${took}`);
    await sleep(100);
  }
  proxy.reopen();
  const unknown = await storage.createLink(id);
  t.truthy(await until(() => own.links.resolve(unknown.slug).catch(() => undefined)));
});

test.serial("a link is redirected from memory for 10 minutes", async (t) => {
  const link = await followed();
  await proxy.cut();
  advanceClock(9 * 60_000);
  t.truthy(await own.links.resolve(link.slug));
  advanceClock(60_001);
  await t.throwsAsync(own.links.resolve(link.slug), UNAVAILABLE);
});

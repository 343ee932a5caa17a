import test from "ava";
import { createCursors } from "../../resources/http/pagination.ts";
import type { Problem } from "../../resources/http/problem.ts";
import { NO_NAMES } from "../../resources/links/rules.ts";
import { createLinkService } from "../../resources/links/service.ts";
import type { LinkPasswords, LinkStore } from "../../resources/links/types.ts";
import { createWorkQueue } from "../../resources/work-queue.ts";

test("an organization's pieces of work are done one after the other, and other work in between", async (t) => {
  const enqueue = createWorkQueue({ pauses: false });
  const order: string[] = [];
  const work = (name: string) => async () => void order.push(name);
  setImmediate(work("other"));
  await Promise.all([enqueue("org_1", work("first")), enqueue("org_1", work("second"))]);
  t.deepEqual(order, ["first", "other", "second"]);
});

test("a piece that fails rejects, and the next one is done", async (t) => {
  const enqueue = createWorkQueue({ pauses: false });
  const failed = enqueue("org_1", () => Promise.reject(new Error("no disk")));
  const next = enqueue("org_1", async () => "done");
  await t.throwsAsync(failed, { message: "no disk" });
  t.is(await next, "done");
});

test("more pieces than may wait are refused with Retry-After, and those of others are done meanwhile", async (t) => {
  const enqueue = createWorkQueue({ maxWaiting: 2, pauses: false });
  const { promise, resolve } = Promise.withResolvers<void>();
  const accepted = [1, 2, 3].map(() => enqueue("org_1", () => promise));
  const refused = await t.throwsAsync<Problem>(enqueue("org_1", () => promise));
  t.like(refused, { status: 429, code: "rate_limited" });
  t.deepEqual(refused?.headers, { "Retry-After": "1" });
  t.is(await enqueue("org_2", async () => "done"), "done");
  resolve();
  await Promise.all(accepted);
  t.is(await enqueue("org_1", async () => "done"), "done");
});

const READS = 31;
const callerOf = (organizationId: string) => ({ organizationId, actor: { id: "lgc_1" } });
const RULES = { cursors: createCursors("secret"), passwords: {} as LinkPasswords, ...NO_NAMES };
const serviceOf = (store: object) => createLinkService({ store: store as LinkStore, ...RULES });
type Links = ReturnType<typeof createLinkService>;

const QUICK_READS = {
  countedDays: async () => ({ filteredDays: 90, timeZone: "UTC" }),
  countClicks: async () => 0,
  topLinks: async () => [],
};

const LONG_READS: Record<string, (links: Links, caller: ReturnType<typeof callerOf>) => Promise<unknown>> = {
  "a search": (links, caller) => links.list(caller, { search: "absent" }),
  "a sorted list": (links, caller) => links.list(caller, { sort: "clicks" }),
  "a count": (links, caller) => links.matches.count(caller, { tag: "absent" }),
  "suggested slugs": (links, caller) => links.suggestSlugs(caller, "absent", 10),
  "the analytics of all links": (links, caller) => links.analytics(caller, undefined, {}),
  "a report with the links with the most clicks": (links, caller) => links.report(caller, undefined, {}, 10),
};

for (const [what, read] of Object.entries(LONG_READS))
  test(`${what}: one is read at a time per organization, and those beyond a short queue are refused`, async (t) => {
    let reading = 0;
    const { promise, resolve } = Promise.withResolvers<"timeout">();
    const readSlowly = () => {
      reading++;
      return promise;
    };
    const store = { list: readSlowly, listIds: readSlowly, analytics: readSlowly, ...QUICK_READS };
    const links = serviceOf(store);
    const large = callerOf("org_large");
    const reads = Array.from({ length: READS }, () => read(links, large).catch(() => {}));
    await t.throwsAsync(read(links, large), { code: "rate_limited" });
    const other = read(links, callerOf("org_small")).catch(() => {});
    await new Promise(setImmediate);
    t.is(reading, 2);
    resolve("timeout");
    await Promise.all([...reads, other]);
  });

test("a list of the newest links, and a lookup, wait for no search", async (t) => {
  const store = {
    list: (_: string, filter: { search?: string }) => (filter.search ? new Promise(() => {}) : []),
  };
  const links = serviceOf(store);
  void links.list(callerOf("org_1"), { search: "absent" });
  for (const query of [{}, { slug: "a" }, { external_id: "a" }, { url: "https://example.com/" }])
    t.deepEqual((await links.list(callerOf("org_1"), query)).links, []);
});

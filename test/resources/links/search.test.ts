import { randomBytes } from "node:crypto";
import test from "ava";
import { openDatabase } from "../../../adapters/database/index.ts";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { storeManyLinks } from "../../harness/database/many-links.ts";
import { createTestDatabase } from "../../harness/database/test-database.ts";
import { startTestService, type TestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const api = apiAt(service.url, await service.token(await service.createOrganization()));
const links: Record<string, LinkBody> = {};
const titles: Record<string, string> = {
  percent: "50% off",
  plain: "50 off",
  underscore: "snake_case",
  dash: "snake-case",
  backslash: "back\\slash",
  quote: 'it\'s "quoted"',
  umlaut: "Grüße 日本語",
  composed: "Ångström, Việt Nam, 각",
  decomposed: "Ångström, Việt Nam, 각".normalize("NFD"),
};
for (const [name, title] of Object.entries(titles)) links[name] = await api.createLink({ title });
links.url = await api.createLink({ url: "https://needle.example/haystack?x=1" });
links.slug = await api.createLink({ slug: "find-me-by-slug" });

test.after.always(() => service.close());

test.before(async () => {
  const created = await createTestDatabase();
  drop = created.drop;
  loaded = await startTestService({
    DATABASE_URL: created.url,
    ENCRYPTION_KEY: randomBytes(32).toString("base64url"),
  });
  const app = await loaded.createOrganization();
  const database = openDatabase(created.url);
  await storeManyLinks(database.knex, app.id, COUNT, (number) => ({
    url: `https://example.com/page/${number}`,
  }));
  await database.close();
  large = apiAt(loaded.url, await loaded.token(app));
  small = apiAt(loaded.url, await loaded.token(await loaded.createOrganization()));
});
test.after.always(async () => {
  await loaded.close();
  await drop();
});

async function found(query: Record<string, string>): Promise<string[]> {
  const { status, body, text } = await api.get<PageBody>(
    `/v1/links?${new URLSearchParams({ limit: "100", ...query })}`,
  );
  if (status !== 200) throw new Error(text);
  return body.data.map(({ id }) => id).toReversed();
}

const searches: [search: string, names: string[]][] = [
  ["50%", ["percent"]],
  ["%", ["percent"]],
  ["_", ["underscore"]],
  ["snake_case", ["underscore"]],
  ["snake-case", ["dash"]],
  ["\\", ["backslash"]],
  ["k\\s", ["backslash"]],
  ["\\%", []],
  ["50", ["percent", "plain"]],
  ["it's", ["quote"]],
  ['"quoted"', ["quote"]],
  ["' or 1=1 --", []],
  ["Grüße", ["umlaut"]],
  ["本", ["umlaut"]],
  ["grüße".normalize("NFD"), ["umlaut"]],
  ["ÅNGSTRÖM", ["composed", "decomposed"]],
  ["ångström, VIỆT".normalize("NFD"), ["composed", "decomposed"]],
  ["각", ["composed", "decomposed"]],
  ["needle.example", ["url"]],
  ["haystack?x", ["url"]],
  ["find-me", ["slug"]],
  ["SNAKE-CASE", ["dash"]],
  ["matches no link", []],
  ["*", []],
];
for (const [search, names] of searches) {
  test(`a search for ${search} finds ${names.join(" and ") || "nothing"}`, async (t) => {
    t.deepEqual(
      await found({ search }),
      names.map((name) => links[name]?.id ?? ""),
    );
  });
}

const tagged: [tags: string[], tag: string, matches: boolean][] = [
  [["news"], "news", true],
  [["other", "news"], "news", true],
  [["newsletter"], "news", false],
  [["the news"], "news", false],
  [["News"], "news", false],
  [["news "], "news", false],
  [["50%"], "50%", true],
  [["500"], "50%", false],
  [["a_b"], "a_b", true],
  [["axb"], "a_b", false],
  [['say "hi"'], 'say "hi"', true],
  [['say "hi"'], "hi", false],
  [['x"y'], "y", false],
  [["back\\slash"], "back\\slash", true],
  [["ü"], "ü", true],
  [["日本"], "日本", true],
  [["a,b"], "a", false],
  [["[]"], "[]", true],
  [[], "[]", false],
];
for (const [index, [tags, tag, matches]] of tagged.entries()) {
  test(`${index}: the tag ${tag} ${matches ? "matches" : "does not match"} a link with ${JSON.stringify(tags)}`, async (t) => {
    const caller = apiAt(service.url, await service.token(await service.createOrganization()));
    const { id } = await caller.createLink({ tags });
    const { body } = await caller.get<PageBody>(`/v1/links?tag=${encodeURIComponent(tag)}`);
    t.deepEqual(
      body.data.map((link) => link.id),
      matches ? [id] : [],
    );
  });
}

for (const tag of ["one\u001ftwo", "\u001f", "one\n", "x".repeat(51), "🎉".repeat(51), ""]) {
  test(`the invalid tag ${JSON.stringify(tag).slice(0, 20)} is rejected`, async (t) => {
    await api.createLink({ tags: ["one", "two"] });
    const reply = await api.get(`/v1/links?tag=${encodeURIComponent(tag)}`);
    isProblem(t, reply, { status: 422, code: "invalid_tag", fields: ["tag"] });
  });
}

test("a search and a tag may have as many characters as the document says, also emoji", async (t) => {
  const [title, tag] = ["🎉".repeat(255), "🎉".repeat(50)];
  const { id } = await api.createLink({ title, tags: [tag] });
  for (const query of [`search=${encodeURIComponent(title)}`, `tag=${encodeURIComponent(tag)}`]) {
    const { body } = await api.get<PageBody>(`/v1/links?${query}`);
    t.deepEqual(
      body.data.map((link) => link.id),
      [id],
    );
  }
  const long = await api.get(`/v1/links?search=${encodeURIComponent(`${title}🎉`)}`);
  isProblem(t, long, { status: 422, code: "invalid_search", fields: ["search"] });
});

test("archived=true and archived=false select links by state, and without it both are listed", async (t) => {
  const caller = apiAt(service.url, await service.token(await service.createOrganization()));
  const [active, archived, deleted] = [
    await caller.createLink(),
    await caller.createLink(),
    await caller.createLink(),
  ];
  await caller.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
  await caller.send("DELETE", `/v1/links/${deleted.id}`);
  for (const [query, ids] of [
    ["?archived=true", [archived.id]],
    ["?archived=false", [active.id]],
    ["", [archived.id, active.id]],
  ] as const) {
    const { body } = await caller.get<PageBody>(`/v1/links${query}`);
    t.deepEqual(
      body.data.map(({ id }) => id),
      [...ids],
      query,
    );
  }
});

test("filters are combined, and a link must match all of them", async (t) => {
  const caller = apiAt(service.url, await service.token(await service.createOrganization()));
  const both = await caller.createLink({ title: "spring sale", tags: ["news"] });
  await caller.createLink({ title: "spring sale" });
  await caller.createLink({ title: "autumn", tags: ["news"] });
  const { body } = await caller.get<PageBody>("/v1/links?search=spring&tag=news&archived=false");
  t.deepEqual(
    body.data.map(({ id }) => id),
    [both.id],
  );
});

test("a deleted link is not found by its former title or slug", async (t) => {
  const { id } = await api.createLink({ title: "very-private", slug: "very-private-slug" });
  await api.send("DELETE", `/v1/links/${id}`);
  t.deepEqual(await found({ search: "very-private" }), []);
});

const COUNT = 12_000;
const SEARCHES = 10;

type Caller = ReturnType<typeof apiAt>;
let loaded: TestService;
let large: Caller;
let small: Caller;
let drop: () => Promise<void>;

test.serial(
  "another tenant's requests are answered between the searches of a large organization",
  async (t) => {
    const order: string[] = [];
    const searches = Array.from({ length: SEARCHES }, async (_, index) => {
      const { status } = await large.get<PageBody>(`/v1/links?search=absent-${index}`);
      order.push("search");
      t.is(status, 200);
    });
    while (order.filter((event) => event === "search").length < SEARCHES) {
      t.is((await small.get("/v1/links")).status, 200);
      order.push("other");
    }
    await Promise.all(searches);
    const last = order.lastIndexOf("search");
    const others = order.slice(0, last).filter((event) => event === "other").length;
    t.true(others >= SEARCHES, `only ${others} requests were answered before the last search`);
  },
);

test.serial("searches beyond a short queue are refused, and other tenants' searches are not", async (t) => {
  const replies = await Promise.all([
    ...Array.from({ length: 60 }, () => large.get("/v1/links?search=absent")),
    small.get("/v1/links?search=absent"),
  ]);
  const [others] = replies.splice(-1);
  t.is(others?.status, 200);
  const refused = replies.filter(({ status }) => status !== 200);
  t.true(refused.length > 0 && refused.length < 60);
  for (const reply of refused) {
    isProblem(t, reply, { status: 429, code: "rate_limited" });
    t.is(reply.headers.get("retry-after"), "1");
  }
});

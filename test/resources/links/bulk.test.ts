import test from "ava";
import { apiAt, isProblem, type LinkBody, type PageBody } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService();
const newApi = async () => apiAt(service.url, await service.token(await service.createOrganization()));
const api = await newApi();
test.after.always(() => service.close());

type Result = {
  status: number;
  link?: LinkBody;
  error?: { code: string; detail: string; errors?: { field: string; message: string }[] };
};

const url = "https://example.com/";
const bulk = (links: unknown, caller = api) =>
  caller.send<{ results: Result[] }>("POST", "/v1/links/bulk", { json: { links } });
const resultsOf = async (links: unknown) => {
  const { status, body, text } = await bulk(links);
  if (status !== 200) throw new Error(text);
  return body.results;
};

test("a bulk request creates every link with its own fields, in order", async (t) => {
  const caller = await newApi();
  const links = Array.from({ length: 100 }, (_, n) => ({ url, title: `Link ${n}`, tags: [`n${n}`] }));
  const { status, body } = await bulk(links, caller);
  t.is(status, 200);
  t.deepEqual(
    body.results.map(({ status, link }) => [status, link?.title]),
    links.map(({ title }) => [201, title]),
  );
  const page = await caller.get<PageBody>("/v1/links?limit=100");
  t.deepEqual(page.body.data.toReversed(), body.results.map(({ link }) => link) as LinkBody[]);
});

test("each result is that of a separate request for the link", async (t) => {
  await api.createLink({ slug: "bulk-taken", external_id: "bulk-taken" });
  const invalid: [link: unknown, status: number, code: string, field: string][] = [
    [{ url: "javascript:alert(1)" }, 422, "invalid_url", "url"],
    [{ url, slug: "bulk-taken" }, 409, "slug_taken", "slug"],
    [{ url, external_id: "bulk-taken" }, 409, "external_id_taken", "external_id"],
    [{ url, clicks: 5 }, 422, "unknown_field", "clicks"],
    [{ url, tags: [1] }, 422, "invalid_tags", "tags.0"],
    [{ url, expires_at: "yesterday" }, 422, "invalid_expires_at", "expires_at"],
  ];
  const notObjects = [null, 1, "text", [], true];
  const results = await resultsOf([
    { url },
    ...invalid.map(([link]) => link),
    ...notObjects,
    { url, slug: "bulk-last" },
  ]);
  t.is(results[0]?.status, 201);
  for (const [index, [, status, code, field]] of invalid.entries()) {
    const result = results[index + 1];
    t.like(result, { status, error: { code } }, code);
    t.deepEqual(
      result?.error?.errors?.map((error) => error.field),
      [field],
      code,
    );
    t.true((result?.error?.detail.length ?? 0) > 0, code);
    t.is(result?.link, undefined, code);
  }
  for (const result of results.slice(invalid.length + 1, -1))
    t.like(result, { status: 422, error: { code: "invalid_request" } });
  t.like(results.at(-1), { status: 201, link: { slug: "bulk-last" } });
});

test("of several links in one request with the same slug or external ID, the first gets it", async (t) => {
  for (let round = 0; round < 5; round++) {
    const slug = `bulk-twice-${round}`;
    const external_id = slug;
    const results = await resultsOf([
      { url, slug, title: "first" },
      { url, external_id, title: "first" },
      { url, slug, external_id: `${external_id}-x` },
      { url, external_id },
      { url, external_id: `${external_id}-x`, title: "the link before it was not created" },
      { url, slug },
    ]);
    t.deepEqual(
      results.map(({ status, error }) => error?.code ?? status),
      [201, 201, "slug_taken", "external_id_taken", 201, "slug_taken"],
    );
  }
});

test("concurrent bulk requests for the same slugs, in either order, create each link once", async (t) => {
  for (let round = 0; round < 3; round++) {
    const tags = [`contended-${round}`];
    const links = Array.from({ length: 40 }, (_, n) => {
      const name = `contended-${round}-${n}`;
      return { url, slug: name, external_id: name, tags };
    });
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) => resultsOf(n % 2 ? links : links.toReversed())),
    );
    const statuses = results.flat().map(({ status }) => status);
    t.deepEqual(statuses.sort(), [...Array(40).fill(201), ...Array(280).fill(409)]);
    const { body } = await api.get<PageBody>(`/v1/links?limit=100&tag=${tags}`);
    t.is(body.data.length, 40);
  }
});

test("an invalid link leaves its slug to the next one", async (t) => {
  const results = await resultsOf([
    { url: "not a URL", slug: "bulk-free" },
    { url, slug: "bulk-free" },
  ]);
  t.deepEqual(
    results.map(({ status }) => status),
    [422, 201],
  );
});

const invalidBodies: [name: string, links: unknown][] = [
  ["no links", []],
  ["101 links", Array(101).fill({ url })],
  ["an object", { url }],
  ["null", null],
  ["no field", undefined],
];
for (const [name, links] of invalidBodies) {
  test(`a bulk request with ${name} is rejected and creates nothing`, async (t) => {
    const caller = await newApi();
    isProblem(t, await bulk(links, caller), { status: 422, code: "invalid_links", fields: ["links"] });
    t.deepEqual((await caller.get<PageBody>("/v1/links")).body.data, []);
  });
}

test("an unknown field next to the links is rejected", async (t) => {
  const reply = await api.send("POST", "/v1/links/bulk", { json: { links: [{ url }], atomic: true } });
  isProblem(t, reply, { status: 422, code: "unknown_field", fields: ["atomic"] });
});

test("a token without write access is rejected", async (t) => {
  const token = await service.token(await service.createOrganization(), { scope: "links:read" });
  isProblem(t, await bulk([{ url }], apiAt(service.url, token)), { status: 403, code: "insufficient_scope" });
});

test("requests of another organization are answered between the bulk requests of one", async (t) => {
  const [busy, other] = await Promise.all([newApi(), newApi()]);
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key${n}`, "x".repeat(100)]));
  const links = Array.from({ length: 100 }, () => ({ url, metadata }));
  let answered = 0;
  const all = Array.from({ length: 12 }, async () => {
    const { status } = await bulk(links, busy);
    answered++;
    return status;
  });
  await Promise.race(all);
  t.is((await other.send("POST", "/v1/links", { json: { url } })).status, 201);
  t.true(answered <= 6, `${answered} of 12 were answered before it`);
  t.deepEqual(new Set(await Promise.all(all)), new Set([200]));
});

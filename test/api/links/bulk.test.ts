import test from "ava";
import { isInvalid, isProblem, type LinkBody, newApi, type PageBody } from "../../harness/clients/api.ts";
import { shareApi } from "../../harness/clients/authorization.ts";

export const databases = "all";

const { service, api } = await shareApi();

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
  const caller = await newApi(service);
  const links = Array.from({ length: 100 }, (_, n) => ({ url, title: `Link ${n}`, tags: [`n${n}`] }));
  const { status, body } = await bulk(links, caller);
  t.is(status, 200);
  const titles = body.results.map(({ status, link }) => status === 201 && link?.title);
  t.deepEqual(titles, links.map(({ title }) => title) as typeof titles);
  const page = await caller.get<PageBody>("/v1/links?limit=100");
  t.deepEqual(page.body.data.toReversed(), body.results.map(({ link }) => link) as LinkBody[]);
});

test("each result is that of a separate request for the link", async (t) => {
  await api.createLink({ slug: "bulk-taken", external_id: "bulk-taken" });
  const invalid: [link: unknown, status: number, code: string, fields: string[]][] = [
    [{ url: "javascript:alert(1)", slug: "bulk-free" }, 422, "invalid_url", ["url"]],
    [{ url, fallback_url: "ftp://example.com" }, 422, "invalid_fallback_url", ["fallback_url"]],
    [{ url, slug: "bulk-taken" }, 409, "slug_taken", ["slug"]],
    [{ url, external_id: "bulk-taken" }, 409, "external_id_taken", ["external_id"]],
    [{ url, clicks: 5 }, 422, "unknown_field", ["clicks"]],
    [{ url, tags: [1] }, 422, "invalid_tags", ["tags.0"]],
    ...[null, 1, "text", [], true].map((link) => [link, 422, "invalid_request", [""]] as never),
  ];
  const [first, ...others] = await resultsOf([
    { url },
    ...invalid.map(([link]) => link),
    { url, slug: "bulk-free" },
  ]);
  t.is(first?.status, 201);
  t.like(others.pop(), { status: 201, link: { slug: "bulk-free" } }, "an invalid link leaves its slug");
  for (const [index, [link, status, code, fields]] of invalid.entries()) {
    const { error, ...result } = others[index] as Result;
    t.deepEqual([result, error?.code] as unknown[], [{ status }, code], JSON.stringify(link));
    const named = error?.errors?.map(({ field }) => field);
    t.deepEqual(named, fields);
    t.not(error?.detail, "");
  }
});

test("a bulk request needs 1 to 100 links, and no other field, and creates nothing otherwise", async (t) => {
  const caller = await newApi(service);
  for (const links of [[], Array(101).fill({ url }), { url }, null, undefined])
    isInvalid(t, await bulk(links, caller), "links");
  const unknown = await caller.send("POST", "/v1/links/bulk", { json: { links: [{ url }], atomic: true } });
  isProblem(t, unknown, { status: 422, code: "unknown_field", fields: ["atomic"] });
  t.deepEqual((await caller.get<PageBody>("/v1/links")).body.data, []);
});

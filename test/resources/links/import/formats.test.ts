import { readFileSync } from "node:fs";
import test from "ava";
import { isProblem, type LinkBody, type PageBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { importLinks } from "../../../harness/clients/link-import.ts";
import { startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

async function imported(content: string | Uint8Array) {
  const { base, owner } = await createTeam(service);
  const { status, body } = await importLinks(owner.api, base, content);
  const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
  return { status, body, data };
}

const SPRING = {
  url: "https://www.acme.example/spring?from=mail",
  title: "Spring sale",
  tags: ["mail", "sale"],
  archived: false,
  clicks: 1284,
  created_at: "2024-03-01T09:30:00.000Z",
};
const JOBS = {
  url: "https://www.acme.example/jobs",
  title: null,
  tags: [],
  archived: false,
  clicks: 37,
  created_at: "2023-11-20T16:05:12.000Z",
};
const END = "2099-01-01T00:00:00.000Z";
const NO_TAGS = { tags: [] };
const NO_CLICKS = { clicks: 0 };

type Sample = { format: string; spring?: Partial<LinkBody>; jobs?: Partial<LinkBody> };

/** What each sample has beyond, or instead of, the usual values. */
const SAMPLES: Record<string, Sample> = {
  "bitly.csv": { format: "Bitly" },
  "bitly.json": { format: "Bitly", spring: NO_CLICKS, jobs: { ...NO_CLICKS, archived: true } },
  "dub.csv": { format: "Dub", spring: { title: null }, jobs: { archived: true } },
  "shlink.csv": { format: "Shlink" },
  "shlink.json": { format: "Shlink", spring: { expires_at: END, max_clicks: 5000 } },
  "short-io.csv": { format: "Short.io" },
  "short-io.json": {
    format: "Short.io",
    spring: { ...NO_CLICKS, expires_at: END, max_clicks: 5000, redirect_type: 301 },
    jobs: { ...NO_CLICKS, archived: true },
  },
  "yourls.csv": { format: "YOURLS", spring: NO_TAGS },
  "yourls.json": { format: "YOURLS", spring: NO_TAGS },
  "plain.csv": { format: "linkgate" },
};

for (const [name, { format, spring, jobs }] of Object.entries(SAMPLES)) {
  test(`${name} is recognized, and its links keep what the file says about them`, async (t) => {
    const { body, data } = await imported(readFileSync(new URL(name, import.meta.url)));
    t.like(body, { dry_run: false, format, rows: 2, imported: 2, skipped: 0, refused: 0, left: 0 });
    const prefix = name.replace(".", "-");
    t.like(data, [
      {
        slug: `${prefix}-spring`,
        expires_at: null,
        max_clicks: null,
        redirect_type: 302,
        ...SPRING,
        ...spring,
      },
      { slug: `${prefix}-jobs`, expires_at: null, max_clicks: null, redirect_type: 302, ...JOBS, ...jobs },
    ]);
  });
}

test("dub.json keeps the external ID, and refuses a link with a password", async (t) => {
  const { body, data } = await imported(readFileSync(new URL("dub.json", import.meta.url)));
  t.like(body, { format: "Dub", rows: 2, imported: 1, refused: 1 });
  const own = { external_id: "campaign-7", expires_at: END, last_clicked_at: "2026-01-02T03:04:05.000Z" };
  t.like(data, [{ ...SPRING, slug: "dub-json-spring", ...own }]);
  t.like(body.results[1], { row: 2, result: "refused", slug: "dub-json-internal" });
  t.regex(body.results[1]?.reason ?? "", /protected by a password/);
});

test("kutt.json refuses links with a password, and banned ones", async (t) => {
  const { body, data } = await imported(readFileSync(new URL("kutt.json", import.meta.url)));
  t.like(body, { format: "Kutt", rows: 3, imported: 1, refused: 2 });
  t.like(data, [{ ...SPRING, ...NO_TAGS, slug: "kutt-json-spring", expires_at: END }]);
  t.deepEqual(
    body.results.slice(1).map(({ reason }) => reason),
    ["The link is protected by a password, which links can't be.", "The link is banned."],
  );
});

test("several responses of an API in one array are one import", async (t) => {
  const page = (slug: string) => ({
    links: [{ long_url: `https://example.com/${slug}`, link: `https://bit.ly/${slug}` }],
  });
  const { body, data } = await imported(JSON.stringify([page("page-1"), page("page-2")]));
  t.like(body, { format: "Bitly", imported: 2 });
  t.deepEqual(data.map(({ slug }) => slug).sort(), ["page-1", "page-2"]);
});

const TIMES: [written: string, read: string][] = [
  ["2024-03-01", "2024-03-01T00:00:00.000Z"],
  ["2024-03-01 09:30", "2024-03-01T09:30:00.000Z"],
  ["2024-03-01 09:30:15 UTC", "2024-03-01T09:30:15.000Z"],
  ["2024-03-01T09:30:15.123456+02:00", "2024-03-01T07:30:15.123Z"],
  ["2024-03-01T09:30:15-0530", "2024-03-01T15:00:15.000Z"],
  ["1709285400", "2024-03-01T09:30:00.000Z"],
  ["1709285400000", "2024-03-01T09:30:00.000Z"],
  ["Mar 1, 2024 9:30 AM", "2024-03-01T09:30:00.000Z"],
  ["Fri, 01 Mar 2024 09:30:00 GMT", "2024-03-01T09:30:00.000Z"],
];

test("times in the usual forms are kept, those without a zone as UTC", async (t) => {
  const rows = TIMES.map(([written], index) => `https://example.com/,time-${index},"${written}"`);
  const { data } = await imported(["url,slug,created_at", ...rows].join("\n"));
  const bySlug = new Map(data.map(({ slug, created_at }) => [slug, created_at]));
  t.deepEqual(
    TIMES.map(([written], index) => [written, bySlug.get(`time-${index}`)]),
    TIMES,
  );
});

test("quoted line breaks, empty lines and missing cells are read as spreadsheets write them", async (t) => {
  const file =
    'url,slug,title\r\n\r\nhttps://example.com/a,cells-1,"a ""b"""\r\nhttps://example.com/b,cells-2\r\n"https://example.com/c",cells-3,"two\r\nlines"\r\n';
  const { body, data } = await imported(file);
  t.like(body, { rows: 3, imported: 2, refused: 1 });
  t.deepEqual(
    body.results.map(({ row, result }) => [row, result]),
    [
      [3, "imported"],
      [4, "imported"],
      [5, "refused"],
    ],
  );
  t.is(data.find(({ slug }) => slug === "cells-1")?.title, 'a "b"');
});

const UNREADABLE: Record<string, [content: string | Uint8Array, message: RegExp]> = {
  "an empty file": ["", /must not be empty/],
  "a file of another encoding": [
    Buffer.from("url,title\nhttps://example.com/,caf\xe9", "latin1"),
    /^file: The file isn't UTF-8\. In a spreadsheet program, save it as CSV UTF-8\.$/,
  ],
  "unknown columns": [
    "target,name\n1,2",
    /Found: target, name\. Needed: linkgate \(url\); Bitly \(long_url and link/,
  ],
  "broken JSON": ['[{"url": ', /must be valid JSON/],
  "an unclosed quote": [
    'url,slug\nhttps://example.com/,ok\n"https://example.com/,',
    /must close every quote \(line 3\)/,
  ],
  "more rows than a page takes": [`url\n${"https://example.com/\n".repeat(10_001)}`, /at most 10,000 rows/],
};

for (const [what, [content, message]] of Object.entries(UNREADABLE)) {
  test(`${what}: the file is rejected, and nothing is imported`, async (t) => {
    const { base, owner } = await createTeam(service);
    const reply = await importLinks(owner.api, base, content);
    t.is(reply.status, 422);
    t.is(reply.body.code, "invalid_file");
    t.regex(reply.body.detail ?? "", message);
    t.is((await owner.api.get<PageBody>(`${base}/links`)).body.data.length, 0);
  });
}

test("a request without a file names the field", async (t) => {
  const { base, owner } = await createTeam(service);
  const reply = await owner.api.send("POST", `${base}/links/import`, { json: {} });
  isProblem(t, reply, { status: 422, code: "invalid_file", fields: ["file"] });
});

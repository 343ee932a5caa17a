import test from "ava";
import { parse } from "csv-parse/sync";
import { isProblem, type LinkBody, type PageBody } from "../../../harness/clients/api.ts";
import { createTeam } from "../../../harness/clients/dashboard.ts";
import { importLinks } from "../../../harness/clients/link-import.ts";
import { advanceToNoon } from "../../../harness/clock.ts";
import { startTestService } from "../../../harness/service.ts";

export const databases = "all";

advanceToNoon();
const [service, other] = await Promise.all([startTestService(), startTestService()]);
test.after.always(() => Promise.all([service.close(), other.close()]));

type Team = Awaited<ReturnType<typeof createTeam>>;
type Row = Record<string, string>;

/** Downloads a CSV file, and returns its rows. */
async function download({ owner, base }: Team, path: string) {
  const { status, headers, text } = await owner.api.send("GET", base + path);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  return { headers, text, rows: parse(text, { bom: true, columns: true }) as Row[] };
}

const create = async ({ owner, base }: Team, fields: object) =>
  (
    await owner.api.send<LinkBody>("POST", `${base}/links`, {
      json: { url: "https://example.com/", ...fields },
    })
  ).body;

/** Links that a spreadsheet, or a simple format, would change. */
const ODD_LINKS = [
  { slug: "-minus", title: "=1+1", tags: ["a,b", "c"] },
  { slug: "quoted", title: "'=1+1", tags: ["+tag", "two words"] },
  { slug: "several", title: "''@x; \"y\"", tags: ["[1]"], metadata: { text: 'a,"b"', number: 1, no: null } },
  {
    slug: "limited",
    max_clicks: 5,
    expires_at: "2099-01-01T00:00:00.000Z",
    redirect_type: 308,
    external_id: "-7",
  },
  { slug: "plain", title: "null", url: "https://example.com/?a=1,2&b=%22" },
  { slug: "spaces", title: "  two  ", external_id: "crm-7 " },
  { slug: "no-spaces", title: " ", external_id: "crm-7" },
  { slug: "backslash", title: '"C:\\new\\", \\\\server\\', external_id: "\\N" },
];

test("the export of all links can be imported by another service, and every field is the same", async (t) => {
  const [from, to] = [await createTeam(service), await createTeam(other)];
  for (const fields of ODD_LINKS) await create(from, fields);
  const archived = await create(from, { slug: "archived" });
  await from.owner.api.send("PATCH", `${from.base}/links/${archived.id}`, { json: { archived: true } });
  await fetch(`${service.url}/plain`, { redirect: "manual" });
  const { headers, text, rows } = await download(from, "/links.csv");
  t.is(headers.get("content-type"), "text/csv; charset=utf-8");
  t.is(headers.get("content-disposition"), `attachment; filename="links-${from.organization.id}.csv"`);
  t.is(rows.length, ODD_LINKS.length + 1);
  t.like((await importLinks(to.owner.api, to.base, text)).body, {
    format: "linkgate",
    imported: ODD_LINKS.length + 1,
    refused: 0,
  });
  const linksOf = async ({ owner, base }: Team) => {
    const { data } = (await owner.api.get<PageBody>(`${base}/links`)).body;
    return data.map(({ id, short_url, updated_at, created_by, ...link }) => link);
  };
  t.deepEqual(await linksOf(to), await linksOf(from));
  t.like((await importLinks(to.owner.api, to.base, text)).body, {
    imported: 0,
    skipped: ODD_LINKS.length + 1,
  });
});

test("the export has the fields of the API, newest first, and escapes formulas", async (t) => {
  const team = await createTeam(service);
  const first = await create(team, { slug: "-formula", tags: ["x", "y"] });
  const second = await create(team, { title: "@SUM(A1)" });
  const { rows } = await download(team, "/links.csv");
  t.deepEqual(Object.keys(rows[0] ?? {}), Object.keys(first));
  t.deepEqual(
    rows.map(({ id }) => id),
    [second.id, first.id],
  );
  t.like(rows[1], { slug: "'-formula", tags: "x,y", archived: "false", max_clicks: "", clicks: "0" });
  t.like(rows[0], { title: "'@SUM(A1)" });
});

test("the filter of the list applies to the export, over all pages", async (t) => {
  const team = await createTeam(service);
  for (let index = 0; index < 3; index++) await create(team, { tags: ["mail"], title: `Letter ${index}` });
  const archived = await create(team, { tags: ["mail"] });
  await team.owner.api.send("PATCH", `${team.base}/links/${archived.id}`, { json: { archived: true } });
  const lines = Array.from(
    { length: 250 },
    (_, index) => `https://example.com/${index},${team.organization.id}-${index}`,
  );
  await importLinks(team.owner.api, team.base, ["url,slug", ...lines].join("\n"));
  const countOf = async (query: string) => (await download(team, `/links.csv${query}`)).rows.length;
  t.is(await countOf(""), 254);
  t.is(await countOf("?archived=all&search="), 254);
  t.is(await countOf("?archived=false"), 253);
  t.is(await countOf("?tag=mail"), 4);
  t.is(await countOf("?tag=mail&archived=true"), 1);
  t.is(await countOf("?search=letter"), 3);
});

test("the export of clicks has a row per link and day, with clicks and those of bots", async (t) => {
  const team = await createTeam(service);
  const link = await create(team, { slug: "clicked" });
  await create(team, { slug: "not-clicked" });
  for (const agent of ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (X11; Linux x86_64)", "Googlebot/2.1"])
    await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": agent } });
  const date = new Date(Date.now()).toISOString().slice(0, 10);
  const expected = [{ date, link_id: link.id, slug: "clicked", clicks: "2", bot_clicks: "1" }];
  t.deepEqual((await download(team, "/analytics.csv")).rows, expected);
  t.deepEqual((await download(team, `/links/${link.id}/analytics.csv?from=&to=`)).rows, expected);
  t.deepEqual((await download(team, "/analytics.csv?from=2020-01-01&to=2020-01-02")).rows, []);
});

test("members may export; users of other organizations may not; wrong filters are named", async (t) => {
  const { base, member, stranger } = await createTeam(service);
  for (const path of ["/links.csv", "/analytics.csv"]) {
    t.is((await member.api.send("GET", base + path)).status, 200);
    isProblem(t, await stranger.api.send("GET", base + path), { status: 404, code: "not_found" });
  }
  const wrong = await member.api.send("GET", `${base}/links.csv?archived=some`);
  isProblem(t, wrong, { status: 422, code: "invalid_archived", fields: ["archived"] });
  const range = await member.api.send("GET", `${base}/analytics.csv?from=tomorrow`);
  isProblem(t, range, { status: 422, code: "invalid_from", fields: ["from"] });
});

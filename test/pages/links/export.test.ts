import test from "ava";
import { parse } from "csv-parse/sync";
import { exportName } from "../../../server/csv.ts";
import { BROWSER } from "../../harness/clients/api.ts";
import { importLinks } from "../../harness/clients/link-import.ts";
import { linksInBrowser } from "../../harness/clients/pages.ts";
import { advanceToNoon } from "../../harness/clock.ts";
import { storeDomain } from "../../harness/domains.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

export const databases = "all";

advanceToNoon();
const [service, other] = await Promise.all([startTestService(), startTestService()]);

type Row = Record<string, string>;
type Team = Awaited<ReturnType<typeof linksInBrowser>>;

/** Downloads a CSV file, and returns its rows. */
async function download({ member, base }: Team, path: string) {
  const { status, headers, text } = await member.api.send("GET", base + path);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  return { headers, text, rows: parse(text, { bom: true, columns: true }) as Row[] };
}

const HOST = "go.export.example";

/** Links that a spreadsheet, or a simple format, would change. */
const ODD_LINKS = [
  { slug: "-minus", title: "=1+1", tags: ["a,b", "c"] },
  { slug: "quoted", title: "'=1+1", tags: ["+tag", "two words"] },
  { slug: "several", title: "''@x; \"y\"", tags: ["[1]"], metadata: { text: 'a,"b"', number: 1, no: null } },
  { slug: "limited", max_clicks: 5, expires_at: "2099-01-01T00:00:00.000Z", redirect_type: 308 },
  {
    slug: "card",
    card: { title: '"=1+1', description: "two\nlines, é", image_url: "https://example.com/a.png" },
  },
  { slug: "numbered", external_id: "-7" },
  { slug: "plain", title: "null", url: "https://example.com/?a=1,2&b=%22" },
  { slug: "spaces", title: "  two  ", external_id: "crm-7 " },
  { slug: "no-spaces", title: " ", external_id: "crm-7" },
  { slug: "plain", domain: HOST },
  { slug: "backslash", title: '"C:\\new\\", \\\\server\\', external_id: "\\N" },
];

test("the export of all links can be imported by another service, and every field is the same", async (t) => {
  const [from, to] = [await linksInBrowser(service), await linksInBrowser(other)];
  await storeDomain(service.storage, from.organization.id, HOST);
  await storeDomain(other.storage, to.organization.id, HOST);
  for (const fields of ODD_LINKS) await from.create(fields);
  const archived = await from.create({ slug: "archived" });
  await from.owner.api.send("PATCH", `${from.base}/links/${archived.id}`, { json: { archived: true } });
  await fetch(`${service.url}/plain`, { redirect: "manual" });
  const { headers, text, rows } = await download(from, "/links.csv");
  t.is(headers.get("content-type"), "text/csv; charset=utf-8");
  const file = `${exportName(from.organization.name, "links")}.csv`;
  t.is(headers.get("content-disposition"), `attachment; filename="${file}"`);
  t.is(rows.length, ODD_LINKS.length + 1);
  const expected = { format: "linkgate", imported: ODD_LINKS.length + 1, refused: 0 };
  t.like((await importLinks(to.owner.api, to.base, text)).body, expected);
  const linksOf = async ({ list }: Team) =>
    (await list()).map(({ id, short_url, domain, updated_at, created_by, ...link }) => ({
      ...link,
      isOnDomain: domain === HOST,
    }));
  t.deepEqual(await linksOf(to), await linksOf(from));
  t.like((await importLinks(to.owner.api, to.base, text)).body, { imported: 0, skipped: rows.length });

  await from.create({ slug: "locked", password: "spring" });
  const locked = (await download(from, "/links.csv?search=locked")).text;
  t.notRegex(locked, /spring|argon2/);
  t.like((await importLinks(to.owner.api, to.base, locked)).body, { imported: 0, refused: 1 });
});

test("the filter of the list applies to the export, over all pages", async (t) => {
  const team = await linksInBrowser(service);
  for (let index = 0; index < 3; index++) await team.create({ tags: ["mail"], title: `Letter ${index}` });
  const archived = await team.create({ tags: ["mail"] });
  await team.owner.api.send("PATCH", `${team.base}/links/${archived.id}`, { json: { archived: true } });
  const lines = Array.from({ length: 250 }, (_, index) => `https://example.com/${index}`);
  await importLinks(team.owner.api, team.base, ["url", ...lines].join("\n"));
  const countOf = async (query: string) => (await download(team, `/links.csv${query}`)).rows.length;
  t.is(await countOf(""), 254);
  t.is(await countOf("?archived=all&search="), 254);
  t.is(await countOf("?archived=false"), 253);
  t.is(await countOf("?tag=mail"), 4);
  t.is(await countOf("?tag=mail&archived=true"), 1);
  t.is(await countOf("?search=letter"), 3);
});

test("the export of clicks has a row per link and day, with clicks and those of bots", async (t) => {
  const team = await linksInBrowser(service);
  const link = await team.create({ slug: "clicked" });
  await team.create({ slug: "not-clicked" });
  for (const agent of ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (X11; Linux x86_64)", "Googlebot/2.1"])
    await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": agent } });
  const date = new Date(Date.now()).toISOString().slice(0, 10);
  const expected = [{ date, link_id: link.id, slug: "clicked", clicks: "2", bot_clicks: "1" }];
  t.deepEqual((await download(team, "/analytics.csv")).rows, expected);
  t.deepEqual((await download(team, `/links/${link.id}/analytics.csv?from=&to=`)).rows, expected);
  t.deepEqual((await download(team, "/analytics.csv?from=2020-01-01&to=2020-01-02")).rows, []);
});

test("the export of clicks has those of a day that began before it does in UTC", async (t) => {
  const team = await linksInBrowser(service);
  const settings = { timeZone: "Pacific/Kiritimati" };
  await service.storage.organizationSettings.change(team.organization.id, settings, OPERATOR);
  const link = await team.create();
  await fetch(link.short_url, { redirect: "manual", headers: { "user-agent": BROWSER } });
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  for (const query of ["", `?from=${tomorrow}`]) {
    const [row, ...others] = (await download(team, `/analytics.csv${query}`)).rows;
    t.like(row, { date: tomorrow, slug: link.slug, clicks: "1" }, query);
    t.deepEqual(others, []);
  }
});

import { fill } from "./fill.ts";
import { median } from "./load.ts";
import { type Row, row } from "./table.ts";
import { registerOwner, timed } from "./workloads.ts";
import { eachDatabase } from "./workspace.ts";

const LINKS = 10_000;
const DAYS = 100;
const LOADS = 20;
const MAX_MS = 60;

/** The pages of an organization with 10,000 links and a million rows of statistics; `LINK` stands for one link. */
const PAGES: Record<string, string> = {
  overview: "",
  links: "/links",
  "links, most clicks first": "/links?sort=-clicks",
  "links, a search": "/links?search=page%2F777&archived=all",
  "links, a search with several pages": "/links?search=page%2F77",
  link: "/links/LINK",
  "clicks on a link, 90 days": "/links/LINK/analytics?from=FROM",
  "clicks on all links, 90 days": "/analytics?from=FROM",
  "clicks on all links from a country, 90 days": "/analytics?from=FROM&country=C7",
  "clicks on all links from a country and device, 90 days":
    "/analytics?from=FROM&country=C7&device=device%201",
  "clicks on all links by device, 90 days": "/analytics?from=FROM&device=device%201",
  "clicks on a link from a country and device, 90 days":
    "/links/LINK/analytics?from=FROM&country=C7&device=device%201",
  webhooks: "/webhooks",
  members: "/members",
  apps: "/apps",
  "API access": "/client",
  "audit log": "/audit",
  settings: "/settings",
};

/** How long pages of the dashboard take: of each the median and the slowest of 20 loads. */
export const pages = eachDatabase(async (workspace, url, name) => {
  const first = await workspace.ours(url);
  const { organizationId, session } = await registerOwner(`http://${first.host}`, "owner");
  await first.server.stop();
  await fill(url, {
    links: [{ organizationId, count: LINKS }],
    clicks: { organizationId, links: LINKS, days: DAYS },
  });
  const { host } = await workspace.restart(first);
  const headers = { authorization: `Bearer ${session}`, accept: "text/html" };
  const from = new Date(Date.now() - 89 * 86_400_000).toISOString().slice(0, 10);
  const link = `lnk_00${"50".padStart(24, "0")}`;
  const rows: Row[] = [];
  for (const [page, path] of Object.entries(PAGES)) {
    const place = path.replace("LINK", link).replace("FROM", from);
    const address = `http://${host}/dashboard/organizations/${organizationId}${place}`;
    const times: number[] = [];
    for (let load = 0; load < LOADS; load++) times.push(await timed(address, headers));
    const note = `slowest ${Math.round(Math.max(...times))} ms`;
    rows.push(row(`page: ${page}, ${name}, ms`, median(times), { atMost: MAX_MS, note }));
  }
  return rows;
});

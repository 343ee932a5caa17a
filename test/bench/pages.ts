import { randomBytes } from "node:crypto";
import { ENGINE_PARTS, onEachDatabase } from "./each-database.ts";
import { fill } from "./fill.ts";
import { judged, type Row } from "./table.ts";

const LINKS = 10_000;
const DAYS = 100;
const LOADS = 20;
const MAX_MS = 200;

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
  "clicks from a referrer, 90 days": "/analytics?from=FROM&by=referrer&value=site-7.example",
  webhooks: "/webhooks",
  members: "/members",
  apps: "/apps",
  "API access": "/client",
  "audit log": "/audit",
  settings: "/settings",
};

/** How long pages of the dashboard take: of each the median and the slowest of 20 loads. */
export const pageRows = Object.assign(
  (parts: string[]) =>
    onEachDatabase(parts, async (workspace, url, name): Promise<Row[]> => {
      const first = await workspace.oursOn(url);
      const { organizationId, username, password } = await createOwner(`http://${first.host}`);
      await first.server.stop();
      await fill(url, {
        links: [{ organizationId, count: LINKS }],
        clicks: { organizationId, links: LINKS, days: DAYS },
      });
      const { host } = await workspace.restart(first);
      const origin = `http://${host}`;
      const { access_token } = await post<{ access_token: string }>(`${origin}/auth/login`, {
        username,
        password,
      });
      const headers = { authorization: `Bearer ${access_token}`, accept: "text/html" };
      const from = new Date(Date.now() - 89 * 86_400_000).toISOString().slice(0, 10);
      const rows: Row[] = [];
      for (const [page, path] of Object.entries(PAGES)) {
        const link = `lnk_00${String(LINKS / 2).padStart(24, "0")}`;
        const address = `${origin}/dashboard/organizations/${organizationId}${path.replace("LINK", link).replace("FROM", from)}`;
        const times: number[] = [];
        for (let load = 0; load < LOADS; load++) {
          const start = performance.now();
          const response = await fetch(address, { headers });
          await response.text();
          if (response.status !== 200) throw new Error(`${address}: ${response.status}`);
          times.push(performance.now() - start);
        }
        const sorted = times.toSorted((one, other) => one - other);
        const median = sorted[LOADS / 2] as number;
        rows.push(
          judged(
            {
              name: `page: ${page}, ${name}, ms`,
              ours: [median],
              note: `slowest ${Math.round(sorted.at(-1) as number)} ms`,
            },
            { atMost: MAX_MS },
          ),
        );
      }
      return rows;
    }),
  { parts: ENGINE_PARTS },
);

/** Registers the owner of an organization on Premium. */
async function createOwner(origin: string) {
  const credentials = { username: "owner", password: randomBytes(12).toString("hex") };
  type Registered = { organization: { id: string }; access_token: string };
  const { organization, access_token } = await post<Registered>(`${origin}/auth/register`, credentials);
  const path = `${origin}/dashboard/organizations/${organization.id}/plan`;
  await post(path, { plan: "premium" }, { authorization: `Bearer ${access_token}` }, "PUT");
  return { organizationId: organization.id, ...credentials };
}

async function post<Body>(url: string, body: object, headers = {}, method = "POST"): Promise<Body> {
  const json = { "content-type": "application/json", ...headers };
  const response = await fetch(url, { method, headers: json, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Body;
}

import type { Knex } from "knex";
import { addressOf, type LinkDomain } from "../../resources/links/rules.ts";
import type { ImportedLink, ImportOutcome, LinkImport, LinkStore } from "../../resources/links/types.ts";
import { newIdAt } from "../crypto/ids.ts";
import { isDuplicate, isMissingValue } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import { type Outbox, organizationEvent } from "../events/outbox.ts";
import { newLink, storedBytes, toRow } from "./row.ts";
import { listLinkDomains } from "./search.ts";
import { exceedsRoom, type LinkUsage, type Room, type Usage } from "./usage.ts";

// SQLite combines at most 500 rows in the statement that Knex builds.
const MAX_ROWS = 500;
// Each lost race is a slug that another request took meanwhile.
const MAX_RACES = 5;

type Domains = Map<string, LinkDomain>;
/** The addresses that are taken, each with its URL if its link belongs to this organization; and its external ids. */
type Taken = { urls: Map<string, string | undefined>; externalIds: Set<string> };
type Plan = { rows: ReturnType<typeof toRow>[]; added: Usage } & Awaited<ReturnType<LinkImport["add"]>>;

export function createLinkImports(
  { knex }: Database,
  outbox: Outbox,
  usage: LinkUsage,
): LinkStore["beginImport"] {
  return (organizationId, actor, format, isTrial) => {
    // Lists are sorted by id.
    const toNewRow = (link: ImportedLink, domain: LinkDomain | null) =>
      toRow(newLink(organizationId, actor, newIdAt("lnk", link.createdAt), link), domain);

    const store: LinkImport["add"] = (links) =>
      outbox.change(actor, async ({ trx, record }) => {
        const room = await usage.lockRoom(trx, organizationId);
        const domains = await listLinkDomains(trx, organizationId, { isLocked: true });
        const taken = await readTaken(trx, organizationId, links, domains);
        const { rows, added, ...result } = planOf(links, { toNewRow, domains, taken, room });
        if (rows.length === 0) return result;
        for (let start = 0; start < rows.length; start += MAX_ROWS)
          await trx("links").insert(rows.slice(start, start + MAX_ROWS) as never);
        const data = { imported: rows.length, format };
        await record(organizationEvent(organizationId, "links.imported", data));
        await usage.add(trx, organizationId, added);
        return result;
      });

    // For a trial: batches count as if they were stored.
    const before: Taken = { urls: new Map(), externalIds: new Set() };
    const total: Usage = { links: 0, link_bytes: 0 };
    const planOnly: LinkImport["add"] = async (links) => {
      const domains = await listLinkDomains(knex, organizationId);
      const { urls, externalIds } = await readTaken(knex, organizationId, links, domains);
      for (const [address, url] of urls) before.urls.set(address, url);
      for (const id of externalIds) before.externalIds.add(id);
      const room = await usage.readRoom(knex, organizationId);
      room.links -= total.links;
      room.link_bytes -= total.link_bytes;
      const { rows, added, ...result } = planOf(links, { toNewRow, domains, taken: before, room });
      total.links += added.links;
      total.link_bytes += added.link_bytes;
      return result;
    };

    return { add: isTrial ? planOnly : withoutRaces(store) };
  };
}

/** Plans again after another request took a slug, or the plan of the organization changed. */
function withoutRaces(store: LinkImport["add"]): LinkImport["add"] {
  return async (links) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await store(links);
      } catch (error) {
        if (attempt === MAX_RACES || !(isDuplicate(error) || isMissingValue(error))) throw error;
      }
    }
  };
}

type PlanOptions = {
  toNewRow(link: ImportedLink, domain: LinkDomain | null): Plan["rows"][number];
  domains: Domains;
  taken: Taken;
  room: Room;
};

/** Decides on links in their order, until one exceeds a quota. Adds those to be stored to what is taken. */
function planOf(links: ImportedLink[], { toNewRow, domains, taken, room }: PlanOptions): Plan {
  const { urls, externalIds } = taken;
  const rows: Plan["rows"] = [];
  const outcomes: ImportOutcome[] = [];
  let added: Usage = { links: 0, link_bytes: 0 };
  for (const link of links) {
    const { url, externalId } = link;
    const domain = domainOf(link, domains);
    const address = domain === undefined ? "" : addressOf(link.slug, domain);
    if (domain === undefined) {
      outcomes.push({ missing: "domain" });
    } else if (urls.has(address)) {
      outcomes.push(urls.get(address) === url ? "exists" : { taken: "slug" });
    } else if (externalId !== null && externalIds.has(externalId)) {
      outcomes.push({ taken: "external_id" });
    } else {
      const row = toNewRow(link, domain);
      const next = { links: added.links + 1, link_bytes: added.link_bytes + storedBytes(row) };
      const exceeded = exceedsRoom(room, next);
      if (exceeded) return { rows, added, outcomes, exceeded };
      added = next;
      rows.push(row);
      outcomes.push("imported");
      urls.set(address, url);
      if (externalId !== null) externalIds.add(externalId);
    }
  }
  return { rows, added, outcomes };
}

/** Returns null for the server's own host, and undefined for one that the organization doesn't have. */
function domainOf({ domain }: ImportedLink, domains: Domains): LinkDomain | null | undefined {
  return domain === null ? null : domains.get(domain);
}

async function readTaken(
  q: Knex,
  organizationId: string,
  links: ImportedLink[],
  domains: Domains,
): Promise<Taken> {
  const addresses = links.flatMap((link) => {
    const domain = domainOf(link, domains);
    return domain === undefined ? [] : addressOf(link.slug, domain);
  });
  const found = await q("links")
    .whereIn("address", addresses)
    .select("address", "url", "organization_id", "deleted_at");
  const isOwn = (row: (typeof found)[number]) =>
    row.organization_id === organizationId && row.deleted_at === null;
  const ids = links.flatMap(({ externalId }) => externalId ?? []);
  const externalIds = ids.length
    ? await q("links")
        .where({ organization_id: organizationId })
        .whereIn("external_id", ids)
        .pluck("external_id")
    : [];
  return {
    urls: new Map(found.map((row) => [row.address, isOwn(row) ? row.url : undefined])),
    externalIds: new Set(externalIds as string[]),
  };
}

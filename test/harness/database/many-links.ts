import type { Knex } from "knex";
import { toRow, withoutHash } from "../../../adapters/links/row.ts";
import type { Link, LinkFields } from "../../../resources/links/types.ts";
import { linkFields } from "./storage.ts";

// Rows per statement.
const CHUNK = 500;

/** Returns an id of a link that is older than all links of the present, in the order of the numbers. */
export function oldLinkId(number: number, prefix = "lnk_01"): string {
  return prefix + String(number).padStart(30 - prefix.length, "0");
}

/** Stores links directly, as many and as old as the API could not create in a test. Returns them, newest first. */
export async function storeManyLinks(
  knex: Knex,
  organizationId: string,
  count: number,
  fieldsOf: (number: number) => Partial<LinkFields & Pick<Link, "clicks" | "lastClickedAt">>,
  /** What ids begin with, and the number of the first one, for several organizations in one database. */
  { prefix, firstId = 0 }: { prefix?: string; firstId?: number } = {},
): Promise<Link[]> {
  const links = Array.from(
    { length: count },
    (_, number): Link => ({
      clicks: 0,
      lastClickedAt: null,
      ...withoutHash(linkFields({ slug: `${organizationId.slice(-8)}-${number}`, ...fieldsOf(number) })),
      id: oldLinkId(firstId + number, prefix),
      organizationId,
      botClicks: 0,
      hasPassword: false,
      version: 1,
      createdBy: "lgc_filler",
      createdVia: null,
      createdAt: 1,
      updatedAt: 1,
      disabledAt: null,
      disabledReason: null,
    }),
  );
  const rows = links.map((link) => toRow(link));
  for (let start = 0; start < count; start += CHUNK)
    await knex("links").insert(rows.slice(start, start + CHUNK) as never);
  return links.reverse();
}

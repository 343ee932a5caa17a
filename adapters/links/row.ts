import type { Link, LinkFields } from "../resources/ports.ts";

// Tags are stored one after the other between these, which no tag contains: each can be looked for as it is.
const MARK = "\u001f";

/** What to look for in the column of tags to find one. */
export function tagMark(tag: string): string {
  return MARK + tag + MARK;
}

function writeTags(tags: string[]): string {
  return tags.length ? tagMark(tags.join(MARK)) : "";
}

function readTags(text: string): string[] {
  return text.split(MARK).filter(Boolean);
}

type Value = string | number | boolean | null;
const COLUMNS: Record<keyof LinkFields, string> = {
  slug: "slug",
  url: "url",
  title: "title",
  tags: "tags",
  externalId: "external_id",
  metadata: "metadata",
  archived: "archived",
  expiresAt: "expires_at",
  maxClicks: "max_clicks",
  redirectType: "redirect_type",
};

/** The columns of a new link. */
export const ROW_COLUMNS = [
  ...Object.values(COLUMNS),
  ..."id organization_id clicks last_clicked_at version created_by created_at updated_at".split(" "),
];

/** The columns of the fields that are given. */
export function toColumns(fields: Partial<LinkFields>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [COLUMNS[name as keyof LinkFields], toValue(name, value)]),
  );
}

function toValue(name: string, value: unknown): Value {
  if (name === "tags") return writeTags(value as string[]);
  return name === "metadata" ? JSON.stringify(value) : (value as Value);
}

/** The row of a link. */
export function toRow(link: Link): Record<string, Value> {
  const { id, organizationId, clicks, lastClickedAt, version, createdBy, createdAt, updatedAt, ...fields } =
    link;
  return {
    ...toColumns(fields),
    id,
    organization_id: organizationId,
    clicks,
    last_clicked_at: lastClickedAt,
    version,
    created_by: createdBy,
    created_at: createdAt,
    updated_at: updatedAt,
  };
}

type LinkRow = {
  id: string;
  organization_id: string;
  slug: string;
  url: string;
  title: string | null;
  tags: string;
  external_id: string | null;
  metadata: string;
  archived: boolean | 0 | 1;
  expires_at: number | null;
  max_clicks: number | null;
  redirect_type: Link["redirectType"];
  clicks: number;
  last_clicked_at: number | null;
  version: number;
  created_by: string;
  created_at: number;
  updated_at: number;
};

/** The link of a row. */
export function toLink(row: LinkRow | undefined): Link | undefined {
  if (!row) return undefined;
  return {
    id: row.id,
    organizationId: row.organization_id,
    slug: row.slug,
    url: row.url,
    title: row.title,
    tags: readTags(row.tags),
    externalId: row.external_id,
    metadata: JSON.parse(row.metadata),
    archived: Boolean(row.archived),
    expiresAt: row.expires_at,
    maxClicks: row.max_clicks,
    redirectType: row.redirect_type,
    clicks: row.clicks,
    lastClickedAt: row.last_clicked_at,
    version: row.version,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

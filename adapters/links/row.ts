import type { Link, LinkFields } from "../../resources/links/types.ts";
import type { LinkRow } from "../database/tables/links.ts";

// Separates the tags in their column, and surrounds them, so each can be searched for as a whole. No tag contains it.
const SEPARATOR = "\u001f";

export function tagPattern(tag: string): string {
  return SEPARATOR + tag + SEPARATOR;
}

function writeTags(tags: string[]): string {
  return tags.length ? tagPattern(tags.join(SEPARATOR)) : "";
}

export function readTags(text: string): string[] {
  return text.split(SEPARATOR).filter(Boolean);
}

/** Separates the texts in the column that is searched. None of them contains it. */
export const SEPARATOR_OF_TEXTS = "\n";

export function searchedText({ url, slug, title }: Pick<LinkFields, "url" | "slug" | "title">): string {
  return foldText([url, slug, title ?? ""].join(SEPARATOR_OF_TEXTS));
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
  fallbackUrl: "fallback_url",
};

export const ROW_COLUMNS = [
  ...Object.values(COLUMNS),
  "searched",
  ..."id organization_id clicks bot_clicks last_clicked_at version".split(" "),
  ..."created_by created_via created_at updated_at".split(" "),
];

/** The content of a deleted link, whose row remains to reserve its slug. */
export const ERASED = {
  external_id: null,
  title: null,
  tags: "",
  metadata: "{}",
  searched: "",
  fallback_url: null,
};

export function toColumns(fields: Partial<LinkFields>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [COLUMNS[name as keyof LinkFields], toValue(name, value)]),
  );
}

function toValue(name: string, value: unknown): Value {
  if (name === "tags") return writeTags(value as string[]);
  return name === "metadata" ? JSON.stringify(value) : (value as Value);
}

/** Converts a new link, which is never disabled, to its row. */
export function toRow(link: Link): Record<string, Value> {
  return {
    slug: link.slug,
    url: link.url,
    title: link.title,
    searched: searchedText(link),
    tags: writeTags(link.tags),
    external_id: link.externalId,
    metadata: JSON.stringify(link.metadata),
    archived: link.archived,
    expires_at: link.expiresAt,
    max_clicks: link.maxClicks,
    redirect_type: link.redirectType,
    fallback_url: link.fallbackUrl,
    id: link.id,
    organization_id: link.organizationId,
    clicks: link.clicks,
    bot_clicks: link.botClicks,
    last_clicked_at: link.lastClickedAt,
    version: link.version,
    created_by: link.createdBy,
    created_via: link.createdVia,
    created_at: link.createdAt,
    updated_at: link.updatedAt,
  };
}

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
    fallbackUrl: row.fallback_url,
    clicks: row.clicks,
    botClicks: row.bot_clicks,
    lastClickedAt: row.last_clicked_at,
    version: row.version,
    createdBy: row.created_by,
    createdVia: row.created_via,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
  };
}

const COUNTED_COLUMNS = ["slug", "url", "title", "tags", "external_id", "metadata", "fallback_url"];

export function storedBytes(row: Record<string, Value>): number {
  let sum = 0;
  for (const column of COUNTED_COLUMNS) sum += Buffer.byteLength((row[column] as string | null) ?? "");
  return sum;
}

const ASCII_ONLY = /^\p{ASCII}*$/u;

/**
 * Folds case and composes letters with their marks (Unicode NFC), in the same way on every database. A composed character
 * stays one, and ASCII matches only ASCII.
 */
export function foldText(text: string): string {
  if (ASCII_ONLY.test(text)) return text.toLowerCase();
  return [...text.normalize("NFC")].map(foldCharacter).join("");
}

function foldCharacter(character: string): string {
  if (character <= "\x7f") return character.toLowerCase();
  const upper = keepSingle(character.toUpperCase(), character);
  return keepSingle(upper.toLowerCase(), upper);
}

function keepSingle(changed: string, character: string): string {
  const isSingle = [...changed].length === 1;
  return isSingle && changed > "\x7f" ? changed : character;
}

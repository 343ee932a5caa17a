import type { Actor } from "../../resources/access/actor.ts";
import { camelCase } from "../../resources/http/text.ts";
import { addressOf, type LinkDomain } from "../../resources/links/rules.ts";
import { LINK_DEFAULTS, type Link, type LinkFields } from "../../resources/links/types.ts";
import { type LinkRow, links } from "../database/tables/links.ts";

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
type Column = keyof LinkRow;

const COLUMNS = Object.keys(links.columns) as Column[];
const NOT_IN_LINK: Column[] = ["address", "searched", "deleted_at", "password_hash"];
/** The columns of a link. The properties have the same names in camel case. */
const PROPERTIES = COLUMNS.filter((name) => !NOT_IN_LINK.includes(name)).map(
  (column) => [column, camelCase(column) as keyof Link] as const,
);
/** The columns of a new link. */
export const ROW_COLUMNS = COLUMNS.filter((name) => name !== "deleted_at");

const COLUMN_OF = new Map<string, Column>([
  ...PROPERTIES.map(([column, property]) => [property, column] as const),
  ["passwordHash", "password_hash"],
]);
const SET_COLUMNS = Object.keys(toColumns({ url: "", slug: "", ...LINK_DEFAULTS })).filter(
  (column) => column !== "password_hash",
);

/** Links are returned, and stored in events: neither may have the hash of a password. */
export function withoutHash<T extends Partial<LinkFields>>({ passwordHash, ...fields }: T) {
  return { ...fields, ...(passwordHash !== undefined && { hasPassword: passwordHash !== null }) };
}

export function toColumns(fields: Partial<LinkFields>): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [COLUMN_OF.get(name), toValue(name, value)]),
  );
}

function toValue(name: string, value: unknown): Value {
  if (name === "tags") return writeTags(value as string[]);
  const isJson = ["metadata", "rules", "card"].includes(name) && value !== null;
  return isJson ? JSON.stringify(value) : (value as Value);
}

const { domain: _, ...ERASED_FIELDS } = LINK_DEFAULTS;
/** The content of a deleted link, whose row remains to reserve its slug. */
export const ERASED = { ...toColumns(ERASED_FIELDS), searched: "" };

export function toRow(link: Link, domain?: LinkDomain | null): Record<string, Value> {
  const address = addressOf(link.slug, domain);
  const row: Record<string, Value> = { address, searched: searchedText(link), password_hash: null };
  for (const [column, property] of PROPERTIES) row[column] = toValue(property, link[property]);
  return row;
}

/** Returns the link that an actor creates. */
export function newLink(
  organizationId: string,
  actor: Actor,
  id: string,
  { passwordHash, ...fields }: Omit<LinkFields, "passwordHash"> & Partial<Link & LinkFields>,
): Link {
  const now = Date.now();
  const { clicks = 0, botClicks = 0, lastClickedAt = null, createdAt = now } = fields;
  return {
    ...fields,
    clicks,
    botClicks,
    lastClickedAt,
    createdAt,
    hasPassword: typeof passwordHash === "string",
    id,
    organizationId,
    version: 1,
    createdBy: actor.id,
    createdVia: actor.via ?? null,
    updatedAt: now,
    disabledAt: null,
    disabledReason: null,
  };
}

export function toLink(row: LinkRow | undefined): Link | undefined {
  if (!row) return undefined;
  const link: Record<string, unknown> = {};
  for (const [column, property] of PROPERTIES) link[property] = row[column];
  const { tags, metadata, archived, forward_query, forward_path, rules, card, password_hash } = row;
  return {
    ...(link as Link),
    tags: readTags(tags),
    metadata: JSON.parse(metadata),
    archived: Boolean(archived),
    forwardQuery: Boolean(forward_query),
    forwardPath: Boolean(forward_path),
    rules: JSON.parse(rules),
    card: card === null ? null : JSON.parse(card),
    hasPassword: password_hash !== null,
  };
}

/** The size of what a caller stored: the texts among the fields that can be set. */
export function storedBytes(row: Record<string, Value>): number {
  let sum = 0;
  for (const column of SET_COLUMNS) {
    const value = row[column];
    if (typeof value === "string") sum += Buffer.byteLength(value);
  }
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

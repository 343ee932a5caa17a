import type { Link } from "../../../resources/links/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";

/** The fields of the link form. */
export const FIELD_NAMES = [
  "url",
  "slug",
  "title",
  "tags",
  "external_id",
  "expires_at",
  "max_clicks",
  "redirect_type",
] as const;

/** The values of the link form, as text. */
export type LinkFormValues = Record<(typeof FIELD_NAMES)[number], string>;

const CONVERSIONS = new Map<string, (text: string) => unknown>([
  ["url", (text) => text],
  ["slug", (text) => text],
  ["title", emptyToNull],
  ["tags", splitTags],
  ["external_id", emptyToNull],
  ["expires_at", (text) => emptyToNull(text) && toUtcTime(text)],
  ["max_clicks", (text) => emptyToNull(text) && Number(text)],
  ["redirect_type", Number],
  ["archived", (text) => (text === "true" || text === "false" ? text === "true" : text)],
]);

/** Converts submitted fields to the input of the link service, leaving out those that still have their shown value. */
export function toInput(fields: Input, shown?: LinkFormValues): Input {
  const input: Input = {};
  for (const [name, value] of Object.entries(fields)) {
    const text = textFieldOf(value).trim();
    const isOmitted = shown ? text === shown[name as keyof LinkFormValues] : name === "slug" && text === "";
    const convert = CONVERSIONS.get(name);
    if (!isOmitted) input[name] = convert ? convert(text) : value;
  }
  return input;
}

/** Returns the submitted values of the form. */
export function toFormValues(fields: Input): LinkFormValues {
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, textFieldOf(fields[name])])) as LinkFormValues;
}

/** Returns the values of the form for an existing link. */
export function valuesOf(link: Link): LinkFormValues {
  return {
    url: link.url,
    slug: link.slug,
    title: link.title ?? "",
    tags: link.tags.join(", "),
    external_id: link.externalId ?? "",
    expires_at: link.expiresAt === null ? "" : new Date(link.expiresAt).toISOString().slice(0, 16),
    max_clicks: String(link.maxClicks ?? ""),
    redirect_type: String(link.redirectType),
  };
}

function splitTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.trim());
  return tags.filter(Boolean);
}

function emptyToNull(text: string): string | null {
  return text === "" ? null : text;
}

/** Adds the time zone to a time that a browser sends without one: the form says that it is UTC. */
function toUtcTime(text: string): string {
  const time = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?$/.exec(text);
  return time ? `${time[1]}T${time[2]}${time[3] ?? ":00"}Z` : text;
}

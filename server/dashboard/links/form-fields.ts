import type { Link } from "../../resources/ports.ts";
import { type Input, textOf } from "../people/input.ts";

const NAMES = [
  "url",
  "slug",
  "title",
  "tags",
  "external_id",
  "expires_at",
  "max_clicks",
  "redirect_type",
] as const;

/** The form of a link, as it is typed. */
export type LinkForm = Record<(typeof NAMES)[number], string>;

const CONVERSIONS = new Map<string, (text: string) => unknown>([
  ["url", (text) => text],
  ["slug", (text) => text],
  ["title", orNull],
  ["tags", listOf],
  ["external_id", orNull],
  ["expires_at", (text) => orNull(text) && inUtc(text)],
  ["max_clicks", (text) => orNull(text) && Number(text)],
  ["redirect_type", Number],
  ["archived", (text) => (text === "true" || text === "false" ? text === "true" : text)],
]);

/** The fields of a form in the words of the core; what stands there as it was shown is not meant to change. */
export function toInput(fields: Input, shown?: LinkForm): Input {
  const input: Input = {};
  for (const [name, value] of Object.entries(fields)) {
    const text = textOf(value).trim();
    const isLeftOut = shown ? text === shown[name as keyof LinkForm] : name === "slug" && text === "";
    const convert = CONVERSIONS.get(name);
    if (!isLeftOut) input[name] = convert ? convert(text) : value;
  }
  return input;
}

/** What was typed into the form. */
export function typedInto(fields: Input): LinkForm {
  return Object.fromEntries(NAMES.map((name) => [name, textOf(fields[name])])) as LinkForm;
}

/** The form of a link that exists. */
export function formOf(link: Link): LinkForm {
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

function listOf(text: string): string[] {
  const words = text.split(",").map((word) => word.trim());
  return words.filter(Boolean);
}

function orNull(text: string): string | null {
  return text === "" ? null : text;
}

/** A moment as browsers send it, which say nothing of the zone: the page says that it is UTC. */
function inUtc(text: string): string {
  const moment = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?$/.exec(text);
  return moment ? `${moment[1]}T${moment[2]}${moment[3] ?? ":00"}Z` : text;
}

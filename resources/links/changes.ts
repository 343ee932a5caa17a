import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { hasAtMost } from "../http/text.ts";
import { URL_MAX } from "./rules.ts";
import { futureTime, type Link, type LinkInput, singleLine, tags, textOf } from "./schema.ts";
import { withUtm } from "./utm.js";

const UTM_MAX = 255;

const parameter = singleLine(UTM_MAX).nullable();

/** Changes that are made to each of several links. */
export const changesSchema = z
  .strictObject({
    add_tags: tags.describe("Tags to add, after the removal of others."),
    remove_tags: tags.describe("Tags to remove."),
    archived: z.boolean().describe("Whether the links are archived."),
    expires_at: futureTime.nullable().describe("When the links expire, or null for no expiry."),
    replace_in_url: z
      .strictObject({
        find: textOf(1, URL_MAX, `must be 1 to ${URL_MAX} characters`),
        with: textOf(0, URL_MAX, `must be at most ${URL_MAX} characters`),
      })
      .describe("Replaces each occurrence of a text in the destination. Upper and lower case differ."),
    utm: z
      .strictObject({
        source: parameter,
        medium: parameter,
        campaign: parameter,
        term: parameter,
        content: parameter,
      })
      .partial()
      .describe("UTM parameters to set in the destination after the replacement, or null to remove one."),
  })
  .partial()
  .refine((changes) => Object.keys(changes).length > 0, { error: "must have at least one change" });

export type Changes = z.output<typeof changesSchema>;

/** Returns the update of one link, with its tags and its URL only if they become others. */
export function updateOf(link: Pick<Link, "tags" | "url">, changes: Changes): LinkInput {
  const { add_tags = [], remove_tags = [], replace_in_url, utm, ...others } = changes;
  const kept = link.tags.filter((tag) => !remove_tags.includes(tag));
  const tags = [...new Set([...kept, ...add_tags])];
  const url = withParameters(withReplacement(link.url, replace_in_url), utm);
  return {
    ...others,
    ...(!isDeepStrictEqual(tags, link.tags) && { tags }),
    ...(url !== link.url && { url }),
  };
}

function withReplacement(url: string, replacement: Changes["replace_in_url"]): string {
  if (!replacement) return url;
  // In a text, `$&` would stand for what was found.
  return url.replaceAll(replacement.find, () => replacement.with);
}

function withParameters(url: string, utm: Changes["utm"]): string {
  // A replacement can make megabytes of parameters, which are refused by their length.
  if (!utm || !hasAtMost(URL_MAX, url)) return url;
  const parameters = Object.entries(utm).map(([name, value]) => [`utm_${name}`, value ?? ""]);
  return withUtm(url, Object.fromEntries(parameters));
}

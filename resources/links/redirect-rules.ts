import { z } from "zod";
import { stringThat } from "../http/validate.ts";

/** The kinds of device that clicks are counted by. */
export const DEVICES = ["desktop", "mobile", "tablet"] as const;
export type Device = (typeof DEVICES)[number];

/** The operating systems that a rule can ask for, by their names in analytics. */
export const SYSTEMS = [
  "Android",
  "Chrome OS",
  "HarmonyOS",
  "iOS",
  "Linux",
  "macOS",
  "Tizen",
  "WebOS",
  "Windows",
] as const;

/** What a rule can ask of a visitor. */
export type Visitor = {
  device: string | null;
  operatingSystem: string | null;
  /** ISO 3166-1 alpha-2. */
  country: string | null;
  /** As it was sent, without `?`. */
  query: string;
  /** Returns the language that the visitor prefers. Few links have a rule about it. */
  readLanguage(): string | undefined;
};

export const RULES_MAX = 20;
const LANGUAGE_MAX = 35;
// RFC 4647 §2.1: a basic language range, without the wildcard, which every visitor would match.
const LANGUAGE = /^[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*$/;
const COUNTRY = /^[A-Z]{2}$/;
const QUERY_MAX = 255;

const language = stringThat(
  (text) =>
    text.length > LANGUAGE_MAX || !LANGUAGE.test(text)
      ? "must be a language, such as de or pt-BR"
      : undefined,
  { pattern: LANGUAGE.source, maxLength: LANGUAGE_MAX },
);
const country = stringThat(
  (text) => (COUNTRY.test(text) ? undefined : "must be the code of a country in capital letters, such as DE"),
  { pattern: COUNTRY.source },
);
const query = stringThat(
  (text) =>
    text.length > QUERY_MAX || !/^[\x21-\x7e]+$/.test(text) || new URLSearchParams(text).has("")
      ? `must be parameters, such as ref=mail, of at most ${QUERY_MAX} ASCII characters without spaces`
      : undefined,
  { maxLength: QUERY_MAX },
);

/** Builds the schema of a link's rules from those of a destination and of a time. */
export function rulesSchema(destination: z.ZodString, time: z.ZodType<string>) {
  const condition = z
    .strictObject({
      device: z.enum(DEVICES),
      os: z.enum(SYSTEMS),
      language,
      country,
      query,
      after: time,
      before: time,
    })
    .partial()
    .refine((conditions) => Object.keys(conditions).length > 0, { error: "must have a condition" })
    .refine(({ after, before }) => !(after && before) || Date.parse(after) < Date.parse(before), {
      error: "must be later than after",
      path: ["before"],
    })
    .transform(({ after, before, ...others }) => ({
      ...others,
      ...(after !== undefined && { after: new Date(after).toISOString() }),
      ...(before !== undefined && { before: new Date(before).toISOString() }),
    }));
  return z
    .array(z.strictObject({ if: condition, url: destination }), { error: "must be an array of rules" })
    .max(RULES_MAX, { error: `must have at most ${RULES_MAX} rules` });
}

export const shownRules = z.array(
  z.object({
    if: z
      .object({
        device: z.enum(DEVICES),
        os: z.enum(SYSTEMS),
        language: z.string().describe("The language that the visitor prefers: `de` stands for `de-AT`, too."),
        country: z.string().describe("ISO 3166-1 alpha-2."),
        query: z.string().describe("Parameters that the visitor adds. One without a value may have any."),
        after: z.iso.datetime().describe("Inclusive."),
        before: z.iso.datetime().describe("Exclusive."),
      })
      .partial()
      .describe("All of these have to hold."),
    url: z.string(),
  }),
);

export type Rule = z.output<typeof shownRules>[number];

/** Returns where the first rule that applies to a visitor leads. */
export function destinationOf(rules: Rule[], visitor: Visitor, now: number): string | undefined {
  return rules.find((rule) => applies(rule, visitor, now))?.url;
}

function applies({ if: wanted }: Rule, visitor: Visitor, now: number): boolean {
  const { device, os, country, language, query, after, before } = wanted;
  return (
    (device === undefined || device === visitor.device) &&
    (os === undefined || os === visitor.operatingSystem) &&
    (country === undefined || country === visitor.country) &&
    (after === undefined || now >= Date.parse(after)) &&
    (before === undefined || now < Date.parse(before)) &&
    (query === undefined || hasParameters(visitor.query, query)) &&
    (language === undefined || isInRange(visitor.readLanguage(), language))
  );
}

/** RFC 4647 §3.3.1: `de` matches `de` and `de-AT`, in any letter case. */
function isInRange(tag: string | undefined, range: string): boolean {
  return `${tag}-`.toLowerCase().startsWith(`${range}-`.toLowerCase());
}

/** Returns whether a query has all parameters that are wanted; one without a value may have any. */
function hasParameters(query: string, wanted: string): boolean {
  const sent = new URLSearchParams(query);
  return [...new URLSearchParams(wanted)].every(([name, value]) =>
    value === "" ? sent.has(name) : sent.getAll(name).includes(value),
  );
}

/** Returns the value of `Vary` for a redirect with these rules: what they read of a request but its URL. */
export function varyOf(rules: Rule[]): string {
  const reads = (...names: (keyof Rule["if"])[]) =>
    rules.some((rule) => names.some((name) => rule.if[name] !== undefined));
  // The country may follow from the visitor's address, which no header has (RFC 9110 §12.5.5).
  if (reads("country")) return "*";
  const headers = [reads("device", "os") && "User-Agent", reads("language") && "Accept-Language"];
  return headers.filter(Boolean).join(", ");
}

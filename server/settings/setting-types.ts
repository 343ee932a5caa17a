import { z } from "zod";
import { isPublicUrl } from "../../resources/outbound/public-url.ts";

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** An integer within limits. @param error says what is allowed */
export const integer = (least: number, most: number, error: string) =>
  z
    .string()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error });

export const port = integer(0, 65_535, "must be a port from 0 to 65535");

/** An integer without an upper limit. */
export const count = (least: number) =>
  integer(least, Number.MAX_SAFE_INTEGER, `must be an integer of at least ${least}`);

/** `on` or `off`, as a boolean. */
export const toggle = (fallback: "on" | "off") =>
  z
    .enum(["on", "off"], { error: "must be on or off" })
    .default(fallback)
    .transform((word) => word === "on");

/** A text that a function validates; it returns what is wrong as a predicate. */
export const validated = (rule: (text: string) => string | undefined) =>
  z.string().check((context) => {
    const message = rule(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

const list = z
  .string()
  .default("")
  .transform((text) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  );

/** Values separated by commas that a function validates one by one; it returns whether a value is valid. */
const listOf = (isValid: (text: string) => boolean, what: string) =>
  list.check((context) => {
    for (const text of context.value) {
      if (isValid(text)) continue;
      context.issues.push({ code: "custom", input: text, message: `${text} is not ${what}` });
    }
  });

/** Origins, separated by commas. */
export const origins = listOf(
  (text) => URL.parse(text)?.origin === text,
  "an origin, such as https://app.example.com",
);

/** Hosts, each with or without a port, separated by commas. */
export const hosts = listOf((text) => {
  const { host = "" } = /^(?<host>\[.*\]|[^:]*)(:\d{1,5})?$/.exec(text)?.groups ?? {};
  return host !== "" && URL.parse(`http://${host}`)?.hostname === host;
}, "a host or host:port").transform((texts): ReadonlySet<string> => new Set(texts));

/** An http or https URL that a function validates; it returns what is wrong as a predicate. */
export const httpUrl = (rule: (url: URL, text: string) => string | undefined) =>
  z.string().check((context) => {
    const url = URL.parse(context.value);
    const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
    const message = url && isHttp ? rule(url, context.value) : "must be an http or https URL";
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

/** Returns whether a URL has neither query, fragment nor credentials. */
export const isPlain = (url: URL) => !url.search && !url.hash && !url.username && !url.password;

export const requireHttps = (url: URL) =>
  url.protocol === "https:" || LOOPBACK.has(url.hostname)
    ? undefined
    : "must use https; http is for loopback hosts only";

export const requireOrigin = (url: URL, text: string) =>
  isPlain(url) && text === url.origin
    ? undefined
    : "must be an origin: scheme and host in lower case, without a path or trailing slash";

export const contact = z
  .string()
  .refine((text) => /^(mailto:[^@\s]+@|https:\/\/)[^\s@]+$/.test(text) && URL.canParse(text), {
    error: "must be a mailto: or https: URI",
  });

/** A number from 0 to 1. */
export const share = z
  .string()
  .refine((text) => /^(0|1|0?\.\d+|[01]\.0+)$/.test(text), { error: "must be a number from 0 to 1" })
  .transform(Number);

/** Which metadata documents of clients are accepted. */
export type AcceptedDocuments = {
  accepted: "known" | "any" | "off";
  /** The URLs that the operator added to the known ones. */
  addresses: ReadonlySet<string>;
};

/** `known`, which URLs of further documents may follow, separated by commas; `any` or `off`. */
export const metadataDocuments = z.string().transform((text, context): AcceptedDocuments => {
  const [accepted, ...addresses] = text.split(",").map((item) => item.trim());
  const isKind = accepted === "known" || accepted === "any" || accepted === "off";
  const wrong = addresses.find((address) => !isPublicUrl(address) || URL.parse(address)?.href !== address);
  if (isKind && wrong === undefined && (accepted === "known" || addresses.length === 0))
    return { accepted, addresses: new Set(addresses) };
  const message =
    isKind && accepted === "known"
      ? `${wrong} is not the https URL of a metadata document`
      : "must be known, any or off; only known may be followed by URLs";
  context.issues.push({ code: "custom", input: text, message });
  return z.NEVER;
});

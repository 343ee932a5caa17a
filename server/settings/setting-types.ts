import { existsSync } from "node:fs";
import { z } from "zod";
import { checkText } from "../../resources/http/validate.ts";
import { isPublicUrl } from "../../resources/outbound/ssrf-guard.ts";
import { PLANS, type Plan } from "../../resources/plans.ts";
import { tryTo } from "../../resources/try-to.ts";

/** An address to listen on, or its name. */
export const listenHost = z.string().regex(/^[\w.:%-]+$/, { error: "must be an IP address or a host name" });

/** Hosts of this machine, as URLs have them. */
export const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

export const integer = (least: number, most: number, error: string) =>
  z
    .string()
    .regex(/^\d+$/, { error, abort: true })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error });

export const port = integer(0, 65_535, "must be a port from 0 to 65535");

export const seconds = (least: number, most: number) =>
  integer(least, most, `must be a number of seconds from ${least} to ${most}`);

export const count = (least: number) =>
  integer(least, Number.MAX_SAFE_INTEGER, `must be an integer of at least ${least}`);

const or = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”

export const choice = <const Values extends readonly string[]>(...values: Values) =>
  z.enum(values, { error: `must be ${or.format(values)}` });

export const toggle = choice("on", "off")
  .default("on")
  .transform((word) => word === "on");

/** The function returns what is wrong as a predicate. */
export const validated = (rule: (text: string) => string | undefined) => z.string().check(checkText(rule));

const list = z
  .string()
  .default("")
  .transform((text) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  );

/** Returns an item of a list for an error. Before an @, there may be a password. */
const withoutSecret = (text: string) => text.replace(/^.*@/s, "…@");

const listOf = (isValid: (text: string) => boolean, what: string) =>
  list.check((context) => {
    for (const text of context.value) {
      if (isValid(text)) continue;
      context.issues.push({ code: "custom", input: text, message: `${withoutSecret(text)} is not ${what}` });
    }
  });

export const origins = listOf(
  (text) => URL.parse(text)?.origin === text,
  "an origin, such as https://app.example.com",
);

export const hosts = listOf((text) => {
  const { host = "" } = /^(?<host>\[.*\]|[^:]*)(:\d{1,5})?$/.exec(text)?.groups ?? {};
  return host !== "" && URL.parse(`http://${host}`)?.hostname === host;
}, "a host or host:port").transform((texts): ReadonlySet<string> => new Set(texts));

/** The function returns what is wrong as a predicate. */
export const httpUrl = (rule: (url: URL, text: string) => string | undefined) =>
  validated((text) => {
    const url = URL.parse(text);
    const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
    return url && isHttp ? rule(url, text) : "must be an http or https URL";
  });

export const isPlain = (url: URL) => !url.search && !url.hash && !url.username && !url.password;

export const requireHttps = (url: URL) =>
  url.protocol === "https:" || LOOPBACK.has(url.hostname)
    ? undefined
    : "must use https; http is for loopback hosts only";

export const secureOrigin = httpUrl((url, text) =>
  isPlain(url) && text === url.origin
    ? requireHttps(url)
    : "must be an origin: scheme and host in lower case, without a path or trailing slash",
);

export const longSecret = z.string().min(32, { error: "must be at least 32 characters long" });

export const keyFile = z.string().refine((text) => parseEncryptionKeys(text) === undefined, {
  error: "must be the path of a file, not a key",
});

// RFC 9110 §5.1: a field name is a token. Node.js writes the names of headers in lower case.
export const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~\w-]+$/, { error: "must be the name of a header, such as CF-IPCountry" })
  .transform((name) => name.toLowerCase());

export const contact = z
  .string()
  .refine((text) => /^(mailto:[^@\s]+@|https:\/\/)[^\s@]+$/.test(text) && URL.canParse(text), {
    error: "must be a mailto: or https: URI",
  });

export const share = z
  .string()
  .refine((text) => /^(0|1|0?\.\d+|[01]\.0+)$/.test(text), { error: "must be a number from 0 to 1" })
  .transform(Number);

const DAYS_BY_PLAN = /^([1-9]\d{0,4}|(\s*(free|growth|premium)=[1-9]\d{0,4}\s*(,(?=.)|$))+)$/;
const DAYS_RULE =
  "must be a number of days from 1 to 99999, or one for each plan, such as free=30,growth=90,premium=365";

/** A number of days for every plan, or for those that differ from the default. */
export const daysByPlan = (otherwise: string) =>
  z
    .string()
    .trim()
    .regex(DAYS_BY_PLAN, { error: DAYS_RULE })
    .transform((text) => {
      const days = Object.fromEntries(text.split(",").map((item) => item.trim().split("=")));
      const ofOthers = text.includes("=") ? otherwise : text;
      const entries = PLANS.map((plan) => [plan, Number(days[plan] ?? ofOthers)]);
      return Object.fromEntries(entries) as Record<Plan, number>;
    });

export type AcceptedDocuments = { accepted: "known" | "any" | "off"; addresses: ReadonlySet<string> };

/** `known`, which URLs of further documents may follow, separated by commas; `any` or `off`. */
export const metadataDocuments = z.string().transform((text, context): AcceptedDocuments => {
  const [accepted, ...addresses] = text.split(",").map((item) => item.trim());
  const isKind = accepted === "known" || accepted === "any" || accepted === "off";
  const wrong = addresses.find((address) => !isPublicUrl(address) || URL.parse(address)?.href !== address);
  if (isKind && wrong === undefined && (accepted === "known" || addresses.length === 0))
    return { accepted, addresses: new Set(addresses) };
  const message =
    isKind && accepted === "known"
      ? `${withoutSecret(wrong as string)} is not the https URL of a metadata document`
      : "must be known, any or off; only known may be followed by URLs";
  context.issues.push({ code: "custom", input: text, message });
  return z.NEVER;
});

const KEY_BYTES = 32;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Returns undefined if a text isn't a list of encryption keys. */
export function parseEncryptionKeys(text: string): Buffer[] | undefined {
  const parts = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter(Boolean);
  const keys = parts.map((part) => Buffer.from(BASE64URL.test(part) ? part : "", "base64url"));
  const isValid = keys.length > 0 && keys.every(({ length }) => length === KEY_BYTES);
  return isValid ? keys : undefined;
}

/** Returns whether drivers can decode the parts of a URL. */
export function isDecodable(url: string): boolean {
  return tryTo(() => decodeURIComponent(url)) !== undefined;
}

export type SmtpServer = {
  host: string;
  port: number;
  secure: boolean;
  /** Whether the connection must be upgraded with STARTTLS (RFC 3207) before anything is sent. */
  requireTLS: boolean;
  auth?: { user: string; pass: string };
};

const PORTS = { "smtp:": 587, "smtps:": 465 };

function validateSmtpUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url?.hostname || !(url.protocol in PORTS))
    return "must be smtp://<host>:<port> or smtps://<host>:<port>, with the username and password before the host";
  if (url.search || url.hash || !["", "/"].includes(url.pathname))
    return "must have no path, query or fragment";
  if (Boolean(url.username) !== Boolean(url.password)) return "must have both a username and a password";
  if (!isDecodable(text)) return "must have a % only in encoded characters, such as %25";
  return undefined;
}

/** Parses a valid `SMTP_URL`. Only a server on this machine may be used without TLS. */
export function parseSmtpUrl(text: string): SmtpServer {
  const url = new URL(text);
  const { protocol, username, password } = url;
  const secure = protocol === "smtps:";
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port) || PORTS[protocol as keyof typeof PORTS],
    secure,
    requireTLS: !secure && !LOOPBACK.has(url.hostname),
    ...(username && { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  };
}

// One address, with or without a name. No line breaks, which would add headers, and no lists.
const ADDRESS = '[^<>\\s@,;:"\\p{Cc}]{1,64}@[A-Za-z0-9.-]{1,190}';
const SENDER = new RegExp(`^(${ADDRESS}|[^<>@,;:"\\p{Cc}]{1,100} <${ADDRESS}>)$`, "u");

function validateSender(text: string): string | undefined {
  return SENDER.test(text) ? undefined : "must be an email address, such as linkgate <noreply@example.com>";
}

export const smtpUrl = validated(validateSmtpUrl);
export const sender = validated(validateSender);

const FILE = "must name a file, and have no parameter but ?synchronous=full or ?synchronous=normal";
const ONE_HOST =
  "must name one host, which leads to the primary: put HAProxy in front of several, with Patroni's /primary as its check (docs/operate/high-availability.md)";

// libpq and JDBC choose among several hosts by these. The drivers of Node.js ignore them.
const CHOOSES_HOST = /^(target_?session_?attrs|target_?server_?type|load_?balance_?hosts)$/i;

/** The setting `DATABASE_URL`. Its errors contain no part of it, which may be a password. */
export const databaseUrl = validated((text) => {
  if (text.startsWith("sqlite:"))
    return /^sqlite:[^?]+(\?synchronous=(full|normal))?$/i.test(text) ? undefined : FILE;
  const [, scheme, hosts = ""] =
    /^(postgres(?:ql)?|mysql|mariadb):\/\/(?:[^/?#]*@)?([^/?#@]*)/.exec(text) ?? [];
  if (!scheme) return "must start with sqlite:, postgres:// or mysql://";
  if (/,|%2c/i.test(hosts)) return ONE_HOST;
  const isPostgres = scheme.startsWith("postgres");
  // The driver of PostgreSQL accepts a URL without a host, and a % that encodes nothing.
  const accepted = isPostgres ? text.replace("@/", "@x/").replaceAll(/%(?![\da-f]{2})/gi, "%25") : text;
  const url = URL.parse(accepted);
  if (!url || url.pathname.includes("@") || !isDecodable(accepted))
    return "must be <scheme>://<user>:<password>@<host>:<port>/<database>, with special characters percent-encoded";
  for (const [name, value] of url.searchParams) {
    if (CHOOSES_HOST.test(name) || (name === "host" && value.includes(","))) return ONE_HOST;
    if (isPostgres && /^ssl(cert|key|rootcert)$/.test(name) && !existsSync(value))
      return `must name a file that exists in ${name}`;
    // The driver of MySQL accepts an object, or nothing.
    const isOption =
      /^(Amazon RDS)?$/.test(value) || tryTo(() => typeof (JSON.parse(value) || {})) === "object";
    if (!isPostgres && name === "ssl" && !isOption)
      return 'must have a JSON object in ssl, such as {"rejectUnauthorized":true}';
  }
  return undefined;
});

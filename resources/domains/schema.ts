import { getDomain } from "tldts";
import { z } from "zod";
import { pageOf } from "../http/pagination.ts";
import { type CamelCase, hasAtMost } from "../http/text.ts";
import { toJson } from "../http/to-json.ts";
import { stringThat } from "../http/validate.ts";
import { HOST_MAX, type ReservedNames, toHost, URL_MAX, validateDestination } from "../links/rules.ts";

// RFC 1035 §2.3.4: a name is longer, and this label comes before it.
const LABEL = "_linkgate";
const APP_LINKS_MAX = 20_000;

const HOST_RULE = "must be the host of a domain, for example go.example.com, without https:// and a path";
// RFC 1123 §2.1.
const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export type DomainRules = ReservedNames & {
  /** Whether hosts below `localhost` may be used, with a port. */
  allowsLocalhost: boolean;
};

/** Whether a host is one of this machine (RFC 6761 §6.3), which no DNS record can prove. */
export function isLocalhost(host: string): boolean {
  return /\.localhost(?::\d+)?$/.test(host);
}

function isHost(text: string): boolean {
  const [name = "", port = "0", ...others] = text.split(":");
  const labels = name.split(".");
  // What ends in a number can only be an IPv4 address (WHATWG URL, "ends in a number").
  const isNamed = labels.length > 1 && /^[a-z]/.test(labels.at(-1) ?? "");
  return (
    others.length === 0 &&
    isNamed &&
    labels.every((label) => HOST_LABEL.test(label)) &&
    /^\d{1,5}$/.test(port)
  );
}

function validateHost(text: string, { ownHosts, allowsLocalhost }: DomainRules): string | undefined {
  if (!hasAtMost(HOST_MAX, text)) return `must be at most ${HOST_MAX} characters`;
  const host = toHost(text);
  if (!isHost(host) || `${LABEL}.${host}`.length > HOST_MAX) return HOST_RULE;
  if (ownHosts.has(host)) return "must not be a host of this service";
  if (isLocalhost(host)) return allowsLocalhost ? undefined : "must be public";
  if (host.includes(":")) return "must not have a port";
  if (/\.(?:local|internal)$/.test(host)) return "must be public";
  if (getDomain(host, { allowPrivateDomains: true }) === null)
    return "must not be a public suffix, below which others register their domains";
  return undefined;
}

const document = <Schema extends z.ZodType>(schema: Schema) =>
  schema.refine((value) => JSON.stringify(value).length <= APP_LINKS_MAX, {
    error: `must be at most ${APP_LINKS_MAX.toLocaleString("en")} characters of JSON`,
  });

const appLinks = z.strictObject({
  apple_app_site_association: document(z.record(z.string(), z.unknown()))
    .nullable()
    .default(null)
    .describe("Served as `/.well-known/apple-app-site-association`."),
  assetlinks: document(z.array(z.record(z.string(), z.unknown())))
    .nullable()
    .default(null)
    .describe("Served as `/.well-known/assetlinks.json`."),
});

export function domainSchemas(rules: DomainRules) {
  const url = stringThat((text) => validateDestination(text, rules), { format: "uri", maxLength: URL_MAX });
  const settings = {
    default: z.boolean().describe("Whether new links without a `domain` get this one."),
    root_redirect_url: url.nullable().describe("Where visitors of the host itself go. `null` for a 404."),
    not_found_url: url.nullable().describe("Where visitors go who find no link. `null` for a 404."),
    fallback_url: url
      .nullable()
      .describe(
        "Where visitors of unavailable links without a `fallback_url` go. `null` for that of the organization.",
      ),
    app_links: appLinks.describe("What connects the domain with apps on iOS and Android."),
  };
  const host = stringThat((text) => validateHost(text, rules), { maxLength: HOST_MAX })
    .overwrite(toHost)
    .describe("The host, such as go.example.com.");
  const case_sensitive = z
    .boolean()
    .describe("Whether Sale and sale are two slugs. Can't be changed later. Defaults to true.");
  const create = z
    .strictObject({ host, ...z.strictObject({ case_sensitive, ...settings }).partial().shape })
    .meta({ title: "NewDomain", examples: [{ host: DOMAIN_EXAMPLE.host }] });
  const update = z
    .strictObject(settings)
    .partial()
    .meta({ title: "DomainChanges", examples: [{ root_redirect_url: "https://example.com/" }] });
  return { create, update };
}

export const DOMAIN_EXAMPLE = {
  id: "dom_01JAV4T9Q5YQ8Z6K3W2N7R1XCE",
  host: "go.example.com",
  verified: true,
  dns: { type: "TXT" as const, name: "_linkgate.go.example.com", value: "8kq2Zt1vH0mYcXrW5nB7uQ" },
  record_lost_at: null,
  default: false,
  root_redirect_url: "https://example.com/",
  not_found_url: null,
  fallback_url: null,
  case_sensitive: true,
  app_links: { apple_app_site_association: null, assetlinks: null },
  created_at: "2026-02-28T12:00:00.000Z",
  updated_at: "2026-02-28T12:00:00.000Z",
};

const time = z.iso.datetime();

export const domainSchema = z
  .object({
    id: z.string(),
    host: z.string(),
    verified: z.boolean().describe("Whether the host serves the links of the organization."),
    dns: z
      .object({ type: z.literal("TXT"), name: z.string(), value: z.string() })
      .describe("The DNS record that verifies the domain, and has to stay."),
    record_lost_at: time
      .nullable()
      .describe(
        "Since when the record of a verified domain is missing. After 7 days, another organization that proves the host gets it.",
      ),
    default: z.boolean().describe("Whether new links without a `domain` get this one."),
    root_redirect_url: z.string().nullable(),
    not_found_url: z.string().nullable(),
    fallback_url: z.string().nullable(),
    case_sensitive: z.boolean(),
    app_links: z.object({
      apple_app_site_association: z.record(z.string(), z.unknown()).nullable(),
      assetlinks: z.array(z.record(z.string(), z.unknown())).nullable(),
    }),
    created_at: time,
    updated_at: time,
  })
  .meta({ title: "Domain", examples: [DOMAIN_EXAMPLE] });

export const domainPageSchema = pageOf(domainSchema, "DomainPage", DOMAIN_EXAMPLE);

export type DomainView = z.output<typeof domainSchema>;
type Schemas = ReturnType<typeof domainSchemas>;
export type DomainInput = z.output<Schemas["create"]>;

/** A domain of an organization. Times are epoch milliseconds, and every change increments `version`. */
export type Domain = { organizationId: string; token: string; version: number; lostAt: number | null } & {
  [Name in keyof Omit<DomainView, "dns" | "record_lost_at"> as CamelCase<Name>]: Name extends `${string}_at`
    ? number
    : DomainView[Name];
};

export type DomainFields = Pick<Domain, CamelCase<keyof DomainInput>>;
export type DomainChanges = { [Field in keyof Omit<DomainFields, "host">]?: DomainFields[Field] | undefined };

export function toView(domain: Domain): DomainView {
  const { host, token: value, lostAt: recordLostAt } = domain;
  return toJson(domainSchema, {
    ...domain,
    dns: { type: "TXT", name: recordName(host), value },
    recordLostAt,
  });
}

/** Returns the name of the TXT record that verifies a host. */
export function recordName(host: string): string {
  return `${LABEL}.${host}`;
}

/** Another domain that becomes the default changes this one, too. */
export function domainTag({ version, ...domain }: Pick<Domain, "version" | "default">): string {
  return domain.default ? `"${version}-default"` : `"${version}"`;
}

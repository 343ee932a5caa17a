import { z } from "zod";
import type { NewTrustRule } from "../../adapters/organizations/trust-rules.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { API_SCOPES } from "../../resources/access/scopes.ts";
import { isLine, isUnbroken } from "../../resources/http/text.ts";
import { checkText, validate } from "../../resources/http/validate.ts";
import { type AllowedHosts, isAllowedHost, mayBePublic } from "../../resources/outbound/ssrf-guard.ts";
import { validateCharacters } from "../credentials/names.ts";
import type { Settings } from "../settings/config.ts";
import { developmentHosts, fetchableHosts } from "../settings/public-urls.ts";
import type { Platform, PlatformField } from "./platforms.ts";

const ISSUER_MAX = 255;
// https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc: addresses for the users of any tenant.
const OF_NO_TENANT = /^https:\/\/login\.microsoftonline\.com\/(common|organizations|consumers)(\/|$)/i;

const NAME_MAX = 100;
const VALUE_MAX = 255;
const MAX_CLAIMS = 10;
// They have fields of their own, or are checked in every token.
const RESERVED_CLAIMS = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti"];

type RuleContext = {
  /** The audience of rules that name none. */
  audience: string;
  fetchable: AllowedHosts;
  plain: AllowedHosts;
};

export function ruleContextOf(settings: Settings, urls: PublicUrls): RuleContext {
  return { audience: urls.base, fetchable: fetchableHosts(settings), plain: developmentHosts(settings) };
}

/** The schema of a rule on a server. */
export function trustRuleSchema({ audience, fetchable, plain }: RuleContext) {
  return z
    .strictObject({
      ...namedRule,
      issuer: z
        .string({ error: "must be a string" })
        .check(checkText((text) => validateIssuer(text, { fetchable, plain }))),
      subject: line(VALUE_MAX).check(checkText(validateSubject)),
      audience: line(VALUE_MAX).default(audience),
      claims: claimsSchema.default({}),
    })
    .check((context) => {
      const hasIssue = context.issues.some(({ path }) => path?.[0] === "subject");
      const message = hasIssue ? undefined : findStrangers(context.value);
      if (message) context.issues.push({ code: "custom", input: context.value, message, path: ["subject"] });
    })
    .meta({ title: "NewTrustRule" });
}

/** Composes a rule from the fields of a platform. Throws Problem 422 with an error for each invalid field. */
export function composeTrustRule(
  platform: Platform,
  input: Record<string, unknown>,
): Record<string, unknown> {
  return validate(platformSchema(platform), platform.prepare?.(input) ?? input);
}

/** The composed rule has the audience of this server. */
function platformSchema({ fields, compose }: Platform) {
  const shape = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, platformField(field)]),
  );
  return z.strictObject({ ...shape, ...namedRule }).transform(({ name, scopes, ...texts }, context) => {
    const refuse = (field: string, message: string) =>
      context.issues.push({ code: "custom", input: texts, message, path: [field] });
    const { issuer, subject, claims } = compose(texts as Record<string, string>, refuse);
    if (subject.length > VALUE_MAX)
      refuse("ref", `must be shorter: the subject may have ${VALUE_MAX} characters`);
    return { name, scopes, issuer, subject, claims };
  });
}

function platformField(field: PlatformField) {
  if ("options" in field) {
    const values = Object.keys(field.options);
    return z.enum(values, { error: `must be one of ${values.join(", ")}` });
  }
  const { pattern, message, isOptional } = field;
  const text = z.string({ error: "must be a string" }).trim();
  return isOptional
    ? text.refine((value) => value === "" || pattern.test(value), { error: message }).default("")
    : text.regex(pattern, { error: message });
}

const SCOPES = `must be a list of one or more of ${API_SCOPES.join(", ")}`;
// Enough for duplicates, which are dropped.
const MAX_SCOPES = 20;

/** The fields that every rule has. The others depend on the platform. */
const namedRule = {
  name: line(NAME_MAX, validateCharacters),
  scopes: z
    .array(z.enum(API_SCOPES, { error: SCOPES }), { error: SCOPES })
    .min(1, { error: SCOPES })
    .max(MAX_SCOPES, { error: SCOPES })
    .transform((scopes) => API_SCOPES.filter((scope) => scopes.includes(scope))),
};

/** One line of text without spaces at its ends: databases and forms don't keep them reliably. */
function line(max: number, validateText: (text: string) => string | undefined = () => undefined) {
  const range = { error: `must be 1 to ${max} characters long` };
  return z
    .string({ error: "must be a string" })
    .min(1, range)
    .max(max, range)
    .refine((text) => isLine(text) && text.trim() === text, {
      error: "must be one line without spaces at the beginning and the end",
      abort: true,
    })
    .check(checkText(validateText));
}

const claimsSchema = z
  .record(z.string(), z.unknown(), { error: "must be an object" })
  .transform((claims, context) => {
    const entries = Object.entries(claims);
    if (entries.length > MAX_CLAIMS) context.addIssue(`must have at most ${MAX_CLAIMS} claims`);
    for (const [name, value] of entries.slice(0, MAX_CLAIMS)) {
      const message = validateClaim(name, value);
      if (message) context.addIssue({ code: "custom", message, path: [name] });
    }
    return claims as Record<string, string>;
  });

function validateClaim(name: string, value: unknown): string | undefined {
  if (!isValue(name, NAME_MAX)) return `must have a name of 1 to ${NAME_MAX} characters`;
  if (RESERVED_CLAIMS.includes(name))
    return "must be a claim other than iss, sub, aud, exp, nbf, iat and jti";
  if (typeof value !== "string") return "must be a string";
  if (!isValue(value, VALUE_MAX)) return `must have a value of 1 to ${VALUE_MAX} characters`;
  return undefined;
}

function isValue(text: unknown, max: number): text is string {
  return typeof text === "string" && text.length > 0 && text.length <= max && isLine(text);
}

/** A `*` matches the rest of the subject, so only one at the end means what it says. */
function validateSubject(subject: string): string | undefined {
  if (subject === "*") return "must name a subject; * would match every token of the issuer";
  if (subject.slice(0, -1).includes("*")) return "must have a * at the end only";
  return undefined;
}

/** Refuses what could never be fetched, because issuer metadata is fetched by the same rules. */
function validateIssuer(
  text: string,
  { fetchable, plain }: Omit<RuleContext, "audience">,
): string | undefined {
  if (text.length > ISSUER_MAX) return `must be at most ${ISSUER_MAX} characters`;
  const url = URL.parse(text);
  if (!url || !isUnbroken(text) || text.includes("\\") || !/^https?:\/\/[^/]/.test(text))
    return "must be an https URL, exactly as in the iss claim of the tokens";
  if (url.username || url.password) return "must not contain a username or password";
  if (OF_NO_TENANT.test(text))
    return "must have the ID of your tenant: tokens name it, and never this address";
  // RFC 8414 §2
  if (text.includes("?") || text.includes("#")) return "must not contain a query or a fragment";
  if (url.protocol === "http:" && !isAllowedHost(url, plain)) return "must be an https URL";
  if (isAllowedHost(url, fetchable)) return undefined;
  if (url.port) return "must use port 443";
  return mayBePublic(url.hostname)
    ? undefined
    : "must be on the public internet: its keys are fetched from there";
}

const ORGANIZATION = /^organization:[^:*]+:/;
const TERRAFORM = {
  prefix: ORGANIZATION,
  example: "organization:ORGANIZATION:*",
  claims: [
    "terraform_organization_id",
    "terraform_organization_name",
    "terraform_project_id",
    "terraform_workspace_id",
  ],
};

// Anyone can get tokens of these issuers, so a subject must not match those of others. On GitHub, even a complete subject
// may name no owner: each repository chooses the claims that its subjects consist of, such as `environment:production`.
const SHARED_ISSUERS: Record<string, { prefix: RegExp; example: string; claims: string[] }> = {
  "https://token.actions.githubusercontent.com": {
    prefix: /^repo:[^/*]+\//,
    example: "repo:OWNER/*",
    claims: ["repository", "repository_id", "repository_owner", "repository_owner_id"],
  },
  "https://gitlab.com": {
    prefix: /^project_path:[^/*]+\//,
    example: "project_path:GROUP/*",
    claims: ["project_path", "project_id", "namespace_path", "namespace_id"],
  },
  // https://developer.hashicorp.com/terraform/cloud-docs/workspaces/dynamic-provider-credentials/workload-identity-tokens
  "https://app.terraform.io": TERRAFORM,
  "https://app.eu.terraform.io": TERRAFORM,
  // https://buildkite.com/docs/agent/cli/reference/oidc. Pipelines can choose an ID as their subject.
  "https://agent.buildkite.com": {
    prefix: ORGANIZATION,
    example: "organization:ORGANIZATION:*",
    claims: ["organization_slug", "organization_id", "pipeline_id"],
  },
  // https://vercel.com/docs/oidc/api: the issuer of teams that have not chosen one of their own.
  "https://oidc.vercel.com": {
    prefix: /^owner:[^:*]+:/,
    example: "owner:TEAM:*",
    claims: ["owner", "owner_id", "project_id"],
  },
  // https://developers.google.com/identity/openid-connect/openid-connect: the subject is the number of one account.
  "https://accounts.google.com": {
    prefix: /^\d+$/,
    example: "102345678901234567890",
    claims: ["email", "hd"],
  },
};

type Trusted = Pick<NewTrustRule, "issuer" | "subject" | "claims">;

/** Returns why a rule would accept tokens of strangers; undefined if it wouldn't, or if that can't be known. */
export function findStrangers({ issuer, subject, claims }: Trusted): string | undefined {
  const shared = Object.hasOwn(SHARED_ISSUERS, issuer) ? SHARED_ISSUERS[issuer] : undefined;
  if (!shared || shared.prefix.test(subject)) return undefined;
  if (shared.claims.some((name) => Object.hasOwn(claims, name))) return undefined;
  return `must name the owner, as in ${shared.example}: every user of the platform shares this issuer`;
}

import type { JWTPayload } from "jose";
import type { Client, KoaContextWithOIDC } from "oidc-provider";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import type { TrustRule, TrustRuleStore } from "../../adapters/organizations/trust-rules.ts";
import { API_SCOPES, type ApiScope } from "../../resources/access/scopes.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { organizationOf } from "../clients/client-metadata.ts";

/** The lifetime of access tokens for workloads. They need no refresh token: their platform gives them new tokens. */
export const WORKLOAD_TOKEN_LIFETIME_S = 900;

// GitLab's tokens last for the timeout of the job, one hour by default, and Kubernetes renews its own before.
const MAX_AGE_S = 3600;
// The length of the longest subject and audience that a rule can have.
const SHOWN_MAX = 255;
// Precise enough for display.
const LAST_USE_INTERVAL_MS = 60_000;

/** A workload that was authenticated by the token of its platform. */
export type Workload = {
  /** What the matching trust rules allow. */
  scopes: ApiScope[];
  /** Uses up the token. @throws InvalidJwt if it was used before, on any process */
  useOnce(): Promise<void>;
};

/**
 * Authenticates a client by the token of a workload, which another issuer signed.
 * @throws InvalidJwt if the token is invalid, or if no trust rule of the client matches it
 */
export type AuthenticateWorkload = (
  ctx: KoaContextWithOIDC,
  client: Client,
  given: { assertion: string; issuer: unknown },
) => Promise<Workload>;

type Options = { trustRules: TrustRuleStore; replays: ReplayStore; keySets: KeySets };

/** Creates the authentication of workloads. */
export function createAuthenticateWorkload({ trustRules, replays, keySets }: Options): AuthenticateWorkload {
  return async (ctx, client, { assertion, issuer }) => {
    requireClientCredentials(ctx);
    const { id } = organizationOf(client) ?? {};
    if (id === undefined || typeof issuer !== "string") throw untrustedIssuer();
    const rules = await trustRules.listByIssuer(id, issuer);
    // Keys are fetched only of issuers that the organization has named.
    if (rules.length === 0) throw untrustedIssuer();
    const verified = await verify(keySets, assertion, issuer, rules);
    const matching = rules.filter((rule) => findMismatch(rule, verified.claims) === undefined);
    if (matching.length === 0) throw describeMismatch(rules, verified);
    return {
      scopes: API_SCOPES.filter((scope) => matching.some(({ scopes }) => scopes.includes(scope))),
      async useOnce() {
        await useJwtOnce(replays, assertion, verified);
        await recordUse(trustRules, matching);
      },
    };
  };
}

/** In other requests, the client could do more than the rules allow. */
function requireClientCredentials({ oidc }: KoaContextWithOIDC): void {
  if (oidc.route === "token" && oidc.params?.grant_type === "client_credentials") return;
  throw new InvalidJwt("the token of a workload is accepted for client_credentials and jwt-bearer only");
}

async function verify(
  keySets: KeySets,
  assertion: string,
  issuer: string,
  rules: TrustRule[],
): Promise<VerifiedJwt> {
  try {
    const verified = await verifyJwt(assertion, {
      issuer,
      audiences: rules.map(({ audience }) => audience),
      keys: await keySets.ofIssuer(issuer),
      maxAgeS: MAX_AGE_S,
      requiredClaims: ["sub"],
    });
    requireUntyped(verified);
    return verified;
  } catch (error) {
    throw error instanceof InvalidJwt && !error.isSigned ? untrustedIssuer() : error;
  }
}

/** RFC 8725 §3.11: a JWT with another type, such as an access token, is meant for something else. */
function requireUntyped({ header: { typ } }: VerifiedJwt): void {
  // jose leaves a type that is no text to its callers.
  const type: unknown = typ;
  if (type === undefined || (typeof type === "string" && type.toUpperCase() === "JWT")) return;
  throw new InvalidJwt("the JWT has the wrong typ", { isSigned: true });
}

/**
 * Returns the error of a token that isn't known to come from an issuer that the client trusts. It is the same for every
 * reason, also for an unknown client: without a token of the issuer, nothing can be learned about the client's rules.
 */
export function untrustedIssuer(): InvalidJwt {
  return new InvalidJwt(
    "no trust rule of the client names its issuer, or its signature can't be verified with the issuer's keys",
  );
}

/** Names the claim that each rule doesn't accept, but not what it requires: anyone may have tokens of the issuer. */
function describeMismatch(rules: TrustRule[], { claims }: VerifiedJwt): InvalidJwt {
  const mismatches = [...new Set(rules.map((rule) => findMismatch(rule, claims)))].join(", ");
  const [sub, aud] = [claims.sub, claims.aud].map((claim) => show(claim).slice(0, SHOWN_MAX));
  const token = `iss ${claims.iss}, sub ${sub}, aud ${aud}`;
  return new InvalidJwt(toDescription(`no trust rule matches the token (${token}): check ${mismatches}`), {
    isSigned: true,
  });
}

/** Lists are shown without the quotes of JSON. */
function show(claim: unknown): string {
  const values = [claim].flat();
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(",");
}

/** RFC 6749 §5.2: the characters that `error_description` may contain. */
function toDescription(text: string): string {
  return text.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "?");
}

async function recordUse(trustRules: TrustRuleStore, rules: TrustRule[]): Promise<void> {
  const now = Date.now();
  const due = rules.filter(
    ({ lastUsedAt }) => lastUsedAt === null || lastUsedAt < now - LAST_USE_INTERVAL_MS,
  );
  const ids = due.map(({ id }) => id);
  if (ids.length > 0) await trustRules.markUsed(ids, now);
}

/** Attaches the authenticated workload to its request. */
export function setWorkload(ctx: KoaContextWithOIDC, workload: Workload): void {
  ctx.oidc.entity("Workload", workload);
}

/** Returns the workload that a request was authenticated by. */
export function workloadOf({ oidc }: KoaContextWithOIDC): Workload | undefined {
  return oidc.entities.Workload as Workload | undefined;
}

/** Returns which claim of a verified token a rule doesn't accept; undefined if the token satisfies the rule. */
function findMismatch(rule: TrustRule, claims: JWTPayload): string | undefined {
  if (!isAudience(claims.aud, rule.audience)) return "aud";
  if (!matchesSubject(rule.subject, claims.sub)) return "sub";
  return Object.entries(rule.claims).find(([name, value]) => !hasValue(claims, name, value))?.[0];
}

/** A token for several audiences is refused: each of the others could present it here. */
function isAudience(actual: JWTPayload["aud"], required: string): boolean {
  const [first, ...others] = [actual].flat();
  return first === required && others.length === 0;
}

function matchesSubject(pattern: string, subject: unknown): boolean {
  if (typeof subject !== "string" || subject === "") return false;
  return pattern.endsWith("*") ? subject.startsWith(pattern.slice(0, -1)) : subject === pattern;
}

/** Numbers and booleans are compared as JSON writes them. Lists and objects match nothing. */
function hasValue(claims: JWTPayload, name: string, value: string): boolean {
  const actual = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return ["string", "number", "boolean"].includes(typeof actual) && String(actual) === value;
}

import type { JWTPayload } from "jose";
import type { Client, KoaContextWithOIDC } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import type { TrustRule, TrustRuleStore } from "../../adapters/organizations/trust-rules.ts";
import { API_SCOPES, type ApiScope } from "../../resources/access/scopes.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { organizationOf } from "../clients/client-metadata.ts";

// GitLab's tokens last for the timeout of the job, one hour by default, and Kubernetes renews its own before.
const MAX_AGE_S = 3600;
const SHOWN_MAX = 255;
const LAST_USE_INTERVAL_MS = 60_000;

export type Workload = {
  scopes: ApiScope[];
  /** Throws InvalidJwt if the token was used before, on any process. */
  useOnce(): Promise<void>;
};

/** Creates a function that throws InvalidJwt for an invalid token, or if no trust rule of the client matches it. */
export function createAuthenticateWorkload(
  { trustRules, replays }: Pick<Storage, "trustRules" | "replays">,
  keySets: KeySets,
) {
  return async (
    ctx: KoaContextWithOIDC,
    client: Client,
    { assertion, issuer }: { assertion: string; issuer: unknown },
  ): Promise<Workload> => {
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

/** The same for every reason and for unknown clients, so it reveals nothing about rules without a valid token. */
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

/** Returns the first claim that a rule doesn't accept; undefined if it accepts all of them. */
export function findMismatch(
  rule: Pick<TrustRule, "audience" | "subject" | "claims">,
  claims: JWTPayload,
): string | undefined {
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

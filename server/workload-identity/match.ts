import type { JWTPayload } from "jose";
import type { TrustRule } from "../../adapters/organizations/trust-rules.ts";

/** Returns which claim of a verified token a rule doesn't accept; undefined if the token satisfies the rule. */
export function findMismatch(rule: TrustRule, claims: JWTPayload): string | undefined {
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

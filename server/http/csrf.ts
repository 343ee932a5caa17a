import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Context } from "koa";
import { Problem } from "../../resources/http/problem.ts";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

export function isChange({ method }: Context): boolean {
  return !SAFE.has(method);
}

/**
 * Throws Problem 403. The pages send no referrer, so forms have `Origin: null` and `Sec-Fetch-Site` decides. A
 * request with neither header isn't from a browser (Fetch §3.2), so it can't abuse cookies.
 */
export function checkOrigin(ctx: Context, own: string): void {
  const site = ctx.get("sec-fetch-site");
  const origin = ctx.get("origin") || own;
  if (site ? site === "same-origin" : origin === own) return;
  throw new Problem(
    403,
    "cross_site_request",
    "This request came from another site. Open the page on this site and try again.",
  );
}

/** A token is bound to one purpose, such as a session. All processes share `secret`. */
export function createCsrf(secret: string) {
  const sign = (purpose: string) => createHmac("sha256", secret).update(`csrf\n${purpose}`).digest();
  return {
    token: (purpose: string) => sign(purpose).toString("base64url"),
    isValid(token: unknown, purpose: string): boolean {
      const bytes = Buffer.from(typeof token === "string" ? token : "", "base64url");
      const expected = sign(purpose);
      const { length } = expected;
      const given =
        bytes.length === 2 * length ? xor(bytes.subarray(0, length), bytes.subarray(length)) : bytes;
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}

/** Returns another form of a token each time: in a compressed page, its size would reveal a constant one (BREACH). */
export function maskCsrf(token: string): string {
  const bytes = Buffer.from(token, "base64url");
  const pad = randomBytes(bytes.length);
  return Buffer.concat([pad, xor(pad, bytes)]).toString("base64url");
}

function xor(one: Buffer, other: Buffer): Buffer {
  return Buffer.from(one.map((byte, index) => byte ^ (other[index] ?? 0)));
}

/** Throws Problem 403 unless the form or `X-CSRF-Token` has a valid token. */
export function checkCsrf(csrf: Csrf, token: unknown, purpose: string): void {
  if (csrf.isValid(token, purpose)) return;
  throw new Problem(403, "invalid_csrf_token", "This form has expired. Reload the page and try again.");
}
export type Csrf = ReturnType<typeof createCsrf>;

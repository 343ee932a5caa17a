import { createHash, type KeyObject, verify } from "node:crypto";
import type { Context, Middleware } from "koa";
import { z } from "zod";
import type { LeakStore } from "../../adapters/leaked-credentials.ts";
import { SYSTEM } from "../../resources/events/types.ts";
import { readBody } from "../../resources/http/read-body.ts";
import { parseJson } from "../../resources/http/safe-json.ts";
import type { FindKey } from "./public-keys.ts";

const MAX_FINDINGS = 1000;
const BODY_MAX = 512 * 1024;
const TEXT_MAX = 500;
// The headers of GitHub's secret scanning partner program.
const KEY_ID = "github-public-key-identifier";
const SIGNATURE = "github-public-key-signature";

const text = z.string().nullish();
const findings = z
  .array(z.object({ token: z.string(), type: text, source: text, url: text }))
  .max(MAX_FINDINGS);
type Finding = z.output<typeof findings>[number];

/**
 * Creates the endpoint that secret scanners report leaked credentials to, in the form of GitHub's secret scanning partner
 * program: a JSON array, signed with ECDSA P-256 and SHA-256. Valid credentials are revoked.
 */
export function leakedCredentials(findKey: FindKey, leaks: LeakStore): Middleware {
  return async function receiveReport(ctx) {
    const key = await findKey(ctx.get(KEY_ID));
    // Anyone can send a body, so it is parsed only if it is signed.
    const body = key && (await readBody(ctx.req, BODY_MAX));
    if (!body || !isSigned(body, ctx.get(SIGNATURE), key)) {
      return refuse(ctx, 401, "invalid_signature", "the report must be signed with a known key");
    }
    const report = parseFindings(body);
    if (!report) {
      const rule = `the body must be a JSON array of at most ${MAX_FINDINGS} objects with a token`;
      return refuse(ctx, 400, "invalid_request", rule);
    }
    ctx.body = await revoke(ctx, report, leaks);
  };
}

/** Revokes what was found, and says which of it was valid. Never repeats a credential. */
async function revoke(ctx: Context, report: Finding[], leaks: LeakStore) {
  const labels: object[] = [];
  // One after the other: a report must not use more than one connection.
  for (const { token, type, source, url } of report) {
    const leak = { credential: token, source: shortened(source), url: shortened(url) };
    const isValid = await leaks.revoke(leak, { ...SYSTEM, address: ctx.ip });
    labels.push({
      token_hash: createHash("sha256").update(token).digest("base64"),
      token_type: type ?? null,
      label: isValid ? "true_positive" : "false_positive",
    });
  }
  return labels;
}

function isSigned(body: Buffer, signature: string, key: KeyObject): boolean {
  return verify("sha256", body, key, Buffer.from(signature, "base64"));
}

function parseFindings(body: Buffer): Finding[] | undefined {
  try {
    return findings.safeParse(parseJson(body)).data;
  } catch {
    return undefined;
  }
}

function shortened(value: string | null | undefined): string | null {
  return value ? value.slice(0, TEXT_MAX).toWellFormed() : null;
}

function refuse(ctx: Context, status: number, error: string, description: string): void {
  ctx.status = status;
  ctx.body = { error, error_description: description };
}

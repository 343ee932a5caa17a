import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Context, Middleware } from "koa";
import { z } from "zod";
import type { Storage } from "../../adapters/index.ts";
import { SYSTEM } from "../../resources/events/types.ts";
import { parseLargeJson, readBody } from "../../resources/http/json-body.ts";
import { mount } from "../../resources/http/routing.ts";
import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import type { Dependencies } from "../dependencies.ts";
import { ENDPOINTS } from "../oauth-endpoints.ts";

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

// The form in which GitHub publishes its keys.
const keyDocument = z.object({
  public_keys: z.array(z.object({ key_identifier: z.string(), key: z.string() })),
});
const TTL_MS = 60 * 60 * 1000;
// A report with an invented key id must not cause a request each.
const COOLDOWN_MS = 60_000;

type ReportError = (error: unknown) => void;

/** Undefined without keys. Reports are like GitHub's: a JSON array, signed with ECDSA P-256 and SHA-256. */
export function leakReports(
  {
    settings,
    storage,
    fetchConfigured,
  }: Pick<Dependencies, "settings" | "fetchConfigured"> & { storage: Pick<Storage, "leaks"> },
  onError: ReportError,
): Middleware[] {
  const { LEAK_REPORT_KEYS } = settings;
  if (!LEAK_REPORT_KEYS) return [];
  const findKey = createFindKey(LEAK_REPORT_KEYS, fetchConfigured, onError);

  async function receiveReport(ctx: Context): Promise<void> {
    const key = await findKey(ctx.get(KEY_ID));
    // Anyone can send a body, so it is parsed only if it is signed.
    const body = key && (await readBody(ctx.req, BODY_MAX));
    if (!body || !verify("sha256", body, key, Buffer.from(ctx.get(SIGNATURE), "base64")))
      return refuse(ctx, 401, "invalid_signature", "the report must be signed with a known key");
    const report = await parseFindings(body);
    if (!report) {
      const rule = `the body must be a JSON array of at most ${MAX_FINDINGS} objects with a token`;
      return refuse(ctx, 400, "invalid_request", rule);
    }
    ctx.body = await revoke(ctx, report, storage.leaks);
  }
  return [mount(({ path }) => path === ENDPOINTS.leak_reports.path, [receiveReport])];
}

/** Says which credentials were valid, but never repeats one. */
async function revoke(ctx: Context, report: Finding[], leaks: Storage["leaks"]) {
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

async function parseFindings(body: Buffer): Promise<Finding[] | undefined> {
  try {
    return findings.safeParse(await parseLargeJson(body)).data;
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

/** Reads `source`, an https URL or a file, again after an hour or for an unknown id. */
function createFindKey(
  source: string,
  fetch: GuardedFetch,
  onError: ReportError,
): (id: string) => Promise<KeyObject | undefined> {
  let keys = new Map<string, KeyObject>();
  let readAt = 0;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    readAt = Date.now();
    const text = source.startsWith("https:")
      ? await fetchText(source, fetch)
      : await readFile(source, "utf8");
    const { public_keys } = keyDocument.parse(JSON.parse(text));
    keys = new Map(public_keys.map(({ key_identifier, key }) => [key_identifier, createPublicKey(key)]));
  }

  return async (id) => {
    const age = Date.now() - readAt;
    if (age > TTL_MS || (!keys.has(id) && age > COOLDOWN_MS)) {
      reading ??= refresh()
        .catch((error: unknown) => {
          // A valid report must not be refused because its key could not be read again.
          if (keys.size === 0) throw error;
          onError(error);
        })
        .finally(() => {
          reading = undefined;
        });
    }
    await reading;
    return keys.get(id);
  };
}

async function fetchText(url: string, fetch: GuardedFetch): Promise<string> {
  const response = await fetch(url);
  if (response.status !== 200)
    throw new Error(`the public keys could not be fetched: status ${response.status}`);
  return response.text();
}

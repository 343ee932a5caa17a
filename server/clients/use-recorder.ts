import type { Context } from "koa";
import { LRUCache } from "lru-cache";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { parseIpAddress } from "../http/client-ip.ts";
import { describeBrowser, UNKNOWN_BROWSER } from "../http/describe-browser.ts";

/** A use that can't be stored fails no request. */
export type ReportError = (error: unknown) => void;

// The minimum time between two updates of a last use: precise enough for display.
export const USE_INTERVAL_MS = 60_000;
const MAX_TRACKED = 10_000;

/** Stores a last use at most once a minute for each id. */
export function createUseRecorder(
  store: (id: string, at: number) => Promise<void>,
  onError: ReportError,
): (id: string) => void {
  const recorded = new LRUCache<string, number>({ max: MAX_TRACKED });
  return (id) => {
    const now = Date.now();
    if (now < (recorded.get(id) ?? 0) + USE_INTERVAL_MS) return;
    recorded.set(id, now);
    store(id, now).catch(onError);
  };
}

// Enough to tell programs apart.
const USER_AGENT_MAX = 200;
const SEPARATOR = "\n";
// More than are listed. Otherwise a caller could cause a write per request, with a `User-Agent` each.
const CALLERS_PER_MINUTE = 60;
const MAX_SECRETS = 10_000;

/** Stores at most one use a minute for each caller, and for a limited number of callers. */
export function createSecretUseRecorder(
  clients: Pick<ClientStore, "recordSecretUse">,
  onError: ReportError,
): (secretId: string, ctx: Context) => void {
  const minutes = new LRUCache<string, { startedAt: number; callers: number }>({ max: MAX_SECRETS });

  function isOverLimit(secretId: string, now: number): boolean {
    const known = minutes.get(secretId);
    const minute = known && now < known.startedAt + USE_INTERVAL_MS ? known : { startedAt: now, callers: 0 };
    minute.callers++;
    minutes.set(secretId, minute);
    return minute.callers > CALLERS_PER_MINUTE;
  }

  const record = createUseRecorder(async (use, lastUsedAt) => {
    const [secretId = "", address = "", userAgent = ""] = use.split(SEPARATOR);
    if (isOverLimit(secretId, lastUsedAt)) return;
    const described = describeBrowser(userAgent);
    const program = described === UNKNOWN_BROWSER ? "Unknown program" : described;
    await clients.recordSecretUse(secretId, { program, network: networkOf(address), lastUsedAt });
  }, onError);
  return (secretId, ctx) =>
    record([secretId, ctx.ip, ctx.get("user-agent").slice(0, USER_AGENT_MAX)].join(SEPARATOR));
}

function networkOf(address: string): string {
  const ip = parseIpAddress(address);
  if (!ip) return "unknown";
  if (ip.version === 4) return `${ip.parts.slice(0, 3).join(".")}.0/24`;
  const prefix = ip.parts.slice(0, 4).map((group) => group.toString(16));
  return `${parseIpAddress(`${prefix.join(":")}::`)?.text}/64`;
}

import ipaddr from "ipaddr.js";
import type { Context } from "koa";
import { LRUCache } from "lru-cache";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { describeBrowser, UNKNOWN_BROWSER } from "../http/describe-browser.ts";
import { parseIpAddress } from "../http/ip-address.ts";
import { createUseRecorder, type ReportError } from "./use-recorder.ts";

// Enough to tell programs apart.
const USER_AGENT_MAX = 200;
const SEPARATOR = "\n";
// Who knows a secret could otherwise cause a write per request, with a `User-Agent` each. More callers than are listed.
const CALLERS_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
const MAX_SECRETS = 10_000;

/**
 * Returns a function that stores who used a client secret, at most once a minute for each caller, and for a limited number
 * of callers.
 */
export function createSecretUseRecorder(
  clients: Pick<ClientStore, "recordSecretUse">,
  onError: ReportError,
): (secretId: string, ctx: Context) => void {
  const minutes = new LRUCache<string, { startedAt: number; callers: number }>({ max: MAX_SECRETS });

  /** Counts a caller. Returns whether the secret has had too many in this minute. */
  function isOverLimit(secretId: string, now: number): boolean {
    const known = minutes.get(secretId);
    const minute = known && now < known.startedAt + MINUTE_MS ? known : { startedAt: now, callers: 0 };
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

/** Returns the network of an address in CIDR notation: a /24 of IPv4, a /64 of IPv6. */
function networkOf(address: string): string {
  const ip = parseIpAddress(address);
  if (!ip) return "unknown";
  const bits = ip instanceof ipaddr.IPv4 ? 24 : 64;
  const base = ip instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6;
  return `${base.networkAddressFromCIDR(`${ip}/${bits}`)}/${bits}`;
}

import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import type { RequestReport } from "../../observability/health.ts";
import { hostsOf, publicUrlsOf } from "../../settings/public-urls.ts";
import type { CommandContext } from "../command.ts";
import { describeSkew } from "./environment.ts";

const REQUEST_MS = 5_000;
// An address for documentation (RFC 5737): a server that takes it for the caller's trusts what callers invent.
const INVENTED_ADDRESS = "192.0.2.1";

/** Returns the public URLs, and which `Host` headers a proxy has to pass on. */
export async function checkAddresses({ settings }: CommandContext): Promise<string> {
  const urls = publicUrlsOf(settings, settings.PORT);
  const { base, mcp, short } = urls;
  const addresses = `issuer ${base}, MCP ${mcp}, short links ${short}`;
  if (settings.isProduction && !base.startsWith("https:"))
    throw new Error(`${addresses}; set BASE_URL to an https URL`);
  const remark = settings.BASE_URL ? "" : "; BASE_URL is not set, so these are the defaults";
  return `${addresses}${remark}${settings.TRUST_PROXY ? proxyRemark(urls) : ""}`;
}

/** Names the Host headers that a proxy has to pass on. */
function proxyRemark(urls: PublicUrls): string {
  return `; requests through the proxy need the header Host: ${[...hostsOf(urls)].join(" or ")}`;
}

/** Requests each public address, as clients do, and compares the issuer and the clock. */
export async function checkServer({ settings }: CommandContext): Promise<string> {
  const { base, mcp, short } = publicUrlsOf(settings, settings.PORT);
  const metadata = await request(`${base}/.well-known/oauth-authorization-server`).catch((error) => {
    if (base.startsWith("https:") || !(error instanceof Unreachable)) throw error;
  });
  if (!metadata) return `not running at ${base}`;
  const { issuer } = (await metadata.json().catch(() => ({}))) as { issuer?: string };
  if (issuer !== base)
    throw new Error(
      `${base} is answered by something else than this service. Check the proxy, and that BASE_URL is the same here and for the server`,
    );
  for (const origin of new Set([mcp, short].map((url) => new URL(url).origin)))
    await request(`${origin}/healthz`);
  const date = Date.parse(metadata.headers.get("date") ?? "");
  const skew = describeSkew(date + 500 - Date.now(), "the server");
  return `reachable at ${base}; the clock of this machine is ${skew}`;
}

class Unreachable extends Error {}

/** @throws Error that says what could be wrong between here and the server */
async function request(url: string, headers: Record<string, string> = {}): Promise<Response> {
  const { origin } = new URL(url);
  let response: Response;
  try {
    response = await fetch(url, { headers, redirect: "manual", signal: AbortSignal.timeout(REQUEST_MS) });
  } catch (error) {
    throw new Unreachable(
      `${origin} can't be reached from here (${reasonOf(error as Error)}). ${mendOf(origin)}`,
    );
  }
  if (response.status === 421)
    throw new Error(
      `${origin} is answered with 421: the proxy doesn't pass on the header Host: ${new URL(url).host}`,
    );
  if (response.status !== 200) throw new Error(`${url} is answered with ${response.status}. Check the proxy`);
  return response;
}

function reasonOf({ name, message, cause }: Error): string {
  if (name === "TimeoutError") return "timed out";
  const { code, message: inner } = (cause ?? {}) as NodeJS.ErrnoException;
  return code || inner || message;
}

function mendOf(origin: string): string {
  const secure = origin.startsWith("https:") ? ", the proxy and its TLS certificate" : "";
  return `Start the server, and check the name${secure}`;
}

/** Finds out through how many proxies requests come, and compares it with `TRUST_PROXY`. */
export async function checkProxies({ settings }: CommandContext): Promise<string> {
  const { base } = publicUrlsOf(settings, settings.PORT);
  if (!settings.METRICS_TOKEN)
    return "not checked: with METRICS_TOKEN, set here and for the server, doctor asks the server what it sees";
  const answer = await request(`${base}/readyz?verbose`, {
    authorization: `Bearer ${settings.METRICS_TOKEN}`,
    "x-forwarded-for": INVENTED_ADDRESS,
  });
  const { request: report } = (await answer.json()) as { request?: RequestReport };
  if (!report) throw new Error("not checked: the server has another METRICS_TOKEN, or none");
  return describeProxies(report);
}

function describeProxies({ trust_proxy, address, forwarded_for }: RequestReport): string {
  const added = forwarded_for[0] === INVENTED_ADDRESS ? forwarded_for.slice(1) : forwarded_for;
  const { length } = added;
  const passes = length === 1 ? "1 proxy adds" : `${length} proxies add`;
  if (length < trust_proxy)
    throw new Error(
      `TRUST_PROXY is ${trust_proxy}, but ${length === 0 ? "no proxy adds" : `only ${passes}`} to X-Forwarded-For on the way from here, so callers can invent the address that rate limits count. Set TRUST_PROXY=${length}, or let each proxy add the header`,
    );
  if (length > trust_proxy)
    throw new Error(
      `TRUST_PROXY is ${trust_proxy}, but ${passes} to X-Forwarded-For on the way from here, so all callers count as the proxy. Set TRUST_PROXY=${length}`,
    );
  const proxies = length === 0 ? "none" : `${passes.replace(" add", ", which add")} to X-Forwarded-For`;
  return `${proxies}; the server sees requests from here as ${address}`;
}

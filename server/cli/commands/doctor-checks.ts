import { statfs } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Engine, isMissing, sqliteFile } from "../../../adapters/database/engine.ts";
import { CREATE_SEARCH_INDEX } from "../../../adapters/database/migrations/links.ts";
import { encryptionKeys, keyFileOf, rejectLostKey } from "../../keys/encryption-keys.ts";
import { createMailer } from "../../mail/dispatcher.ts";
import type { RequestReport } from "../../observability/health.ts";
import { readDescriptorLimit } from "../../rate-limits/connections.ts";
import { describeChoice } from "../../settings/production-choices.ts";
import { hostsOf } from "../../settings/public-urls.ts";
import { describeScope } from "../../settings/rate-limit-scope.ts";
import { describeMissing, describeStartupError } from "../../startup-errors.ts";
import type { CommandContext } from "../execution/command.ts";

type Check = {
  name: string;
  /** Returns what is right; throws an error that says what is wrong and how to fix it. */
  inspect(context: CommandContext): Promise<string> | string;
  applies?(context: CommandContext): unknown;
};

export type Diagnosis = { checks: { name: string; ok: boolean; detail: string }[] };

/** With a database that is missing, most checks would create it. */
const hasDatabase = ({ settings }: CommandContext) => !isMissing(settings.DATABASE_URL);
const hasUsers = ({ settings }: CommandContext) => !settings.INTROSPECTION_URL;
const uses = (engine: Engine) => (context: CommandContext) =>
  hasDatabase(context) && context.storage.engine === engine;

const CHECKS: Check[] = [
  { name: "settings", inspect: () => "valid" },
  { name: "environment", inspect: checkNodeEnv },
  { name: "database", inspect: checkDatabase },
  { name: "disk", inspect: checkDisk, applies: uses("sqlite") },
  {
    name: "clock",
    inspect: checkClock,
    applies: (context) => hasDatabase(context) && context.storage.engine !== "sqlite",
  },
  { name: "migrations", inspect: checkMigrations, applies: hasDatabase },
  { name: "search index", inspect: checkSearchIndex, applies: uses("postgres") },
  { name: "keys", inspect: checkKeys, applies: hasDatabase },
  { name: "encryption", inspect: checkEncryption, applies: hasDatabase },
  { name: "addresses", inspect: checkAddresses },
  { name: "server", inspect: checkServer },
  {
    name: "proxies",
    inspect: checkProxies,
    applies: ({ settings }) => settings.TRUST_PROXY || settings.BASE_URL,
  },
  { name: "mail", inspect: checkMail, applies: ({ settings }) => settings.SMTP_URL },
  { name: "rate limits", inspect: checkRateLimits },
  { name: "descriptors", inspect: checkDescriptors },
  {
    name: "registration",
    inspect: ({ settings }) => describeChoice("REGISTRATION", settings.REGISTRATION),
    applies: hasUsers,
  },
  { name: "plans", inspect: checkPlans, applies: hasUsers },
];

export async function checkAll(context: CommandContext): Promise<Diagnosis> {
  const checks: Diagnosis["checks"] = [];
  for (const { name, inspect, applies = () => true } of CHECKS) {
    if (!applies(context)) continue;
    try {
      checks.push({ name, ok: true, detail: await inspect(context) });
    } catch (error) {
      // Errors of the database are described as at startup.
      const detail = describeStartupError(error, context.settings.DATABASE_URL);
      checks.push({ name, ok: false, detail: detail ?? (error as Error).message });
    }
  }
  return { checks };
}

function checkNodeEnv({ settings, urls }: CommandContext): string {
  if (settings.isProduction) return "NODE_ENV=production";
  if (urls.base.startsWith("https:"))
    throw new Error(
      "NODE_ENV is not set to production, so the first start creates a demo organization with a password that is printed. Set NODE_ENV=production",
    );
  return "for development; set NODE_ENV=production before others use it";
}

const ENGINE_NAMES = { sqlite: "SQLite", postgres: "PostgreSQL", mysql: "MySQL or MariaDB" };

async function checkDatabase({ storage, settings }: CommandContext): Promise<string> {
  if (isMissing(settings.DATABASE_URL)) throw new Error(describeMissing(settings.DATABASE_URL));
  await storage.assertEncoding();
  await storage.pendingMigrations();
  const nodes = await storage.clusterSize();
  const advice = `; one of ${nodes} nodes of Galera: let all servers use the same one, through a proxy that fails over`;
  return `connected (${ENGINE_NAMES[storage.engine]})${nodes > 1 ? advice : ""}`;
}

const MIN_FREE_BYTES = 1_000_000_000;

async function checkDisk({ settings }: CommandContext): Promise<string> {
  const folder = path.dirname(sqliteFile(settings.DATABASE_URL));
  const { bavail, bsize } = await statfs(folder);
  const free = `${((bavail * bsize) / 1_000_000_000).toFixed(1)} GB free in ${folder}`;
  if (bavail * bsize < MIN_FREE_BYTES)
    throw new Error(`only ${free}: make room, or writes will fail with 503 when the disk is full`);
  return free;
}

async function checkClock({ storage }: CommandContext): Promise<string> {
  const before = Date.now();
  const theirs = await storage.databaseTime();
  return describeSkew(theirs - (before + Date.now()) / 2, "the database server");
}

// A code or an assertion of another process is refused if it seems to come from the future.
const MAX_SKEW_MS = 5_000;

/** `ms` is negative if the clock is behind. Throws an error if it is too far off. */
function describeSkew(ms: number, whose: string): string {
  const seconds = `${(Math.abs(ms) / 1000).toFixed(1)} s`;
  if (Math.abs(ms) <= MAX_SKEW_MS) return `${seconds} from that of ${whose}`;
  const direction = ms < 0 ? "ahead of" : "behind";
  throw new Error(`${seconds} ${direction} that of ${whose}: synchronize the clocks with NTP`);
}

async function checkMigrations({ storage }: CommandContext): Promise<string> {
  const newer = await storage.newerMigrations();
  const pending = await storage.pendingMigrations();
  if (pending.length)
    throw new Error(
      `pending: ${pending.join(", ")} (run "linkgate upgrade --check" to see what they change, and "linkgate migrate" or start the server to apply them)`,
    );
  return newer.length ? `newer than this version, which can use it: ${newer.join(", ")}` : "up to date";
}

async function checkSearchIndex({ storage }: CommandContext): Promise<string> {
  if (await storage.hasSearchIndex()) return "exists";
  const statements = CREATE_SEARCH_INDEX.join("; ");
  return `missing, so searches compare all links of an organization. To create it, run: ${statements}`;
}

async function checkKeys({ storage, settings }: CommandContext): Promise<string> {
  if ((await storage.pendingMigrations()).length > 0)
    throw new Error("not checked: apply the pending migrations first");
  if (encryptionKeys(settings).length === 0) return "not checked: there is no encryption key";
  return (await storage.keys.check()) ? "keys can be decrypted" : "none yet; the first start creates them";
}

async function checkEncryption({ storage, settings }: CommandContext): Promise<string> {
  const { length } = encryptionKeys(settings);
  if (length === 1) return "one key";
  if ((await storage.pendingMigrations()).length > 0) return `${length} keys`;
  await rejectLostKey(settings, storage);
  if (length === 0) return `none yet; the first start creates ${keyFileOf(settings)}`;
  const outdated = await storage.countOutdatedCiphertexts();
  if (outdated > 0) return `${length} keys; ${outdated} stored values still need an older one`;
  return `${length} keys; the older ones can be removed (run "linkgate keys prune", or change ENCRYPTION_KEY)`;
}

function checkAddresses({ settings, urls }: CommandContext): string {
  const addresses = `issuer ${urls.base}, MCP ${urls.mcp}, short links ${urls.short}`;
  if (settings.isProduction && !urls.base.startsWith("https:"))
    throw new Error(`${addresses}; set BASE_URL to an https URL`);
  const remark = settings.BASE_URL ? "" : "; BASE_URL is not set, so these are the defaults";
  const hosts = [...hostsOf(urls)].join(" or ");
  const proxy = settings.TRUST_PROXY ? `; requests through the proxy need the header Host: ${hosts}` : "";
  return `${addresses}${remark}${proxy}`;
}

async function checkServer({ urls: { base, mcp, short } }: CommandContext): Promise<string> {
  const metadata = await request(`${base}/.well-known/oauth-authorization-server`).catch((error) => {
    const isStopped = error instanceof Unreachable && error.reason === "ECONNREFUSED";
    if (base.startsWith("https:") || !isStopped) throw error;
  });
  if (!metadata) return `not running at ${base}`;
  const { issuer } = (await metadata.json().catch(() => ({}))) as { issuer?: string };
  if (issuer !== base)
    throw new Error(
      `something other than linkgate answers at ${base}. Check the proxy, and that BASE_URL is the same here and for the server`,
    );
  for (const origin of new Set([mcp, short].map((url) => new URL(url).origin)))
    await request(`${origin}/healthz`);
  const date = Date.parse(metadata.headers.get("date") ?? "");
  const skew = describeSkew(date + 500 - Date.now(), "the server");
  return `reachable at ${base}; the clock of this machine is ${skew}`;
}

const REQUEST_MS = 5_000;

class Unreachable extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The error says what could be wrong between here and the server. */
async function request(url: string, headers: Record<string, string> = {}): Promise<Response> {
  const { origin, host, protocol } = new URL(url);
  const signal = AbortSignal.timeout(REQUEST_MS);
  const response = await fetch(url, { headers, redirect: "manual", signal }).catch((error) => {
    const { code, message } = (error.cause ?? {}) as NodeJS.ErrnoException;
    const reason = error.name === "TimeoutError" ? "timed out" : code || message || error.message;
    const secure = protocol === "https:" ? ", the proxy and its TLS certificate" : "";
    throw new Unreachable(
      reason,
      `${origin} can't be reached from here (${reason}). Start the server, and check the name${secure}`,
    );
  });
  if (response.status === 421)
    throw new Error(`${origin} is answered with 421: the proxy doesn't pass on the header Host: ${host}`);
  if (response.status !== 200) throw new Error(`${url} is answered with ${response.status}. Check the proxy`);
  return response;
}

// An address for documentation (RFC 5737): a server that takes it for the caller's trusts what callers invent.
const INVENTED_ADDRESS = "192.0.2.1";

async function checkProxies({ settings, urls }: CommandContext): Promise<string> {
  if (!settings.METRICS_TOKEN)
    return "not checked: with METRICS_TOKEN, set here and for the server, doctor asks the server what it sees";
  const answer = await request(`${urls.base}/readyz?verbose`, {
    authorization: `Bearer ${settings.METRICS_TOKEN}`,
    "x-forwarded-for": INVENTED_ADDRESS,
  });
  const { request: report } = (await answer.json()) as { request?: RequestReport };
  if (!report) throw new Error("not checked: the server has another METRICS_TOKEN, or none");
  const { trust_proxy, address, forwarded_for } = report;
  const length = forwarded_for.length - (forwarded_for[0] === INVENTED_ADDRESS ? 1 : 0);
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

async function checkMail({ settings }: CommandContext): Promise<string> {
  const mailer = createMailer(settings);
  try {
    await mailer?.verify();
    return `connected, sender ${settings.SMTP_FROM}`;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EAUTH") throw error;
    const reason = /ECONNREFUSED/.test(message) ? "connection refused" : message;
    throw new Error(
      `can't connect to the SMTP server at ${URL.parse(settings.SMTP_URL ?? "")?.host} (${reason})`,
    );
  } finally {
    mailer?.close();
  }
}

const REDIS_MS = 3_000;

async function checkRateLimits({ settings }: CommandContext): Promise<string> {
  if (settings.REDIS_URL) await pingRedis(settings.REDIS_URL);
  return describeScope(settings);
}

async function pingRedis(url: string): Promise<void> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: REDIS_MS });
  let reason = "";
  redis.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    reason = code ?? message;
  });
  try {
    const late = sleep(REDIS_MS, "timed out", { ref: false });
    const answer = await Promise.race([redis.connect().then(() => redis.ping()), late]);
    if (answer === "timed out") throw new Error(answer);
  } catch (error) {
    throw new Error(
      `REDIS_URL: cannot connect to ${new URL(url).host} (${reason || (error as Error).message}). Until Redis is available, each process counts for itself`,
    );
  } finally {
    redis.disconnect();
  }
}

const MIN_DESCRIPTORS = 4096;

function checkDescriptors(): string {
  const limit = readDescriptorLimit();
  if (limit === undefined) return "unlimited, or unknown on this system";
  if (limit < MIN_DESCRIPTORS)
    throw new Error(
      `at most ${limit} file descriptors, one for each connection: raise the limit to 65536 (ulimit -n, or LimitNOFILE of systemd)`,
    );
  return `up to ${limit} per process`;
}

function checkPlans({ settings }: CommandContext): string {
  const { REGISTRATION, SELF_SERVICE_PLANS, isProduction } = settings;
  const who = describeChoice("SELF_SERVICE_PLANS", SELF_SERVICE_PLANS ? "on" : "off");
  const isForAll = isProduction && SELF_SERVICE_PLANS && REGISTRATION === "open";
  return isForAll ? `${who}; since registration is open, everyone can have the Premium plan` : who;
}

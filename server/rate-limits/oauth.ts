import type { Context, Next } from "koa";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { sha256 } from "../../adapters/crypto/ids.ts";
import { siteKeyOf } from "../http/client-ip.ts";
import { ENDPOINTS, endpointsByPath } from "../oauth-endpoints.ts";
import { HOME, messagePage } from "../ui/page.ts";
import { count, countNetworks, describeWait, type RateLimitStore, secondsUntilOpen } from "./store.ts";

// A client that fails this often is misconfigured, or isn't the client.
const FAILURES_PER_CLIENT = 40;
const FAILURES_PER_SITE = 300;
const REQUESTS_PER_NETWORK = 3000;
// Each request stores a row for 15 minutes. A large office behind one address starts about a hundred a minute.
const AUTHORIZATIONS_PER_NETWORK = 300;
const PENDING_PER_NETWORK = 1500;
const PENDING_S = 15 * 60;
// An authorization has three or four pages and redirects after its start.
const AUTHORIZATION_STEPS_PER_NETWORK = 1200;

/** RFC 8628 §3.5: devices poll every 5 seconds. The network may bring two requests closer together. */
const POLL_S = 4;

/** The errors that a guessed secret, code or token gets; other mistakes don't count as failures. */
const GUESS_ERRORS = new Set(["invalid_client", "invalid_grant"]);
const TOO_MANY_REQUESTS = "too many requests, retry later";

export function createOAuthLimits({ create, isOn }: RateLimitStore) {
  const failedAssertions = create("oauth:assertions", FAILURES_PER_CLIENT);
  const clients = create("oauth:client", FAILURES_PER_CLIENT);
  const failures = create("oauth:failures", FAILURES_PER_SITE);
  const requests = create("oauth:requests", REQUESTS_PER_NETWORK, { isHot: true });
  const authorizations = create("authorization:start", AUTHORIZATIONS_PER_NETWORK);
  const pending = create("authorization:pending", PENDING_PER_NETWORK, { seconds: PENDING_S });
  const steps = create("authorization:step", AUTHORIZATION_STEPS_PER_NETWORK);
  const polls = create("device:poll", 1, { seconds: POLL_S });

  async function countFailure(ctx: Context): Promise<number> {
    const { client } = (ctx as unknown as KoaContextWithOIDC).oidc;
    const counts = [count(failures, siteKeyOf(ctx.ip))];
    if (client) counts.push(count(clients, clientKeyOf(ctx, client.clientId)));
    return Math.max(...(await Promise.all(counts)));
  }

  /** Valid credentials are always accepted, so others can't lock a client out; a secret has 256 random bits. */
  async function limitOauth(ctx: Context, next: Next): Promise<void> {
    if (!endpointsByPath.get(ctx.path)?.isLimited) return next();
    const wait =
      (await countNetworks(requests, ctx.ip)) ||
      (ctx.path === ENDPOINTS.device_authorization.path ? await countNetworks(authorizations, ctx.ip) : 0);
    if (wait) return respondTooMany(ctx, wait);
    await next();
    if (!GUESS_ERRORS.has((ctx.body as { error?: string } | undefined)?.error ?? "")) return;
    const seconds = await countFailure(ctx);
    if (seconds) respondTooMany(ctx, seconds);
  }

  /** Limits requests that are stored without authentication. */
  async function limitAuthorization(ctx: Context, next: Next): Promise<void> {
    const isStart = ctx.path === ENDPOINTS.authorization.path;
    const seconds = isStart
      ? (await countNetworks(authorizations, ctx.ip)) || (await countNetworks(pending, ctx.ip))
      : await countNetworks(steps, ctx.ip);
    if (!seconds) return next();
    setTooMany(ctx, seconds);
    ctx.type = "html";
    ctx.body = messagePage(
      "Please wait",
      `Your network has sent too many requests. Try again in ${describeWait(seconds)}.`,
      ctx.method === "GET" ? { href: ctx.url, text: "Try again" } : HOME,
    );
  }

  return {
    oauth: isOn ? [limitOauth] : [],
    authorization: isOn ? [limitAuthorization] : [],
    /** Resolves to whether a device polls too often. */
    isPollTooEarly: async (deviceCode: string) => (await count(polls, sha256(deviceCode))) > 0,
    assertions: {
      /** Throws TemporarilyUnavailable (429) if too many of a client's assertions from this network failed. */
      async check(ctx: Context, clientId: string): Promise<void> {
        const seconds = await secondsUntilOpen(failedAssertions, clientKeyOf(ctx, clientId));
        if (!seconds) return;
        ctx.set("Retry-After", String(seconds));
        const error = new errors.TemporarilyUnavailable(TOO_MANY_REQUESTS);
        throw Object.assign(error, { status: 429, statusCode: 429 });
      },
      async failed(ctx: Context, clientId: string): Promise<void> {
        await failedAssertions.penalty(clientKeyOf(ctx, clientId));
      },
    },
  };
}

function clientKeyOf(ctx: Context, clientId: string): string {
  return `${siteKeyOf(ctx.ip)} ${clientId}`;
}

function respondTooMany(ctx: Context, seconds: number): void {
  setTooMany(ctx, seconds);
  ctx.remove("WWW-Authenticate");
  ctx.body = { error: "slow_down", error_description: TOO_MANY_REQUESTS };
}

function setTooMany(ctx: Context, seconds: number): void {
  ctx.status = 429;
  ctx.set("Retry-After", String(seconds));
  ctx.set("Cache-Control", "no-store");
}

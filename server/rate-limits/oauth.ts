import type { Context, Middleware } from "koa";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { messagePage } from "../ui/page.ts";
import { count, secondsUntilOpen } from "./counters.ts";
import { networkKeyOf } from "./ip-key.ts";
import type { RateLimitStore } from "./store.ts";

// A client that fails this often is misconfigured, or isn't the client.
const FAILURES_PER_CLIENT = 40;
const FAILURES_PER_ADDRESS = 300;
const REQUESTS_PER_ADDRESS = 3000;
// Each authorization request stores a row for 15 minutes. A large office behind one address starts about a hundred a
// minute.
const AUTHORIZATIONS_PER_ADDRESS = 300;
// An authorization has three or four pages and redirects after its start.
const AUTHORIZATION_STEPS_PER_ADDRESS = 1200;

/** The errors that a guessed secret, code or token gets; other mistakes don't count as failures. */
const GUESS_ERRORS = new Set(["invalid_client", "invalid_grant"]);
const ENDPOINTS = new Set([
  "/oauth/token",
  "/oauth/revoke",
  "/oauth/introspect",
  "/oauth/par",
  "/oauth/register",
  "/oauth/userinfo",
]);
const TOO_MANY_REQUESTS = "too many requests, retry later";

/** Limits on the OAuth endpoints. */
export type OAuthLimits = {
  /**
   * Rejects a client with too many invalid credentials, codes or tokens from one address.
   * @throws TemporarilyUnavailable with status 429
   */
  checkClient(ctx: Context, clientId: string): Promise<void>;
  /** Counts requests and failures at the endpoints that clients call, and rejects addresses with too many. */
  oauth: Middleware;
  /** Counts requests that are stored without authentication: authorization requests, and the pages that follow. */
  authorization: Middleware;
};

export function createOAuthLimits(isOn: boolean, rateLimitStore: RateLimitStore): OAuthLimits {
  const clients = rateLimitStore.create("oauth:client", FAILURES_PER_CLIENT);
  const failures = rateLimitStore.create("oauth:failures", FAILURES_PER_ADDRESS);
  const requests = rateLimitStore.create("oauth:requests", REQUESTS_PER_ADDRESS);
  const authorizations = rateLimitStore.create("authorization:start", AUTHORIZATIONS_PER_ADDRESS);
  const steps = rateLimitStore.create("authorization:step", AUTHORIZATION_STEPS_PER_ADDRESS);

  return {
    async checkClient(ctx, clientId) {
      if (!isOn) return;
      const seconds = await secondsUntilOpen(clients, clientKeyOf(ctx, clientId));
      if (!seconds) return;
      ctx.set("Retry-After", String(seconds));
      const error = new errors.TemporarilyUnavailable(TOO_MANY_REQUESTS);
      throw Object.assign(error, { status: 429, statusCode: 429 });
    },

    async oauth(ctx, next) {
      if (!isOn || !ENDPOINTS.has(ctx.path)) return next();
      const network = networkKeyOf(ctx.ip);
      const waits = [failures, requests].map((limiter) => secondsUntilOpen(limiter, network));
      const seconds = Math.max(...(await Promise.all(waits)));
      if (seconds) {
        respondTooMany(ctx, seconds);
        ctx.body = { error: "temporarily_unavailable", error_description: TOO_MANY_REQUESTS };
        return;
      }
      await requests.penalty(network);
      await next();
      if (!GUESS_ERRORS.has((ctx.body as { error?: string } | undefined)?.error ?? "")) return;
      await failures.penalty(network);
      const { client } = (ctx as unknown as KoaContextWithOIDC).oidc;
      if (client) await clients.penalty(clientKeyOf(ctx, client.clientId));
    },

    async authorization(ctx, next) {
      if (!isOn) return next();
      const limiter = ctx.path === "/oauth/authorize" ? authorizations : steps;
      const seconds = await count(limiter, networkKeyOf(ctx.ip));
      if (!seconds) return next();
      respondTooMany(ctx, seconds);
      ctx.set("Cache-Control", "no-store");
      ctx.type = "html";
      ctx.body = messagePage(
        "Too many requests",
        `Your network has sent too many requests. Try again in ${seconds} seconds.`,
      );
    },
  };
}

function clientKeyOf(ctx: Context, clientId: string): string {
  return `${networkKeyOf(ctx.ip)} ${clientId}`;
}

function respondTooMany(ctx: Context, seconds: number): void {
  ctx.status = 429;
  ctx.set("Retry-After", String(seconds));
}

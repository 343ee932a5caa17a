import type { Context, Middleware } from "koa";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { type Counters, toSeconds } from "./counters.ts";
import { networkOf } from "./network.ts";
import { refuseUsername } from "./passwords.ts";
import { messagePage } from "./views/page.ts";

// A person mistypes; whoever guesses needs thousands.
const SIGN_IN_PER_PAIR = 5;
const SIGN_IN_PER_ADDRESS = 50;
const SIGN_IN_PER_ACCOUNT = 100;
// Each costs a hash of a password, and leaves rows behind.
const REGISTRATIONS_PER_ADDRESS = 10;
const REFRESHES_PER_ADDRESS = 300;
// As many as the API takes on the plan for most.
const CHANGES_PER_PERSON = 600;
// A client that fails so often is misconfigured or not the client.
const FAILURES_PER_CLIENT = 40;
const FAILURES_PER_ADDRESS = 300;
const REQUESTS_PER_ADDRESS = 3000;
// Each leaves a row for a quarter of an hour. A large office behind one address starts some hundred a minute.
const AUTHORIZATIONS_PER_ADDRESS = 300;
// An authorization has three or four pages and redirects after its start.
const AUTHORIZATION_STEPS_PER_ADDRESS = 1200;

/** Limits on guessing, and on what people do without a plan's limits. None locks anybody out: each is over after a minute, and none counts what succeeds. */
export type Limits = {
  signIn: {
    /** Counts an attempt before it is made, so that many at once are many. Seconds to wait, or 0. */
    attempt(address: string, username: string): Promise<number>;
    /** Takes the attempt back. */
    succeeded(address: string, username: string): Promise<void>;
  };
  /** Counts a registration or a refresh from an address. Seconds to wait, or 0. */
  visit(kind: "registration" | "refresh", address: string): Promise<number>;
  /** Counts a change that a person makes in the dashboard. Seconds to wait, or 0. */
  change(userId: string): Promise<number>;
  /** Refuses a client whose credentials, codes or tokens were wrong too often from one address. */
  checkClient(ctx: Context, clientId: string): Promise<void>;
  /** Counts the failures at the OAuth endpoints, and refuses addresses with too many. */
  oauth: Middleware;
  /** Counts what needs no authentication and is stored: authorization requests, and the pages that follow them. */
  authorization: Middleware;
};

/** The errors that a guess at a secret, a code or a token gets; other mistakes are not limited. */
const GUESSES = new Set(["invalid_client", "invalid_grant"]);
const ENDPOINTS = new Set(["/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/par"]);

/** @param isOn false: nothing is limited, for tests and benchmarks */
export function createLimits(isOn: boolean, counters: Counters): Limits {
  const pairs = counters.create("sign-in:pair", SIGN_IN_PER_PAIR);
  const signInAddresses = counters.create("sign-in:address", SIGN_IN_PER_ADDRESS);
  const accounts = counters.create("sign-in:account", SIGN_IN_PER_ACCOUNT);
  const clients = counters.create("oauth:client", FAILURES_PER_CLIENT);
  const addresses = counters.create("oauth:failures", FAILURES_PER_ADDRESS);
  const requests = counters.create("oauth:requests", REQUESTS_PER_ADDRESS);
  const authorizations = counters.create("authorization:start", AUTHORIZATIONS_PER_ADDRESS);
  const steps = counters.create("authorization:step", AUTHORIZATION_STEPS_PER_ADDRESS);
  const changes = counters.create("dashboard:changes", CHANGES_PER_PERSON);
  const visits = {
    registration: counters.create("registration", REGISTRATIONS_PER_ADDRESS),
    refresh: counters.create("refresh", REFRESHES_PER_ADDRESS),
  };

  const pair = (address: string, name: string) => `${networkOf(address)} ${name}`;

  async function refuse(ctx: Context, wait: number) {
    if (!wait) return;
    ctx.set("Retry-After", String(wait));
    throw Object.assign(new errors.TemporarilyUnavailable("too many requests: wait before the next one"), {
      status: 429,
      statusCode: 429,
    });
  }

  return {
    signIn: {
      async attempt(address, username) {
        if (!isOn) return 0;
        const name = fold(username);
        // Before anything is remembered of a name: it would be remembered of as many as an address can send.
        const away = await wait(signInAddresses, networkOf(address));
        if (away) return away;
        // In this order: who is refused for guessing at one name uses up nothing of what others share.
        const counted: [RateLimiterAbstract, string][] = [
          [pairs, pair(address, name)],
          [signInAddresses, networkOf(address)],
          [accounts, name],
        ];
        for (const [limiter, key] of counted) {
          const wait = await count(limiter, key);
          if (wait) return wait;
        }
        return 0;
      },
      async succeeded(address, username) {
        if (!isOn) return;
        const name = fold(username);
        await pairs.delete(pair(address, name));
        await signInAddresses.reward(networkOf(address));
        await accounts.reward(name);
      },
    },

    async visit(kind, address) {
      if (!isOn) return 0;
      return count(visits[kind], networkOf(address));
    },

    async change(userId) {
      return isOn ? count(changes, userId) : 0;
    },

    async checkClient(ctx, clientId) {
      if (isOn) await refuse(ctx, await wait(clients, pair(ctx.ip, clientId)));
    },

    async authorization(ctx, next) {
      if (!isOn) return next();
      const counter = ctx.path === "/oauth/authorize" ? authorizations : steps;
      const seconds = await count(counter, networkOf(ctx.ip));
      if (!seconds) return next();
      ctx.status = 429;
      ctx.set("Retry-After", String(seconds));
      ctx.set("Cache-Control", "no-store");
      ctx.type = "html";
      ctx.body = messagePage(
        "Too many requests",
        `Your network has sent too many requests. Try again in ${seconds} seconds.`,
      );
    },

    async oauth(ctx, next) {
      if (!isOn || !ENDPOINTS.has(ctx.path)) return next();
      const address = networkOf(ctx.ip);
      const [failed, asked] = await Promise.all([wait(addresses, address), wait(requests, address)]);
      const seconds = Math.max(failed, asked);
      if (seconds) {
        ctx.status = 429;
        ctx.set("Retry-After", String(seconds));
        ctx.body = {
          error: "temporarily_unavailable",
          error_description: "too many requests: wait before the next one",
        };
        return;
      }
      await requests.penalty(address);
      await next();
      if (!GUESSES.has((ctx.body as { error?: string } | undefined)?.error ?? "")) return;
      await addresses.penalty(address);
      const { client } = (ctx as unknown as KoaContextWithOIDC).oidc;
      if (client) await clients.penalty(pair(ctx.ip, client.clientId));
    },
  };
}

/** Counts one more. Seconds to wait where that was too many, or 0. */
async function count(limiter: RateLimiterAbstract, key: string): Promise<number> {
  const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
  return consumedPoints > limiter.points ? toSeconds(msBeforeNext) : 0;
}

/** Seconds until the limit is open again, 0 when it is. */
async function wait(limiter: RateLimiterAbstract, key: string): Promise<number> {
  const state = await limiter.get(key);
  if (!state || state.msBeforeNext <= 0 || state.consumedPoints < limiter.points) return 0;
  return toSeconds(state.msBeforeNext);
}

/** The form in which a user name is unique: other ways of writing it are no further attempts. What is no name is one. */
function fold(username: string): string {
  if (refuseUsername(username)) return "";
  return username.normalize("NFKC").toLowerCase();
}

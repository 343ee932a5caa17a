import { isIPv6 } from "node:net";
import type { Context, Middleware } from "koa";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { RateLimiterMemory } from "rate-limiter-flexible";

const MINUTE_S = 60;
// A person mistypes; whoever guesses needs thousands.
const SIGN_IN_PER_PAIR = 5;
const SIGN_IN_PER_ADDRESS = 50;
const SIGN_IN_PER_ACCOUNT = 100;
// A client that fails so often is misconfigured or not the client.
const FAILURES_PER_CLIENT = 40;
const FAILURES_PER_ADDRESS = 300;
const REQUESTS_PER_ADDRESS = 3000;

/** Limits on guessing. None locks anybody out: each is over after a minute, and none counts what succeeds. */
export type Limits = {
  signIn: {
    /** Counts an attempt before it is made, so that many at once are many. Seconds to wait, or 0. */
    attempt(address: string, username: string): Promise<number>;
    /** Takes the attempt back. */
    succeeded(address: string, username: string): Promise<void>;
  };
  /** Refuses a client whose credentials, codes or tokens were wrong too often from one address. */
  checkClient(ctx: Context, clientId: string): Promise<void>;
  /** Counts the failures at the OAuth endpoints, and refuses addresses with too many. */
  oauth: Middleware;
};

/** The errors that a guess at a secret, a code or a token gets; other mistakes are not limited. */
const GUESSES = new Set(["invalid_client", "invalid_grant"]);
const ENDPOINTS = new Set(["/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/par"]);

/** @param isOn false: nothing is limited, for tests and benchmarks */
export function createLimits(isOn: boolean): Limits {
  const limiter = (points: number) => new RateLimiterMemory({ points, duration: MINUTE_S });
  const pairs = limiter(SIGN_IN_PER_PAIR);
  const signInAddresses = limiter(SIGN_IN_PER_ADDRESS);
  const accounts = limiter(SIGN_IN_PER_ACCOUNT);
  const clients = limiter(FAILURES_PER_CLIENT);
  const addresses = limiter(FAILURES_PER_ADDRESS);
  const requests = limiter(REQUESTS_PER_ADDRESS);

  const pair = (address: string, name: string) => `${network(address)} ${name}`;

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
        // In this order: who is refused for guessing at one name uses up nothing of what others share.
        const counted: [RateLimiterMemory, string][] = [
          [pairs, pair(address, name)],
          [signInAddresses, network(address)],
          [accounts, name],
        ];
        for (const [limiter, key] of counted) {
          const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
          if (consumedPoints > limiter.points) return toSeconds(msBeforeNext);
        }
        return 0;
      },
      async succeeded(address, username) {
        if (!isOn) return;
        const name = fold(username);
        await pairs.delete(pair(address, name));
        await signInAddresses.reward(network(address));
        await accounts.reward(name);
      },
    },

    async checkClient(ctx, clientId) {
      if (isOn) await refuse(ctx, await wait(clients, pair(ctx.ip, clientId)));
    },

    async oauth(ctx, next) {
      if (!isOn || !ENDPOINTS.has(ctx.path)) return next();
      const address = network(ctx.ip);
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

/** Seconds until the limit is open again, 0 when it is. */
async function wait(limiter: RateLimiterMemory, key: string): Promise<number> {
  const state = await limiter.get(key);
  if (!state || state.msBeforeNext <= 0 || state.consumedPoints < limiter.points) return 0;
  return toSeconds(state.msBeforeNext);
}

function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** The form in which a user name is unique: other ways of writing it are no further attempts. */
function fold(username: string): string {
  return username.normalize("NFKC").toLowerCase();
}

/** Who can have many addresses is one: /24 of IPv4, /64 of IPv6. */
function network(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/, "");
  if (!isIPv6(plain)) return plain.split(".").slice(0, 3).join(".");
  const [head = "", tail = ""] = plain.split("::");
  const left = head.split(":").filter(Boolean);
  const right = tail.split(":").filter(Boolean);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  return [...left, ...zeros, ...right].slice(0, 4).join(":");
}

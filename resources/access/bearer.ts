import type { Context, Middleware } from "koa";
import { Problem } from "../http/problem.ts";
import type { Actor, Caller } from "./actor.ts";
import type { ActiveToken, Introspect } from "./introspect.ts";
import type { CallLimits } from "./rate-limit.ts";
import { requirePaidPlan } from "./require-paid-plan.ts";
import { type ApiScope, allowedByRole, covers } from "./scopes.ts";

type BearerOptions = {
  introspect: Introspect;
  /** The token audiences that this resource accepts (RFC 8707). */
  audiences: readonly string[];
  limits: CallLimits;
  /** The URL of the resource's metadata (RFC 9728 §5.1). */
  metadataUrl: string;
};

/** The active token of a request, with the scopes currently in effect, and the actor. */
export type AuthenticatedCaller = ActiveToken & Caller;

/** Authenticates the requests of one resource. */
export type BearerCheck = {
  /** Returns middleware that requires a token with these scopes and sets `ctx.state.caller`. */
  bearer(...required: ApiScope[]): Middleware;
  /**
   * Authenticates a request without requiring a scope.
   * @param offered the scopes named by the challenge if the request has no token
   */
  authenticate(ctx: Context, offered: readonly string[]): Promise<AuthenticatedCaller>;
  /** Counts the calls of a request after its first one. @throws Problem 429 */
  countFurther(ctx: Context, caller: AuthenticatedCaller, calls: number): Promise<void>;
  /**
   * Returns a 403 that names every scope an operation requires (RFC 6750 §3.1), and those that the caller has: a client
   * that requests exactly the scopes of the challenge must not lose any.
   */
  insufficientScope(caller: AuthenticatedCaller, required: readonly string[]): Problem;
};

// RFC 6750 §2.1: b64token
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

type Challenge = (parameters: Record<string, string>) => Record<string, string>;

/** Creates the bearer check of one resource: RFC 6750 with the metadata of RFC 9728. */
export function createBearerCheck(options: BearerOptions): BearerCheck {
  const { introspect, audiences, limits } = options;
  const challenge = createChallenge(options.metadataUrl);
  const insufficientScope = ({ scopes }: AuthenticatedCaller, required: readonly string[]) =>
    toInsufficientScope(scopes, required, challenge);

  async function authenticate(ctx: Context, offered: readonly string[]): Promise<AuthenticatedCaller> {
    const token = readToken(ctx, challenge);
    if (token === undefined) throw missingToken(offered, challenge);
    const active = await introspect(token);
    if (!active) throw invalidToken("The access token is invalid, expired or revoked.", offered, challenge);
    if (!audiences.includes(active.audience)) {
      throw invalidToken("The access token was issued for another resource.", offered, challenge);
    }
    requirePaidPlan(active.plan);
    await limits.organization(ctx, active, 1);
    const scopes = new Set(allowedByRole(active.scopes, active.role));
    return { ...active, scopes, actor: actorOf(active, ctx.ip) };
  }

  return {
    authenticate,
    countFurther: (ctx, caller, calls) => limits.organization(ctx, caller, calls),
    insufficientScope,
    bearer: (...required) =>
      async function checkBearer(ctx, next) {
        // RFC 9111 §5.2.2: only the caller may store the response, and must revalidate it before each use.
        ctx.set("Cache-Control", "private, no-cache");
        const caller = await authenticate(ctx, required);
        if (!covers(caller.scopes, required)) throw insufficientScope(caller, required);
        ctx.state.caller = caller;
        return next();
      },
  };
}

function createChallenge(metadataUrl: string): Challenge {
  return (parameters) => ({
    "WWW-Authenticate": `Bearer ${Object.entries({ ...parameters, resource_metadata: metadataUrl })
      .map(([name, value]) => `${name}="${value}"`)
      .join(", ")}`,
  });
}

function missingToken(offered: readonly string[], challenge: Challenge): Problem {
  // RFC 6750 §3.1: no error code without credentials
  return new Problem(401, "missing_token", "Send an access token: Authorization: Bearer <token>.", {
    headers: challenge({ scope: offered.join(" ") }),
  });
}

function invalidToken(detail: string, offered: readonly string[], challenge: Challenge): Problem {
  return new Problem(401, "invalid_token", detail, {
    headers: challenge({ error: "invalid_token", error_description: detail, scope: offered.join(" ") }),
  });
}

function toInsufficientScope(
  held: ReadonlySet<string>,
  required: readonly string[],
  challenge: Challenge,
): Problem {
  const scope = [...new Set([...held, ...required])].join(" ");
  return new Problem(403, "insufficient_scope", `This request requires the scope ${required.join(" ")}.`, {
    headers: challenge({
      error: "insufficient_scope",
      error_description: "The access token lacks a required scope.",
      scope,
    }),
  });
}

function actorOf({ userId, clientId }: ActiveToken, address: string): Actor {
  return userId ? { id: userId, via: clientId, address } : { id: clientId, address };
}

/** Returns the token of a request, or `undefined` for no token, another scheme, or an empty token. */
function readToken(ctx: Context, challenge: Challenge): string | undefined {
  const [, scheme = "", rest = ""] = /^(\S+)(?: +(.*))?$/.exec(ctx.get("authorization").trim()) ?? [];
  const isRepeated = (ctx.req.headersDistinct.authorization?.length ?? 0) > 1;
  if (!isRepeated && (scheme.toLowerCase() !== "bearer" || rest === "")) return undefined;
  // RFC 6750 §2: only one way of sending the token; in the URL it would end up in logs
  if (ctx.query.access_token !== undefined) {
    throw invalidRequest("Send the access token only in the Authorization header.", challenge);
  }
  // Node keeps the first of several, but a proxy in front may use the last.
  if (isRepeated) throw invalidRequest("Send only one Authorization header.", challenge);
  if (!TOKEN.test(rest)) throw invalidRequest("The Authorization header is malformed.", challenge);
  return rest;
}

function invalidRequest(detail: string, challenge: Challenge): Problem {
  return new Problem(400, "invalid_request", detail, {
    headers: challenge({ error: "invalid_request", error_description: detail }),
  });
}

import type { Context, Middleware } from "koa";
import { Problem } from "../http/problem.ts";
import { isSentTwice } from "../http/routing.ts";
import { isPaid, planRequired } from "../plans.ts";
import type { Actor, Caller } from "./actor.ts";
import { type CheckProof, DPOP_ALGS } from "./dpop.ts";
import { type ActiveToken, type Introspect, Unauthorized } from "./introspect.ts";
import type { CallLimits } from "./rate-limit.ts";
import { type ApiScope, allowedByRole, covers } from "./scopes.ts";

type BearerOptions = {
  introspect: Introspect;
  checkProof: CheckProof;
  audiences: readonly string[];
  limits: CallLimits;
  metadataUrl: string;
};

/** Counts the calls of a request after its first one. @throws Problem 429 */
export type CountFurther = (calls: number) => Promise<void>;

/** The active token of a request, with the scopes currently in effect, and the actor. */
export type AuthenticatedCaller = ActiveToken & Caller & { countFurther: CountFurther };

export type BearerCheck = ReturnType<typeof createBearerCheck>;

type Scheme = "Bearer" | "DPoP";

type Credentials = { scheme: Scheme; token: string };

// RFC 6750 §2.1: b64token; RFC 9449 §7.1 has the same syntax.
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Creates the bearer check of one resource: RFC 6750 and RFC 9449, with the metadata of RFC 9728. */
export function createBearerCheck({ introspect, checkProof, audiences, limits, metadataUrl }: BearerOptions) {
  const challenges = createChallenges(metadataUrl);
  const { insufficientScope } = challenges;

  /** Sets `ctx.state.caller` without requiring a scope. A challenge names the `offered` scopes. */
  async function authenticate(ctx: Context, offered: readonly string[]): Promise<AuthenticatedCaller> {
    const credentials = readCredentials(ctx, challenges.invalidRequest);
    if (credentials === undefined) throw challenges.missingToken(offered);
    const active = await findActive(ctx, credentials, offered);
    if (active.suspended) throw suspended();
    if (!isPaid(active.plan)) throw planRequired();
    await limits.organization(ctx, active, 1);
    const scopes = active.role ? new Set(allowedByRole(active.scopes, active.role)) : active.scopes;
    const countFurther = (calls: number) => limits.organization(ctx, active, calls);
    const caller = { ...active, scopes, actor: actorOf(active, ctx.ip), countFurther };
    ctx.state.caller = caller;
    return caller;
  }

  async function findActive(ctx: Context, { scheme, token }: Credentials, offered: readonly string[]) {
    try {
      const active = await introspect(token);
      if (!active) throw invalidToken("The access token is invalid, expired or revoked.");
      if (!audiences.includes(active.audience))
        throw invalidToken("The access token was issued for another resource.");
      checkScheme(scheme, active);
      if (active.jkt) await checkProof(ctx, { token, jkt: active.jkt });
      return active;
    } catch (error) {
      throw error instanceof Unauthorized ? challenges.unauthorized(error, scheme, offered) : error;
    }
  }

  return {
    authenticate,
    insufficientScope,
    bearer: (...required: ApiScope[]): Middleware =>
      async function checkBearer(ctx, next) {
        // RFC 9111 §5.2.2: only the caller may store the response, and must revalidate it before each use.
        ctx.set("Cache-Control", "private, no-cache");
        const caller = await authenticate(ctx, required);
        if (!covers(caller.scopes, required)) throw insufficientScope(caller, required);
        return next();
      },
  };
}

/** The scheme must be the one that the token was issued for (RFC 9449 §7.1 and §7.2). @throws Unauthorized */
function checkScheme(scheme: Scheme, active: ActiveToken): void {
  if (schemeOf(active) === "DPoP") {
    if (scheme === "DPoP") return;
    throw invalidToken("The access token is bound to a key. Send it with the DPoP scheme and a proof.");
  }
  if (active.requiresDpop)
    throw invalidToken("The organization requires DPoP. Request a token with a DPoP proof.");
  if (scheme === "Bearer") return;
  throw invalidToken("The access token is not bound to a key. Send it with the Bearer scheme.");
}

function schemeOf({ jkt }: ActiveToken): Scheme {
  return jkt === undefined ? "Bearer" : "DPoP";
}

function invalidToken(message: string): Unauthorized {
  return new Unauthorized("invalid_token", message);
}

function suspended(): Problem {
  const detail = "The operator of this service suspended the organization. Contact the operator.";
  return new Problem(403, "organization_suspended", detail);
}

function actorOf({ userId, clientId }: ActiveToken, address: string): Actor {
  return userId ? { id: userId, via: clientId, address } : { id: clientId, address };
}

const SCHEMES = new Map<string, Scheme>([
  ["bearer", "Bearer"],
  ["dpop", "DPoP"],
]);

function readCredentials(ctx: Context, invalidRequest: (detail: string) => Problem): Credentials | undefined {
  const [, name = "", token = ""] = /^(\S+)(?: +([^ ].*))?$/.exec(ctx.get("authorization").trim()) ?? [];
  const scheme = SCHEMES.get(name.toLowerCase());
  const isRepeated = isSentTwice(ctx.req, "authorization");
  if (!isRepeated && (!scheme || token === "")) return undefined;
  // RFC 6750 §2: only one way of sending the token; in the URL it would end up in logs
  if (ctx.query.access_token !== undefined)
    throw invalidRequest("Send the access token only in the Authorization header.");
  // Node keeps the first of several, but a proxy in front may use the last.
  if (isRepeated || !scheme) throw invalidRequest("Send only one Authorization header.");
  if (!TOKEN.test(token)) throw invalidRequest("The Authorization header is malformed.");
  return { scheme, token };
}

const ALGS = DPOP_ALGS.join(" ");

/** Creates the challenges of a resource (RFC 9110 §11.6.1), which name the URL of its metadata (RFC 9728 §5.1). */
function createChallenges(metadataUrl: string) {
  function challenge(scheme: Scheme, parameters: Record<string, string>): string {
    const algs = scheme === "DPoP" && { algs: ALGS };
    const all = Object.entries({ ...parameters, ...algs, resource_metadata: metadataUrl });
    return `${scheme} ${all.map(([name, value]) => `${name}="${value}"`).join(", ")}`;
  }

  // RFC 9449 §7.2. Some clients read only the first challenge, so it has all parameters.
  const offerBoth = (parameters: Record<string, string>) =>
    `${challenge("Bearer", parameters)}, DPoP algs="${ALGS}"`;

  return {
    /** @param offered the scopes that the caller should request */
    missingToken(offered: readonly string[]): Problem {
      // RFC 6750 §3.1: no error code without credentials
      return new Problem(401, "missing_token", "Send an access token: Authorization: Bearer <token>.", {
        headers: { "WWW-Authenticate": offerBoth({ scope: offered.join(" ") }) },
      });
    },

    unauthorized({ code, message }: Unauthorized, scheme: Scheme, offered: readonly string[]): Problem {
      const parameters = { error: code, error_description: message, scope: offered.join(" ") };
      const header = scheme === "DPoP" ? challenge(scheme, parameters) : offerBoth(parameters);
      return new Problem(401, code, message, { headers: { "WWW-Authenticate": header } });
    },

    /** Names every required scope (RFC 6750 §3.1), and those that the caller has and must not lose. */
    insufficientScope(caller: AuthenticatedCaller, required: readonly string[]): Problem {
      const scope = [...new Set([...caller.scopes, ...required])].join(" ");
      const error_description = "The access token lacks a required scope.";
      const header = challenge(schemeOf(caller), { error: "insufficient_scope", error_description, scope });
      const detail = `This request requires the scope ${required.join(" ")}.`;
      return new Problem(403, "insufficient_scope", detail, { headers: { "WWW-Authenticate": header } });
    },

    invalidRequest(detail: string): Problem {
      const header = challenge("Bearer", { error: "invalid_request", error_description: detail });
      return new Problem(400, "invalid_request", detail, { headers: { "WWW-Authenticate": header } });
    },
  };
}

declare module "koa" {
  interface DefaultState {
    requestId: string;
    caller: AuthenticatedCaller;
    /** The query with its numbers and booleans converted, behind `readQuery`. */
    query: Record<string, unknown>;
  }
}

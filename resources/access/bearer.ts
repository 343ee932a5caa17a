import type { Context, Middleware } from "koa";
import type { By } from "./events.ts";
import type { CallLimits } from "./limits.ts";
import type { Actor } from "./links/links.ts";
import { isPaid } from "./plans.ts";
import type { ActiveToken, Introspect } from "./ports.ts";
import { Problem } from "./problem.ts";
import { type ApiScope, allowedByRole, covers } from "./scopes.ts";

type GateOptions = {
  introspect: Introspect;
  /** Audiences of tokens that are good here (RFC 8707). */
  audiences: readonly string[];
  /** What each call counts against. */
  limits: CallLimits;
  /** Where this resource describes itself (RFC 9728 §5.1). */
  metadataUrl: string;
};

/** Who calls: the live token of the request with the scopes that it opens now, and from where. */
export type Caller = ActiveToken & Actor;

/** The check in front of a resource. */
export type Gate = {
  /** Middleware that lets a live token with these scopes through and leaves it in `ctx.state.caller`. */
  bearer(...needed: ApiScope[]): Middleware;
  /** As `bearer`; `offered` is what the challenge names when no token came. */
  authenticate(ctx: Context, offered: readonly string[]): Promise<Caller>;
  /** Counts what came beside the first call of a request. @throws Problem 429 */
  countFurther(ctx: Context, caller: Caller, calls: number): Promise<void>;
  /** A 403 that names every scope an operation needs (RFC 6750 §3.1). */
  insufficientScope(needed: readonly string[]): Problem;
};

// RFC 6750 §2.1: b64token
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Makes the bearer check of one resource: RFC 6750 with the metadata of RFC 9728. */
export function createGate({ introspect, audiences, limits, metadataUrl }: GateOptions): Gate {
  const challenge = (parameters: Record<string, string>) => ({
    "WWW-Authenticate": `Bearer ${Object.entries({ ...parameters, resource_metadata: metadataUrl })
      .map(([name, value]) => `${name}="${value}"`)
      .join(", ")}`,
  });

  const invalidToken = (detail: string, offered: readonly string[]) =>
    new Problem(401, "invalid_token", detail, {
      headers: challenge({ error: "invalid_token", error_description: detail, scope: offered.join(" ") }),
    });

  const insufficientScope = (needed: readonly string[]) =>
    new Problem(403, "insufficient_scope", `This needs the scope ${needed.join(" ")}.`, {
      headers: challenge({
        error: "insufficient_scope",
        error_description: "The token lacks a scope that this needs.",
        scope: needed.join(" "),
      }),
    });

  async function authenticate(ctx: Context, offered: readonly string[]): Promise<Caller> {
    const token = readToken(ctx, challenge);
    if (token === undefined) {
      // RFC 6750 §3.1: no error code where no credentials were sent
      throw new Problem(401, "missing_token", "Send an access token: Authorization: Bearer <token>.", {
        headers: challenge({ scope: offered.join(" ") }),
      });
    }
    const active = await introspect(token);
    if (!active) throw invalidToken("The access token is unknown, expired or revoked.", offered);
    if (!audiences.includes(active.audience))
      throw invalidToken("The access token is for another resource.", offered);
    if (!isPaid(active.plan)) {
      throw new Problem(403, "plan_required", "The API and MCP need the Growth or the Premium plan.");
    }
    await limits.organization(ctx, active, 1);
    const scopes = new Set(allowedByRole(active.scopes, active.role));
    return { ...active, scopes, by: byOf(active, ctx.ip) };
  }

  return {
    authenticate,
    countFurther: (ctx, caller, calls) => limits.organization(ctx, caller, calls),
    insufficientScope,
    bearer: (...needed) =>
      async function checkBearer(ctx, next) {
        // RFC 9111 §5.2.2: what a token opened is kept by its caller alone, and asked for again before it is used.
        ctx.set("Cache-Control", "private, no-cache");
        const caller = await authenticate(ctx, needed);
        if (!covers(caller.scopes, needed)) throw insufficientScope(needed);
        ctx.state.caller = caller;
        return next();
      },
  };
}

/** A person by an app, or a client by itself. */
function byOf({ userId, clientId }: ActiveToken, address: string): By {
  return userId ? { actor: userId, via: clientId, address } : { actor: clientId, address };
}

/** The token of the request; nothing for no token, for another scheme, and for an empty one. */
function readToken(
  ctx: Context,
  challenge: (parameters: Record<string, string>) => Record<string, string>,
): string | undefined {
  const [, scheme = "", rest = ""] = /^(\S+)(?: +(.*))?$/.exec(ctx.get("authorization").trim()) ?? [];
  const isRepeated = (ctx.req.headersDistinct.authorization?.length ?? 0) > 1;
  if (!isRepeated && (scheme.toLowerCase() !== "bearer" || rest === "")) return undefined;
  const refuse = (detail: string) =>
    new Problem(400, "invalid_request", detail, {
      headers: challenge({ error: "invalid_request", error_description: detail }),
    });
  // RFC 6750 §2: one way of sending the token; in the address it would end up in logs
  if (ctx.query.access_token !== undefined) throw refuse("Send the access token in the header alone.");
  // Node keeps the first of several; what stands in front of us may go by the last.
  if (isRepeated) throw refuse("Send one Authorization header.");
  if (!TOKEN.test(rest)) throw refuse("The Authorization header is malformed.");
  return rest;
}

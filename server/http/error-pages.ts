import type { Context, Middleware } from "koa";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { Problem, toProblem, toProblemBody } from "../../resources/http/problem.ts";
import { lookOf, messagePage, standalonePage } from "../ui/page.ts";
import { compress } from "./compression.ts";
import { STANDALONE_POLICY } from "./security-headers.ts";

const TITLES: Record<number, string> = {
  403: "Access denied",
  404: "Page not found",
  413: "Request too large",
  429: "Please wait",
  503: "Please try again",
};

const UNREADABLE = "The request could not be read. Go back and try again.";

/** Codes of RFC 6749 §5.2 and §4.1.2.1 for ours. */
const OAUTH_CODES: Record<string, string> = {
  body_too_large: "invalid_request",
  internal_error: "server_error",
  invalid_json: "invalid_request",
  method_not_allowed: "invalid_request",
  unsupported_media_type: "invalid_request",
};

export type RespondWithError = (ctx: Context, problem: Problem) => void;

export function titleOf(status: number): string {
  return TITLES[status] ?? "Something went wrong";
}

/** Programs get RFC 6749 §5.2 below `/oauth`, else RFC 9457. */
export function createRespondWithError(
  { base, api, mcp }: PublicUrls,
  isOauthPath: (ctx: Context) => boolean,
): RespondWithError {
  const { host } = new URL(base);
  const apiPaths = [api, mcp].map((url) => new URL(url).pathname);
  const isOfApi = ({ path }: Context) => apiPaths.some((own) => path === own || path.startsWith(`${own}/`));

  function respondWithPage(ctx: Context, { status, message }: Problem) {
    ctx.type = "html";
    if (status === 421) {
      ctx.set("Content-Security-Policy", STANDALONE_POLICY);
      ctx.body = standalonePage("Wrong address", message, { href: base, text: `Go to ${host}` });
      return;
    }
    // The host of short links has no home page.
    const home = ctx.host === host ? { href: "/", text: "Go to the home page" } : undefined;
    const isUnreadable = status < 500 && status !== 404 && status !== 429;
    const look = lookOf({ name: ctx.get("host") || host, isDomain: false });
    ctx.body = messagePage(titleOf(status), isUnreadable ? UNREADABLE : message, home, look);
  }

  return function respondWithError(ctx, problem) {
    const { status, code, message } = problem;
    const { requestId } = ctx.state;
    ctx.status = status;
    ctx.set(problem.headers);
    if (!isOfApi(ctx) && ctx.accepts("json", "html") === "html") return respondWithPage(ctx, problem);
    if (isOauthPath(ctx)) {
      ctx.body = { error: OAUTH_CODES[code] ?? code, error_description: message, request_id: requestId };
      return;
    }
    ctx.body = toProblemBody(problem, base, requestId);
    ctx.type = "application/problem+json";
  };
}

/** Koa's own error response would drop the headers that every response has. */
export function handleErrors(onError: OnError, respond: RespondWithError): Middleware {
  return async function answerError(ctx, next) {
    try {
      await next();
      if (ctx.status !== 404 || ctx.body !== undefined) return;
      respond(ctx, new Problem(404, "not_found", "Check the URL and try again."));
    } catch (error) {
      if (ctx.headerSent) throw error;
      respond(ctx, clientErrorOf(error) ?? toProblem(error, () => onError(error, ctx)));
    }
    if (typeof ctx.body === "string") await compress(ctx);
  };
}

function clientErrorOf(error: unknown): Problem | undefined {
  const { status, expose } = error as { status?: number; expose?: boolean };
  if (!expose || status === undefined || status < 400 || status >= 500) return undefined;
  return new Problem(status, "invalid_request", UNREADABLE);
}

export type OnError = (error: unknown, ctx?: Pick<Context, "state">) => void;

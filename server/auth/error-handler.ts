import type { Context, Middleware } from "koa";
import { Problem, toProblem, toProblemBody } from "../../resources/http/problem.ts";
import { errorPage } from "../http/error-pages.ts";
import type { OnError } from "../http/on-error.ts";
import { prefersHtml } from "../http/request-body.ts";
import { describeWait } from "../rate-limits/store.ts";
import { HOME } from "./return-to.ts";

/** A request that needs a user who is signed in, or signed in recently. Browsers are sent to the login page and back. */
export class SignInRequired extends Problem {
  readonly returnTo: string;
  /** Whether the user is signed in, but not recently enough. */
  readonly again: boolean;

  constructor(returnTo: string, { again }: { again: boolean }) {
    if (again) super(403, "reauthentication_required", "For your security, please sign in again.");
    else {
      // RFC 9110 §11.6.1: a 401 names the authentication scheme
      super(401, "sign_in_required", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } });
    }
    this.returnTo = returnTo;
    this.again = again;
  }
}

/** Returns the error of a rate limit. @param wait seconds until the next attempt is allowed */
export function tooManyRequests(wait: number): Problem {
  const headers = { "Retry-After": String(wait) };
  return new Problem(429, "too_many_requests", `Too many requests. Try again in ${describeWait(wait)}.`, {
    headers,
  });
}

const DASHBOARD = { href: HOME, text: "Go to the dashboard" };
/** Titles of pages by error code, where that of the status says less. */
const TITLES: Record<string, string> = {
  link_invalid: "This link is no longer valid",
  invitation_invalid: "This invitation is no longer valid",
  organization_suspended: "This organization is suspended",
};

type ErrorOptions = { base: string; onError: OnError };

/**
 * Answers errors with a page for browsers and with `application/problem+json` for programs. No response of `/auth` or
 * `/dashboard` may be cached.
 */
export function handleAuthErrors({ base, onError }: ErrorOptions): Middleware {
  return async function answerError(ctx, next) {
    ctx.set("Cache-Control", "no-store");
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined)
        throw new Problem(404, "not_found", "Check the URL and try again.");
    } catch (error) {
      const isPage = prefersHtml(ctx);
      if (isPage && error instanceof SignInRequired) return redirectToLogin(ctx, error);
      if (isPage && !(error instanceof Problem)) throw error; // handled by the error pages of the application
      const problem = toProblem(error, () => onError(error, ctx));
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = isPage
        ? errorPage(TITLES[problem.code] ?? problem.status, problem.message, DASHBOARD)
        : toProblemBody(problem, `${base}/docs`, ctx.state.requestId);
      ctx.type = isPage ? "html" : "application/problem+json";
    }
  };
}

function redirectToLogin(ctx: Context, { returnTo, again }: SignInRequired): void {
  const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
  ctx.status = 303;
  ctx.redirect(`/auth/login?${query}`);
}

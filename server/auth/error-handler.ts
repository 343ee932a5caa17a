import type { Context, Middleware } from "koa";
import { Problem, retryLater, toProblem, toProblemBody } from "../../resources/http/problem.ts";
import { type OnError, titleOf } from "../http/error-pages.ts";
import { HOME, invitationIn, seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { describeWait } from "../rate-limits/store.ts";
import { messagePage, type PageLink } from "../ui/page.ts";

/** RFC 9110 §11.6.1: a 401 names the authentication scheme. RFC 6750 §3: it has a parameter. */
const CHALLENGE = { "WWW-Authenticate": 'Bearer realm="dashboard"' };

export class SignInRequired extends Problem {
  readonly returnTo: string;
  readonly again: boolean;

  constructor(returnTo: string, { again }: { again: boolean }) {
    if (again) super(403, "reauthentication_required", "For your security, please sign in again.");
    else super(401, "sign_in_required", "Sign in first.", { headers: CHALLENGE });
    this.returnTo = returnTo;
    this.again = again;
  }
}

/** Throws Problem 429 if there are seconds to wait. `what` is what was counted. */
export function enforceLimit(wait: number, what = "requests"): void {
  if (wait)
    throw retryLater(429, "too_many_requests", `Too many ${what}. Try again in ${describeWait(wait)}.`, wait);
}

/** Runs what a form requests. If it is refused, `show` renders the form again. */
export async function redisplayIfRefused(
  ctx: Context,
  run: () => Promise<unknown>,
  show: (problem: Problem) => unknown,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { status, headers } = error;
    // Browsers can't answer a challenge.
    if (status === 401) ctx.status = 400;
    else {
      ctx.status = status;
      ctx.set(headers);
    }
    await show(error);
  }
}

/** The first step of a route that anyone may call: nothing of the request has been read yet. */
export function limitVisits(
  { authenticationLimits }: { authenticationLimits: AuthenticationLimits },
  kind: Parameters<AuthenticationLimits["visit"]>[0],
  what?: string,
): Middleware {
  return async function limitVisit(ctx, next) {
    enforceLimit(await authenticationLimits.visit(kind, ctx.ip), what);
    return next();
  };
}

export function unauthorized(code: string, detail: string): Problem {
  return new Problem(401, code, detail, { headers: CHALLENGE });
}

export const SIGN_IN: PageLink = { href: "/auth/login", text: "Sign in" };

export function showMessage(
  ctx: Context,
  status: number,
  title: string,
  text: string,
  next?: PageLink,
): void {
  ctx.status = status;
  ctx.type = "html";
  ctx.body = messagePage(title, text, next);
}

/** For sign-ins that have to begin again. */
export function showSignInError(ctx: Context, status: number, title: string, text: string): void {
  showMessage(ctx, status, title, text, { href: "/auth/login", text: "Go to sign-in" });
}

export const DASHBOARD: PageLink = { href: HOME, text: "Go to the dashboard" };
const TITLES: Record<string, string> = {
  link_invalid: "This link is no longer valid",
  invitation_invalid: "This invitation is no longer valid",
  organization_suspended: "This organization is suspended",
};

/** Answers with a page for browsers and problem JSON for programs, neither of which may be cached. */
export function handleAuthErrors({ base, onError }: { base: string; onError: OnError }): Middleware {
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
        ? messagePage(TITLES[problem.code] ?? titleOf(problem.status), problem.message, DASHBOARD)
        : toProblemBody(problem, base, ctx.state.requestId);
      ctx.type = isPage ? "html" : "application/problem+json";
    }
  };
}

/** Most visitors with an invitation have no account yet. */
export function redirectToLogin(
  ctx: Context,
  { returnTo, again }: { returnTo: string; again?: boolean },
): void {
  const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
  seeOther(ctx, `/auth/${!again && invitationIn(returnTo) ? "register" : "login"}?${query}`);
}

import type { Context, Middleware } from "koa";
import { asProblem, notFound, Problem, toBody } from "../../resources/problem.ts";
import type { OnError } from "../parts.ts";
import { messagePage } from "../views/page.ts";
import { prefersHtml } from "./input.ts";
import { HOME } from "./return-to.ts";

/** A refusal that ends when the person signs in, after which he or she is brought back. */
export class SignInRequired extends Problem {
  readonly returnTo: string;
  /** Signed in already, but too long ago for this. */
  readonly again: boolean;

  constructor(returnTo: string, { again }: { again: boolean }) {
    if (again)
      super(403, "reauthentication_required", "The sign-in is too long ago for this: sign in again.");
    else {
      // RFC 9110 §11.6.1: a 401 says how to authenticate
      super(401, "sign_in_required", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } });
    }
    this.returnTo = returnTo;
    this.again = again;
  }
}

/** Refuses what came too often. @param wait seconds until it may come again */
export function tooMany(wait: number): Problem {
  const headers = { "Retry-After": String(wait) };
  return new Problem(429, "too_many_requests", `Too many requests. Try again in ${wait} seconds.`, {
    headers,
  });
}

type RefusalOptions = { base: string; onError: OnError };

/**
 * Turns what is thrown below it into a page for people, and into `application/problem+json` for programs. Neither that
 * nor what is answered below it is for any cache.
 */
export function explainRefusals({ base, onError }: RefusalOptions): Middleware {
  return async function explainRefusal(ctx, next) {
    ctx.set("Cache-Control", "no-store");
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) throw notFound("address");
    } catch (error) {
      const isPage = prefersHtml(ctx);
      if (isPage && error instanceof SignInRequired) return askToSignIn(ctx, error);
      if (isPage && !(error instanceof Problem)) throw error; // the page for it is made further out
      const problem = asProblem(error, () => onError(error, ctx));
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.body = isPage
        ? messagePage("This did not work", problem.message, { href: HOME, text: "To the dashboard" })
        : toBody(problem, `${base}/docs`, ctx.state.requestId);
      ctx.type = isPage ? "html" : "application/problem+json";
    }
  };
}

function askToSignIn(ctx: Context, { returnTo, again }: SignInRequired): void {
  const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
  ctx.status = 303;
  ctx.redirect(`/auth/login?${query}`);
}

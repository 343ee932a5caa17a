import type { Context, Middleware } from "koa";
import { firstSegmentOf, isAt, mount } from "../../resources/http/routing.ts";
import { prefersHtml } from "./request-body.ts";

const GUESSES: Record<string, string> = {
  "/login": "/auth/login",
  "/signin": "/auth/login",
  "/register": "/auth/register",
  "/signup": "/auth/register",
  // Never signs out: any site could link here. Every page of the dashboard has the button.
  "/logout": "/dashboard/account",
};

/** The same, where programs get JSON. */
const PAGE_GUESSES: Record<string, string> = {
  "/auth": "/auth/login",
  "/auth/": "/auth/login",
  "/auth/logout": "/dashboard/account",
  "/auth/passkey": "/auth/login",
  "/dashboard/organizations": "/dashboard",
};

// The forms of the settings page have the addresses of what they change.
const SETTING =
  /^(\/dashboard\/organizations\/[^/]+)\/(members\/require-second-factor|fallback-url|time-zone)$/;

// A form that is shown again with its errors has the URL that it was sent to; reloading leads to the page, group 1.
const FORM_ACTIONS = [
  /^(\/dashboard\/account)\/(password|delete|sessions\/.+|identities(\/.+)?)$/,
  /^(\/dashboard\/organizations\/[^/]+\/members)\/[^/]+(\/reset-link)?$/,
  /^(\/dashboard\/organizations\/[^/]+)\/invitations\/[^/]+\/delete$/,
  /^(\/dashboard\/organizations\/[^/]+\/client)\/(secrets\/[^/]+\/delete|require-dpop|fapi)$/,
  /^(\/dashboard\/organizations\/[^/]+\/client\/redirect-uris)\/.+$/,
  /^(\/dashboard\/organizations\/[^/]+\/workload-identity)\/[^/]+\/delete$/,
  /^(\/dashboard\/organizations\/[^/]+\/links)\/selection$/,
  /^(\/dashboard\/organizations\/[^/]+\/webhooks\/[^/]+)\/(test|deliveries\/[^/]+\/resend)$/,
];

export const GUESSED_SEGMENTS = ["auth", "dashboard", ...Object.keys(GUESSES).map(firstSegmentOf)];

/** Redirects after a form, and never with 307, which would repeat the form (RFC 9700 §4.12). */
export function seeOther(ctx: Context, to: string): void {
  ctx.status = 303;
  ctx.redirect(to);
}

/** Other pages of the dashboard have no slash to remove, and the documentation redirects its own. */
export function redirectDashboardSlash(base: string): Middleware {
  return mount(isAt(`${base}/dashboard/`), [
    async function redirectSlash(ctx, next) {
      if (!isRead(ctx)) return next();
      ctx.status = 308;
      ctx.redirect(`/dashboard${ctx.search}`);
    },
  ]);
}

export function redirectGuesses(base: string): Middleware {
  const { host } = new URL(base);
  return async function redirectGuess(ctx, next) {
    const target = isRead(ctx) && ctx.host === host ? targetOf(ctx) : undefined;
    if (!target) return next();
    ctx.set("Cache-Control", "no-store");
    ctx.redirect(target);
  };
}

function targetOf(ctx: Context): string | undefined {
  const { path } = ctx;
  if (Object.hasOwn(GUESSES, path)) return `${GUESSES[path]}${ctx.search}`;
  const page = Object.hasOwn(PAGE_GUESSES, path) ? PAGE_GUESSES[path] : pageOfForm(path);
  return page && prefersHtml(ctx) ? page : undefined;
}

function pageOfForm(path: string): string | undefined {
  if (!path.startsWith("/dashboard/")) return undefined;
  const [, organization] = SETTING.exec(path) ?? [];
  if (organization) return `${organization}/settings`;
  for (const pattern of FORM_ACTIONS) {
    const [, page] = pattern.exec(path) ?? [];
    if (page) return page;
  }
  return undefined;
}

function isRead({ method }: Context): boolean {
  return method === "GET" || method === "HEAD";
}

export const HOME = "/dashboard";

// Browsers read "//host" and "/\\host" as another host, and drop control characters.
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/;
// Authorization requests, and pages that require a session. No others: a short link redirects to any site its owner chose.
const PAGES = /^\/(dashboard($|\/)|device$|interaction\/|oauth\/authorize$)/;
// Any origin works: resolving against it shows whether the path would leave the origin.
const PROBE = "https://own.invalid";

/** Returns `HOME` unless the path is an authorization request, or a page that requires a session. */
export function safeReturnTo(text: unknown): string {
  if (typeof text !== "string" || !OWN_PATH.test(text)) return HOME;
  const url = URL.parse(text, PROBE);
  if (url?.origin !== PROBE || !PAGES.test(url.pathname)) return HOME;
  // An authorization request gets no fragment, which redirects would pass on to the app.
  return url.pathname + url.search + (url.pathname.startsWith(HOME) ? url.hash : "");
}

/** Returns the token of the invitation that a path leads to. */
export function invitationIn(returnTo: string): string | undefined {
  return /^\/dashboard\/invitations\/([\w-]+)$/.exec(returnTo)?.[1];
}

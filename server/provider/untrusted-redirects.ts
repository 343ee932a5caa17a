import type { ErrorOut, KoaContextWithOIDC, Provider } from "oidc-provider";
import { clientKindOf } from "../../adapters/oauth/app-policy.ts";
import { isKnownTarget } from "../clients/app-policy.ts";
import { redirectTargetOf } from "../clients/redirect-uris.ts";

// The URL of the sign-in page contains this one, and Node.js accepts 16 KB of headers.
const URL_MAX = 4096;

/** The errors of a valid request with `prompt=none` (OpenID Connect Core §3.1.2.6). */
const SILENT_ERRORS = new Set([
  "login_required",
  "consent_required",
  "interaction_required",
  "account_selection_required",
]);

/** RFC 9700 §4.11.2: visitors register clients themselves, so a link to this service could lead to any website. */
export function refuseUntrustedRedirects(provider: Provider): void {
  provider.on("authorization.error", (ctx, error) => {
    if (ctx.oidc.route !== "authorization" || isTrusted(ctx, error)) return;
    error.allow_redirect = false;
    // oidc-provider has set 303 for `prompt=none`.
    if (ctx.status < 400) ctx.status = 400;
  });
}

/** RFC 9700 §4.11.2: the user is authenticated first, but a session doesn't make a registered client trusted. */
function isTrusted(ctx: KoaContextWithOIDC, error: { error: string }): boolean {
  const { client, session } = ctx.oidc;
  if (isKnownTarget(String(paramsOf(ctx).redirect_uri))) return true;
  const isSignedIn = session?.accountId !== undefined;
  switch (clientKindOf(client?.clientId ?? "")) {
    case "organization":
      return isSignedIn || SILENT_ERRORS.has(error.error);
    case "document":
      return isSignedIn;
    case "registered":
      return false;
    case "service":
      return true;
  }
}

/**
 * Returns whether the user must sign in before the error is sent to the redirect URI (RFC 9700 §4.11.2). An error page is
 * shown instead with `prompt=none`, after a server error, and for clients that registered themselves.
 */
export function requiresSignIn(ctx: KoaContextWithOIDC): boolean {
  const { client, session, route } = ctx.oidc;
  if (route !== "authorization" || ctx.method !== "GET" || ctx.status >= 500) return false;
  if (ctx.originalUrl.length > URL_MAX) return false;
  const prompts = String(paramsOf(ctx).prompt ?? "").split(" ");
  const isSelfRegistered = clientKindOf(client?.clientId ?? "") === "registered";
  return session?.accountId === undefined && !isSelfRegistered && !prompts.includes("none");
}

/** Returns the response to offer (RFC 6749 §4.1.2.1); undefined if the redirect URI isn't one of the client. */
export function errorResponseLink(
  ctx: KoaContextWithOIDC,
  out: ErrorOut,
): { href: string; name: string } | undefined {
  const { redirect_uri: uri } = paramsOf(ctx);
  if (typeof uri !== "string" || !ctx.oidc.client?.redirectUriAllowed(uri)) return undefined;
  const url = URL.parse(uri);
  for (const [name, value] of Object.entries(out)) {
    if (value !== undefined) url?.searchParams.set(name, String(value));
  }
  return url ? { href: url.href, name: redirectTargetOf(uri).name } : undefined;
}

/** Covers requests that were rejected before oidc-provider read their parameters. */
function paramsOf({ oidc, query }: KoaContextWithOIDC): Record<string, unknown> {
  return oidc.params ?? query;
}

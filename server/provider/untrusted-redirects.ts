import type { ErrorOut, KoaContextWithOIDC, Provider } from "oidc-provider";
import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import { isKnownTarget } from "../clients/known-registrations.ts";
import { redirectTargetOf } from "../clients/redirect-uris.ts";

/** The errors of a valid request with `prompt=none` (OpenID Connect Core §3.1.2.6). */
const SILENT_ERRORS = new Set([
  "login_required",
  "consent_required",
  "interaction_required",
  "account_selection_required",
]);

/**
 * Shows the errors of an authorization request on a page of ours unless the redirect URI is trusted: tenants and visitors
 * register clients themselves, so a link to this service could lead to any website (RFC 9700 §4.11.2).
 */
export function refuseUntrustedRedirects(provider: Provider): void {
  provider.on("authorization.error", (ctx, error) => {
    if (ctx.oidc.route !== "authorization" || isTrusted(ctx, error)) return;
    error.allow_redirect = false;
    // oidc-provider has set 303 for `prompt=none`.
    if (ctx.status < 400) ctx.status = 400;
  });
}

/**
 * RFC 9700 §4.11.2: the user is authenticated first, except for silent authentication, which only the client of an
 * organization can complete. A registered client has no owner, so a session doesn't make its website trusted.
 */
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
 * Returns the authorization error response (RFC 6749 §4.1.2.1) to offer on the error page, for the user to decide. Undefined
 * if the redirect URI isn't one of the client.
 */
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

/** Returns the parameters, also those of a request that was rejected before oidc-provider read them. */
function paramsOf({ oidc, query }: KoaContextWithOIDC): Record<string, unknown> {
  return oidc.params ?? query;
}

import type { Provider } from "oidc-provider";
import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import { isKnownTarget } from "../clients/known-registrations.ts";

/**
 * Shows the errors of a registered client on a page of ours, unless its redirect URI is known or the user has seen one of
 * our pages: anyone can register, so a link to this service could lead to any website (RFC 9700 §4.11.2).
 */
export function refuseUntrustedRedirects(provider: Provider): void {
  provider.on("authorization.error", (ctx, error) => {
    const { route, client, params = ctx.query } = ctx.oidc;
    if (route !== "authorization" || clientKindOf(client?.clientId ?? "") !== "registered") return;
    if (isKnownTarget(String(params.redirect_uri))) return;
    error.allow_redirect = false;
    // The library has set 303 for `prompt=none`.
    if (ctx.status < 400) ctx.status = 400;
  });
}

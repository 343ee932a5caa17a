import { Provider } from "oidc-provider";
import { withImplied } from "../../../resources/access/scopes.ts";

const OFFLINE = "offline_access";

/**
 * Seam: a refresh request may name the granted scopes and the read scopes that they include.
 * No option: oidc-provider compares the requested scopes with those of the refresh token as text.
 * Upstream would have to offer: an option that decides which scopes a refresh token covers.
 */
export function coverImpliedScopes({ RefreshToken }: Provider): void {
  Object.defineProperty(RefreshToken.prototype, "scopes", {
    configurable: true,
    get(this: { scope?: string }) {
      const scopes = new Set(this.scope?.split(" "));
      const { oidc } = Provider.ctx ?? {};
      if (!oidc?.params?.scope) return scopes;
      // RFC 6749 §6. Clients repeat the scope of the authorization request, where an `offline_access` without
      // `prompt=consent` was dropped (OpenID Connect Core §11). It adds nothing here, so it is accepted only with
      // another scope.
      const isOnlyScope = [...oidc.requestParamScopes].every((scope) => scope === OFFLINE);
      if (isOnlyScope) scopes.delete(OFFLINE);
      else scopes.add(OFFLINE);
      return withImplied(scopes);
    },
  });
}

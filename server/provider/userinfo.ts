import { type AccessToken, errors, Provider } from "oidc-provider";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { lacksKey } from "./dpop.ts";
import { hasApiAccess } from "./require-api-access.ts";

type StoredToken = { active?: ActiveToken; aud?: unknown };

/**
 * Lets every access token with `openid` read the user's claims (OpenID Connect Core §5.3). The library refuses tokens
 * with an audience, and all of ours have one. A token is valid here if introspection says that it is active.
 */
export function openUserinfo({ AccessToken, ClientCredentials }: Provider): void {
  const find = AccessToken.find.bind(AccessToken);
  Object.assign(AccessToken, {
    async find(...args: Parameters<typeof find>) {
      const token = (await find(...args)) as (AccessToken & StoredToken) | undefined;
      if (Provider.ctx?.oidc.route !== "userinfo") return token;
      const found = token ?? ((await ClientCredentials.find(...args)) as StoredToken | undefined);
      if (!found?.active || !hasApiAccess(found.active) || lacksKey(found.active)) return undefined;
      if (!token) throw new errors.InsufficientScope("the token has no user", "openid");
      // Only this copy: the row keeps its audience.
      return Object.assign(token, { aud: undefined });
    },
  });
}

/**
 * Adds `openid` to the scope of an access token that is issued with an id_token (RFC 6749 §5.1). The library leaves it out
 * of tokens for a resource, which makes them look like tokens that may not read the claims.
 */
export function addOpenIdScope({ AccessToken }: Provider): void {
  const { save } = AccessToken.prototype;
  Object.assign(AccessToken.prototype, {
    save(this: AccessToken): Promise<string> {
      if (includesOpenId()) this.scope = ["openid", this.scope].filter(Boolean).join(" ");
      return save.call(this);
    },
  });
}

/** Returns whether the code or refresh token that is being redeemed leads to an id_token. */
function includesOpenId(): boolean {
  const { oidc } = Provider.ctx ?? {};
  const { AuthorizationCode: code, RefreshToken: refreshToken, Grant: grant } = oidc?.entities ?? {};
  const source = code ?? refreshToken;
  if (!oidc || !source || !grant) return false;
  const isNarrowed = !code && Boolean(oidc.params?.scope); // RFC 6749 §6
  const scopes = isNarrowed ? oidc.requestParamScopes : new Set(source.scope?.split(" "));
  return scopes.has("openid") && grant.getOIDCScopeFiltered(new Set(["openid"])) === "openid";
}

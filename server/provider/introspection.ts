import type { Context } from "koa";
import {
  type AccessToken,
  type Client,
  type ClientCredentials,
  errors,
  type FindAccount,
  type KoaContextWithOIDC,
  type RefreshToken,
} from "oidc-provider";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { allowedByRole } from "../../resources/access/scopes.ts";
import { RESOURCE_SERVER } from "../clients/client-metadata.ts";
import { lacksKey } from "./dpop.ts";
import { hasApiAccess, isUsable } from "./require-api-access.ts";

type Introspected = AccessToken | ClientCredentials | RefreshToken;

/** RFC 7662 §2.2: a client its own tokens, the resource server every access token. */
export function mayIntrospect(findAccount: FindAccount) {
  return async (ctx: KoaContextWithOIDC, client: Client, token: Introspected): Promise<boolean> => {
    if (client.clientId === RESOURCE_SERVER) return token.kind !== "RefreshToken";
    if (token.clientId !== client.clientId) return false;
    if (!isUsable(client)) return false;
    return token.kind !== "RefreshToken" || canRefresh(findAccount, ctx, token);
  };
}

async function canRefresh(find: FindAccount, ctx: KoaContextWithOIDC, token: RefreshToken): Promise<boolean> {
  try {
    return Boolean(await find(ctx, token.accountId, token));
  } catch (error) {
    if (error instanceof errors.OIDCProviderError) return false;
    throw error;
  }
}

type IntrospectionResponse = { active?: boolean; token_type?: string; client_id?: string; sub?: string };

/**
 * RFC 7662 §2.2: an inactive token gets exactly `{"active":false}`. `resource-server` also gets the organization, its
 * plan, and whether an organization that the token depends on is suspended.
 */
export function completeIntrospection(ctx: Context): void {
  const body = ctx.body as IntrospectionResponse | undefined;
  if (!body?.active || !body.token_type) return; // a refresh token has no type
  const { client, entities } = (ctx as unknown as KoaContextWithOIDC).oidc;
  const { active } = (entities.AccessToken ?? entities.ClientCredentials) as { active?: ActiveToken };
  const isResourceServer = client?.clientId === RESOURCE_SERVER;
  if (!active || lacksKey(active) || (!isResourceServer && !hasApiAccess(active))) {
    ctx.body = { active: false };
    return;
  }
  // RFC 7662 §2.2: resource servers such as mod_oauth2 require a subject. A client's own token has the client's id.
  const scope = allowedByRole(active.scopes, active.role).join(" ") || undefined;
  Object.assign(body, { sub: body.sub ?? body.client_id, scope });
  if (isResourceServer) {
    Object.assign(body, {
      organization_id: active.organizationId,
      plan: active.plan,
      ...(active.suspended && { suspended: true }),
    });
  }
}

import { errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import type { GrantStore, ReusedKind } from "../../../adapters/oauth/grants.ts";
import { withImplied } from "../../../resources/access/scopes.ts";
import { checkProofOfCode, type Redeemable, requireProofToRedeem } from "../dpop.ts";

/**
 * Seam: what is checked before a code or a refresh token is used up, and what happens if it was used before.
 * No option: oidc-provider checks the resource and the key of a code only after the use, knows no organization that
 * requires DPoP, and revokes the grant of a reused token without saying that it was reused. It reads the grant in a
 * second query.
 * Upstream would have to offer: a hook before a grant source is consumed, an event for a reuse, and a way for adapters
 * to return the grant with its token.
 */

type Source = Redeemable & {
  grantId: string;
  /** The payload of the grant, which the storage returns with the token. */
  grant?: string;
  consumed?: boolean;
  /** Of a device code whose user has denied access. */
  error?: string;
  isReuse?: boolean;
  resourceIndicators: ReadonlySet<string>;
  consume(): Promise<void>;
};
type SourceModel = { prototype: Source; find(id: string, options?: object): Promise<Source | undefined> };
type GrantModel = {
  find(id: string, options?: object): Promise<object | undefined>;
  verify(payload: object, options?: object): Promise<object>;
  instantiate(payload: object): object;
};

/** Checks the proof and the resource first: a typo must not cost the whole grant. Records a reuse. */
export function checkBeforeUse(provider: Provider, { revokeReused }: Pick<GrantStore, "revokeReused">): void {
  const grants = keepGrants(provider.Grant as unknown as GrantModel);
  const models = {
    authorization_code: provider.AuthorizationCode,
    device_code: provider.DeviceCode,
    refresh_token: provider.RefreshToken,
  };
  for (const [kind, model] of Object.entries(models) as unknown as [ReusedKind, SourceModel][]) {
    const { find, prototype } = model;
    const { consume } = prototype;

    model.find = async function findToRedeem(id, options) {
      const source = await find.call(model, id, options);
      const { ctx } = Provider;
      if (!ctx || !source) return source;
      if (source.grant) grants.set(ctx, source);
      if (ctx.oidc.route === "token" && source.clientId === ctx.oidc.client?.clientId) {
        requireProofToRedeem(ctx, source);
        source.isReuse = source.consumed === true;
        source.consumed = false;
      }
      return source;
    };

    prototype.consume = async function consumeAfterChecks() {
      const { ctx } = Provider;
      if (ctx && this.isReuse) {
        await revokeReused(this.grantId, kind, ctx.ip); // RFC 9700 §4.14.2
        throw new errors.InvalidGrant("already used");
      }
      if (this.error === undefined) requireGrantedResource(this, ctx, provider.issuer);
      if (ctx && kind !== "refresh_token") await checkProofOfCode(ctx, this);
      return consume.call(this);
    };
  }
}

/** @throws InvalidTarget */
function requireGrantedResource(
  { resourceIndicators: granted }: Source,
  ctx: KoaContextWithOIDC | undefined,
  issuer: string,
): void {
  const resource = ctx?.oidc.params?.resource ?? (granted.size === 1 ? [...granted][0] : issuer);
  if (typeof resource !== "string" || !granted.has(resource)) throw new errors.InvalidTarget();
}

/** Lets a request find the grant that was read with its token, once: a later read may find it revoked. */
function keepGrants(model: GrantModel): WeakMap<object, Source> {
  const kept = new WeakMap<object, Source>();
  const { find } = model;
  model.find = async function findKept(id, options) {
    const { ctx } = Provider;
    const source = ctx && kept.get(ctx);
    if (!ctx || !source?.grant || source.grantId !== id) return find.call(model, id, options);
    kept.delete(ctx);
    return model.instantiate(await model.verify({ ...JSON.parse(source.grant), jti: id }, options));
  };
  return kept;
}

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

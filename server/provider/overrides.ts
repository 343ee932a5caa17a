import { type Client, errors, Provider } from "oidc-provider";
import { withChecksum } from "../../adapters/crypto/checksum.ts";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import { tokenTime } from "../../adapters/oauth/token-keys.ts";
import { withImplied } from "../../resources/access/scopes.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { createClientKeys } from "../clients/client-keys.ts";
import { matchLoopbackRoots } from "../clients/redirect-uris.ts";
import type { RegisteredClientIds } from "../clients/registered-client-id.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { createClientAssertions } from "./client-assertions.ts";
import { overrideClientAuthentication } from "./client-authentication.ts";
import { requireProofToRedeem, unbindConfidential } from "./dpop.ts";
import { overrideFindClient } from "./find-client.ts";
import { createIdentityAssertionHandler, type IdentityAssertionOptions } from "./identity-assertions.ts";
import { registerJwtBearer } from "./jwt-bearer.ts";
import { normalizeParameters } from "./request-parameters.ts";
import {
  ignoreEndedSessions,
  recordSessionUseOnSave,
  replaceSessionsAtOnce,
  reportLastProof,
} from "./sessions.ts";
import { refuseUntrustedRedirects } from "./untrusted-redirects.ts";
import { addOpenIdScope, openUserinfo } from "./userinfo.ts";
import { type AuthenticateWorkload, useAssertionsBeforeIssuing } from "./workloads.ts";

const OFFLINE = "offline_access";

/** What the overrides are made of. */
export type OverrideOptions = {
  clients: ClientStore;
  replays: ReplayStore;
  keySets: KeySets;
  authenticateWorkload: AuthenticateWorkload;
  /** Absent if clients may not register. */
  registeredIds: RegisteredClientIds | undefined;
  authenticationLimits: Pick<AuthenticationLimits, "assertions">;
  identityAssertions: IdentityAssertionOptions;
};

/**
 * Overrides what the library has no option for, on the prototypes that it creates for each provider. Each override
 * states its reason, and has a test that fails without it.
 */
export function applyOverrides(provider: Provider, options: OverrideOptions): void {
  const { clients, replays, keySets, registeredIds, authenticationLimits } = options;
  const assertions = createClientAssertions({
    provider,
    keySets,
    replays,
    limits: authenticationLimits.assertions,
    authenticateWorkload: options.authenticateWorkload,
    clientKeys: createClientKeys(clients, (error) => provider.emit("error", error)),
  });
  registerJwtBearer(provider, createIdentityAssertionHandler(provider, options.identityAssertions));
  normalizeParameters(provider, assertions);
  matchLoopbackRoots(provider);
  overrideFindClient(provider, clients, assertions, registeredIds);
  overrideClientAuthentication(provider, clients);
  detectReplays(provider, replays);
  useAssertionsBeforeIssuing(provider);
  buildUrlsFromIssuer(provider);
  prefixTokens(provider);
  extendModels(provider);
  addOpenIdScope(provider);
  openUserinfo(provider);
  recordSessionUseOnSave(provider);
  replaceSessionsAtOnce(provider);
  ignoreEndedSessions(provider);
  reportLastProof(provider);
  allowRefreshScopes(provider);
  checkResourceBeforeUse(provider);
  requireProofToRedeem(provider);
  refuseUntrustedRedirects(provider);
}

type Prototypes = {
  // The library's types include neither the context class nor the request of a Koa application.
  OIDCContext: { prototype: object };
  request: object;
};

/** URLs and cookies follow the issuer, not what the request or a proxy says. */
function buildUrlsFromIssuer(provider: Provider): void {
  const { OIDCContext, request } = provider as unknown as Prototypes;
  const protocol = new URL(provider.issuer).protocol.slice(0, -1);
  Object.defineProperty(request, "protocol", { configurable: true, get: () => protocol });
  Object.assign(OIDCContext.prototype, {
    urlFor: (name: string, options?: object) =>
      (provider.urlFor as (name: string, options?: object) => string)(name, options),
  });
}

/** Lets one INSERT decide which of several uses of a JWT is the first: the library reads before it writes. */
function detectReplays({ ReplayDetection }: Provider, replays: ReplayStore): void {
  Object.assign(ReplayDetection, {
    unique: (issuer: string, jti: string, exp: number) =>
      replays.useOnce({ issuer, jti, expiresAt: exp * 1000 }),
  });
}

/**
 * Prefixes and checksums let scanners find leaked tokens, and help people to tell one kind from another. With the time,
 * tokens are stored in the order in which they were issued.
 */
function prefixTokens(provider: Provider): void {
  const withPrefix = (prefix: string) => (id: string) => withChecksum(prefix + tokenTime() + id);
  onNewId(provider.AccessToken, withPrefix("lga_"));
  onNewId(provider.ClientCredentials, withPrefix("lga_"));
  const withRefreshPrefix = withPrefix("lgr_");
  onNewId(provider.RefreshToken, (id, token) => {
    unbindConfidential(token);
    return withRefreshPrefix(id);
  });
}

/**
 * Adds fields to what the library stores:
 * - grants: how the user signed in, the organization chosen on the consent page, the IP address of the user, and the answer to that page or the
 *   grant whose consent is remembered;
 * - sessions: where and when they were last used, how and when the user signed in, and the previous id while it is replaced;
 * - tokens: the generation of their client when it authenticated. Raising the client's generation revokes all of them,
 *   even one that is being issued;
 * - access tokens: `active`, what the database says about their validity;
 * - codes and refresh tokens: `holder`, the user and the state of the grant, and whether the organization requires DPoP.
 *   Read from the database and never stored.
 */
function extendModels(provider: Provider): void {
  for (const field of ["organizationId", "address", "answers", "remembers", "methods", "amr"])
    extendPayload(provider.Grant, field);
  for (const field of ["address", "userAgent", "seenAt", "methods", "provedAt", "credential", "replaces"])
    extendPayload(provider.Session, field);
  const { AccessToken, AuthorizationCode, ClientCredentials, RefreshToken } = provider;
  for (const model of [AccessToken, ClientCredentials]) extendPayload(model, "active");
  for (const model of [AuthorizationCode, RefreshToken]) {
    extendPayload(model, "holder");
    extendPayload(model, "requiresDpop");
  }
  for (const model of [AccessToken, ClientCredentials, RefreshToken]) {
    extendPayload(model, "generation");
    onNewId(model, (id, token) => {
      token.generation = token.client?.generation;
      return id;
    });
  }
}

type NewToken = { client?: Client; generation?: unknown; jkt?: string };

/** Runs `change` when a token is about to be stored, which is when it gets its id. */
function onNewId(model: { prototype: object }, change: (id: string, token: NewToken) => string): void {
  const { generateTokenId } = model.prototype as { generateTokenId(): string };
  Object.assign(model.prototype, {
    generateTokenId(this: NewToken) {
      return change(generateTokenId.call(this), this);
    },
  });
}

function extendPayload(model: object, field: string): void {
  const { IN_PAYLOAD } = model as { IN_PAYLOAD: string[] };
  Object.defineProperty(model, "IN_PAYLOAD", { configurable: true, get: () => [...IN_PAYLOAD, field] });
}

/** Lets a refresh request name the granted scopes and the read scopes that they include. */
function allowRefreshScopes(provider: Provider): void {
  Object.defineProperty(provider.RefreshToken.prototype, "scopes", {
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

type Redeemable = { consume(): Promise<void>; resourceIndicators: ReadonlySet<string> };

/** The library checks the resource only after it has consumed the code or token: a typo would cost the whole grant. */
function checkResourceBeforeUse({ AuthorizationCode, RefreshToken, issuer }: Provider): void {
  for (const { prototype } of [AuthorizationCode, RefreshToken] as unknown as { prototype: Redeemable }[]) {
    const { consume } = prototype;
    prototype.consume = async function consumeForResource() {
      const granted = this.resourceIndicators;
      const resource = Provider.ctx?.oidc.params?.resource ?? (granted.size === 1 ? [...granted][0] : issuer);
      if (typeof resource !== "string" || !granted.has(resource)) throw new errors.InvalidTarget();
      return consume.call(this);
    };
  }
}

import { decodeProtectedHeader } from "jose";
import { type Client, errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import type { IdentityStore } from "../../adapters/accounts/identities.ts";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { ClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { ReplayStore } from "../../adapters/oauth/replay.ts";
import type {
  EnterpriseAuthorizationStore,
  ManagedOrganization,
} from "../../adapters/organizations/enterprise-authorization.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { allowedByRole, BASIC_SCOPES, isApiScope, withImplied } from "../../resources/access/scopes.ts";
import type { KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import { ACCESS_TOKEN_LIFETIME } from "../settings/lifetimes.ts";
import { requireProof } from "./dpop.ts";
import { requireApiAccess } from "./require-api-access.ts";
import { canonicalResource } from "./resource-indicators.ts";
import { readProof } from "./seams/dpop-proofs.ts";
import { isMultiFactor } from "./sessions.ts";

/** The grant type of assertions (RFC 7523 §2.1). */
export const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
// The `typ` of an assertion about a user (draft-ietf-oauth-identity-assertion-authz-grant).
const ID_JAG = "oauth-id-jag+jwt";

// draft-ietf-oauth-identity-assertion-authz-grant §3: the assertion is made for one request.
const MAX_AGE_S = 300;

export type IdentityAssertionOptions = {
  urls: PublicUrls;
  /** The issuer whose users and assertions are trusted. Absent without an identity provider. */
  idpIssuer: string | undefined;
  clientPolicy: ClientPolicy;
  accounts: AccountStore;
  identities: IdentityStore;
  enterpriseAuthorization: EnterpriseAuthorizationStore;
  replays: ReplayStore;
  keySets: KeySets;
};

/** What an assertion entitles its client to. */
type Entitlement = { userId: string; organization: ManagedOrganization; resource: string; scopes: string[] };

/**
 * Registers the grant for assertions about a user, which also lists it in the metadata. The token of a workload never gets
 * here: sent without other authentication, it is the authentication of a `client_credentials` request.
 */
export function registerJwtBearer(provider: Provider, options: IdentityAssertionOptions): void {
  const handle = createIdentityAssertionHandler(provider, options);
  provider.registerGrantType(
    JWT_BEARER_GRANT,
    async (ctx) => {
      if (isAboutUser(ctx.oidc.params?.assertion)) return handle(ctx);
      throw new errors.InvalidRequest("an assertion must be sent with client_id and no other authentication");
    },
    ["assertion", "scope", "resource"],
    ["resource"],
  );
}

/** Returns whether an assertion claims to be about a user. */
export function isAboutUser(assertion: unknown): boolean {
  if (typeof assertion !== "string") return false;
  try {
    // RFC 7515 §4.1.9: a media type, in any case, whose `application/` may be omitted.
    const typ: unknown = decodeProtectedHeader(assertion).typ;
    return typeof typ === "string" && typ.toLowerCase().replace(/^application\//, "") === ID_JAG;
  } catch {
    return false;
  }
}

/**
 * Creates the handler of identity assertions (draft-ietf-oauth-identity-assertion-authz-grant §4.4, MCP
 * Enterprise-Managed Authorization §5): an assertion of the identity provider about one of its users gets the client an
 * access token for that user, without a refresh token. The grant is stored like one that a user approved.
 */
function createIdentityAssertionHandler(
  provider: Provider,
  options: IdentityAssertionOptions,
): (ctx: KoaContextWithOIDC) => Promise<void> {
  return async (ctx) => {
    const client = ctx.oidc.client as Client;
    requireProof(ctx, organizationOf(client));
    const assertion = String(ctx.oidc.params?.assertion);
    const verified = await verify(assertion, options, client).catch(rethrow);
    const entitlement = await findEntitlement(ctx, verified, options);
    const proof = await readProof(provider, ctx);
    // Last, so that an assertion that got no token may be sent again, such as with the nonce that a proof lacked.
    await useJwtOnce(options.replays, assertion, verified).catch(rethrow);
    ctx.body = await issueToken(provider, ctx, entitlement, proof);
  };
}

async function verify(
  assertion: string,
  { idpIssuer, urls, keySets }: IdentityAssertionOptions,
  client: Client,
): Promise<VerifiedJwt> {
  if (!idpIssuer) throw new InvalidJwt("this server trusts no identity provider");
  const verified = await verifyJwt(assertion, {
    issuer: idpIssuer,
    audiences: [urls.base],
    isSingleAudience: true, // draft-ietf-oauth-identity-assertion-authz-grant
    keys: await keySets.ofIssuer(idpIssuer),
    type: ID_JAG,
    maxAgeS: MAX_AGE_S,
    requiredClaims: ["sub", "jti", "client_id"],
  });
  if (verified.claims.client_id !== client.clientId) throw new InvalidJwt("client_id names another client");
  return verified;
}

async function findEntitlement(
  ctx: KoaContextWithOIDC,
  { claims }: VerifiedJwt,
  options: IdentityAssertionOptions,
): Promise<Entitlement> {
  const resource = findResource(ctx, claims.resource, options.urls);
  const userId = await findUser(claims, options);
  const { clientId } = ctx.oidc.client as Client;
  const organization = await findOrganization({ userId, clientId, tenant: claims.aud_tenant }, options);
  requireProof(ctx, organization);
  // The draft's §3.1: `amr` is how the user signed in at the identity provider.
  if (organization.requiresSecondFactor && !isMultiFactor({ amr: methodsOf(claims.amr) })) {
    throw invalidGrant("the user's organization requires a second factor, so amr must contain mfa");
  }
  if (!options.clientPolicy(clientId, organization.appPolicy, organization.role)) {
    throw invalidGrant("the user's organization does not allow this app");
  }
  const requested = findScopes(ctx, claims.scope);
  const scopes = allowedByRole(requested, organization.role);
  if (scopes.length === 0) {
    throw new errors.InvalidScope("none of the requested scopes is allowed", requested.join(" "));
  }
  return { userId, organization, resource, scopes };
}

/** Returns the resource of the assertion, which a request may repeat but not change. @throws InvalidTarget */
function findResource(
  { oidc }: KoaContextWithOIDC,
  claimed: unknown,
  { base, api, mcp }: PublicUrls,
): string {
  const requested = oidc.params?.resource;
  const unnamed = claimed === undefined ? (requested ?? base) : claimed;
  const named = typeof claimed === "string" ? canonicalResource(claimed) : unnamed;
  const isChanged = requested !== undefined && requested !== named;
  if (typeof named !== "string" || isChanged || ![base, api, mcp].includes(named)) {
    throw new errors.InvalidTarget();
  }
  return named;
}

/** Returns the authentication methods of an assertion, which may claim anything. */
function methodsOf(amr: unknown): string[] {
  return Array.isArray(amr) ? amr : [];
}

/** Returns the user whose account is linked to the subject. @throws InvalidGrant */
async function findUser(
  { iss = "", sub = "" }: VerifiedJwt["claims"],
  { identities, accounts }: IdentityAssertionOptions,
): Promise<string> {
  const userId = await identities.findUserId({ issuer: iss, subject: sub });
  const account = userId ? await accounts.find(userId) : undefined;
  if (!userId || !account || account.disabled) throw invalidGrant("sub is not linked to an active account");
  return userId;
}

/** Returns the user's organization that enabled this grant, by `aud_tenant` if there are several. @throws InvalidGrant */
async function findOrganization(
  { userId, clientId, tenant }: { userId: string; clientId: string; tenant: unknown },
  { enterpriseAuthorization }: IdentityAssertionOptions,
): Promise<ManagedOrganization> {
  const enabled = await enterpriseAuthorization.listByUser(userId, clientId);
  const candidates = tenant === undefined ? enabled : enabled.filter(({ id }) => id === tenant);
  const [organization, ...others] = candidates;
  if (!organization)
    throw invalidGrant("no organization of the user accepts enterprise-managed authorization");
  if (others.length > 0)
    throw invalidGrant("several organizations of the user match: aud_tenant must name one");
  requireApiAccess(organization, "the user's organization");
  return organization;
}

/** MCP Enterprise-Managed Authorization §7.2.1: the intersection of what is requested and what the assertion allows. */
function findScopes({ oidc }: KoaContextWithOIDC, claimed: unknown): string[] {
  const requested = [...oidc.requestParamScopes].filter(isApiScope);
  if (claimed === undefined) return requested.length > 0 ? requested : [...BASIC_SCOPES];
  // Not ignored: the identity provider meant to limit the token.
  if (typeof claimed !== "string") throw invalidGrant("scope must be a string");
  const allowed = withImplied(claimed.split(" ").filter(isApiScope));
  return requested.length > 0
    ? requested.filter((scope) => allowed.has(scope))
    : claimed.split(" ").filter(isApiScope);
}

async function issueToken(
  provider: Provider,
  ctx: KoaContextWithOIDC,
  { userId, organization, resource, scopes }: Entitlement,
  proof: Awaited<ReturnType<typeof readProof>>,
): Promise<object> {
  const client = ctx.oidc.client as Client;
  const grant = new provider.Grant({ accountId: userId, clientId: client.clientId });
  grant.addResourceScope(resource, [...withImplied(scopes)].join(" "));
  Object.assign(grant, { organizationId: organization.id, address: ctx.ip });
  // The client gets another assertion for another token, so the grant needs to last no longer than this one.
  const grantId = await saveFor(grant, ACCESS_TOKEN_LIFETIME + 60);
  const scope = scopes.join(" ");
  const token = new provider.AccessToken({ accountId: userId, client, grantId, gty: "jwt_bearer", scope });
  token.setAudience(resource);
  if (proof) token.setThumbprint("jkt", proof.thumbprint);
  ctx.oidc.entity("AccessToken", token);
  return {
    access_token: await token.save(),
    expires_in: token.expiration,
    scope,
    token_type: token.tokenType,
  };
}

function invalidGrant(description: string): errors.InvalidGrant {
  const error = new errors.InvalidGrant(description);
  error.error_description = `assertion is invalid: ${description}`;
  return error;
}

/** Only who has an assertion of the identity provider learns why it is invalid. */
function rethrow(error: unknown): never {
  throw error instanceof InvalidJwt ? invalidGrant(error.message) : error;
}

/** Stores a grant for a number of seconds. The types of oidc-provider omit the parameter. */
function saveFor(grant: object, seconds: number): Promise<string> {
  return (grant as { save(seconds: number): Promise<string> }).save(seconds);
}

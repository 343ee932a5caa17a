import { decodeProtectedHeader } from "jose";
import { type Client, errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { JWT_BEARER_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import type { MemberSettings } from "../../adapters/organizations/settings.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { allowedByRole, BASIC_SCOPES, isApiScope, withImplied } from "../../resources/access/scopes.ts";
import { tryTo } from "../../resources/try-to.ts";
import { createKeySets, type KeySets } from "../assertions/key-sets.ts";
import { InvalidJwt, useJwtOnce, type VerifiedJwt, verifyJwt } from "../assertions/verify-jwt.ts";
import { organizationOf } from "../clients/client-metadata.ts";
import type { Dependencies } from "../dependencies.ts";
import { ACCESS_TOKEN_LIFETIME } from "../settings/token-lifetimes.ts";
import { requireProof } from "./dpop.ts";
import { requireApiAccess } from "./require-api-access.ts";
import { canonicalResource } from "./resource-indicators.ts";
import { readProof } from "./seams/proofs.ts";
import { isMultiFactor } from "./seams/session-model.ts";

// The `typ` of an assertion about a user (draft-ietf-oauth-identity-assertion-authz-grant).
const ID_JAG = "oauth-id-jag+jwt";

// draft-ietf-oauth-identity-assertion-authz-grant §3: the assertion is made for one request.
const MAX_AGE_S = 300;

type Stores = Pick<Storage, "accounts" | "identities" | "organizationSettings" | "replays">;
export type IdentityAssertionOptions = Pick<
  Dependencies,
  "settings" | "urls" | "appPolicyCheck" | "fetchFromProvider"
> & { storage: Stores };

type Entitlement = { userId: string; organization: MemberSettings; resource: string; scopes: string[] };

/**
 * draft-ietf-oauth-identity-assertion-authz-grant §4.4, MCP Enterprise-Managed Authorization §5. Also lists the grant
 * in the metadata. Tokens of workloads authenticate `client_credentials` instead.
 */
export function registerJwtBearer(provider: Provider, options: IdentityAssertionOptions): void {
  const keySets = createKeySets(options.fetchFromProvider);

  async function handle(ctx: KoaContextWithOIDC): Promise<void> {
    const { assertion: given } = ctx.oidc.params ?? {};
    // RFC 7523 §3.1
    if (typeof given === "string" && !headerOf(given)) throw invalidGrant("the JWT is malformed");
    if (!isAboutUser(given))
      throw new errors.InvalidRequest("an assertion must be sent with client_id and no other authentication");
    const client = ctx.oidc.client as Client;
    requireProof(ctx, organizationOf(client));
    const assertion = String(ctx.oidc.params?.assertion);
    const verified = await verify(assertion, keySets, options, client).catch(rethrow);
    const entitlement = await findEntitlement(ctx, verified, options);
    const proof = await readProof(provider, ctx);
    // Last, so that an assertion that got no token may be sent again, such as with the nonce that a proof lacked.
    await useJwtOnce(options.storage.replays, assertion, verified).catch(rethrow);
    ctx.body = await issueToken(provider, ctx, entitlement, proof);
  }

  const parameters = ["assertion", "scope", "resource"];
  provider.registerGrantType(JWT_BEARER_GRANT, handle, parameters, ["resource"]);
}

export function isAboutUser(assertion: unknown): boolean {
  if (typeof assertion !== "string") return false;
  // RFC 7515 §4.1.9: a media type, in any case, whose `application/` may be omitted.
  const typ: unknown = headerOf(assertion)?.typ;
  return typeof typ === "string" && typ.toLowerCase().replace(/^application\//, "") === ID_JAG;
}

/** Undefined if it is no JWT. */
const headerOf = (assertion: string) => tryTo(() => decodeProtectedHeader(assertion));

async function verify(
  assertion: string,
  keySets: KeySets,
  { settings: { IDP_ISSUER: issuer }, urls }: IdentityAssertionOptions,
  client: Client,
): Promise<VerifiedJwt> {
  if (!issuer) throw new InvalidJwt("this server trusts no identity provider");
  const verified = await verifyJwt(assertion, {
    issuer,
    audiences: [urls.base],
    isSingleAudience: true, // draft-ietf-oauth-identity-assertion-authz-grant
    keys: await keySets.ofIssuer(issuer),
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
  { urls, storage, appPolicyCheck }: IdentityAssertionOptions,
): Promise<Entitlement> {
  const resource = findResource(ctx, claims.resource, urls);
  const userId = await findUser(claims, storage);
  const { clientId } = ctx.oidc.client as Client;
  const organization = await findOrganization({ userId, clientId, tenant: claims.aud_tenant }, storage);
  requireProof(ctx, organization);
  // The draft's §3.1: `amr` is how the user signed in at the identity provider.
  const amr = Array.isArray(claims.amr) ? claims.amr : [];
  const { requiresSecondFactor, role } = organization;
  if (requiresSecondFactor && role !== "member" && !isMultiFactor({ amr }))
    throw invalidGrant("the user's organization requires a second factor, so amr must contain mfa");
  if (!appPolicyCheck(clientId, organization, role))
    throw invalidGrant("the user's organization does not allow this app");
  const requested = findScopes(ctx, claims.scope);
  const scopes = allowedByRole(requested, role);
  if (scopes.length === 0)
    throw new errors.InvalidScope("none of the requested scopes is allowed", requested.join(" "));
  return { userId, organization, resource, scopes };
}

/** A request may repeat the resource of the assertion but not change it. Throws InvalidTarget. */
function findResource(
  { oidc }: KoaContextWithOIDC,
  claimed: unknown,
  { base, api, mcp, mcpRead }: PublicUrls,
): string {
  const requested = oidc.params?.resource;
  const unnamed = claimed === undefined ? (requested ?? base) : claimed;
  const named = typeof claimed === "string" ? canonicalResource(claimed) : unnamed;
  const isChanged = requested !== undefined && requested !== named;
  if (typeof named !== "string" || isChanged || ![base, api, mcp, mcpRead].includes(named))
    throw new errors.InvalidTarget();
  return named;
}

/** Throws InvalidGrant if no user is linked to the subject. */
async function findUser(
  { iss = "", sub = "" }: VerifiedJwt["claims"],
  { identities, accounts }: Stores,
): Promise<string> {
  const userId = await identities.findUserId({ issuer: iss, subject: sub });
  const account = userId ? await accounts.find(userId) : undefined;
  if (!userId || !account || account.disabled) throw invalidGrant("sub is not linked to an active account");
  return userId;
}

/** `aud_tenant` decides if several organizations enabled this grant. Throws InvalidGrant. */
async function findOrganization(
  { userId, clientId, tenant }: { userId: string; clientId: string; tenant: unknown },
  { organizationSettings }: Stores,
): Promise<MemberSettings> {
  const all = await organizationSettings.listByUser(userId, clientId);
  const enabled = all.filter(({ enterpriseAuthorization }) => enterpriseAuthorization);
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
  const named = claimed.split(" ").filter(isApiScope);
  if (requested.length === 0) return named;
  const allowed = withImplied(named);
  return requested.filter((scope) => allowed.has(scope));
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
  const { save } = grant as { save(seconds: number): Promise<string> }; // whose types omit the parameter
  const grantId = await save.call(grant, ACCESS_TOKEN_LIFETIME + 60);
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

/** Throws InvalidGrant with the reason why the assertion is invalid. */
function rethrow(error: unknown): never {
  throw error instanceof InvalidJwt ? invalidGrant(error.message) : error;
}

import { timingSafeEqual } from "node:crypto";
import { type Client, errors, Provider } from "oidc-provider";
import type { ClientStore } from "../../adapters/clients.ts";
import { sha256 } from "../../adapters/hash.ts";
import { isPaid } from "../../resources/plans.ts";
import { withImplied } from "../../resources/scopes.ts";
import type { Limits } from "../limits.ts";
import { canonicalResource, planRequired } from "./audiences.ts";
import { organizationOf, RESOURCE_SERVER, secretsOf } from "./clients.ts";
import { checkParameterSizes } from "./parameter-sizes.ts";
import { ignoreDeadSessions, noteUseOnSave } from "./sessions.ts";

const OFFLINE = "offline_access";
// How often the last use of a secret is written down.
const LAST_USE_STEP_MS = 60_000;

/**
 * What the library has no option for, done on the prototypes that it makes for each provider. Every override stands
 * here with its reason, and each has a test that fails without it.
 */
export function override(
  provider: Provider,
  clients: ClientStore,
  limits: Pick<Limits, "checkClient">,
): void {
  canonicaliseParameters(provider);
  checkClientIds(provider);
  fixAddresses(provider);
  compareHashedSecrets(provider, clients, limits);
  prefixTokens(provider);
  storeMore(provider);
  noteUseOnSave(provider);
  ignoreDeadSessions(provider);
  allowRefreshScopes(provider);
  checkResourceBeforeUse(provider);
}

type Prototypes = {
  // The library's own types name neither the context class nor the request of a Koa application.
  OIDCContext: { prototype: object };
  request: object;
};

// No word that the library knows: it refuses it, and tells so in the query.
const UNSUPPORTED = "unsupported";

// Not `max_age` and `id_token_hint`: they restrict who may sign in, so the library's refusal is right.
const IGNORED_WITHOUT_OPENID = ["nonce", "acr_values", "claims_locales"];

/**
 * A resource is compared as text at authorize, token and refresh: always in its canonical form. A request that
 * is too large is refused before anything of it is stored. And every answer goes into the query: the library would send
 * the refusal of another mode by that mode.
 */
function canonicaliseParameters(provider: Provider): void {
  const values = new WeakMap<object, Record<string, unknown>>();
  Object.defineProperty((provider as unknown as Prototypes).OIDCContext.prototype, "params", {
    configurable: true,
    get(this: object) {
      return values.get(this);
    },
    set(this: { route?: string }, params: Record<string, unknown>) {
      checkParameterSizes(this.route, params);
      const { resource, response_mode: mode, response_type: type } = params;
      if (mode && mode !== "query") params.response_mode = Array.isArray(mode) ? mode : UNSUPPORTED;
      if (typeof type === "string" && type.includes("token")) params.response_type = UNSUPPORTED;
      if (typeof resource === "string") params.resource = canonicalResource(resource);
      if (Array.isArray(resource)) params.resource = [...new Set(resource.map(canonicalResource))];
      ignoreOpenIdParameters(params);
      values.set(this, params);
    },
  });
}

/** RFC 6749 §3.1: without `openid` these parameters mean nothing. Some clients always send a nonce. */
function ignoreOpenIdParameters(params: Record<string, unknown>): void {
  const { scope } = params;
  if (typeof scope === "string" && scope.split(" ").includes("openid")) return;
  for (const name of IGNORED_WITHOUT_OPENID) {
    // A parameter that is repeated is refused, known or not.
    if (typeof params[name] === "string") params[name] = undefined;
  }
}

// Ours and the addresses of metadata documents alike; RFC 6749 appendix A.1 would allow spaces.
const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

/** What cannot be a client id is not looked up: some databases refuse a NUL, some take no notice of spaces behind. */
function checkClientIds({ Client }: Provider): void {
  const { find } = Client;
  Object.assign(Client, {
    find: async (id: unknown) =>
      typeof id === "string" && CLIENT_ID.test(id) ? find.call(Client, id) : undefined,
  });
}

/** Addresses and cookies follow the issuer, not what a request or a proxy in front says. */
function fixAddresses(provider: Provider): void {
  const { OIDCContext, request } = provider as unknown as Prototypes;
  const protocol = new URL(provider.issuer).protocol.slice(0, -1);
  Object.defineProperty(request, "protocol", { configurable: true, get: () => protocol });
  Object.assign(OIDCContext.prototype, {
    urlFor: (name: string, options?: object) =>
      (provider.urlFor as (name: string, options?: object) => string)(name, options),
  });
}

/**
 * Secrets are kept as hashes, two may be live, and all are compared. A suspended organization is refused only after
 * its secret was right, and only where tokens are issued: it may still revoke.
 */
function compareHashedSecrets(
  provider: Provider,
  clients: ClientStore,
  limits: Pick<Limits, "checkClient">,
): void {
  const lastNoted = new Map<string, number>();

  function noteUse(secretId: string) {
    const now = Date.now();
    if (now < (lastNoted.get(secretId) ?? 0) + LAST_USE_STEP_MS) return;
    lastNoted.set(secretId, now);
    clients.markSecretUsed(secretId, now).catch((error) => provider.emit("error", error));
  }

  Object.assign(provider.Client.prototype, {
    async compareClientSecret(this: Client, actual: string) {
      const ctx = Provider.ctx;
      if (ctx) await limits.checkClient(ctx, this.clientId);
      const given = Buffer.from(sha256(actual));
      const now = Date.now();
      const matching = secretsOf(this).filter(
        ({ hash, expiresAt }) =>
          timingSafeEqual(Buffer.from(hash), given) && (expiresAt === null || expiresAt > now),
      );
      const [secret] = matching;
      if (!secret) return false;
      if (secret.id !== RESOURCE_SERVER) noteUse(secret.id);
      const organization = organizationOf(this);
      const issues = ["token", "pushed_authorization_request"].includes(ctx?.oidc.route ?? "");
      if (issues && organization && !isPaid(organization.plan)) throw planRequired();
      return true;
    },
  });
}

/** Prefixes let scanners find a token that was leaked, and people tell one kind from another. */
function prefixTokens(provider: Provider): void {
  const withPrefix = (prefix: string) => (id: string) => prefix + id;
  onNewId(provider.AccessToken, withPrefix("lga_"));
  onNewId(provider.ClientCredentials, withPrefix("lga_"));
  onNewId(provider.RefreshToken, withPrefix("lgr_"));
}

/**
 * A grant remembers the organization that was chosen on the consent page and where the person was, a session from where
 * it was used, and a token the generation of its client as it was when the client authenticated: raising that number
 * revokes all of them, even one that is being issued. An access token comes with what the database says of its life.
 */
function storeMore(provider: Provider): void {
  for (const field of ["organizationId", "address", "answers"]) extendPayload(provider.Grant, field);
  for (const field of ["address", "userAgent", "seenAt"]) extendPayload(provider.Session, field);
  const { AccessToken, ClientCredentials, RefreshToken } = provider;
  for (const model of [AccessToken, ClientCredentials]) extendPayload(model, "active");
  for (const model of [AccessToken, ClientCredentials, RefreshToken]) {
    extendPayload(model, "generation");
    onNewId(model, (id, token) => {
      token.generation = token.client?.generation;
      return id;
    });
  }
}

type NewToken = { client?: Client; generation?: unknown };

/** Takes part when a token is about to be stored: it gets its id then. */
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

/** The scopes that a refresh may ask for: those that were granted, with the read scopes that they include. */
function allowRefreshScopes(provider: Provider): void {
  Object.defineProperty(provider.RefreshToken.prototype, "scopes", {
    configurable: true,
    get(this: { scope?: string }) {
      const scopes = new Set(this.scope?.split(" "));
      const { oidc } = Provider.ctx ?? {};
      if (!oidc?.params?.scope) return scopes;
      // RFC 6749 §6. Clients repeat the scope of the authorization, where an `offline_access` without `prompt=consent`
      // was dropped (OpenID Connect Core §11). It adds nothing here, so there must be something beside it.
      const isAlone = [...oidc.requestParamScopes].every((scope) => scope === OFFLINE);
      if (isAlone) scopes.delete(OFFLINE);
      else scopes.add(OFFLINE);
      return withImplied(scopes);
    },
  });
}

type Redeemable = { consume(): Promise<void>; resourceIndicators: ReadonlySet<string> };

/** The library looks at the resource only after the code or token is used up: a slip would cost the whole grant. */
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

import type { Context, Middleware } from "koa";
import type { Provider } from "oidc-provider";
import type { FastPath } from "../resources/http/fast-path.ts";
import { isBelow, mount } from "../resources/http/mount.ts";
import { toProblem } from "../resources/http/problem.ts";
import { isUnavailable } from "../resources/http/unavailable.ts";
import type { Services } from "../resources/services.ts";
import { createKeySets } from "./assertions/key-sets.ts";
import { createCompleteSignIn } from "./auth/complete-sign-in.ts";
import { createDevices } from "./auth/devices.ts";
import { auth } from "./auth/index.ts";
import { createBrowserIds } from "./auth/passkeys/browser-id.ts";
import { createChallenges } from "./auth/passkeys/challenges.ts";
import { createPasskeyButton } from "./auth/passkeys/sign-in.ts";
import { createRelyingParty } from "./auth/passkeys/webauthn.ts";
import { passwordReset } from "./auth/password-reset.ts";
import { isRegistrationOpen } from "./auth/register.ts";
import { createLoginTokens } from "./auth/second-factor/login-tokens.ts";
import { createSessions, signedInAccount } from "./auth/sessions.ts";
import { createSignInAudit } from "./auth/sign-in-audit.ts";
import { createSsoButton } from "./auth/sso/button.ts";
import { createIdentityProvider } from "./auth/sso/identity-provider.ts";
import { createTransactions } from "./auth/sso/transactions.ts";
import { createVerifyPassword } from "./auth/verify-password.ts";
import { describeError } from "./clients/client-metadata-documents.ts";
import { createRegisteredClientIds } from "./clients/registered-client-id.ts";
import { ExpiredRegistration } from "./clients/registered-clients.ts";
import { createPasswords } from "./credentials/passwords.ts";
import { dashboard } from "./dashboard/index.ts";
import type { Dependencies } from "./dependencies.ts";
import { createCsrf } from "./http/csrf.ts";
import type { RespondWithError } from "./http/error-pages.ts";
import type { OnError } from "./http/on-error.ts";
import { createRememberedConsent } from "./interactions/remembered-consent.ts";
import { interactions } from "./interactions/routes.ts";
import type { Keys } from "./keys/shared-keys.ts";
import { landing } from "./landing/routes.ts";
import { createFindKey } from "./leaked-credentials/public-keys.ts";
import { leakedCredentials } from "./leaked-credentials/routes.ts";
import { serveMetadataOfMcp } from "./provider/discovery.ts";
import { serveEndpoints } from "./provider/endpoints.ts";
import { findAccount } from "./provider/find-account.ts";
import { createProvider } from "./provider/index.ts";
import {
  isAuthorizationPath,
  isOauthPath,
  isRegistrationPath,
  LEAK_REPORT_PATH,
  requireOauthPath,
} from "./provider/paths.ts";
import { registration } from "./provider/registration.ts";
import { normalizeAuthorizationRequest } from "./provider/request-parameters.ts";
import { acceptJson, completeResponses, oauthCors } from "./provider/responses.ts";
import { useKeys } from "./provider/seams/key-store.ts";
import { errorResponseLink } from "./provider/untrusted-redirects.ts";
import { createAuthenticateWorkload } from "./provider/workloads.ts";
import { createAuthenticationLimits } from "./rate-limits/authentication.ts";
import { originsOf } from "./settings/public-urls.ts";
import { authorizationErrorPage, expiredRegistrationPage } from "./ui/page.ts";

export type AuthorizationServer = {
  app: Provider;
  fastPaths: FastPath[];
  middleware: Middleware[];
  /** Replaces the keys that sign id_tokens and cookies. */
  useKeys(keys: Keys): void;
  close(): Promise<void>;
};

/** Creates the authorization server: oidc-provider's Koa application, and the middleware in front of its routes. */
export function authorizationServer(
  options: Dependencies & { services: Services },
  onError: OnError,
  respondWithError: RespondWithError,
  showErrors: Middleware,
): AuthorizationServer {
  const { settings, urls, storage, clientPolicy, keys, rateLimitStore } = options;
  const { accounts, clients, grants, identities, knownDevices, replays, secondFactors, trustRules } = storage;
  const keySets = createKeySets(options.fetch);
  const authenticationLimits = createAuthenticationLimits(settings.RATE_LIMIT, rateLimitStore);
  const passwords = createPasswords(settings.RATE_LIMIT);
  const origins = originsOf(settings, urls);
  const signInAudit = createSignInAudit(accounts, storage.memberEvents, onError);
  const devices = signInAudit.complete(createDevices(knownDevices, urls.base));
  const verifyPassword = signInAudit.verify(
    createVerifyPassword({
      accounts,
      knownDevices,
      signInFailures: storage.signInFailures,
      devices,
      passwords,
      limits: authenticationLimits.signIn,
      isLimited: settings.RATE_LIMIT,
    }),
  );

  const registeredIds =
    settings.DYNAMIC_REGISTRATION === "stateless" ? createRegisteredClientIds(keys.signing) : undefined;

  const provider = createProvider({
    settings,
    urls,
    keys,
    clients,
    replays,
    replayedGrants: storage.replayedGrants,
    fetch: options.fetch,
    keySets,
    authenticateWorkload: createAuthenticateWorkload({
      trustRules,
      replays,
      keySets: createKeySets(options.fetchConfigured),
    }),
    registeredIds,
    identityAssertions: {
      accounts,
      identities,
      enterpriseAuthorization: storage.enterpriseAuthorization,
      replays,
      idpIssuer: settings.IDP_ISSUER,
      urls,
      clientPolicy,
      keySets: createKeySets(options.fetchFromProvider),
    },
    authenticationLimits,
    origins,
    adapter: storage.oidcAdapter,
    findAccount: findAccount({ accounts, grants }),
    renewRememberedGrant: createRememberedConsent(storage, clientPolicy),
    renderError: (ctx, out, error) => {
      ctx.type = "html";
      ctx.body =
        error instanceof ExpiredRegistration
          ? expiredRegistrationPage()
          : authorizationErrorPage(describeError(out, error), errorResponseLink(ctx, out));
    },
  });
  provider.on("authorization.error", (ctx: Context, { error }: { error: string }) => {
    ctx.state.authorizationError = error;
  });
  // oidc-provider has already set the status to 500.
  provider.on("server_error", (ctx: Context, error: unknown) => {
    onError(error, ctx);
    if (isUnavailable(error))
      respondWithError(
        ctx,
        toProblem(error, () => {}),
      );
  });

  const sessions = createSessions(provider, storage.sessions, urls.base);
  const identityProvider = createIdentityProvider(
    settings,
    `${urls.base}/auth/sso/callback`,
    onError,
    options.tracing?.traceOutgoing("traceparent"),
  );
  const ssoButton = createSsoButton(identityProvider);
  const isSignedIn = async (ctx: Context) => Boolean(await signedInAccount(ctx, { sessions, accounts }));
  const transactions = createTransactions(urls.base);
  const challenges = createChallenges(keys.signing, replays);
  const relyingParty = createRelyingParty(urls.base, challenges, secondFactors.passkeys);
  const browserIds = createBrowserIds(urls.base);
  const passkeyButton = createPasskeyButton({ relyingParty, browserIds });
  const loginTokens = createLoginTokens(keys.signing, replays, urls.base);
  const completeSignIn = createCompleteSignIn({
    accounts,
    identities,
    secondFactors,
    sessions,
    devices,
    loginTokens,
  });
  const entry = {
    provider,
    passwords,
    authenticationLimits,
    signIn: verifyPassword,
    signInAudit,
    sessions,
    devices,
    identityProvider,
    external: ssoButton,
    transactions,
    relyingParty,
    browserIds,
    passkeyButton,
    loginTokens,
    completeSignIn,
  };

  const complete = completeResponses(settings);
  const serve = serveEndpoints(provider);
  const fastPath = (path: string): FastPath => ({
    method: "POST",
    host: new URL(urls.base).host,
    path,
    steps: [acceptJson, showErrors, requireOauthPath(settings), authenticationLimits.oauth, complete, serve],
  });
  return {
    app: provider,
    useKeys: (latest) => useKeys(provider, latest),
    close: signInAudit.close,
    fastPaths: ["/oauth/token", "/oauth/introspect"].map(fastPath),
    middleware: [
      landing(urls, { isSignedIn, mayRegister: isRegistrationOpen(settings, undefined) }),
      mount(isOauthPath, [requireOauthPath(settings), oauthCors(origins), authenticationLimits.oauth]),
      ...leakReports(options, onError),
      ...(registeredIds ? [mount(isRegistrationPath, registration(registeredIds, origins))] : []),
      mount(isAuthorizationPath, [authenticationLimits.authorization, normalizeAuthorizationRequest]),
      serveMetadataOfMcp(urls),
      complete,
      serve,
      mount(
        isBelow("/interaction/"),
        interactions({
          provider,
          storage,
          clientPolicy,
          csrf: createCsrf(keys.signing),
          sessions,
          ssoButton,
          passkeyButton,
          completeSignIn,
          verifyPassword,
          base: urls.base,
        }),
      ),
      mount(isBelow("/auth/reset-password/"), passwordReset(storage, passwords)),
      ...auth({ ...options, ...entry, onError, dashboard: dashboard({ ...options, ...entry }) }),
    ],
  };
}

/** Returns the endpoint for reports of leaked credentials, if there are keys to verify them with. */
function leakReports({ settings, storage, fetchConfigured }: Dependencies, onError: OnError): Middleware[] {
  const { LEAK_REPORT_KEYS } = settings;
  if (!LEAK_REPORT_KEYS) return [];
  const endpoint = leakedCredentials(
    createFindKey(LEAK_REPORT_KEYS, fetchConfigured, onError),
    storage.leaks,
  );
  return [mount(({ path }) => path === LEAK_REPORT_PATH, [endpoint])];
}

import type { EventEmitter } from "node:events";
import type Koa from "koa";
import type { Context } from "koa";
import compose from "koa-compose";
import { isUnavailable, toProblem } from "../resources/http/problem.ts";
import { isAt, isBelow, isOfResource, mount, type Part, requireRead } from "../resources/http/routing.ts";
import type { Services } from "../resources/services.ts";
import { createAuthOptions } from "./auth/auth-options.ts";
import { redirectToLogin } from "./auth/error-handler.ts";
import { auth, signedIn } from "./auth/index.ts";
import { isRegistrationOpen } from "./auth/register.ts";
import { describeError } from "./clients/metadata-documents.ts";
import { createRegisteredClientIds } from "./clients/registered-client-id.ts";
import { ExpiredRegistration } from "./clients/registered-clients.ts";
import type { Passwords } from "./credentials/passwords.ts";
import { dashboard, serveManagementDocument } from "./dashboard/index.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Reader } from "./docs/index.ts";
import { compressTexts } from "./http/compression.ts";
import type { OnError, RespondWithError } from "./http/error-pages.ts";
import { createRememberedConsent } from "./interactions/consent.ts";
import { describeDevice, deviceSteps, showCodeForm, showConnected } from "./interactions/device.ts";
import { continueWithNewAccount, interactions } from "./interactions/routes.ts";
import type { Keys } from "./keys/shared-keys.ts";
import { landing } from "./landing/routes.ts";
import { DOCUMENT_PATH } from "./operations/document.ts";
import {
  isAuthorizationPath,
  isOauthPath,
  onlyKnownPaths,
  requireOauthPath,
  serveEndpoints,
} from "./provider/endpoints.ts";
import { createProvider, extendContexts } from "./provider/index.ts";
import { leakReports } from "./provider/leak-reports.ts";
import { registration } from "./provider/registration.ts";
import { normalizeAuthorizationRequest } from "./provider/request-parameters.ts";
import { completeResponses, oauthCors, serveMetadataOfMcp } from "./provider/responses.ts";
import { useKeys } from "./provider/seams/key-store.ts";
import { errorResponseLink, requiresSignIn } from "./provider/untrusted-redirects.ts";
import { createAuthenticationLimits } from "./rate-limits/authentication.ts";
import { originsOf } from "./settings/public-urls.ts";
import { isManager } from "./ui/dashboard-layout.ts";
import { authorizationErrorPage, expiredRegistrationPage } from "./ui/page.ts";

export function authorizationServer(
  app: Koa,
  options: Dependencies & { services: Services; passwords: Passwords },
  onError: OnError,
  respondWithError: RespondWithError,
) {
  const { settings, urls, storage, appPolicyCheck, keys, rateLimitStore } = options;
  const authenticationLimits = createAuthenticationLimits(rateLimitStore);
  const origins = originsOf(settings, urls);
  const registeredIds =
    settings.DYNAMIC_REGISTRATION === "stateless" ? createRegisteredClientIds(keys.signing) : undefined;

  const provider = createProvider({
    ...options,
    registeredIds,
    authenticationLimits,
    origins,
    devicePages: {
      deviceInfo: describeDevice,
      userCodeInputSource: showCodeForm,
      userCodeConfirmSource: showCodeForm, // the form confirms, and consent follows
      successSource: showConnected,
    },
    renewRememberedGrant: createRememberedConsent(storage, appPolicyCheck),
    renderError: (ctx, out, error) => {
      const link = errorResponseLink(ctx, out);
      if (link && requiresSignIn(ctx)) return redirectToLogin(ctx, { returnTo: ctx.originalUrl });
      ctx.type = "html";
      ctx.body =
        error instanceof ExpiredRegistration
          ? expiredRegistrationPage()
          : authorizationErrorPage(describeError(out, error), link);
    },
  });
  extendContexts(app, provider, { ...options, authenticationLimits });
  app.keys = keys.cookies;
  // Of what it does beside requests. Without a listener, the process would end.
  (provider as EventEmitter).on("error", (error, ctx) => app.emit("error", error, ctx));
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

  const parts = createAuthOptions(options, provider, authenticationLimits, onError);
  const signInOptions = { ...options, ...parts };
  const { sessions, signInAudit } = parts;
  const isSignedIn = async (ctx: Context) => Boolean(await sessions.account(ctx));

  async function findReader(ctx: Context): Promise<Reader | undefined> {
    const account = await sessions.account(ctx);
    if (!account) return undefined;
    const memberships = await storage.organizations.listByUser(account.id);
    for (const { id, name: organization } of memberships.filter(isManager)) {
      const client = await storage.clients.findByOrganization(id);
      if (client) return { client: { clientId: client.clientId, organization } };
    }
    return { client: undefined };
  }

  const complete = completeResponses(settings, authenticationLimits);
  return {
    useKeys(latest: Keys) {
      app.keys = latest.cookies;
      useKeys(provider, latest);
    },
    close: signInAudit.close,
    /** Finds the signed-in user of the documentation, and the client of an organization that the user manages. */
    findReader,
    parts: [
      {
        at: [""],
        steps: [landing(urls, { isSignedIn, mayRegister: isRegistrationOpen(settings, undefined) })],
      },
      {
        at: ["oauth"],
        steps: [
          mount(isOauthPath, [requireOauthPath(settings), oauthCors(origins), ...authenticationLimits.oauth]),
          ...leakReports(options, onError),
          ...(registeredIds ? [registration(registeredIds, origins)] : []),
        ],
      },
      { at: ["device"], steps: [requireOauthPath(settings), ...deviceSteps(signInOptions)] },
      {
        at: ["oauth", "interaction", "device"],
        steps: [
          mount(isAuthorizationPath, [
            ...authenticationLimits.authorization,
            normalizeAuthorizationRequest,
            continueWithNewAccount,
          ]),
        ],
      },
      { at: [".well-known"], steps: [serveMetadataOfMcp(urls)] },
      { at: ["oauth", ".well-known"], steps: [complete] },
      { at: ["oauth"], steps: [serveEndpoints(provider)] },
      { at: ["interaction"], steps: [mount(isBelow("/interaction/"), interactions(signInOptions))] },
      { at: ["auth"], steps: [mount(isBelow("/auth/"), auth(signInOptions))] },
      {
        at: ["dashboard"],
        steps: [
          mount(isAt(urls.base + DOCUMENT_PATH), [
            compressTexts,
            requireRead,
            serveManagementDocument(options),
          ]),
          mount(isOfResource(`${urls.base}/dashboard`), signedIn(signInOptions, dashboard(signInOptions))),
        ],
      },
      onlyKnownPaths,
      compose(provider.middleware),
    ] satisfies Part[],
  };
}

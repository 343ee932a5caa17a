import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { routesOf } from "../../resources/http/methods.ts";
import { isBelow, mount } from "../../resources/http/mount.ts";
import type { Passwords } from "../credentials/passwords.ts";
import type { Dependencies } from "../dependencies.ts";
import { createCsrf } from "../http/csrf.ts";
import type { OnError } from "../http/on-error.ts";
import { prefersHtml } from "../http/request-body.ts";
import { isChange } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import { authenticate } from "./authenticate.ts";
import type { CompleteSignIn } from "./complete-sign-in.ts";
import type { Devices } from "./devices.ts";
import { handleAuthErrors, tooManyRequests } from "./error-handler.ts";
import { createFirstPartyTokens, type FirstPartyTokens } from "./first-party-tokens.ts";
import { forgotPasswordRoutes } from "./forgot-password.ts";
import { loginRoutes } from "./login.ts";
import type { BrowserIds } from "./passkeys/browser-id.ts";
import type { ShowPasskeyButton } from "./passkeys/sign-in.ts";
import type { RelyingParty } from "./passkeys/webauthn.ts";
import { registerRoutes } from "./register.ts";
import type { LoginTokens } from "./second-factor/login-tokens.ts";
import { secondFactorRoutes } from "./second-factor/routes.ts";
import { createVerifyCode } from "./second-factor/verify.ts";
import type { Sessions } from "./sessions.ts";
import type { SignInAudit } from "./sign-in-audit.ts";
import type { ShowSsoButton } from "./sso/button.ts";
import type { IdentityProvider } from "./sso/identity-provider.ts";
import { ssoRoutes } from "./sso/routes.ts";
import type { Transactions } from "./sso/transactions.ts";
import type { VerifyPassword } from "./verify-password.ts";

type Options = { sessions: Sessions; tokens: FirstPartyTokens; storage: Pick<Storage, "memberEvents"> };

export type AuthOptions = Pick<Dependencies, "settings" | "urls" | "storage" | "keys"> & {
  provider: Provider;
  sessions: Sessions;
  devices: Devices;
  /** The external identity provider, its sign-ins in progress, and its button. */
  identityProvider: IdentityProvider | undefined;
  transactions: Transactions;
  external: ShowSsoButton;
  passkeyButton: ShowPasskeyButton;
  relyingParty: RelyingParty | undefined;
  browserIds: BrowserIds;
  loginTokens: LoginTokens;
  completeSignIn: CompleteSignIn;
  passwords: Passwords;
  authenticationLimits: AuthenticationLimits;
  signIn: VerifyPassword;
  signInAudit: Pick<SignInAudit, "verifyCode" | "passkeyFailed">;
  onError: OnError;
  /** The routes under `/dashboard`; each needs a signed-in user. */
  dashboard: Middleware[];
};

/** Returns `/auth`, where users sign in and out, and `/dashboard` behind authentication. */
export function auth(options: AuthOptions): Middleware[] {
  const { provider, identityProvider, sessions, urls, storage, keys, onError, dashboard } = options;
  const { base } = urls;
  const { accounts, registrations, invitations } = storage;
  const tokens = createFirstPartyTokens({ provider, accounts, replayedGrants: storage.replayedGrants, base });
  const requireUser = authenticate({ accounts, sessions, tokens, csrf: createCsrf(keys.signing), base });
  const errors = handleAuthErrors({ base, onError });
  const { secondFactors } = storage;
  const verifyCode = options.signInAudit.verifyCode(
    createVerifyCode({
      secondFactors,
      knownDevices: storage.knownDevices,
      signInFailures: storage.signInFailures,
      devices: options.devices,
      limits: options.authenticationLimits,
      isLimited: options.settings.RATE_LIMIT,
    }),
  );
  const shared = {
    ...options,
    accounts,
    registrations,
    invitations,
    secondFactors,
    verifyCode,
    tokens,
    base,
  };

  const open = new Router({ sensitive: true, strict: true });
  registerRoutes(open, shared);
  loginRoutes(open, shared);
  secondFactorRoutes(open, shared);
  if (options.settings.SMTP_URL) forgotPasswordRoutes(open, shared);
  if (identityProvider) ssoRoutes(open, { ...options, accounts, provider: identityProvider, base });

  const signedIn = new Router({ sensitive: true, strict: true });
  logoutRoutes(signedIn, shared);

  return [
    mount(isBelow("/auth/"), [
      errors,
      ...routesOf(open),
      mount(isBelow("/auth/logout"), [requireUser, ...routesOf(signedIn)]),
    ]),
    mount(isDashboard, [errors, requireUser, limitChanges(options.authenticationLimits), ...dashboard]),
  ];
}

/** Limits changes per user: links are free on every plan, and a script could create them without end. */
function limitChanges(authenticationLimits: AuthenticationLimits): Middleware {
  return async function limitChange(ctx, next) {
    const wait = isChange(ctx) ? await authenticationLimits.change(ctx.state.user.id) : 0;
    if (wait) throw tooManyRequests(wait);
    return next();
  };
}

/** Not a prefix match: `/dashboards` is a short link. */
function isDashboard({ path }: { path: string }): boolean {
  return path === "/dashboard" || path.startsWith("/dashboard/");
}

/** Adds `/auth/logout`: ends the session, or revokes the token and its whole family. */
function logoutRoutes(router: Router, { sessions, tokens, storage }: Options): void {
  router.post("/auth/logout", async (ctx) => {
    const { user } = ctx.state;
    const { id: userId, means, sessionId, actor } = user;
    if (means === "token") await tokens.end(sessionId);
    else await sessions.end(ctx, user);
    await storage.memberEvents.record(actor, { userId, type: "member.logged_out" });
    if (prefersHtml(ctx)) {
      ctx.status = 303;
      ctx.redirect("/auth/login");
    } else ctx.status = 204;
  });
}

import { Router } from "@koa/router";
import type { Middleware } from "koa";
import { isBelow, mount, routesOf } from "../../resources/http/routing.ts";
import { HOME, seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import { pathOf } from "../operations/operation.ts";
import { logOut } from "../operations/sign-in.ts";
import type { AuthOptions } from "./auth-options.ts";
import { authenticate } from "./authenticate.ts";
import { currentSignIn } from "./current-sign-in.ts";
import { handleAuthErrors } from "./error-handler.ts";
import { loginRoutes } from "./login.ts";
import { forgotPasswordRoutes, resetLinkRoutes } from "./password-reset.ts";
import { programLoginRoutes } from "./program-login.ts";
import { registerRoutes } from "./register.ts";
import { secondFactorRoutes } from "./second-factors/routes.ts";
import { ssoRoutes } from "./sso/routes.ts";

export function auth(options: AuthOptions): Middleware[] {
  const open = new Router({ sensitive: true, strict: true });
  registerRoutes(open, options);
  loginRoutes(open, options);
  programLoginRoutes(open, options);
  secondFactorRoutes(open, options);
  resetLinkRoutes(open, options);
  if (options.settings.SMTP_URL) forgotPasswordRoutes(open, options);
  if (options.identityProvider) ssoRoutes(open, options, options.identityProvider);

  const signedIn = new Router({ sensitive: true, strict: true });
  logoutRoutes(signedIn, options);

  return [
    handleAuthErrors(options),
    ...routesOf(open),
    mount(isBelow("/auth/logout"), [authenticate(options), ...routesOf(signedIn)]),
  ];
}

/** What only users who have signed in may do. */
export function signedIn(options: AuthOptions, steps: Middleware[]): Middleware[] {
  return [handleAuthErrors(options), authenticate(options), ...steps];
}

function logoutRoutes(router: Router, options: AuthOptions): void {
  router.post(pathOf(logOut), async (ctx) => {
    const signIn = currentSignIn(ctx, options, HOME);
    await logOut.run({ ...options, params: {}, input: {}, user: ctx.state.user, signIn });
    if (prefersHtml(ctx)) seeOther(ctx, "/auth/login");
    else ctx.status = 204;
  });
}

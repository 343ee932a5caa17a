import type { Router } from "@koa/router";
import type { AuthOptions } from "../../auth/auth-options.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { ACCOUNT, changePassword, deleteAccount, exportAccount, getAccount } from "../../operations/account.ts";
import { endOtherSessions, endSession, listSessions } from "../../operations/sessions.ts";
import { signedInUserOf } from "../access.ts";
import { addOperation, addReading, runOperation } from "../operation-routes.ts";
import { type Show, showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";
import { accountAppRoutes } from "./apps.ts";
import { emailRoutes } from "./email.ts";
import { identityRoutes } from "./identities.ts";
import { accountPage } from "./page.ts";
import { secondFactorRoutes } from "./second-factors.ts";

export type AccountParts = Pick<AuthOptions, "identityProvider" | "relyingParty" | "transactions">;

export function accountRoutes(router: Router, options: RouteOptions & AccountParts): void {
  const { storage, settings, identityProvider, relyingParty } = options;
  const to = () => ACCOUNT;

  // The header of each page lists the user's organizations.
  router.use(ACCOUNT, async (ctx, next) => {
    if (prefersHtml(ctx))
      ctx.state.memberships = await storage.organizations.listByUser(signedInUserOf(ctx).id);
    return next();
  });

  const show: Show = async (ctx, error) => {
    const body = accountPage({
      account: await runOperation(ctx, options, getAccount),
      hasMail: settings.SMTP_URL !== undefined,
      provider: identityProvider?.name,
      mayAddPasskey: relyingParty !== undefined,
    });
    showPage(ctx, { title: "Your account", error, body });
  };

  addReading(router, options, getAccount, (ctx) => show(ctx));
  addReading(router, options, exportAccount);
  addOperation(router, options, changePassword, { show, to });
  addOperation(router, options, deleteAccount, { show, to: () => "/auth/login?deleted=1" });
  addReading(router, options, listSessions, (ctx) => ctx.redirect(ACCOUNT));
  addOperation(router, options, endOtherSessions, { to });
  addOperation(router, options, endSession, { to });

  accountAppRoutes(router, options);
  identityRoutes(router, options, show);
  emailRoutes(router, options, show);
  secondFactorRoutes(router, options);
}

import type { Router } from "@koa/router";
import {
  ACCOUNT,
  changePassword,
  deleteAccount,
  exportAccount,
  getAccount,
  showAccount,
} from "../../operations/account.ts";
import { endOtherSessions, endSession, listSessions } from "../../operations/sessions.ts";
import { SECOND_FACTOR_SETUP, signedInUserOf } from "../access.ts";
import type { Show } from "../forms.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { accountAppRoutes } from "./apps.ts";
import { emailRoutes } from "./email.ts";
import { identityRoutes } from "./identities.ts";
import type { AccountOptions } from "./options.ts";
import { accountPage, setupPage } from "./page.ts";
import { passkeyRoutes } from "./passkeys.ts";
import { recoveryCodeRoutes } from "./recovery-codes.ts";
import { setupReturnOf } from "./setup-return.ts";
import { totpRoutes } from "./totp.ts";

export function accountRoutes(router: Router, options: AccountOptions): void {
  const { storage, settings, identityProvider: provider, relyingParty } = options;
  const mayAddPasskey = relyingParty !== undefined;
  const to = () => ACCOUNT;

  const show: Show = async (ctx, error) => {
    const user = signedInUserOf(ctx);
    const memberships = await storage.organizations.listByUser(user.id);
    const account = await showAccount(storage, user, memberships);
    ctx.state.memberships = memberships;
    const hasMail = settings.SMTP_URL !== undefined;
    const body = accountPage({ account, hasMail, provider: provider?.name, mayAddPasskey });
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
  const factorOptions = { ...options, codesView: options.oneTimeView<{ codes: string[]; back: string }>() };
  totpRoutes(router, factorOptions);
  passkeyRoutes(router, factorOptions);
  recoveryCodeRoutes(router, factorOptions);
  router.get(SECOND_FACTOR_SETUP, async (ctx) => {
    const memberships = await storage.organizations.listByUser(signedInUserOf(ctx).id);
    ctx.state.memberships = memberships;
    const organization = memberships.find(({ id }) => id === ctx.query.organization);
    const body = setupPage(organization?.name, mayAddPasskey, setupReturnOf(ctx));
    showPage(ctx, { title: "Set up a second factor", body });
  });
}

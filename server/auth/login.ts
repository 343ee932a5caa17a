import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { InvitationStore } from "../../adapters/organizations/invitations.ts";
import { Problem } from "../../resources/http/problem.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../http/request-body.ts";
import { checkOrigin } from "../http/same-origin.ts";
import type { AuthenticationLimits } from "../rate-limits/authentication.ts";
import type { Settings } from "../settings/config.ts";
import type { CompleteSignIn } from "./complete-sign-in.ts";
import { tooManyRequests } from "./error-handler.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import { dashboardSignInPage } from "./login-page.ts";
import type { BrowserIds } from "./passkeys/browser-id.ts";
import { passkeySignInRoutes, type ShowPasskeyButton } from "./passkeys/sign-in.ts";
import type { RelyingParty } from "./passkeys/webauthn.ts";
import { type ProgramLogin, programLogin, programLoginRoutes } from "./program-login.ts";
import { invitationIn, isRegistrationOpen } from "./register.ts";
import { safeReturnTo } from "./return-to.ts";
import { type Sessions, signedInAccount } from "./sessions.ts";
import type { ShowSsoButton } from "./sso/button.ts";
import { INCORRECT_CREDENTIALS, type VerifyPassword } from "./verify-password.ts";

type Options = ProgramLogin & {
  settings: Pick<Settings, "REGISTRATION" | "SMTP_URL">;
  accounts: AccountStore;
  invitations: Pick<InvitationStore, "find">;
  signIn: VerifyPassword;
  authenticationLimits: AuthenticationLimits;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  external: ShowSsoButton;
  passkeyButton: ShowPasskeyButton;
  relyingParty: RelyingParty | undefined;
  browserIds: BrowserIds;
  completeSignIn: CompleteSignIn;
  base: string;
};

/** Adds `/auth/login`, which starts a session in a browser and issues tokens to a program, and `/auth/refresh`. */
export function loginRoutes(router: Router, options: Options): void {
  const { settings, signIn, authenticationLimits, tokens, external, passkeyButton, completeSignIn, base } =
    options;

  async function showForm(ctx: Context, input: Input, filled: { username?: string; error?: string } = {}) {
    const returnTo = safeReturnTo(input.return_to);
    const again = input.again === "1";
    const invitation = invitationIn(returnTo);
    ctx.body = dashboardSignInPage({
      returnTo,
      again,
      isDeleted: input.deleted === "1",
      mayRegister: isRegistrationOpen(settings, invitation),
      hasMail: settings.SMTP_URL !== undefined,
      invited: invitation === undefined ? undefined : await options.invitations.find(invitation),
      external: await external(returnTo, { again }),
      passkey: await passkeyButton(ctx, returnTo),
      ...filled,
    });
  }

  router.get("/auth/login", async (ctx) => {
    const account = await signedInAccount(ctx, options);
    if (!account) return showForm(ctx, ctx.query);
    if (ctx.query.again === "1") return showForm(ctx, ctx.query, { username: account.username });
    ctx.status = 303;
    ctx.redirect(safeReturnTo(ctx.query.return_to));
  });

  router.post("/auth/login", async (ctx) => {
    const input = await readInput(ctx);
    const isPage = prefersHtml(ctx);
    if (isPage) checkOrigin(ctx, base);
    const username = textFieldOf(input.username);
    const result = await signIn(ctx, username, textFieldOf(input.password));
    if (!isPage) return programLogin(ctx, result, options);
    let failure = "error" in result ? result : undefined;
    if (!("error" in result) && !(await completeSignIn(ctx, result, safeReturnTo(input.return_to))))
      failure = INCORRECT_CREDENTIALS;
    if (!failure) return;
    ctx.status = failure.status;
    return showForm(ctx, input, { username, error: failure.error });
  });

  programLoginRoutes(router, options);
  passkeySignInRoutes(router, { ...options, showForm });

  router.post("/auth/refresh", async (ctx) => {
    const { refresh_token } = await readInput(ctx);
    const wait = await authenticationLimits.visit("refresh", ctx.ip);
    if (wait) throw tooManyRequests(wait);
    const issued = await tokens.refresh(textFieldOf(refresh_token), ctx.ip);
    if (!issued) {
      throw new Problem(
        401,
        "invalid_grant",
        "The refresh token is unknown, expired, revoked or already used.",
        {
          headers: { "WWW-Authenticate": "Bearer" },
        },
      );
    }
    ctx.body = issued;
  });
}

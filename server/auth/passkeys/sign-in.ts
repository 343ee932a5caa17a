import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { AccountStore } from "../../../adapters/accounts/store.ts";
import { type Input, readInput, textFieldOf } from "../../http/request-body.ts";
import { checkOrigin } from "../../http/same-origin.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import type { PasskeyOption } from "../../ui/passkeys.ts";
import type { CompleteSignIn } from "../complete-sign-in.ts";
import { tooManyRequests } from "../error-handler.ts";
import { safeReturnTo } from "../return-to.ts";
import { passkeyProof } from "../sign-in-proof.ts";
import type { BrowserIds } from "./browser-id.ts";
import type { RelyingParty } from "./webauthn.ts";

const PATH = "/auth/passkey";
const NOT_ACCEPTED =
  "This passkey wasn’t accepted. It may have been removed, or this page was open for too long. Try again.";

/** Returns the passkey button of a sign-in page. */
export type ShowPasskeyButton = (ctx: Context, returnTo: string) => Promise<PasskeyOption | undefined>;

type ButtonOptions = { relyingParty: RelyingParty | undefined; browserIds: BrowserIds };

export function createPasskeyButton({ relyingParty, browserIds }: ButtonOptions): ShowPasskeyButton {
  return async (ctx, returnTo) =>
    relyingParty && {
      action: PATH,
      options: await relyingParty.authenticationOptions(purposeOf(browserIds.ensure(ctx))),
      fields: { return_to: returnTo },
    };
}

type Options = ButtonOptions & {
  accounts: AccountStore;
  authenticationLimits: AuthenticationLimits;
  completeSignIn: CompleteSignIn;
  base: string;
  /** Shows the sign-in page again. */
  showForm(ctx: Context, input: Input, filled: { error: string }): Promise<void>;
};

/** Adds `/auth/passkey`, which signs in the owner of a passkey without a password. */
export function passkeySignInRoutes(router: Router, options: Options): void {
  const { relyingParty, browserIds, accounts, authenticationLimits, completeSignIn, base, showForm } =
    options;
  if (!relyingParty) return;

  router.post(PATH, async (ctx) => {
    const input = await readInput(ctx);
    checkOrigin(ctx, base);
    const wait = await authenticationLimits.visit("passkey", ctx.ip);
    if (wait) throw tooManyRequests(wait);
    const passkey = await relyingParty.verifyAuthentication(
      textFieldOf(input.passkey),
      purposeOf(browserIds.find(ctx)),
      { requireUserVerification: true },
    );
    const account = passkey && (await accounts.find(passkey.userId));
    const proof = account && !account.disabled && passkeyProof(account.id, passkey);
    if (proof && (await completeSignIn(ctx, proof, safeReturnTo(input.return_to)))) return;
    ctx.status = 400;
    await showForm(ctx, input, { error: NOT_ACCEPTED });
  });
}

function purposeOf(browserId: string): string {
  return `sign-in ${browserId}`;
}

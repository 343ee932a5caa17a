import type { Router } from "@koa/router";
import type { Context } from "koa";
import { AuthorizationResponseError } from "openid-client";
import type { AccountStore } from "../../../adapters/accounts/store.ts";
import type { Storage } from "../../../adapters/index.ts";
import type { OnError } from "../../http/on-error.ts";
import type { Settings } from "../../settings/config.ts";
import { html } from "../../ui/html.ts";
import { messagePage, page } from "../../ui/page.ts";
import { RECENT_S } from "../authenticate.ts";
import type { CompleteSignIn } from "../complete-sign-in.ts";
import { INVITATION_INVALID, invitationIn, isRegistrationOpen } from "../register.ts";
import { HOME, safeReturnTo } from "../return-to.ts";
import { type Sessions, signedInAccount } from "../sessions.ts";
import { ssoProof } from "../sign-in-proof.ts";
import { type Identity, type IdentityProvider, ProviderUnavailable } from "./identity-provider.ts";
import { identityLabelOf, provisionUser } from "./provision-user.ts";
import type { Transaction, Transactions } from "./transactions.ts";

type Options = {
  settings: Pick<Settings, "REGISTRATION">;
  accounts: AccountStore;
  storage: Pick<Storage, "accounts" | "identities" | "registrations">;
  provider: IdentityProvider;
  transactions: Transactions;
  sessions: Sessions;
  completeSignIn: CompleteSignIn;
  base: string;
  onError: OnError;
};

/** Adds `/auth/sso`: redirects to the identity provider, and starts a session when the user returns. */
export function ssoRoutes(router: Router, options: Options): void {
  const { provider, transactions, base, onError } = options;

  router.get("/auth/sso", async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    const isAgain = ctx.query.again === "1";
    const account = isFromOtherSite(ctx) ? await signedInAccount(ctx, options) : undefined;
    if (account) {
      ctx.set("Vary", "Sec-Fetch-Site");
      ctx.body = confirmReplacementPage(provider.name, account.username, ctx.url);
      return;
    }
    try {
      const { url, secrets } = await provider.begin(isAgain ? RECENT_S : undefined);
      transactions.keep(ctx, { secrets, returnTo });
      ctx.status = 303;
      ctx.redirect(url);
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) throw error;
      showUnavailable(ctx, provider);
    }
  });

  router.get("/auth/sso/callback", async (ctx) => {
    const transaction = transactions.take(ctx, ctx.query.state);
    if (!transaction) {
      return showMessage(
        ctx,
        400,
        "This sign-in has expired",
        "It has expired or was started in another browser. Sign in again.",
      );
    }
    let identity: Identity;
    try {
      identity = await provider.finish(new URL(ctx.url, base), transaction.secrets);
    } catch (error) {
      const isRefusal = error instanceof AuthorizationResponseError;
      if (!isRefusal) onError(new Error(`SSO failed: ${reasonOf(error)}`), ctx);
      if (error instanceof ProviderUnavailable) return showUnavailable(ctx, provider);
      return showMessage(ctx, 400, "Sign-in failed", `${provider.name} did not sign you in. Try again.`);
    }
    await acceptIdentity(ctx, identity, transaction, options);
  });
}

/**
 * Returns whether another site has sent the browser here. It could otherwise replace the session by one of its choice
 * (OWASP ASVS 5.0 V3.5.3).
 */
function isFromOtherSite(ctx: Context): boolean {
  return ["cross-site", "same-site"].includes(ctx.get("sec-fetch-site"));
}

/** Continues with a verified identity: links it, signs its owner in, or creates a user. */
async function acceptIdentity(
  ctx: Context,
  identity: Identity,
  { linkTo, returnTo, secrets }: Transaction,
  options: Options,
): Promise<void> {
  const { storage, settings, provider, completeSignIn } = options;
  const owner = await storage.identities.findUserId(identity);
  if (linkTo) return linkIdentity(ctx, { owner, linkTo, returnTo, identity }, options);
  const invitation = invitationIn(returnTo);
  // A user who had to sign in again has an account: this identity is not linked to it.
  const isAgain = secrets.maxAge !== undefined;
  if (!owner && (isAgain || !isRegistrationOpen(settings, invitation))) {
    const text = `No account is linked to this ${provider.name} identity.`;
    return showMessage(
      ctx,
      403,
      "No account found",
      isAgain ? text : `${text} You need an invitation to create one.`,
    );
  }
  const accountId = owner ?? (await provisionUser(storage, identity, { invitation, address: ctx.ip }));
  if (!accountId) return showMessage(ctx, 403, "Invitation not valid", INVITATION_INVALID);
  const account = await storage.accounts.find(accountId);
  if (!account || account.disabled) return showDisabled(ctx);
  const target = invitation && !owner ? HOME : returnTo; // a new user has used the invitation
  if (!(await completeSignIn(ctx, ssoProof(accountId, identity), target))) showDisabled(ctx);
}

function showDisabled(ctx: Context): void {
  const text = "This account has been disabled. Contact the operator of this service.";
  showMessage(ctx, 403, "Account disabled", text);
}

type Link = { owner: string | undefined; linkTo: string; returnTo: string; identity: Identity };

/** Links the identity, if the user who asked for it is still signed in and it has no other owner. */
async function linkIdentity(
  ctx: Context,
  { owner, linkTo, returnTo, identity }: Link,
  { storage, sessions }: Options,
) {
  const session = await sessions.current(ctx);
  if (session?.accountId !== linkTo) {
    return showMessage(
      ctx,
      400,
      "This sign-in has expired",
      "You are no longer signed in as the user who started it. Try again.",
    );
  }
  const actor = { id: linkTo, address: ctx.ip };
  const named = { ...identity, label: identityLabelOf(identity) };
  const isLinked = owner === linkTo || (!owner && (await storage.identities.link(linkTo, named, actor)));
  if (!isLinked)
    return showMessage(ctx, 409, "Identity already linked", "This identity is linked to another account.");
  ctx.status = 303;
  ctx.redirect(returnTo);
}

/** Returns the messages of an error. The library's errors also contain requests and tokens, which must not be logged. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

function showUnavailable(ctx: Context, { name }: IdentityProvider): void {
  showMessage(
    ctx,
    503,
    `${name} is unavailable right now`,
    "Try again in a minute, or sign in with a password.",
  );
}

function showMessage(ctx: Context, status: number, title: string, text: string): void {
  ctx.status = status;
  ctx.type = "html";
  ctx.body = messagePage(title, text, { href: "/auth/login", text: "Go to sign-in" });
}

/** Renders the page that asks before a link on another site replaces the session. */
function confirmReplacementPage(provider: string, username: string, href: string): string {
  const title = `Continue with ${provider}?`;
  return page(
    title,
    html`<h1>${title}</h1>
<p>You’re already signed in as <strong>${username}</strong>. If you continue, you may be signed in as someone else.</p>
<p><a class="button" href="${href}">Continue with ${provider}</a></p>
<p><a class="button quiet" href="/dashboard">Stay signed in as ${username}</a></p>`,
  );
}

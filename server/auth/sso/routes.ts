import { randomInt } from "node:crypto";
import type { Router } from "@koa/router";
import type { Context } from "koa";
import { AuthorizationResponseError } from "openid-client";
import type { Storage } from "../../../adapters/index.ts";
import { normalizeText } from "../../../resources/http/text.ts";
import { removeInvisible, validateNewUsername } from "../../credentials/names.ts";
import { HOME, invitationIn, safeReturnTo, seeOther } from "../../http/redirects.ts";
import { refusal } from "../../operations/problem-codes.ts";
import { html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";
import type { AuthOptions } from "../auth-options.ts";
import { RECENT_S } from "../authenticate.ts";
import { showSignInError } from "../error-handler.ts";
import { isRegistrationOpen } from "../register.ts";
import { ssoProof } from "../sign-in-proof.ts";
import { type Identity, type IdentityProvider, ProviderUnavailable } from "./identity-provider.ts";
import type { Transaction } from "./transactions.ts";

export function ssoRoutes(router: Router, options: AuthOptions, provider: IdentityProvider): void {
  const { sessions, transactions, base, onError } = options;

  router.get("/auth/sso", async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    const isAgain = ctx.query.again === "1";
    const account = isFromOtherSite(ctx) ? await sessions.account(ctx) : undefined;
    if (account) {
      ctx.set("Vary", "Sec-Fetch-Site");
      ctx.body = confirmReplacementPage(provider.name, account.username, ctx.url);
      return;
    }
    try {
      const { url, secrets } = await provider.begin(isAgain ? RECENT_S : undefined);
      transactions.keep(ctx, { secrets, returnTo });
      seeOther(ctx, url);
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) throw error;
      showUnavailable(ctx, provider);
    }
  });

  router.get("/auth/sso/callback", async (ctx) => {
    const transaction = transactions.take(ctx, ctx.query.state);
    if (!transaction) {
      const text = "It has expired or was started in another browser. Sign in again.";
      return showSignInError(ctx, 400, "This sign-in has expired", text);
    }
    let identity: Identity;
    try {
      identity = await provider.finish(new URL(ctx.url, base), transaction.secrets);
    } catch (error) {
      const isRefusal = error instanceof AuthorizationResponseError;
      if (!isRefusal) onError(new Error(`SSO failed: ${reasonOf(error)}`), ctx);
      if (error instanceof ProviderUnavailable) return showUnavailable(ctx, provider);
      return showSignInError(ctx, 400, "Sign-in failed", `${provider.name} did not sign you in. Try again.`);
    }
    await acceptIdentity(ctx, identity, transaction, options, provider.name);
  });
}

/** OWASP ASVS 5.0 V3.5.3: another site could replace the session by one of its choice. */
function isFromOtherSite(ctx: Context): boolean {
  return ["cross-site", "same-site"].includes(ctx.get("sec-fetch-site"));
}

async function acceptIdentity(
  ctx: Context,
  identity: Identity,
  { linkTo, returnTo, secrets }: Transaction,
  options: AuthOptions,
  providerName: string,
): Promise<void> {
  const { storage, settings, completeSignIn } = options;
  const owner = await storage.identities.findUserId(identity);
  if (linkTo) return linkIdentity(ctx, { owner, linkTo, returnTo, identity }, options);
  const invitation = invitationIn(returnTo);
  // A user who had to sign in again has an account: this identity is not linked to it.
  const isAgain = secrets.maxAge !== undefined;
  if (!owner && (isAgain || !isRegistrationOpen(settings, invitation))) {
    const text = `No account is linked to this ${providerName} identity.`;
    const advice = isAgain ? "" : " You need an invitation to create one.";
    return showSignInError(ctx, 403, "No account found", text + advice);
  }
  const accountId = owner ?? (await provisionUser(storage, identity, { invitation, address: ctx.ip }));
  if (!accountId)
    return showSignInError(ctx, 403, "Invitation not valid", refusal("invitation_invalid").message);
  const account = await storage.accounts.find(accountId);
  if (!account || account.disabled) return showDisabled(ctx);
  const target = invitation && !owner ? HOME : returnTo; // a new user has used the invitation
  if (!(await completeSignIn(ctx, ssoProof(accountId, identity), target))) showDisabled(ctx);
}

function showDisabled(ctx: Context): void {
  const text = "This account has been disabled. Contact the operator of this service.";
  showSignInError(ctx, 403, "Account disabled", text);
}

type Link = { owner: string | undefined; linkTo: string; returnTo: string; identity: Identity };

/** Only if the user who asked for it is still signed in and the identity has no other owner. */
async function linkIdentity(
  ctx: Context,
  { owner, linkTo, returnTo, identity }: Link,
  { storage, sessions }: AuthOptions,
) {
  const session = await sessions.current(ctx);
  if (session?.accountId !== linkTo) {
    const text = "You are no longer signed in as the user who started it. Try again.";
    return showSignInError(ctx, 400, "This sign-in has expired", text);
  }
  const actor = { id: linkTo, address: ctx.ip };
  const named = { ...identity, label: identityLabelOf(identity) };
  const isLinked = owner === linkTo || (!owner && (await storage.identities.link(linkTo, named, actor)));
  if (!isLinked)
    return showSignInError(
      ctx,
      409,
      "Identity already linked",
      "This identity is linked to another account.",
    );
  seeOther(ctx, returnTo);
}

/** The library's errors also contain requests and tokens, which must not be logged. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

function showUnavailable(ctx: Context, { name }: IdentityProvider): void {
  const text = "Try again in a minute, or sign in with a password.";
  showSignInError(ctx, 503, `${name} is unavailable right now`, text);
}

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

const NAME_MAX = 50; // leaves room for a number at the end
const ATTEMPTS = 20;
const LABEL_MAX = 255;

function identityLabelOf({ names }: Identity): string | null {
  return removeInvisible((names[0] ?? "").slice(0, LABEL_MAX)) || null;
}

/**
 * Never matches an identity to a user by name: a taken username gets a number. Undefined for an invalid invitation.
 */
async function provisionUser(
  { identities, registrations }: Pick<Storage, "identities" | "registrations">,
  identity: Identity,
  where: { invitation: string | undefined; address: string },
): Promise<string | undefined> {
  const name = usernameOf(identity);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const username = attempt === 0 ? name : `${name}-${randomInt(1000, 10_000)}`;
    const registered = await registrations.register({
      username,
      passwordHash: null,
      organizationName: `${username}'s organization`,
      ...where,
      identity: { issuer: identity.issuer, subject: identity.subject, label: identityLabelOf(identity) },
    });
    if (registered === "uninvited") return undefined;
    if (registered !== "taken") return registered.user.id;
    // Either the username is taken, or the same user signed in from another tab.
    const id = await identities.findUserId(identity);
    if (id) return id;
  }
  throw new Error(`no free username found for ${name}`);
}

function usernameOf({ names }: Identity): string {
  const possible = names.map((name) => {
    const text = (normalizeText(name, "NFKC", LABEL_MAX) ?? "").slice(0, NAME_MAX);
    const [letters = ""] =
      /[\p{L}\p{N}].*[\p{L}\p{N}]/u.exec(text.replace(/[^\p{L}\p{N}._@+-]/gu, "-")) ?? [];
    return letters;
  });
  return possible.find((name) => validateNewUsername(name) === undefined) ?? "user";
}

import type { Router } from "@koa/router";
import type { Context } from "koa";
import { AuthorizationResponseError } from "openid-client";
import type { Storage } from "../../adapters/index.ts";
import type { Settings } from "../config.ts";
import type { OnError } from "../parts.ts";
import { messagePage } from "../views/page.ts";
import { type Identity, type IdentityProvider, ProviderAway } from "./identity-provider.ts";
import { labelOf, registerIdentity } from "./newcomer.ts";
import { RECENT_S } from "./person.ts";
import { invitationIn, isOpen } from "./register.ts";
import { HOME, safeReturnTo } from "./return-to.ts";
import type { Sessions } from "./sessions.ts";
import type { Transaction, Transactions } from "./transactions.ts";

type Options = {
  settings: Pick<Settings, "REGISTRATION">;
  storage: Pick<Storage, "accounts" | "identities" | "registrations">;
  provider: IdentityProvider;
  transactions: Transactions;
  sessions: Sessions;
  base: string;
  onError: OnError;
};

/** `/auth/sso`: to the external identity provider and back, with a session at the end. */
export function externalRoutes(router: Router, options: Options): void {
  const { provider, transactions, base, onError } = options;

  router.get("/auth/sso", async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    try {
      const { url, secrets } = await provider.begin(ctx.query.again === "1" ? RECENT_S : undefined);
      transactions.keep(ctx, { secrets, returnTo });
      ctx.status = 303;
      ctx.redirect(url);
    } catch (error) {
      if (!(error instanceof ProviderAway)) throw error;
      showAway(ctx, provider);
    }
  });

  router.get("/auth/sso/callback", async (ctx) => {
    const transaction = transactions.take(ctx, ctx.query.state);
    if (!transaction) {
      return show(
        ctx,
        400,
        "This page is over",
        "The sign-in has expired, or was begun in another browser. Start again.",
      );
    }
    let identity: Identity;
    try {
      identity = await provider.finish(new URL(ctx.url, base), transaction.secrets);
    } catch (error) {
      const isRefusal = error instanceof AuthorizationResponseError;
      if (!isRefusal) onError(new Error(`external sign-in failed: ${reasonOf(error)}`), ctx);
      if (error instanceof ProviderAway) return showAway(ctx, provider);
      return show(
        ctx,
        400,
        "This did not work",
        `${provider.name} did not sign you in. Go back and try again.`,
      );
    }
    await arrive(ctx, identity, transaction, options);
  });
}

/** The identity is proven: it is somebody's already, is being linked, or is new. */
async function arrive(
  ctx: Context,
  identity: Identity,
  { linkTo, returnTo, secrets }: Transaction,
  options: Options,
): Promise<void> {
  const { storage, settings, sessions, provider } = options;
  const owner = await storage.identities.ownerOf(identity);
  if (linkTo) return link(ctx, { owner, linkTo, returnTo, identity }, options);
  const invitation = invitationIn(returnTo);
  // Who was to sign in anew is no newcomer: the identity is simply not the one of the account.
  const isAgain = secrets.maxAge !== undefined;
  if (!owner && (isAgain || !isOpen(settings, invitation))) {
    const end = isAgain ? "." : ", and registration is closed.";
    const text = `Nobody has an account here with this identity of ${provider.name}${end}`;
    return show(ctx, 403, "No account here", text);
  }
  const accountId = owner ?? (await registerIdentity(storage, identity, { invitation, address: ctx.ip }));
  if (!accountId)
    return show(ctx, 403, "No account here", "The invitation was used, taken back, or is too old.");
  const account = await storage.accounts.find(accountId);
  if (!account || account.disabled) return show(ctx, 403, "No account here", "This account cannot be used.");
  const now = Math.floor(Date.now() / 1000);
  await sessions.begin(ctx, accountId, { at: Math.min(identity.authenticatedAt ?? now, now) });
  ctx.status = 303;
  ctx.redirect(invitation && !owner ? HOME : returnTo); // an invitation is used up by a newcomer
}

type Link = { owner: string | undefined; linkTo: string; returnTo: string; identity: Identity };

/** Only the person who asked for it, still signed in, gets the identity, and only one that is nobody else's. */
async function link(
  ctx: Context,
  { owner, linkTo, returnTo, identity }: Link,
  { storage, sessions }: Options,
) {
  const session = await sessions.current(ctx);
  if (session?.accountId !== linkTo) {
    return show(ctx, 400, "This page is over", "You are no longer signed in as who began this. Start again.");
  }
  const by = { actor: linkTo, address: ctx.ip };
  const named = { ...identity, label: labelOf(identity) };
  const isLinked = owner === linkTo || (!owner && (await storage.identities.link(linkTo, named, by)));
  if (!isLinked) return show(ctx, 409, "This did not work", "This identity belongs to another account.");
  ctx.status = 303;
  ctx.redirect(returnTo);
}

/** The library's errors hold what was sent, tokens and all: only their words go to the log. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

function showAway(ctx: Context, { name }: IdentityProvider): void {
  show(ctx, 503, `${name} cannot be reached`, "Try again in a minute, or sign in with a password.");
}

function show(ctx: Context, status: number, title: string, text: string): void {
  ctx.status = status;
  ctx.type = "html";
  ctx.body = messagePage(title, text, { href: "/auth/login", text: "To the sign-in" });
}

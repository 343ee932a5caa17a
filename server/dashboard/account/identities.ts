import type { Router } from "@koa/router";
import type { IdentityStore } from "../../../adapters/accounts/identities.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { type IdentityProvider, ProviderUnavailable } from "../../auth/sso/identity-provider.ts";
import type { Transactions } from "../../auth/sso/transactions.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import { html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { redisplayForm, respondToChange, type Show } from "../responses.ts";

type Options = {
  identities: IdentityStore;
  provider: IdentityProvider | undefined;
  transactions: Transactions;
  show: Show;
};

const PATH = `${ACCOUNT}/identities`;

export function identityRoutes(router: Router, { identities, provider, transactions, show }: Options): void {
  router.post(PATH, async (ctx) => {
    const { id, means } = signedInUserOf(ctx);
    if (!provider) throw notFound("identity provider");
    if (means !== "session" || !prefersHtml(ctx)) {
      throw new Problem(406, "browser_required", "Open the account page in a browser to link an identity.");
    }
    requireRecentSignIn(ctx, ACCOUNT);
    const { url, secrets } = await provider.begin().catch(throwUnlessUnavailable);
    transactions.keep(ctx, { secrets, returnTo: ACCOUNT, linkTo: id });
    // Not a redirect: `form-action` would have to allow every URL that the provider redirects to.
    ctx.body = linkIdentityPage(provider.name, url);
  });

  router.post(`${PATH}/delete`, redisplayForm(show), async (ctx) => {
    const { id, actor } = signedInUserOf(ctx);
    requireRecentSignIn(ctx, ACCOUNT);
    const input = await readInput(ctx);
    const identity = { issuer: textFieldOf(input.issuer), subject: textFieldOf(input.subject) };
    if (!(await identities.unlink(id, identity, actor))) {
      throw new Problem(409, "only_way_in", "This is your only way to sign in. Set a password first.");
    }
    respondToChange(ctx, { to: ACCOUNT, done: "identity-unlinked" });
  });
}

function throwUnlessUnavailable(error: unknown): never {
  if (!(error instanceof ProviderUnavailable)) throw error;
  const detail = "The identity provider is unavailable right now. Try again in a minute.";
  throw new Problem(503, "provider_unavailable", detail);
}

function linkIdentityPage(provider: string, href: string): string {
  return page(
    `Link ${provider}`,
    html`<h1>Link ${provider}</h1>
<p>Sign in to ${provider} to link it to your account. You can then sign in here with ${provider}.</p>
<p><a class="button" href="${href}">Continue to ${provider}</a></p>
<p class="hint"><a href="/dashboard/account">Back to account</a></p>`,
  );
}

import type { Router } from "@koa/router";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import type { AuthOptions } from "../../auth/auth-options.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { ProviderUnavailable } from "../../auth/sso/identity-provider.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { ACCOUNT, unlinkIdentity } from "../../operations/account.ts";
import { html } from "../../ui/html.ts";
import { page } from "../../ui/page.ts";
import { signedInUserOf } from "../access.ts";
import type { Show } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";

const PATH = `${ACCOUNT}/identities`;

export function identityRoutes(
  router: Router,
  options: RouteOptions & Pick<AuthOptions, "identityProvider" | "transactions">,
  show: Show,
): void {
  const { identityProvider: provider, transactions } = options;
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

  addOperation(router, options, unlinkIdentity, { show, to: () => ACCOUNT });
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

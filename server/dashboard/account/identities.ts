import type { Router } from "@koa/router";
import type { IdentityStore } from "../../adapters/identities.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import { again, answerDone, type Show } from "../dashboard/answers.ts";
import { linkPage } from "../views/link.ts";
import { type IdentityProvider, ProviderAway } from "./identity-provider.ts";
import { prefersHtml, readInput, textOf } from "./input.ts";
import { type Person, requireRecentSignIn } from "./person.ts";
import type { Transactions } from "./transactions.ts";

type Options = {
  identities: IdentityStore;
  provider: IdentityProvider | undefined;
  transactions: Transactions;
  show: Show;
};

const PATH = "/dashboard/account/identities";
const ACCOUNT = "/dashboard/account";

/** Ties the identity of somebody who is signed in here to his or her account, and unties it: never without being asked. */
export function linkingRoutes(router: Router, { identities, provider, transactions, show }: Options): void {
  router.post(PATH, async (ctx) => {
    const { id, means } = ctx.state.person as Person;
    if (!provider) throw notFound("identity provider");
    if (means !== "session" || !prefersHtml(ctx)) {
      throw new Problem(406, "browser_required", "An identity is linked in a browser.");
    }
    requireRecentSignIn(ctx, ACCOUNT);
    const { url, secrets } = await provider.begin().catch(refuseAway);
    transactions.keep(ctx, { secrets, returnTo: ACCOUNT, linkTo: id });
    // Not a redirect: `form-action` would have to allow every address that the provider goes on to.
    ctx.body = linkPage(provider.name, url);
  });

  router.post(`${PATH}/delete`, again(show), async (ctx) => {
    const { id, by } = ctx.state.person as Person;
    requireRecentSignIn(ctx, ACCOUNT);
    const { issuer, subject } = await readInput(ctx);
    if (!(await identities.unlink(id, { issuer: textOf(issuer), subject: textOf(subject) }, by))) {
      throw new Problem(409, "only_way_in", "This is the only way to sign in: set a password first.");
    }
    answerDone(ctx, { to: ACCOUNT, done: "identity-unlinked" });
  });
}

function refuseAway(error: unknown): never {
  if (!(error instanceof ProviderAway)) throw error;
  throw new Problem(
    503,
    "provider_unavailable",
    "The identity provider cannot be reached. Try again in a minute.",
  );
}

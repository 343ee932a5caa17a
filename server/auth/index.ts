import { Router } from "@koa/router";
import type { Middleware } from "koa";
import type { Provider } from "oidc-provider";
import { area, below } from "../../resources/area.ts";
import { createCsrf } from "../csrf.ts";
import type { Limits } from "../limits.ts";
import type { OnError, Parts } from "../parts.ts";
import type { Passwords } from "../passwords.ts";
import type { SignIn } from "../sign-in.ts";
import { accountRoutes } from "./account.ts";
import { externalRoutes } from "./external.ts";
import type { ShowExternal } from "./external-button.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import { isChange } from "./origin.ts";
import { identify } from "./person.ts";
import { explainRefusals, tooMany } from "./refusals.ts";
import { registerRoutes } from "./register.ts";
import type { Sessions } from "./sessions.ts";
import { signInRoutes } from "./sign-in.ts";
import { signOutRoutes } from "./sign-out.ts";
import { createFirstPartyTokens } from "./tokens.ts";
import { createTransactions } from "./transactions.ts";

export type PeopleOptions = Pick<Parts, "settings" | "addresses" | "storage" | "keys"> & {
  provider: Provider;
  sessions: Sessions;
  /** The external one, and its button. */
  identityProvider: IdentityProvider | undefined;
  external: ShowExternal;
  passwords: Passwords;
  limits: Limits;
  signIn: SignIn;
  onError: OnError;
  /** The pages of the dashboard, for whoever is signed in. */
  dashboard: Middleware[];
};

/** People: `/auth`, where they come in and go out, and `/dashboard`, which is for those who are in. */
export function people(options: PeopleOptions): Middleware[] {
  const { provider, identityProvider, sessions, addresses, storage, keys, onError, dashboard } = options;
  const { base } = addresses;
  const { accounts, registrations } = storage;
  const tokens = createFirstPartyTokens({ provider, accounts, base });
  const known = identify({ accounts, sessions, tokens, csrf: createCsrf(keys.signing), base });
  const refusals = explainRefusals({ base, onError });
  const transactions = createTransactions(base);
  const shared = { ...options, accounts, registrations, tokens, base };

  const entry = new Router({ sensitive: true, strict: true });
  registerRoutes(entry, shared);
  signInRoutes(entry, shared);
  if (identityProvider) {
    externalRoutes(entry, { ...options, provider: identityProvider, transactions, base });
  }

  const inside = new Router({ sensitive: true, strict: true });
  signOutRoutes(inside, shared);
  accountRoutes(inside, { ...options, transactions });
  inside.get("/dashboard/me", async (ctx) => {
    const { id, username } = ctx.state.person;
    ctx.body = { user: { id, username }, organizations: await storage.organizations.ofUser(id) };
  });

  const isLogout = below("/auth/logout");
  return [
    area(below("/auth/"), [refusals, routes(entry), area(isLogout, [known, routes(inside)])]),
    area(isDashboard, [refusals, known, limitChanges(options.limits), routes(inside), ...dashboard]),
  ];
}

/** Links are made here on every plan: nobody makes them without end. */
function limitChanges(limits: Limits): Middleware {
  return async function limitChange(ctx, next) {
    const wait = isChange(ctx) ? await limits.change(ctx.state.person.id) : 0;
    if (wait) throw tooMany(wait);
    return next();
  };
}

/** The dashboard's addresses; `/dashboards` is a short link. */
function isDashboard({ path }: { path: string }): boolean {
  return path === "/dashboard" || path.startsWith("/dashboard/");
}

function routes(router: Router): Middleware {
  return router.routes() as unknown as Middleware;
}

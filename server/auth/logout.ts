import type { Router } from "@koa/router";
import { prefersHtml } from "./input.ts";
import type { Person } from "./person.ts";
import type { Sessions } from "./sessions.ts";
import type { FirstPartyTokens } from "./tokens.ts";

type Options = { sessions: Sessions; tokens: FirstPartyTokens };

/** `/auth/logout`, for whoever is signed in: ends the session, or the token with its whole family. */
export function signOutRoutes(router: Router, { sessions, tokens }: Options): void {
  router.post("/auth/logout", async (ctx) => {
    const { means, signInId } = ctx.state.person as Person;
    if (means === "token") await tokens.end(signInId);
    else await sessions.end(ctx);
    if (prefersHtml(ctx)) {
      ctx.status = 303;
      ctx.redirect("/auth/login");
    } else ctx.status = 204;
  });
}

import type { Router } from "@koa/router";
import type { Storage } from "../../adapters/index.ts";
import { prefersHtml } from "../http/request-body.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import type { Sessions } from "./sessions.ts";

type Options = { sessions: Sessions; tokens: FirstPartyTokens; storage: Pick<Storage, "memberEvents"> };

/** Adds `/auth/logout`: ends the session, or revokes the token and its whole family. */
export function logoutRoutes(router: Router, { sessions, tokens, storage }: Options): void {
  router.post("/auth/logout", async (ctx) => {
    const { user } = ctx.state;
    const { id: userId, means, sessionId, actor } = user;
    if (means === "token") await tokens.end(sessionId);
    else await sessions.end(ctx, user);
    await storage.memberEvents.record(actor, { userId, type: "member.logged_out" });
    if (prefersHtml(ctx)) {
      ctx.status = 303;
      ctx.redirect("/auth/login");
    } else ctx.status = 204;
  });
}

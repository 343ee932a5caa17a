import type { Context, Middleware } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { seeOther } from "../http/redirects.ts";

/**
 * Shows the interaction again if another account has signed in since its sign-in form was answered. oidc-provider would
 * send the browser to its logout, which ends the new session.
 */
export const continueWithNewAccount: Middleware = async function keepNewSession(context: Context, next) {
  await next();
  const { session, entities } = (context as Context & Partial<KoaContextWithOIDC>).oidc ?? {};
  const { uid, result } = entities?.Interaction ?? {};
  const answered = result?.login?.accountId;
  if (answered && session?.accountId && session.accountId !== answered)
    seeOther(context, `/interaction/${uid}`);
};

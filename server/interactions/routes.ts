import { Router } from "@koa/router";
import type { Middleware } from "koa";
import { errors } from "oidc-provider";
import { routesOf } from "../../resources/http/methods.ts";
import { Problem } from "../../resources/http/problem.ts";
import { formBody } from "../http/request-body.ts";
import { checkOrigin, isChange } from "../http/same-origin.ts";
import { messagePage } from "../ui/page.ts";
import { accountChoiceStep } from "./account-choice.ts";
import { consentStep } from "./consent-step.ts";
import { currentInteraction, type InteractionOptions } from "./interaction.ts";
import { loginStep } from "./login-step.ts";

/**
 * Creates the pages of the authorization endpoint: sign in, choose an account, consent. Each interaction is bound to
 * the browser that started it.
 */
export function interactions(options: InteractionOptions): Middleware[] {
  const login = loginStep(options);
  const accountChoice = accountChoiceStep(options);
  const consent = consentStep(options);
  const router = new Router({ sensitive: true, strict: true });

  router.get("/interaction/:uid", async (ctx) => {
    const interaction = await currentInteraction(options.provider, ctx);
    const { name } = interaction.prompt;
    if (name === "login") return login.show(ctx, interaction);
    if (name === "select_account") return accountChoice.show(ctx, interaction);
    return consent.show(ctx, interaction);
  });
  router.post("/interaction/:uid/sign-in", formBody, login.submit);
  router.post("/interaction/:uid/account", formBody, accountChoice.submit);
  router.post("/interaction/:uid/consent", formBody, consent.submit);

  return [showErrors, sameOriginOnly(options.base), ...routesOf(router)];
}

/** Rejects forms that another site sends. They lack the CSRF token, too, but this doesn't depend on the pages. */
function sameOriginOnly(base: string): Middleware {
  return function checkSameOrigin(ctx, next) {
    if (isChange(ctx)) checkOrigin(ctx, base);
    return next();
  };
}

const showErrors: Middleware = async function showInteractionErrors(ctx, next) {
  try {
    await next();
  } catch (error) {
    if (error instanceof Problem && error.code === "cross_site_request") {
      ctx.status = error.status;
      ctx.type = "html";
      ctx.body = messagePage("This request came from another site", "Start again from the app.");
      return;
    }
    if (!(error instanceof errors.OIDCProviderError) || error.status >= 500) throw error;
    ctx.status = error.status;
    ctx.type = "html";
    ctx.body = messagePage(
      "This sign-in request has expired",
      "It may also have been completed already, or started in another browser. Start again from the app.",
    );
  }
};

import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import { errors, type Interaction, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import { Problem } from "../../resources/http/problem.ts";
import { routesOf } from "../../resources/http/routing.ts";
import type { AuthOptions } from "../auth/auth-options.ts";
import { DASHBOARD, showMessage } from "../auth/error-handler.ts";
import { type Csrf, checkOrigin } from "../http/csrf.ts";
import { safeReturnTo, seeOther } from "../http/redirects.ts";
import { formBody, type Input } from "../http/request-body.ts";
import { consentStep } from "./consent-page.ts";
import { interactionPath, type Step } from "./interaction.ts";
import { accountChoiceStep, loginStep } from "./login-step.ts";

/** Each interaction is bound to the browser that started it. */
export function interactions(options: AuthOptions): Middleware[] {
  const { provider, csrf, base } = options;
  const router = new Router({ sensitive: true, strict: true });
  const steps = new Map<string, Step>();

  function addStep(prompt: string, path: string, step: Step): void {
    steps.set(prompt, step);
    // A form that is shown again with an error has this URL; reloading leads to the step.
    router.get(`/interaction/:uid/${path}`, (ctx) => seeOther(ctx, ctx.path.slice(0, -path.length - 1)));
    router.post(`/interaction/:uid/${path}`, formBody, async (ctx) => {
      // A form of another site lacks the CSRF token, too, but this doesn't depend on the pages.
      checkOrigin(ctx, base);
      const interaction = await currentInteraction(provider, ctx, prompt);
      await step.submit(ctx, interaction, readForm(ctx, csrf, interaction));
    });
  }

  addStep("login", "sign-in", loginStep(options));
  addStep("select_account", "account", accountChoiceStep(options));
  addStep("consent", "consent", consentStep(options));
  router.get("/interaction/:uid", async (ctx) => {
    const interaction = await currentInteraction(provider, ctx);
    await steps.get(interaction.prompt.name)?.show(ctx, interaction);
  });

  return [showErrors, ...routesOf(router)];
}

/**
 * Shows the interaction again if another account has signed in since its sign-in form was answered. oidc-provider would
 * send the browser to its logout, which ends the new session.
 */
export const continueWithNewAccount: Middleware = async function keepNewSession(context: Context, next) {
  await next();
  const { session, entities } = (context as Context & Partial<KoaContextWithOIDC>).oidc ?? {};
  const { Interaction: interaction } = entities ?? {};
  const answered = interaction?.result?.login?.accountId;
  if (interaction && answered && session?.accountId && session.accountId !== answered)
    seeOther(context, interactionPath(interaction));
};

/** Throws SessionNotFound if the URL names another interaction, or if the step `prompt` is already done. */
async function currentInteraction(provider: Provider, ctx: Context, prompt?: string): Promise<Interaction> {
  ctx.set("Cache-Control", "no-store");
  const interaction = await provider.interactionDetails(ctx.req, ctx.res);
  if (interaction.uid !== ctx.params.uid)
    throw new errors.SessionNotFound("the URL names another interaction");
  if (prompt && interaction.prompt.name !== prompt)
    throw new errors.SessionNotFound("this step is already done");
  return interaction;
}

/** Throws InvalidRequest without a valid CSRF token. */
function readForm(ctx: Context, csrf: Csrf, interaction: Interaction): Input {
  const body = (ctx.request.body ?? {}) as Input;
  if (!csrf.isValid(body.csrf, interaction.uid))
    throw new errors.InvalidRequest("the form has no valid CSRF token");
  return body;
}

/** Returns the authorization request of an expired form; anyone may link to one. */
function restartOf(ctx: Context): string | undefined {
  const { restart } = (ctx.request.body ?? {}) as Input;
  const target = safeReturnTo(restart);
  return target.startsWith("/oauth/authorize?") ? target : undefined;
}

const showErrors: Middleware = async function showInteractionErrors(ctx, next) {
  try {
    await next();
  } catch (error) {
    if (error instanceof Problem && error.code === "cross_site_request") {
      const text = "Start again from the app.";
      return showMessage(ctx, error.status, "This request came from another site", text, DASHBOARD);
    }
    if (!(error instanceof errors.OIDCProviderError) || error.status >= 500) throw error;
    const restart = restartOf(ctx);
    const text = `It may also have been completed already, or started in another browser.${restart ? "" : " Start again from the app."}`;
    const next = restart ? { href: restart, text: "Start again" } : DASHBOARD;
    showMessage(ctx, error.status, "This sign-in request has expired", text, next);
  }
};

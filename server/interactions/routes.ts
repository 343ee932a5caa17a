import { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import { errors, type Interaction, type Provider } from "oidc-provider";
import type { Storage } from "../adapters/index.ts";
import { accountChoiceOf, allowOtherAccounts, endOtherSession, isAwaited } from "./account-choice.ts";
import { approveConsent, denyConsent, findConsentOptions } from "./consent.ts";
import type { Csrf } from "./csrf.ts";
import type { ShowExternal } from "./people/external-button.ts";
import type { Sessions } from "./people/sessions.ts";
import { organizationOf } from "./provider/clients.ts";
import type { SignIn } from "./sign-in.ts";
import { accountChoicePage } from "./views/account-choice.ts";
import { consentPage } from "./views/consent.ts";
import { messagePage } from "./views/page.ts";
import { signInPage } from "./views/sign-in.ts";

type InteractionOptions = {
  provider: Provider;
  storage: Pick<Storage, "accounts" | "organizations">;
  csrf: Csrf;
  signIn: SignIn;
  sessions: Sessions;
  external: ShowExternal;
};

const form = bodyParser({ enableTypes: ["form"], formLimit: "16kb" });
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The pages of an authorization: sign in, choose an account, consent. Each belongs to the browser that began it. */
export function interactions(options: InteractionOptions): Middleware[] {
  const { provider, storage, csrf, signIn, sessions, external } = options;
  const router = new Router({ sensitive: true, strict: true });
  const path = (interaction: Interaction, step: string) => `/interaction/${interaction.uid}/${step}`;

  async function showSignIn(
    ctx: Context,
    interaction: Interaction,
    again?: { username: string; error: string },
  ) {
    const client = await clientOf(provider, interaction);
    await allowOtherAccounts(interaction);
    ctx.body = signInPage({
      action: path(interaction, "sign-in"),
      csrf: csrf.token(interaction.uid),
      app: client.name,
      // Who is signed in here already was sent to show it anew: that is asked of the provider as well.
      external: await external(`/interaction/${interaction.uid}`, {
        again: interaction.session !== undefined,
      }),
      ...(again ?? { username: text(interaction.params.login_hint) }),
    });
  }

  async function showAccountChoice(ctx: Context, interaction: Interaction) {
    const client = await clientOf(provider, interaction);
    const account = await storage.accounts.find(accountOf(interaction));
    ctx.body = accountChoicePage({
      action: path(interaction, "account"),
      csrf: csrf.token(interaction.uid),
      app: client.name,
      username: account?.username ?? "",
    });
  }

  const optionsFor = (interaction: Interaction) =>
    findConsentOptions(storage.organizations, accountOf(interaction), scopesOf(interaction));

  async function showConsent(ctx: Context, interaction: Interaction, error?: string) {
    const client = await clientOf(provider, interaction);
    const account = await storage.accounts.find(accountOf(interaction));
    ctx.body = consentPage({
      action: path(interaction, "consent"),
      csrf: csrf.token(interaction.uid),
      app: client.name,
      username: account?.username ?? "",
      scopes: scopesOf(interaction),
      ...(await optionsFor(interaction)),
      error,
      ...redirectOf(interaction),
    });
  }

  router.get("/interaction/:uid", async (ctx) => {
    const interaction = await currentInteraction(provider, ctx);
    if (interaction.prompt.name === "select_account") return showAccountChoice(ctx, interaction);
    if (interaction.prompt.name !== "login") return showConsent(ctx, interaction);
    const session = await sessions.current(ctx);
    if (!session || !isAwaited(session, interaction)) return showSignIn(ctx, interaction);
    await finish(provider, ctx, { login: { accountId: session.accountId, ts: session.loginTs } });
  });

  router.post("/interaction/:uid/sign-in", form, async (ctx) => {
    const interaction = await currentInteraction(provider, ctx, "login");
    const body = readForm(ctx, csrf, interaction);
    const username = text(body.username);
    const result = await signIn(ctx, username, text(body.password));
    if ("error" in result) {
      ctx.status = result.status;
      return showSignIn(ctx, interaction, { username, error: result.error });
    }
    await finish(provider, ctx, { login: { accountId: result.accountId } }, async () => {
      if (await result.holds()) return endOtherSession(ctx, sessions, result.accountId);
      await interaction.destroy();
      throw new errors.SessionNotFound("the password was changed in the meantime");
    });
  });

  router.post("/interaction/:uid/account", form, async (ctx) => {
    const interaction = await currentInteraction(provider, ctx, "select_account");
    await finish(provider, ctx, { select_account: accountChoiceOf(readForm(ctx, csrf, interaction)) });
  });

  router.post("/interaction/:uid/consent", form, async (ctx) => {
    const interaction = await currentInteraction(provider, ctx, "consent");
    const body = readForm(ctx, csrf, interaction);
    if (body.decision !== "allow") {
      await denyConsent(provider, ctx);
      return goOn(ctx, interaction.returnTo);
    }
    const { options } = await optionsFor(interaction);
    const option = options.find(({ id }) => id === body.organization_id);
    if (!option) return refuse(ctx, interaction, "Choose one of your organizations.");
    try {
      await approveConsent(provider, interaction, {
        accountId: accountOf(interaction),
        option,
        address: ctx.ip,
      });
    } catch (error) {
      if (!(error instanceof errors.AccessDenied)) throw error;
      return refuse(ctx, interaction, `You are no longer a member of ${option.name}.`);
    }
    goOn(ctx, interaction.returnTo);
  });

  function refuse(ctx: Context, interaction: Interaction, error: string) {
    ctx.status = 422;
    return showConsent(ctx, interaction, error);
  }

  return [explainErrors, router.routes() as unknown as Middleware];
}

/** The authorization under way in this browser; it must be the one in the address and at the step that is asked for. */
async function currentInteraction(provider: Provider, ctx: Context, prompt?: string): Promise<Interaction> {
  ctx.set("Cache-Control", "no-store");
  const interaction = await provider.interactionDetails(ctx.req, ctx.res);
  if (interaction.uid !== ctx.params.uid) throw new errors.SessionNotFound("another sign-in is under way");
  if (prompt && interaction.prompt.name !== prompt)
    throw new errors.SessionNotFound("this step is done already");
  return interaction;
}

function readForm(ctx: Context, csrf: Csrf, interaction: Interaction): Record<string, unknown> {
  const body = (ctx.request.body ?? {}) as Record<string, unknown>;
  if (!csrf.isValid(body.csrf, interaction.uid))
    throw new errors.InvalidRequest("the form did not come from this page");
  return body;
}

/** Keeps what came of a step and goes on; not where `check`, with that kept, throws. */
async function finish(
  provider: Provider,
  ctx: Context,
  result: Parameters<Provider["interactionFinished"]>[2],
  check = async () => {},
) {
  // The library writes the redirect itself, headers and all.
  const target = await provider.interactionResult(ctx.req, ctx.res, result);
  await check();
  goOn(ctx, target);
}

function goOn(ctx: Context, target: string): void {
  ctx.status = 303; // RFC 9700 §4.12: never 307
  ctx.redirect(target);
}

function accountOf({ session }: Interaction): string {
  return session?.accountId as string;
}

async function clientOf(provider: Provider, { params }: Interaction): Promise<{ name: string }> {
  const client = await provider.Client.find(params.client_id as string);
  if (!client) throw new errors.InvalidClient("the client is gone");
  return { name: organizationOf(client)?.name ?? new URL(client.clientId).host };
}

function scopesOf({ params }: Interaction): string[] {
  return text(params.scope).split(" ").filter(Boolean);
}

function redirectOf({ params }: Interaction): { redirectHost: string; isLocal: boolean } {
  const url = new URL(params.redirect_uri as string);
  return { redirectHost: url.host || url.protocol.slice(0, -1), isLocal: LOOPBACK.has(url.hostname) };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

const explainErrors: Middleware = async function explainInteractionErrors(ctx, next) {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof errors.OIDCProviderError) || error.status >= 500) throw error;
    ctx.status = error.status;
    ctx.type = "html";
    ctx.body = messagePage(
      "This page is over",
      "The sign-in was finished, has expired, or was begun in another browser. Go back to the app and start again.",
    );
  }
};

import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { RegistrationStore } from "../../adapters/registration.ts";
import { Problem } from "../../resources/problem.ts";
import { validate } from "../../resources/validate.ts";
import type { Settings } from "../config.ts";
import type { Limits } from "../limits.ts";
import type { Passwords } from "../passwords.ts";
import { messagePage } from "../views/page.ts";
import { registerPage } from "../views/register.ts";
import type { ShowExternal } from "./external-button.ts";
import { hashOrRefuse, registrationOf, sentencesOf } from "./fields.ts";
import { type Input, prefersHtml, readInput, textOf } from "./input.ts";
import { checkOrigin } from "./origin.ts";
import { HOME, safeReturnTo } from "./return-to.ts";
import type { Sessions } from "./sessions.ts";
import type { FirstPartyTokens } from "./tokens.ts";

type Options = {
  settings: Pick<Settings, "REGISTRATION">;
  registrations: RegistrationStore;
  passwords: Passwords;
  limits: Limits;
  sessions: Sessions;
  tokens: FirstPartyTokens;
  external: ShowExternal;
  base: string;
};

/** `/auth/register`: makes a person and the organization that he or she owns, and signs in. */
export function registerRoutes(router: Router, options: Options): void {
  const { settings, registrations, passwords, limits, sessions, tokens, external, base } = options;

  async function register(ctx: Context, input: Input) {
    const invitation = textOf(input.invitation) || undefined;
    if (!isOpen(settings, invitation)) throw closed();
    const { username, password, organization_name } = validate(registrationOf(input), input);
    await limit(ctx, limits);
    const registered = await registrations.register({
      username,
      passwordHash: await hashOrRefuse(passwords, password),
      organizationName: organization_name || `${username}'s organization`,
      invitation,
      address: ctx.ip,
    });
    if (registered === "taken") throw taken();
    if (registered === "uninvited") throw uninvited();
    return registered;
  }

  router.get("/auth/register", async (ctx) => {
    const returnTo = safeReturnTo(ctx.query.return_to);
    const invitation = invitationIn(returnTo);
    if (!isOpen(settings, invitation)) return showClosed(ctx);
    ctx.body = registerPage({ returnTo, invitation, external: await external(returnTo) });
  });

  router.post("/auth/register", async (ctx) => {
    const input = await readInput(ctx);
    if (prefersHtml(ctx)) return registerByForm(ctx, input);
    const { user, organization } = await register(ctx, input);
    ctx.status = 201;
    ctx.body = { user, organization, ...(await tokens.issue(user.id, ctx.ip)) };
  });

  async function registerByForm(ctx: Context, input: Input) {
    checkOrigin(ctx, base);
    const returnTo = safeReturnTo(input.return_to);
    try {
      const { user } = await register(ctx, input);
      await sessions.begin(ctx, user.id);
      ctx.status = 303;
      ctx.redirect(input.invitation ? HOME : returnTo); // an invitation is used up by now
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.code === "registration_closed") return showClosed(ctx);
      ctx.status = error.status;
      ctx.set(error.headers);
      ctx.body = registerPage({
        returnTo,
        invitation: textOf(input.invitation) || undefined,
        username: textOf(input.username),
        organizationName: textOf(input.organization_name),
        error: sentencesOf(error),
        external: await external(returnTo),
      });
    }
  }
}

/** Whether people may register: anybody, or whoever was invited. */
export function isOpen(
  { REGISTRATION }: Pick<Settings, "REGISTRATION">,
  invitation: string | undefined,
): boolean {
  return REGISTRATION === "open" || (REGISTRATION === "invite" && invitation !== undefined);
}

/** The secret of the invitation that a person was on the way to when he or she was asked to sign in. */
export function invitationIn(returnTo: string): string | undefined {
  return /^\/dashboard\/invitations\/([\w-]+)$/.exec(returnTo)?.[1];
}

function taken(): Problem {
  const message = "This username is taken: choose another one.";
  return new Problem(409, "username_taken", message, { errors: [{ field: "username", message }] });
}

function uninvited(): Problem {
  return new Problem(403, "invitation_over", "This invitation was used, taken back, or is too old.");
}

async function limit(ctx: Context, limits: Limits): Promise<void> {
  const wait = await limits.visit("registration", ctx.ip);
  if (!wait) return;
  const headers = { "Retry-After": String(wait) };
  throw new Problem(429, "too_many_requests", `Too many accounts. Try again in ${wait} seconds.`, {
    headers,
  });
}

function closed(): Problem {
  return new Problem(403, "registration_closed", "This service takes no registrations.");
}

function showClosed(ctx: Context): void {
  ctx.status = 403;
  ctx.body = messagePage(
    "Registration is closed",
    "Accounts are made by those who run this service, or by the link of an invitation.",
    { href: "/auth/login", text: "Sign in" },
  );
}

import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { notFound, Problem } from "../../../../resources/http/problem.ts";
import { hasAtMost } from "../../../../resources/http/text.ts";
import { validate } from "../../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../../auth/authenticate.ts";
import { keyReference } from "../../../auth/sign-in-proof.ts";
import { field, linkButton } from "../../../ui/controls.ts";
import { type Html, html } from "../../../ui/html.ts";
import { passkeyForm, passkeyScript } from "../../../ui/passkeys.ts";
import { signedInUserOf } from "../../access.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../../responses.ts";
import { ACCOUNT, type FactorOptions } from "./options.ts";
import { respondWithCodes } from "./recovery-codes.ts";

const PATH = `${ACCOUNT}/passkeys`;
const NAME_MAX = 50;
const PASSKEYS_MAX = 20;
const NAME_RULE = { error: `must be 1 to ${NAME_MAX} characters long` };
const registration = z.strictObject({
  name: z
    .string(NAME_RULE)
    .trim()
    .refine((name) => name !== "" && hasAtMost(NAME_MAX, name), NAME_RULE)
    .regex(/^[^\p{Cc}\p{Cf}]*$/u, { error: "must not contain control characters" }),
  passkey: z.string({ error: "must be the response of an authenticator" }),
});

/** Adds the routes with which a user adds and removes passkeys. */
export function passkeyRoutes(router: Router, options: FactorOptions): void {
  const { storage, sessions, relyingParty, codesView } = options;
  const { passkeys } = storage.secondFactors;

  const remove = async (ctx: Context) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { actor, sessionId, means } = signedInUserOf(ctx);
    const refusal = await passkeys.remove(ctx.params.id as string, actor, sessionId);
    if (refusal === "missing") throw notFound("passkey");
    if (refusal === "only_way_in") {
      throw new Problem(409, "only_way_in", "This is your only way to sign in. Set a password first.");
    }
    if (means === "session") await sessions.forgetFactor(ctx, "passkey");
    respondToChange(ctx, { to: ACCOUNT, done: "passkey-removed" });
  };
  router.delete(`${PATH}/:id`, remove);
  router.post(`${PATH}/:id/delete`, remove);
  if (!relyingParty) return;

  const show: Show = async (ctx, error) => {
    requireRecentSignIn(ctx, `${PATH}/new`);
    const user = signedInUserOf(ctx);
    ctx.state.memberships = await storage.organizations.listByUser(user.id);
    const known = await passkeys.list(user.id);
    const request = await relyingParty.registrationOptions(user, known, purposeOf(user.sessionId));
    showPage(ctx, { title: "Add a passkey", error }, newPasskeyPage(PATH, request, user.csrf));
  };
  router.get(`${PATH}/new`, (ctx) => show(ctx));

  router.post(PATH, redisplayForm(show), async (ctx) => {
    requireRecentSignIn(ctx, `${PATH}/new`);
    const { id, actor, means, sessionId } = signedInUserOf(ctx);
    const { name, passkey: response } = validate(registration, await formFieldsOf(ctx));
    if ((await passkeys.list(id)).length >= PASSKEYS_MAX) throw tooMany();
    const registered = await relyingParty.verifyRegistration(response, purposeOf(sessionId));
    if (!registered) throw notAccepted();
    const { credential, credentialDeviceType } = registered;
    const passkey = {
      name,
      credentialId: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString("base64url"),
      counter: credential.counter,
      transports: credential.transports ?? [],
      synced: credentialDeviceType === "multiDevice",
    };
    const codes = await passkeys.add(passkey, actor);
    if (!codes) throw notAccepted();
    if (means === "session") await sessions.renew(ctx, { method: "passkey", amr: keyReference(passkey) });
    respondWithCodes(ctx, codesView, codes, "passkey-added");
  });
}

function purposeOf(sessionId: string): string {
  return `registration ${sessionId}`;
}

function tooMany(): Problem {
  return new Problem(
    409,
    "too_many_passkeys",
    `You can have at most ${PASSKEYS_MAX} passkeys. Remove one first.`,
  );
}

function notAccepted(): Problem {
  const message = "must be a new passkey, created on this page within the last five minutes";
  return new Problem(422, "invalid_passkey", "The passkey wasn’t accepted. Try again.", {
    errors: [{ field: "passkey", message }],
  });
}

/** Renders the page that adds a passkey. */
function newPasskeyPage(action: string, options: string, csrf: string | undefined): Html {
  const content = html`${field({
    name: "name",
    label: "Name",
    hint: "Helps you recognize the device or password manager, such as “Work laptop”.",
    attributes: html`required maxlength="50" autocomplete="off"`,
  })}
<div class="actions"><button type="submit">Add passkey</button>${linkButton("/dashboard/account", "Cancel", "quiet")}</div>`;
  return html`<section class="panel">
<p>With a passkey, you sign in with your device’s screen lock or a security key instead of a password. It also serves as your second factor.</p>
${passkeyForm("create", { action, options, fields: { csrf: csrf ?? "" } }, content, "stack")}
<noscript><p class="alert">Adding a passkey needs JavaScript.</p></noscript>
<p class="alert" data-passkey-missing hidden>This browser doesn’t support passkeys.</p>
${passkeyScript()}
</section>`;
}

import type { Router } from "@koa/router";
import { z } from "zod";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { hasAtMost } from "../../../resources/http/text.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { keyReference } from "../../auth/sign-in-proof.ts";
import { CSRF_FIELD, field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { passkeyForm, passkeyScript } from "../../ui/sign-in.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { formFieldsOf, respondToChange } from "../responses.ts";
import { addChange, addForm } from "../route.ts";
import { type FactorOptions, respondWithCodes } from "./recovery-codes.ts";
import { type SetupReturn, setupReturnOf } from "./setup-return.ts";

const PATH = `${ACCOUNT}/passkeys`;
const NAME_MAX = 50;
const PASSKEYS_MAX = 20;
const TOO_MANY = `You can have at most ${PASSKEYS_MAX} passkeys. Remove one first.`;
const NAME_RULE = { error: `must be 1 to ${NAME_MAX} characters long` };
const registration = z.strictObject({
  name: z
    .string(NAME_RULE)
    .trim()
    .refine((name) => name !== "" && hasAtMost(NAME_MAX, name), NAME_RULE)
    .regex(/^[^\p{Cc}\p{Cf}]*$/u, { error: "must not contain control characters" }),
  passkey: z.string({ error: "must be the response of an authenticator" }),
});

export function passkeyRoutes(router: Router, options: FactorOptions): void {
  const { storage, sessions, relyingParty, codesView } = options;
  const { passkeys } = storage.secondFactors;

  addChange(router, ["delete", `${PATH}/:id`], {}, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { actor, sessionId, means } = signedInUserOf(ctx);
    const refusal = await passkeys.remove(ctx.params.id, actor, sessionId);
    if (refusal === "missing") throw notFound("passkey");
    if (refusal === "only_way_in") {
      throw new Problem(409, "only_way_in", "This is your only way to sign in. Set a password first.");
    }
    if (means === "session") await sessions.forgetFactor(ctx, "passkey");
    respondToChange(ctx, { to: ACCOUNT, done: "passkey-removed" });
  });
  if (!relyingParty) return;

  addForm(router, {
    path: `${PATH}/new`,
    action: PATH,
    isSensitive: true,
    async render(ctx) {
      const user = signedInUserOf(ctx);
      ctx.state.memberships = await storage.organizations.listByUser(user.id);
      const known = await passkeys.list(user.id);
      const request = await relyingParty.registrationOptions(user, known, purposeOf(user.sessionId));
      const body = newPasskeyPage(request, await setupReturnOf(ctx));
      return { title: "Add a passkey", body };
    },
    async change(ctx) {
      const { id, actor, means, sessionId } = signedInUserOf(ctx);
      const { return_to: _, ...fields } = await formFieldsOf(ctx);
      const { name, passkey: response } = validate(registration, fields);
      if ((await passkeys.list(id)).length >= PASSKEYS_MAX)
        throw new Problem(409, "too_many_passkeys", TOO_MANY);
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
      const { path: back } = await setupReturnOf(ctx);
      respondWithCodes(ctx, codesView, { codes, back, done: "passkey-added" });
    },
  });
}

function purposeOf(sessionId: string): string {
  return `registration ${sessionId}`;
}

function notAccepted(): Problem {
  const message = "must be a new passkey, created on this page within the last five minutes";
  return new Problem(422, "invalid_passkey", "The passkey wasn’t accepted. Try again.", {
    errors: [{ field: "passkey", message }],
  });
}

function newPasskeyPage(options: string, back: SetupReturn): Html {
  const content = html`${CSRF_FIELD}${back.field}${field({
    name: "name",
    label: "Name",
    hint: "Helps you recognize the device or password manager, such as “Work laptop”.",
    attributes: html`required maxlength="50" autocomplete="off"`,
  })}
<div class="actions"><button type="submit">Add passkey</button>${linkButton(back.path, "Cancel", "quiet")}</div>`;
  return html`<section class="panel">
<p>With a passkey, you sign in with your device’s screen lock or a security key instead of a password. It also serves as your second factor.</p>
${passkeyForm("create", { action: PATH, options, fields: {} }, content, "stack")}
<noscript><p class="alert">Adding a passkey needs JavaScript.</p></noscript>
<p class="alert" data-passkey-missing hidden>This browser doesn’t support passkeys.</p>
${passkeyScript()}
</section>`;
}

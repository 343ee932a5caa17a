import type { Router } from "@koa/router";
import { registrationPurposeOf } from "../../auth/current-sign-in.ts";
import { ACCOUNT } from "../../operations/account.ts";
import { addPasskey, PASSKEY_NAME_MAX, removePasskey } from "../../operations/second-factors.ts";
import { CSRF_FIELD, field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { passkeyForm, passkeyScript } from "../../ui/sign-in.ts";
import { signedInUserOf } from "../access.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import { type FactorOptions, showCodes } from "./recovery-codes.ts";
import { type SetupReturn, setupReturnOf, withoutReturn } from "./setup-return.ts";

const PATH = `${ACCOUNT}/passkeys`;

export function passkeyRoutes(router: Router, options: FactorOptions): void {
  const { storage, relyingParty, codesView } = options;
  addOperation(router, options, removePasskey, { to: () => ACCOUNT });
  if (!relyingParty) return;

  addOperationPage(router, options, addPasskey, {
    path: `${PATH}/new`,
    toInput: withoutReturn,
    to: (ctx) => setupReturnOf(ctx).path,
    respond: (ctx, output) => showCodes(ctx, codesView, output),
    async render(ctx) {
      const user = signedInUserOf(ctx);
      ctx.state.memberships = await storage.organizations.listByUser(user.id);
      const known = await storage.secondFactors.passkeys.list(user.id);
      const request = await relyingParty.registrationOptions(user, known, registrationPurposeOf(user));
      return { title: "Add a passkey", body: newPasskeyPage(request, setupReturnOf(ctx)) };
    },
  });
}

function newPasskeyPage(options: string, back: SetupReturn): Html {
  const content = html`${CSRF_FIELD}${back.field}${field({
    name: "name",
    label: "Name",
    hint: "Helps you recognize the device or password manager, such as “Work laptop”.",
    attributes: html`required maxlength="${PASSKEY_NAME_MAX}" autocomplete="off"`,
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

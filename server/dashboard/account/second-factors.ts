import type { Router } from "@koa/router";
import type { Context } from "koa";
import { renderSVG } from "uqr";
import { invalidField } from "../../../resources/http/validate.ts";
import type { AuthOptions } from "../../auth/auth-options.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { totpUri } from "../../credentials/totp.ts";
import { isChange } from "../../http/csrf.ts";
import { safeReturnTo, seeOther } from "../../http/redirects.ts";
import { type Input, prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import { ACCOUNT } from "../../operations/account.ts";
import * as operations from "../../operations/second-factors.ts";
import * as ui from "../../ui/controls.ts";
import { type Html, html, trusted } from "../../ui/html.ts";
import { passkeyForm, passkeyScript } from "../../ui/sign-in.ts";
import { pathWith } from "../../ui/table.ts";
import { SECOND_FACTOR_SETUP, signedInUserOf } from "../access.ts";
import type { Show } from "../forms.ts";
import { shownOnce } from "../one-time-view.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";

const TOTP = `${ACCOUNT}/totp`;
const PASSKEYS = `${ACCOUNT}/passkeys`;
const CODES = `${ACCOUNT}/recovery-codes`;

const KEY_GROUP = /.{4}(?!$)/g;
const RECOVERY_CODE = /^[0-9a-z]{6}(-[0-9a-z]{6}){3}$/;
// ISO/IEC 18004 requires a quiet zone of four modules.
const QR_CODE = { border: 4, ecc: "M" } as const;

export function secondFactorRoutes(
  router: Router,
  options: RouteOptions & Pick<AuthOptions, "relyingParty">,
): void {
  const { storage, relyingParty } = options;
  const { totp, passkeys } = storage.secondFactors;
  const codesView = options.oneTimeView<{ codes: string[]; back: string }>();
  const to = () => ACCOUNT;

  /** Redirects to new recovery codes, which lead back, or returns false without any. */
  function redirectToCodes(ctx: Context, created: { recovery_codes: string[] } | undefined): boolean {
    if (!created) return false;
    codesView.redirect(ctx, CODES, { codes: created.recovery_codes, back: setupReturnOf(ctx).path });
    return true;
  }

  const showTotp: Show = async (ctx, error) => {
    const back = setupReturnOf(ctx);
    requireRecentSignIn(ctx, back.query(TOTP));
    const { id, username } = signedInUserOf(ctx);
    const secret = await totp.findPending(id);
    if (!secret) return ctx.redirect(back.start);
    const body = totpPage(secret, totpUri(secret, username), back, error);
    showPage(ctx, { title: "Set up an authenticator app", error, showsError: true, isSecret: true, body });
  };
  router.get(TOTP, (ctx) => showTotp(ctx));
  addOperation(router, options, operations.startTotp, { to: (ctx) => setupReturnOf(ctx).query(TOTP) });
  addOperation(router, options, operations.confirmTotp, {
    show: showTotp,
    toInput: withoutReturn,
    // The form was sent twice, or is older than the app.
    async before(ctx, next) {
      const isOutdated = prefersHtml(ctx) && !(await totp.findPending(signedInUserOf(ctx).id));
      return isOutdated ? seeOther(ctx, ACCOUNT) : next();
    },
    to: (ctx) => setupReturnOf(ctx).path,
    respond: redirectToCodes,
  });
  addOperation(router, options, operations.removeTotp, { to });

  addOperation(router, options, operations.removePasskey, { to });
  if (relyingParty)
    addOperationPage(router, options, operations.addPasskey, {
      path: `${PASSKEYS}/new`,
      toInput: withoutReturn,
      to: (ctx) => setupReturnOf(ctx).path,
      respond: redirectToCodes,
      async render(ctx) {
        const user = signedInUserOf(ctx);
        const request = await relyingParty.registrationOptions(user, await passkeys.list(user.id));
        return { title: "Add a passkey", body: passkeyPage(request, setupReturnOf(ctx)) };
      },
    });

  addOperation(router, options, operations.replaceRecoveryCodes, { to, respond: redirectToCodes });
  router.post(`${CODES}/download`, downloadCodes);
  router.get(`${CODES}/:view`, (ctx) =>
    codesView.show(ctx, {
      page: ({ codes, back }) => ({ title: "Recovery codes", body: codesPage(codes, back) }),
      kind: "list",
      explanation: shownOnce("A list of recovery codes", "If you didn’t save the codes, create new ones."),
      back: { href: ACCOUNT, text: "Go to account" },
    }),
  );

  router.get(SECOND_FACTOR_SETUP, (ctx) => {
    const organization = ctx.state.memberships?.find(({ id }) => id === ctx.query.organization);
    const body = setupPage(organization?.name, relyingParty !== undefined, setupReturnOf(ctx));
    showPage(ctx, { title: "Set up two-factor authentication", body });
  });
}

/** Where the setup of a second factor leads back to: the page that asked for it, or the account. */
type SetupReturn = {
  path: string;
  /** Where the setup begins again after a sign-in. */
  start: string;
  /** Passes the path on to a form or page of the setup. */
  field: Html;
  query: (page: string) => string;
};

/** Reads the parameter of a page, or the field of a form, whose CSRF token has been checked. */
function setupReturnOf(ctx: Context): SetupReturn {
  const fields = isChange(ctx) ? (ctx.request.body as Input | undefined) : ctx.query;
  const text = fields?.return_to;
  if (!text) return { path: ACCOUNT, start: ACCOUNT, field: html``, query: (page) => page };
  const path = safeReturnTo(text);
  const query = (page: string) => pathWith(page, { return_to: path });
  return { path, start: query(SECOND_FACTOR_SETUP), field: ui.hidden("return_to", path), query };
}

/** Returns the fields of a form of the setup that belong to its operation. */
function withoutReturn({ return_to: _, ...fields }: Input): Input {
  return fields;
}

/** Renders why a second factor is needed, and how to set one up. */
function setupPage(organization: string | undefined, mayAddPasskey: boolean, back: SetupReturn): Html {
  const reason = organization
    ? html`<strong><bdi>${organization}</bdi></strong> requires owners and admins to use two-factor authentication.`
    : html`Add a second step to your sign-in, so that a stolen password isn’t enough to sign in to your account.`;
  return html`<section class="panel"><p>${reason}</p>
<div class="actions">
${mayAddPasskey && ui.linkButton(back.query(`${PASSKEYS}/new`), "Add passkey")}
<form method="post" action="${TOTP}" class="inline">${ui.CSRF_FIELD}${back.field}<button type="submit" class="${mayAddPasskey ? "quiet" : "primary"}">Set up authenticator app</button></form>
${ui.linkButton(organization ? ACCOUNT : back.path, "Cancel", "quiet")}
</div></section>`;
}

function totpPage(secret: string, uri: string, back: SetupReturn, error: string | undefined): Html {
  return html`<section class="panel">
<ol class="steps">
<li>Scan this QR code with your authenticator app, or enter the key below.
<div class="qr" role="img" aria-label="QR code for your authenticator app">${trusted(renderSVG(uri, QR_CODE))}</div>
<p>${ui.copyable(secret.replace(KEY_GROUP, "$& "), "key")}</p></li>
<li>Enter the 6-digit code that the app shows.</li>
</ol>
<form method="post" action="${TOTP}/confirm" class="stack">${ui.CSRF_FIELD}${back.field}
${ui.field({
  name: "code",
  label: "Code",
  error,
  attributes: html`inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus`,
})}
<div class="actions"><button type="submit">Confirm code</button>${ui.linkButton(back.path, "Cancel", "quiet")}</div>
</form></section>`;
}

function passkeyPage(options: string, back: SetupReturn): Html {
  const content = html`${ui.CSRF_FIELD}${back.field}${ui.field({
    name: "name",
    label: "Name",
    hint: "Helps you recognize the device or password manager, such as “Work laptop”.",
    attributes: html`required maxlength="${operations.PASSKEY_NAME_MAX}" autocomplete="off"`,
  })}
<div class="actions"><button type="submit">Add passkey</button>${ui.linkButton(back.path, "Cancel", "quiet")}</div>`;
  return html`<section class="panel">
<p>With a passkey, you sign in with your device’s screen lock or a security key instead of a password. It also counts as two-factor authentication.</p>
${passkeyForm("create", { action: PASSKEYS, options, fields: {} }, content, "stack")}
<noscript><p class="alert">Adding a passkey needs JavaScript.</p></noscript>
<p class="alert" data-passkey-missing hidden>This browser doesn’t support passkeys.</p>
${passkeyScript()}
</section>`;
}

/** Echoes the codes of the page as a file: they are stored as hashes, and no URL may contain them. */
async function downloadCodes(ctx: Context): Promise<void> {
  const codes = textFieldOf((await readInput(ctx)).codes).split(" ");
  if (!codes.every((code) => RECOVERY_CODE.test(code))) throw invalidField("codes", "must be recovery codes");
  ctx.attachment("linkgate-recovery-codes.txt");
  ctx.type = "text/plain";
  ctx.body = `${codes.join("\n")}\n`;
}

function codesPage(codes: string[], back: string): Html {
  return html`<div class="panel" data-once>
<p class="alert">Save these codes now, for example in a password manager. You won’t be able to see them again.</p>
<p>Two-factor authentication is on. Use these codes if you lose your authenticator app or passkey. Each code works once.</p>
<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<div class="actions">${ui.copyButton(codes.join("\n"), "the recovery codes")}${ui.formButton({
    action: `${CODES}/download`,
    text: "Download as text",
    fields: { codes: codes.join(" ") },
  })}${ui.linkButton(back, back === ACCOUNT ? "Done" : "Continue")}</div>
</div>`;
}

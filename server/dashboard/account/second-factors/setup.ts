import type { Router } from "@koa/router";
import { csrfField, linkButton } from "../../../ui/controls.ts";
import { type Html, html } from "../../../ui/html.ts";
import { signedInUserOf } from "../../access.ts";
import { showPage } from "../../responses.ts";
import { SECOND_FACTOR_SETUP } from "../../second-factor-check.ts";
import { ACCOUNT, type FactorOptions } from "./options.ts";

/** Adds the page to which owners and admins are sent whose organization requires a second factor. */
export function setupRoutes(router: Router, { storage, relyingParty }: FactorOptions): void {
  router.get(SECOND_FACTOR_SETUP, async (ctx) => {
    const { id, csrf } = signedInUserOf(ctx);
    const memberships = await storage.organizations.listByUser(id);
    ctx.state.memberships = memberships;
    const organization = memberships.find((one) => one.id === ctx.query.organization);
    const body = setupPage(organization?.name, relyingParty !== undefined, csrf);
    showPage(ctx, { title: "Set up a second factor" }, body);
  });
}

function setupPage(organization: string | undefined, mayAddPasskey: boolean, csrf: string | undefined): Html {
  const reason = organization
    ? html`<strong><bdi>${organization}</bdi></strong> requires owners and admins to sign in with a second factor.`
    : html`Add a second factor, so that a stolen password isn’t enough to sign in to your account.`;
  return html`<section class="panel"><p>${reason}</p>
<div class="actions">
${mayAddPasskey ? linkButton(`${ACCOUNT}/passkeys/new`, "Add passkey") : html``}
<form method="post" action="${ACCOUNT}/totp" class="inline">${csrfField(csrf)}<button type="submit" class="${mayAddPasskey ? "quiet" : "primary"}">Set up authenticator app</button></form>
</div></section>`;
}

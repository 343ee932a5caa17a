import type { Router } from "@koa/router";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { SignedInUser } from "../../http/state.ts";
import { requireSecondFactor } from "../../operations/organizations.ts";
import { formButton, linkButton, settingPanel } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import { pathTo, SECOND_FACTOR_SETUP } from "../access.ts";
import type { Show } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";

const ANCHOR = "second-factor";

export function addSecondFactorRoutes(router: Router, options: RouteOptions, show: Show): void {
  addOperation(router, options, requireSecondFactor, { show, to: (ctx) => pathTo(ctx, "settings") });
}

function ownFactorFirst({ id }: Membership): Html {
  const setup = pathWith(SECOND_FACTOR_SETUP, { return_to: `${sectionPath(id, "settings")}#${ANCHOR}` });
  return html`<p>To require one, first set up a second factor for your own account.</p>
${linkButton(setup, "Set up a second factor", "quiet")}`;
}

/** Renders whether the organization requires a second factor. Owners can change it, if they have one themselves. */
export function secondFactorPanel(
  membership: Membership,
  { secondFactor }: Pick<SignedInUser, "secondFactor">,
  isRequired: boolean,
): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "members")}/require-second-factor`,
    text: isRequired ? "Stop requiring a second factor" : "Require a second factor",
    fields: { require_second_factor: String(!isRequired) },
  });
  const ownerControl = secondFactor === "none" ? ownFactorFirst(membership) : button;
  const text = html`${
    isRequired
      ? "Owners and admins must sign in with a second factor to work in this organization."
      : "Owners and admins can sign in with only a password. If you require a second factor, those without one must set it up before they continue."
  } SSO sign-ins meet the requirement if the identity provider reports multi-factor authentication.`;
  return settingPanel(
    { id: ANCHOR, title: "Second factor", text },
    membership.role === "owner" ? ownerControl : html`<p class="soft">Only owners can change this.</p>`,
  );
}

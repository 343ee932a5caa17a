import type { Router } from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn, type SignedInUser } from "../../auth/authenticate.ts";
import { formButton, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { redisplayForm, respondToChange, type Show, switchFieldsOf } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { SECOND_FACTOR_SETUP } from "../second-factor-check.ts";

const setting = z.strictObject({ require_second_factor: z.boolean({ error: "must be true or false" }) });

/** Adds the routes that let owners require a second factor of owners and admins. */
export function addSecondFactorRoutes(
  router: Router,
  { storage, allow }: Parameters<RouteModule>[1],
  show: Show,
): void {
  const path = `${ORGANIZATION}/members/require-second-factor`;
  const change = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const to = sectionPath(id, "members");
    requireRecentSignIn(ctx, to);
    const { require_second_factor } = validate(setting, await switchFieldsOf(ctx, "require_second_factor"));
    const { actor, secondFactor } = signedInUserOf(ctx);
    if (require_second_factor && secondFactor !== "proved") throw ownFactorMissing();
    if (!(await storage.secondFactorRequirement.set(id, require_second_factor, actor)))
      throw notFound("organization");
    respondToChange(ctx, {
      to,
      done: require_second_factor ? "second-factor-required" : "second-factor-optional",
      body: { require_second_factor },
    });
  };
  router.put(path, allow("owner"), change);
  router.post(path, allow("owner"), redisplayForm(show), change);
}

function ownFactorMissing(): Problem {
  return new Problem(
    409,
    "second_factor_missing",
    "Set up a second factor for your own account and sign in with it first.",
  );
}

const OWN_FACTOR_FIRST = html`<p>To require one, first set up a second factor for your own account.</p>
${linkButton(SECOND_FACTOR_SETUP, "Set up a second factor", "quiet")}`;

type Panel = {
  membership: Membership;
  user: Pick<SignedInUser, "csrf" | "secondFactor">;
  isRequired: boolean;
};

/** Renders whether the organization requires a second factor. Owners can change it, if they have one themselves. */
export function secondFactorPanel({ membership, user, isRequired }: Panel): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "members")}/require-second-factor`,
    csrf: user.csrf,
    text: isRequired ? "Stop requiring a second factor" : "Require a second factor",
    fields: { require_second_factor: String(!isRequired) },
  });
  const ownerControl = user.secondFactor === "none" ? OWN_FACTOR_FIRST : button;
  return html`<section class="panel"><h2>Second factor</h2>
<p>${
    isRequired
      ? "Owners and admins must sign in with a second factor to work in this organization."
      : "Owners and admins can sign in with only a password. If you require a second factor, those without one must set it up before they continue."
  }</p>
<p class="soft">SSO sign-ins meet the requirement if the identity provider reports multi-factor authentication.</p>
${membership.role === "owner" ? ownerControl : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}

import type { Context, Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import type { Membership, Suspension } from "../../adapters/organizations/store.ts";
import type { Caller } from "../../resources/access/actor.ts";
import { MANAGERS, type Role } from "../../resources/access/scopes.ts";
import { notFound, Problem } from "../../resources/http/problem.ts";
import type { AuthOptions } from "../auth/auth-options.ts";
import { requireRecentSignIn } from "../auth/authenticate.ts";
import { enforceLimit } from "../auth/error-handler.ts";
import { isChange } from "../http/csrf.ts";
import { seeOther } from "../http/redirects.ts";
import { prefersHtml } from "../http/request-body.ts";
import type { SignedInUser } from "../http/state.ts";
import { ACCOUNT } from "../operations/account.ts";
import type { Operation } from "../operations/operation.ts";
import type { Settings } from "../settings/config.ts";
import { type Section, sectionPath } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";

export type Access = (...roles: Role[]) => Middleware;

/** The page that explains why a second factor is needed. */
export const SECOND_FACTOR_SETUP = `${ACCOUNT}/second-factor`;
/** Where the settings page has the time zone. */
export const TIME_ZONE = "time-zone";

type AccessOptions = {
  storage: Pick<Storage, "organizations" | "webhooks">;
  settings: Pick<Settings, "SUPPORT_CONTACT">;
};

/** Limits changes per user: links are free on every plan, and a script could create them without end. */
export function limitChanges({
  authenticationLimits,
}: Pick<AuthOptions, "authenticationLimits">): Middleware {
  return async function limitChange(ctx, next) {
    enforceLimit(await authenticationLimits.change(signedInUserOf(ctx).id));
    return next();
  };
}

/** A missing organization and a foreign one both return 404. */
export function createAccess({ storage, settings }: AccessOptions): Access {
  return (...roles) =>
    async function checkAccess(ctx, next) {
      const user = signedInUserOf(ctx);
      const memberships = await storage.organizations.listByUser(user.id);
      const membership = memberships.find(({ id }) => id === ctx.params.id);
      if (!membership) throw notFound("organization");
      if (roles.length > 0 && !roles.includes(membership.role)) {
        const allowed = roles.map((role) => `${role}s`).join(" and ");
        throw new Problem(403, "role_required", `Only ${allowed} can do this.`);
      }
      if (membership.suspension && isChange(ctx)) throw organizationSuspended(membership.suspension);
      if (!checkSecondFactor(ctx, user, membership)) return;
      Object.assign(ctx.state, { memberships, membership, supportContact: settings.SUPPORT_CONTACT });
      // Pages say so in the navigation, also those that answer a form.
      if (prefersHtml(ctx) && MANAGERS.includes(membership.role))
        ctx.state.failingWebhooks = await storage.webhooks.countFailing(membership.id);
      return next();
    };
}

function organizationSuspended({ reason }: Suspension): Problem {
  const why = reason ? ` Reason: ${reason}` : "";
  const detail = `The operator of this service suspended this organization, so it can't be changed.${why}`;
  return new Problem(403, "organization_suspended", detail);
}

/** Returns false after redirecting a browser to the page that sets up a second factor. */
function checkSecondFactor(
  ctx: Context,
  { secondFactor }: SignedInUser,
  { id, role, requiresSecondFactor }: Membership,
): boolean {
  if (secondFactor === "proved" || role === "member" || !requiresSecondFactor) return true;
  // The session is older than the second factor: its owner has to sign in again.
  if (secondFactor === "not_proved") requireRecentSignIn(ctx);
  if (!prefersHtml(ctx)) {
    const detail =
      "This organization requires owners and admins to use two-factor authentication. Set it up, then sign in again.";
    throw new Problem(403, "second_factor_setup_required", detail);
  }
  const returnTo = isChange(ctx) ? sectionPath(id, "overview") : ctx.url;
  const query = new URLSearchParams({ organization: id, return_to: returnTo });
  seeOther(ctx, `${SECOND_FACTOR_SETUP}?${query}`);
  return false;
}

export function signedInUserOf(ctx: Context): SignedInUser {
  return ctx.state.user;
}

export function membershipOf(ctx: Context): Membership {
  return ctx.state.membership;
}

/** Returns the user as a caller who acts for the organization in the path. */
export function actorOf(ctx: Context): Caller {
  return { organizationId: membershipOf(ctx).id, actor: signedInUserOf(ctx).actor };
}

export function pathTo(ctx: Context, section: Section): string {
  return sectionPath(membershipOf(ctx).id, section);
}

type Permission = Pick<Operation, "roles">;

/** Returns who may run an operation, for `allow`: none means every member. */
export function rolesOf({ roles = [] }: Permission): readonly Role[] {
  return roles;
}

export function mayRun({ role }: { role: Role }, { roles }: Permission): boolean {
  return roles?.includes(role) ?? true;
}

/** Renders the control of an operation, or who may use it. */
export function controlOf(member: { role: Role }, operation: Permission, control: Html): Html {
  if (mayRun(member, operation)) return control;
  const roles = rolesOf(operation).map((role) => `${role}s`);
  return html`<p class="soft">Only ${roles.join(" and ")} can change this.</p>`;
}

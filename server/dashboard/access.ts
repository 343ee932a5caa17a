import type { Context, Middleware } from "koa";
import type { SecondFactorRequirementStore } from "../../adapters/organizations/second-factor-requirement.ts";
import type { Membership, OrganizationStore, Role } from "../../adapters/organizations/store.ts";
import type { Suspension } from "../../adapters/organizations/suspension-row.ts";
import type { Caller } from "../../resources/access/actor.ts";
import { notFound, Problem } from "../../resources/http/problem.ts";
import type { SignedInUser } from "../auth/authenticate.ts";
import { isChange } from "../http/same-origin.ts";
import { checkSecondFactor } from "./second-factor-check.ts";

/** Creates middleware that admits members of the organization in the path, or only those with one of `roles`. */
export type Access = (...roles: Role[]) => Middleware;

/** The roles that may manage an organization. */
export const MANAGERS: Role[] = ["owner", "admin"];

/**
 * Creates the access check. A missing organization and one that the user isn't a member of both return 404. A suspended
 * organization can be viewed, but not changed.
 * @param supportContact whom its members contact: a `mailto:` or `https:` URI
 */
export function createAccess(
  organizations: Pick<OrganizationStore, "listByUser">,
  secondFactorRequirement: Pick<SecondFactorRequirementStore, "isRequired">,
  supportContact: string | undefined,
): Access {
  return (...roles) =>
    async function checkAccess(ctx, next) {
      const user = signedInUserOf(ctx);
      const memberships = await organizations.listByUser(user.id);
      const membership = memberships.find(({ id }) => id === ctx.params.id);
      if (!membership) throw notFound("organization");
      if (roles.length > 0 && !roles.includes(membership.role)) {
        throw new Problem(
          403,
          "role_required",
          `Only ${roles.map((role) => `${role}s`).join(" and ")} can do this.`,
        );
      }
      if (membership.suspension && isChange(ctx)) throw organizationSuspended(membership.suspension);
      if (!(await checkSecondFactor(ctx, secondFactorRequirement, user, membership))) return;
      Object.assign(ctx.state, { memberships, membership, supportContact });
      return next();
    };
}

/** Returns the error of a change to a suspended organization, which is read-only. */
function organizationSuspended({ reason }: Suspension): Problem {
  const why = reason ? ` Reason: ${reason}` : "";
  return new Problem(
    403,
    "organization_suspended",
    `The operator of this service suspended this organization, so it can't be changed.${why}`,
  );
}

/** Returns the user who is signed in. */
export function signedInUserOf(ctx: Context): SignedInUser {
  return ctx.state.user;
}

/** Returns the organization in the path, with the user's role in it. */
export function membershipOf(ctx: Context): Membership {
  return ctx.state.membership;
}

/** Returns the user as a caller who acts for the organization in the path. */
export function actorOf(ctx: Context): Caller {
  return { organizationId: membershipOf(ctx).id, actor: signedInUserOf(ctx).actor };
}

import type { Context, Middleware } from "koa";
import type { Membership, OrganizationStore, Role } from "../../adapters/organizations/store.ts";
import type { Caller } from "../../resources/access/actor.ts";
import { notFound, Problem } from "../../resources/http/problem.ts";
import type { SignedInUser } from "../auth/authenticate.ts";

/** Creates middleware that admits members of the organization in the path, or only those with one of `roles`. */
export type Access = (...roles: Role[]) => Middleware;

/** The roles that may manage an organization. */
export const MANAGERS: Role[] = ["owner", "admin"];

/** Creates the access check. A missing organization and one that the user isn't a member of both return 404. */
export function createAccess(organizations: Pick<OrganizationStore, "listByUser">): Access {
  return (...roles) =>
    async function checkAccess(ctx, next) {
      const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
      const membership = memberships.find(({ id }) => id === ctx.params.id);
      if (!membership) throw notFound("organization");
      if (roles.length > 0 && !roles.includes(membership.role)) {
        throw new Problem(
          403,
          "role_required",
          `Only ${roles.map((role) => `${role}s`).join(" and ")} can do this.`,
        );
      }
      Object.assign(ctx.state, { memberships, membership });
      return next();
    };
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

import type { Context, Middleware } from "koa";
import type { Membership, OrganizationStore, Role } from "../../adapters/organizations.ts";
import type { Actor } from "../../resources/links/links.ts";
import { notFound, Problem } from "../../resources/problem.ts";
import type { Person } from "../people/person.ts";

/** Lets the members of the organization in the address through, or those with one of some roles. */
export type Access = (...roles: Role[]) => Middleware;

/** Who runs an organization. */
export const MANAGERS: Role[] = ["owner", "admin"];

/** Makes the check. What is missing and what is somebody else's are both 404. */
export function createAccess(organizations: Pick<OrganizationStore, "ofUser">): Access {
  return (...roles) =>
    async function checkAccess(ctx, next) {
      const memberships = await organizations.ofUser(personOf(ctx).id);
      const membership = memberships.find(({ id }) => id === ctx.params.id);
      if (!membership) throw notFound("organization");
      if (roles.length > 0 && !roles.includes(membership.role)) {
        throw new Problem(403, "role_required", `This is for members with the role ${roles.join(" or ")}.`);
      }
      Object.assign(ctx.state, { memberships, membership });
      return next();
    };
}

/** Who is signed in. */
export function personOf(ctx: Context): Person {
  return ctx.state.person;
}

/** The organization in the address, with the person's role in it. */
export function membershipOf(ctx: Context): Membership {
  return ctx.state.membership;
}

/** The person, acting for the organization in the address. */
export function actorOf(ctx: Context): Actor {
  return { organizationId: membershipOf(ctx).id, by: personOf(ctx).by };
}

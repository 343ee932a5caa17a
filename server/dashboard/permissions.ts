import type { Role } from "../../resources/access/scopes.ts";
import type { Operation } from "../operations/operation.ts";
import { type Html, html } from "../ui/html.ts";

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

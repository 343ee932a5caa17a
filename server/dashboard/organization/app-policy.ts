import type { Context } from "koa";
import { z } from "zod";
import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import type { Settings } from "../../config.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { formFieldsOf, respondToChange } from "../responses.ts";
import type { DashboardOptions } from "../route.ts";

const CHOICE_LIST = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”
const MEMBER_APPS = ["any", "approved", "none"] as const;

/** Returns the handler that changes which apps the organization accepts, and which of them members may authorize. */
export function changeAppPolicy({ storage, settings }: Pick<DashboardOptions, "storage" | "settings">) {
  const choices = choicesOn(settings);
  const changes = z
    .strictObject({
      allowed_clients: z.enum(choices, { error: `must be ${CHOICE_LIST.format(choices)}` }).optional(),
      member_apps: z.enum(MEMBER_APPS, { error: `must be ${CHOICE_LIST.format(MEMBER_APPS)}` }).optional(),
    })
    .refine(({ allowed_clients, member_apps }) => (allowed_clients ?? member_apps) !== undefined, {
      error: "must contain allowed_clients or member_apps",
    });
  return async function change(ctx: Context): Promise<void> {
    const { id } = membershipOf(ctx);
    const { allowed_clients, member_apps } = validate(changes, await formFieldsOf(ctx));
    const { actor } = signedInUserOf(ctx);
    const policy = {
      ...(allowed_clients && { allowedClients: allowed_clients }),
      ...(member_apps && { memberApps: member_apps }),
    };
    if (!(await storage.appPolicies.set(id, policy, actor))) throw notFound("organization");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "app-policy-changed" });
  };
}

/** Returns what an organization may choose on a server: never more than the server itself accepts. */
export function choicesOn({ CIMD, DYNAMIC_REGISTRATION }: Settings): AllowedClients[] {
  const isOpen = CIMD === "any" || DYNAMIC_REGISTRATION !== "off";
  return isOpen ? ["known", "any", "none"] : ["known", "none"];
}

import { z } from "zod";
import type { Storage } from "../../adapters/index.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import { foundIn, notFound } from "../../resources/http/problem.ts";
import { describeAuthorizedApp } from "../clients/client-view.ts";
import type { SignedInUser } from "../http/state.ts";
import { ACCOUNT } from "./account.ts";
import { REVOCATION } from "./apps.ts";
import { onAccount } from "./operation.ts";
import { appToJson, authorizedAppSchema } from "./schemas.ts";

const PATH = `${ACCOUNT}/apps` as const;

const ownAppSchema = authorizedAppSchema.extend({
  organization: z.object({ id: z.string(), name: z.string() }).describe("For which the app acts."),
});

export async function findOwnApps({ grants, organizations }: Storage, { id }: SignedInUser) {
  const [authorized, memberships] = await Promise.all([grants.listByUser(id), organizations.listByUser(id)]);
  const names = new Map(memberships.map((one) => [one.id, one.name]));
  const apps = authorized.map((app) => ({
    ...describeAuthorizedApp(app),
    organization: { id: app.organizationId, name: names.get(app.organizationId) ?? app.organizationId },
  }));
  return { apps, memberships };
}

/** Throws Problem 404. */
export async function findOwnApp(storage: Storage, user: SignedInUser, grantId: string | undefined) {
  const { apps, memberships } = await findOwnApps(storage, user);
  const app = foundIn(apps, grantId, "app");
  const membership = foundIn(memberships, app.organizationId, "app");
  const managesWebhooks = mayManageWebhooks(user, membership);
  return { app, apps, memberships, membership, managesWebhooks };
}

/** Returns whether the organization would let this user manage its webhooks now. */
function mayManageWebhooks(
  { secondFactor }: SignedInUser,
  { role, suspension, requiresSecondFactor }: Membership,
): boolean {
  return role !== "member" && !suspension && (secondFactor === "proved" || !requiresSecondFactor);
}

export const listOwnApps = onAccount({
  at: `GET ${PATH}`,
  summary: "List the apps that the user authorized",
  description: "Returns them for all organizations.",
  output: z.object({ data: z.array(ownAppSchema) }),
  async run({ storage, user }) {
    const { apps } = await findOwnApps(storage, user);
    return { data: apps.map((app) => ({ ...appToJson(app), organization: app.organization })) };
  },
});

export const revokeOwnApp = onAccount({
  at: `DELETE ${PATH}/{grant_id}`,
  summary: "Revoke an app that the user authorized",
  description: "Its tokens stop working immediately.",
  ...REVOCATION,
  async run({ storage, user, params, input }) {
    const { app, managesWebhooks } = await findOwnApp(storage, user, params.grant_id);
    const deletesWebhooks = input.delete_webhooks && managesWebhooks;
    const { organizationId, id } = app;
    if (!(await storage.grants.revoke(organizationId, id, user.actor, { deletesWebhooks })))
      throw notFound("app");
    return deletesWebhooks;
  },
});

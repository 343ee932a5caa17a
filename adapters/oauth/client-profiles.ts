import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { ChangeClient } from "./change-client.ts";

/** How an organization presents its client to users. */
export type ClientProfile = {
  /** Null while the client has the name of its organization. */
  name: string | null;
  organizationName: string;
  homepage: string | null;
};

export function createClientProfileStore({ knex }: Database, changeClient: ChangeClient) {
  return {
    findProfile: (clientId: string): Promise<ClientProfile | undefined> =>
      knex("clients as c")
        .join("organizations as o", "o.id", "c.organization_id")
        .leftJoin("client_profiles as p", "p.client_id", "c.id")
        .where("c.id", clientId)
        .first({
          name: "p.name",
          organizationName: "o.name",
          homepage: "p.homepage",
        }),

    /** Returns false for an organization without a client. */
    setProfile: (
      organizationId: string,
      { name, homepage }: Pick<ClientProfile, "name" | "homepage">,
      actor: Actor,
    ): Promise<boolean> =>
      changeClient(organizationId, actor, false, async ({ trx, id, record }) => {
        await trx("client_profiles")
          .insert({ client_id: id, name, homepage })
          .onConflict("client_id")
          .merge();
        await record("client.profile_changed", { client_name: name, client_uri: homepage });
        return true;
      }),
  };
}

import type { Actor } from "../../resources/access/actor.ts";
import { sha256 } from "../crypto/hash.ts";
import type { Database } from "../database/index.ts";
import type { ClientProfileRow } from "../database/oauth-tables.ts";
import type { ChangeClient, LockedClient } from "./change-client.ts";

/** How an organization presents its client to users. */
export type ClientProfile = {
  /** Null while the client has the name of its organization. */
  name: string | null;
  organizationName: string;
  homepage: string | null;
  /** The SHA-256 of its PNG, in base64url. */
  logoHash: string | null;
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
          logoHash: "p.logo_hash",
        }),

    /** Returns false for an organization without a client. */
    setProfile: (
      organizationId: string,
      { name, homepage }: Pick<ClientProfile, "name" | "homepage">,
      actor: Actor,
    ): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        await storeProfile(client, { name, homepage });
        await client.record("client.profile_changed", { client_name: name, client_uri: homepage });
        return true;
      }),

    /** Stores a PNG, or removes it. Returns false for an organization without a client. */
    setLogo: (organizationId: string, logo: Buffer | null, actor: Actor): Promise<boolean> =>
      changeClient(organizationId, actor, false, async (client) => {
        const { trx, id } = client;
        const logo_hash = logo && sha256(logo);
        const before = await trx("client_profiles").where({ client_id: id }).first("logo_hash");
        if ((before?.logo_hash ?? null) === logo_hash) return true;
        await storeProfile(client, { logo, logo_hash });
        await client.record("client.logo_changed", { logo_hash });
        return true;
      }),

    async findLogo(hash: string): Promise<Buffer | undefined> {
      const row = await knex("client_profiles").where({ logo_hash: hash }).first("logo");
      return row?.logo ? Buffer.from(row.logo) : undefined;
    },
  };
}

async function storeProfile({ trx, id }: LockedClient, columns: Partial<ClientProfileRow>): Promise<void> {
  await trx("client_profiles")
    .insert({ client_id: id, ...columns })
    .onConflict("client_id")
    .merge();
}

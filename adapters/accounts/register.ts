import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import { insertUser } from "./accounts.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { newId } from "./id.ts";
import { type IdentityKey, insertIdentity } from "./identities.ts";
import { acceptInvitation } from "./invitations.ts";
import type { Journal } from "./journal.ts";
import { insertOrganization, type Organization } from "./organizations.ts";

/** A person who registers, and the organization that he or she comes to. */
export type Registration = {
  username: string;
  /** Null for somebody who signs in elsewhere only. */
  passwordHash: string | null;
  /** Of the organization that is made for the person; with an invitation there is one already. */
  organizationName: string;
  /** The secret end of an invitation's link. */
  invitation?: string | undefined;
  /** How the person signs in from elsewhere. */
  identity?: IdentityKey & { label: string | null };
  /** Where the person is. */
  address: string;
};

/** Who registered. */
export type Registered = { user: { id: string; username: string }; organization: Organization };

/** New people. */
export type RegistrationStore = {
  /**
   * Makes the person, and the organization that he or she owns unless an invitation leads to another one: all or
   * nothing. Resolves to `taken` when the name or the identity is somebody's, to `uninvited` when the invitation is over.
   */
  register(registration: Registration): Promise<Registered | "taken" | "uninvited">;
};

/** The registrations of a database. */
export function createRegistrationStore({ transaction }: Database, journal: Journal): RegistrationStore {
  async function join(trx: Knex.Transaction, token: string, by: By): Promise<Organization> {
    const accepted = await acceptInvitation(trx, journal, token, by);
    if (!accepted) throw new Uninvited();
    return trx("organizations").where({ id: accepted.organizationId }).first("id", "name", "plan");
  }

  return {
    async register({ username, passwordHash, organizationName: name, invitation, identity, address }) {
      const id = newId("usr");
      const by = { actor: id, address };
      try {
        return await transaction(async (trx) => {
          await insertUser(trx, { id, username, passwordHash });
          if (identity) await insertIdentity(trx, id, identity);
          const organization = invitation
            ? await join(trx, invitation, by)
            : await insertOrganization(trx, journal, { name, plan: "free", by, ownerId: id });
          return { user: { id, username }, organization };
        });
      } catch (error) {
        if (error instanceof Uninvited) return "uninvited";
        if (isDuplicate(error)) return "taken";
        throw error;
      }
    },
  };
}

/** Undoes the transaction. */
class Uninvited extends Error {}

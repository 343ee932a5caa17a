import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId } from "../crypto/ids.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "../events/outbox.ts";
import { acceptInvitation, isInvitationOpen } from "../organizations/invitations.ts";
import { findOrganization, insertOrganization, type Organization } from "../organizations/store.ts";
import { type IdentityKey, insertIdentity } from "./identities.ts";
import { insertUser } from "./store.ts";

/** A new user, and the organization that the user creates or joins. */
export type Registration = {
  username: string;
  /** Null for a user who signs in with SSO only. */
  passwordHash: string | null;
  /** The name of the new organization. Ignored with an invitation. */
  organizationName: string;
  /** The token of an invitation link. */
  invitation?: string | undefined;
  /** The SSO identity to link. */
  identity?: IdentityKey & { label: string | null };
  /** The user's IP address. */
  address: string;
};

/** The result of a registration. */
export type Registered = { user: { id: string; username: string }; organization: Organization };

/** Registers users, together with their first organization. */
export type RegistrationStore = {
  /**
   * Creates a user and an organization that the user owns, or adds the user to the organization of an invitation. All or
   * nothing. Resolves to `taken` if the username or the identity is in use, and to `uninvited` if the invitation is invalid.
   */
  register(registration: Registration): Promise<Registered | "taken" | "uninvited">;
};

/** Creates the registration store of a database. */
export function createRegistrationStore({ transaction }: Database, outbox: Outbox): RegistrationStore {
  async function join(trx: Knex.Transaction, token: string, actor: Actor): Promise<Organization> {
    const accepted = await acceptInvitation(trx, outbox, token, actor);
    if (!accepted) throw new Uninvited();
    return findOrganization(trx, accepted.organizationId);
  }

  return {
    async register({ username, passwordHash, organizationName: name, invitation, identity, address }) {
      const id = newId("usr");
      const actor = { id, address };
      try {
        return await transaction(async (trx) => {
          // First: only an invitation lets a visitor learn which usernames are taken.
          if (invitation && !(await isInvitationOpen(trx, invitation))) throw new Uninvited();
          await insertUser(trx, { id, username, passwordHash });
          if (identity) await insertIdentity(trx, id, identity);
          const organization = invitation
            ? await join(trx, invitation, actor)
            : await insertOrganization(trx, outbox, { name, plan: "free", actor, ownerId: id });
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

/** Thrown to roll back the transaction. */
class Uninvited extends Error {}

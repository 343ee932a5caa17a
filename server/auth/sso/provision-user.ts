import { randomInt } from "node:crypto";
import type { IdentityStore } from "../../../adapters/accounts/identities.ts";
import type { RegistrationStore } from "../../../adapters/accounts/register.ts";
import { removeInvisible } from "../../credentials/names.ts";
import { validateNewUsername } from "../../credentials/usernames.ts";
import type { Identity } from "./identity-provider.ts";

type Stores = { identities: IdentityStore; registrations: RegistrationStore };

const NAME_MAX = 50; // leaves room for a number at the end
const ATTEMPTS = 20;
const LABEL_MAX = 255;

/** Returns the name of an identity on its owner's account page. */
export function identityLabelOf({ names }: Identity): string | null {
  return removeInvisible(names[0] ?? "").slice(0, LABEL_MAX) || null;
}

/**
 * Creates a user for an unknown identity; undefined if the invitation is invalid. An identity is never matched to an
 * existing user by name: if the username is taken, the new one gets a number.
 */
export async function provisionUser(
  { identities, registrations }: Stores,
  identity: Identity,
  where: { invitation: string | undefined; address: string },
): Promise<string | undefined> {
  const name = usernameOf(identity);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const username = attempt === 0 ? name : `${name}-${randomInt(1000, 10_000)}`;
    const registered = await registrations.register({
      username,
      passwordHash: null,
      organizationName: `${username}'s organization`,
      ...where,
      identity: { issuer: identity.issuer, subject: identity.subject, label: identityLabelOf(identity) },
    });
    if (registered === "uninvited") return undefined;
    if (registered !== "taken") return registered.user.id;
    // Either the username is taken, or the same user signed in from another tab.
    const id = await identities.findUserId(identity);
    if (id) return id;
  }
  throw new Error(`no free username found for ${name}`);
}

function usernameOf({ names }: Identity): string {
  const possible = names.map((name) =>
    name
      .normalize("NFKC")
      .replace(/[^\p{L}\p{N}._@+-]/gu, "-")
      .slice(0, NAME_MAX)
      .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""),
  );
  return possible.find((name) => validateNewUsername(name) === undefined) ?? "user";
}

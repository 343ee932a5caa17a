import { randomInt } from "node:crypto";
import type { IdentityStore } from "../../adapters/identities.ts";
import type { RegistrationStore } from "../../adapters/registration.ts";
import { refuseUsername } from "../passwords.ts";
import type { Identity } from "./identity-provider.ts";

type Stores = { identities: IdentityStore; registrations: RegistrationStore };

const NAME_MAX = 50; // leaves room for a number behind
const ATTEMPTS = 20;
const LABEL_MAX = 255;

/** What an identity is called on the pages of its person. */
export function labelOf({ names }: Identity): string | null {
  return names[0]?.replace(/\p{Cc}/gu, "").slice(0, LABEL_MAX) || null;
}

/**
 * Makes an account for an identity that was not seen before; nothing when the invitation is over. Whatever it is called, it becomes nobody's account that is
 * there already: a name that is taken gets a number.
 */
export async function registerIdentity(
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
      identity: { issuer: identity.issuer, subject: identity.subject, label: labelOf(identity) },
    });
    // Either the name is taken, or the same person came in by another tab.
    if (registered === "uninvited") return undefined;
    if (registered !== "taken") return registered.user.id;
    const id = await identities.ownerOf(identity);
    if (id) return id;
  }
  throw new Error(`no free user name was found for ${name}`);
}

function usernameOf({ names }: Identity): string {
  const possible = names.map((name) =>
    name
      .normalize("NFKC")
      .replace(/[^\p{L}\p{N}._@+-]/gu, "-")
      .slice(0, NAME_MAX)
      .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""),
  );
  return possible.find((name) => refuseUsername(name) === undefined) ?? "person";
}

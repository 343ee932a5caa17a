import type { External } from "../views/fields.ts";
import type { IdentityProvider } from "./identity-provider.ts";

/** Shows the external identity provider on a sign-in page, if there is one; `again`: for a sign-in that is recent. */
export type ShowExternal = (returnTo: string, options?: { again: boolean }) => Promise<External | undefined>;

/** Makes it for the provider of the settings. */
export function showExternal(provider: IdentityProvider | undefined): ShowExternal {
  return async (returnTo, { again } = { again: false }) => {
    if (!provider) return undefined;
    const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
    return { name: provider.name, href: `/auth/sso?${query}`, isAway: !(await provider.isThere()) };
  };
}

import type { SsoOption } from "../../ui/fields.ts";
import type { IdentityProvider } from "./identity-provider.ts";

/** Returns the identity provider's button for a sign-in page, if there is one. `again` asks for a recent sign-in. */
export type ShowSsoButton = (
  returnTo: string,
  options?: { again: boolean },
) => Promise<SsoOption | undefined>;

export function createSsoButton(provider: IdentityProvider | undefined): ShowSsoButton {
  return async (returnTo, { again } = { again: false }) => {
    if (!provider) return undefined;
    const query = new URLSearchParams({ return_to: returnTo, ...(again && { again: "1" }) });
    return {
      name: provider.name,
      href: `/auth/sso?${query}`,
      isUnavailable: !(await provider.isReachable()),
    };
  };
}

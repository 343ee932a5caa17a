import type { Gallery } from "./visitor-pages.ts";

/** Returns the paths of organizations: with a history, without one, without a client secret, suspended, and on the Free plan. */
export function pathsOf({ organization, second, keyed, suspended, started }: Gallery) {
  const pathOf = ({ id }: { id: string }) => `/dashboard/organizations/${id}`;
  return {
    own: pathOf(organization),
    ownEmpty: pathOf(second),
    ownKeyed: pathOf(keyed),
    ownSuspended: pathOf(suspended),
    ownFresh: pathOf(started),
  };
}

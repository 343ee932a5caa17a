import type { Gallery } from "./visitor-pages.ts";

/** Returns the paths of organizations: with a history, without one, without a client secret, and on the Free plan. */
export function pathsOf({ organization, second, keyed, started }: Gallery) {
  const pathOf = ({ id }: { id: string }) => `/dashboard/organizations/${id}`;
  return {
    own: pathOf(organization),
    ownEmpty: pathOf(second),
    ownKeyed: pathOf(keyed),
    ownFresh: pathOf(started),
  };
}

/** Who did something, and from which IP address; recorded in the audit log. */
export type Actor = {
  /** `usr_…` for a user, `lgc_…` for a client, `operator` for the command line, `system` for the service itself. */
  id: string;
  via?: string;
  address?: string;
};

export type Caller = {
  organizationId: string;
  actor: Actor;
  /** As in an active token. */
  defaultDomain?: string | null;
  /** Returns the ids of links to create: the same in each attempt at an idempotent request. */
  linkId?: (index: number) => string;
};

import type { Membership } from "../../adapters/organizations/store.ts";
import type { Actor } from "../../resources/access/actor.ts";

/** The user who sends a request and how they are signed in. */
export type SignedInUser = {
  id: string;
  username: string;
  /** When the user last proved who they are: epoch milliseconds. */
  signedInAt: number;
  means: "session" | "token";
  /** Recorded in the audit log with every change that the user makes. */
  actor: Actor;
  /** The value of the form field `csrf`; only with a session. */
  csrf?: string;
  /** ID of the session, or of the grant behind the token. */
  sessionId: string;
};

declare module "koa" {
  interface DefaultState {
    /** Set by `authenticate`, for every route of the dashboard and for signing out. */
    user: SignedInUser;
    /** The user's organizations; set by the routes of the dashboard that need them. */
    memberships: Membership[] | undefined;
    /** The user's role in the organization of the URL; set by the access check of the dashboard. */
    membership: Membership;
  }
}

import type { Notice } from "../../adapters/accounts/notices.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import type { Actor } from "../../resources/access/actor.ts";

/** The user who sends a request and how they are signed in. */
export type SignedInUser = {
  id: string;
  username: string;
  /** When the user last proved who they are: epoch milliseconds, 0 if that is unknown. */
  signedInAt: number;
  /** How the user signed in. */
  methods: string[];
  /** Whether the user has proved a second factor; `none` for an account without one. */
  secondFactor: "proved" | "not_proved" | "none";
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
    /** What is known about a sign-in before it is complete; set by the steps of the sign-in, for the audit log. */
    signIn: { username?: string; methods?: string[]; isAgain?: boolean } | undefined;
    /** The user's organizations; set by the routes of the dashboard that need them. */
    memberships: Membership[] | undefined;
    /** The user's role in the organization of the URL; set by the access check of the dashboard. */
    membership: Membership;
    /** Whom members of a suspended organization contact: a `mailto:` or `https:` URI. */
    supportContact: string | undefined;
    /** The security notices that the user hasn't dismissed; set for pages of the dashboard. */
    notices: Notice[] | undefined;
  }
}

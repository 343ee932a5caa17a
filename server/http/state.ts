import type { Notice } from "../../adapters/accounts/notices.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import type { Actor } from "../../resources/access/actor.ts";

export type SignedInUser = {
  id: string;
  username: string;
  /** In epoch milliseconds, 0 if unknown. */
  signedInAt: number;
  methods: string[];
  /** `none` for an account without a second factor. */
  secondFactor: "proved" | "not_proved" | "none";
  means: "session" | "token";
  actor: Actor;
  /** Only with a session. */
  csrf?: string;
  /** ID of the session, or of the grant behind the token. */
  sessionId: string;
};

declare module "koa" {
  interface DefaultState {
    user: SignedInUser;
    signIn: { username?: string; methods?: string[]; isAgain?: boolean } | undefined;
    /** Whether a page has no secret besides a masked CSRF token, so that it may be compressed. */
    isMasked: boolean | undefined;
    /** What a form asks for: a verb and a noun. */
    summary: string | undefined;
    memberships: Membership[] | undefined;
    membership: Membership;
    /** A `mailto:` or `https:` URI. */
    supportContact: string | undefined;
    notices: Notice[] | undefined;
    /** How many webhooks of the organization are failing; undefined if the user may not manage them. */
    failingWebhooks: number | undefined;
  }
}

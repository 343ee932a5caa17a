import { Provider } from "oidc-provider";
import { epochSeconds, recordSessionUse, type Session } from "../sessions.ts";

/**
 * Seam: how sessions are stored and found.
 * No option: oidc-provider ends a session and then stores it under its new id, even if it had ended since it was read,
 * which would sign in again a user who was signed out. It makes a session without an account of an ended one, and
 * replaces the cookie. It knows only when a session began, not when the user last proved who they are.
 * Upstream would have to offer: an adapter method that renames a session, an option for ended sessions, and a time of
 * authentication that can be absent.
 */

type Saved = Session & { oldId?: string | undefined; replaces?: string | undefined };
type SessionModel = (new () => Session) & {
  prototype: Saved & { save(lifetime: number): Promise<string> };
  get(ctx: object): Promise<Session & { new?: boolean }>;
};

/** Overrides the methods of the model. */
export function changeSessions(provider: Provider): void {
  const model = provider.Session as unknown as SessionModel;
  const { get, prototype } = model;
  const { save } = prototype;
  Object.assign(prototype, {
    /** Records the use, as with every authorization request, and replaces the session in one step if its id changes. */
    async save(this: Saved, lifetime: number) {
      if (Provider.ctx) recordSessionUse(this, Provider.ctx);
      this.replaces = this.oldId;
      this.oldId = undefined;
      try {
        return await save.call(this, lifetime);
      } finally {
        this.replaces = undefined;
      }
    },
    /** Makes the claim `auth_time` about the user's last proof. */
    authTime(this: Saved) {
      return this.provedAt;
    },
    /** Makes `max_age` about the user's last proof. */
    past(this: Saved, age: number) {
      return this.provedAt === undefined || epochSeconds() - this.provedAt > Number(age);
    },
  });
  /**
   * Ignores the cookie of an ended session. It stays: a concurrent request may just have created a new session, and
   * clearing its cookie would sign the user out.
   */
  model.get = async function getActive(
    ctx: object & { oidc?: { entity(name: string, value: object): void } },
  ) {
    const session = await get.call(model, ctx);
    const hasEnded = session.exp === undefined && !session.new;
    if (!hasEnded) return session;
    const fresh = new model();
    ctx.oidc?.entity("Session", fresh);
    return fresh;
  };
}

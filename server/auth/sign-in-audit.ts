import type { Context } from "koa";
import { LRUCache } from "lru-cache";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { MemberEventStore } from "../../adapters/events/member-events.ts";
import { ANONYMOUS } from "../../resources/events/types.ts";
import type { OnError } from "../http/on-error.ts";
import type { Devices } from "./devices.ts";
import type { VerifyCode } from "./second-factor/verify.ts";
import type { VerifyPassword } from "./verify-password.ts";

const FAILURE_TYPES = [
  "member.sign_in_failed",
  "member.sign_in_throttled",
  "member.second_factor_failed",
] as const;
type FailureType = (typeof FAILURE_TYPES)[number];
/** An account: by the name that someone entered, which may be unknown, or by its id after the right password. */
type Subject = { username: string } | { userId: string };
type Failures = {
  type: FailureType;
  subject: Subject;
  address: string;
  attempts: number;
  /** Resolves once the entry before this one is stored, so that both are in order. */
  earlier?: Promise<void> | undefined;
};

const HOUR_MS = 60 * 60 * 1000;
// A flood with more usernames than this records some hours early.
const MAX_ACCOUNTS = 10_000;

/** Records in the audit log who signs in and who fails to. */
export type SignInAudit = {
  /** Wraps the password check, so that failed attempts are recorded. */
  verify(verifyPassword: VerifyPassword): VerifyPassword;
  /** The same for the codes of a second factor. */
  verifyCode(verifyCode: VerifyCode): VerifyCode;
  /** Records that a passkey wasn't accepted as the second factor. */
  passkeyFailed(ctx: Context, userId: string): void;
  /** Wraps the devices, so that a completed sign-in is recorded. */
  complete(devices: Devices): Devices;
  /** Records the failed attempts that aren't recorded yet. */
  close(): Promise<void>;
};

/**
 * Creates the record of sign-ins. Anyone can fail to sign in as someone else, so the entries are bounded: per account, hour
 * and process, the first failed attempt makes an entry, and all others of that hour make a second one at its end. The same
 * applies to attempts that were rejected by the rate limit. Nothing waits for these entries, because that would tell which
 * usernames exist.
 */
export function createSignInAudit(
  accounts: Pick<AccountStore, "findByUsername">,
  memberEvents: MemberEventStore,
  onError: OnError,
): SignInAudit {
  const pending = new Set<Promise<void>>();
  const hours = new LRUCache<string, Failures>({
    max: MAX_ACCOUNTS,
    ttl: HOUR_MS,
    ttlAutopurge: true,
    perf: Date,
    dispose: (failures) => void record(failures),
  });

  function record(failures: Failures): Promise<void> | undefined {
    if (failures.attempts === 0) return;
    const done = store(failures)
      .catch(onError)
      .finally(() => pending.delete(done));
    pending.add(done);
    return done;
  }

  async function store({ type, subject, address, attempts, earlier }: Failures): Promise<void> {
    await earlier;
    const userId =
      "userId" in subject ? subject.userId : (await accounts.findByUsername(subject.username))?.id;
    if (userId) await memberEvents.record({ ...ANONYMOUS, address }, { userId, type, attempts });
  }

  function count(type: FailureType, subject: Subject, address: string): void {
    const key = keyOf(type, subject);
    const hour = hours.get(key);
    if (hour) return void Object.assign(hour, { attempts: hour.attempts + 1, address });
    const earlier = record({ type, subject, address, attempts: 1 });
    hours.set(key, { type, subject, address, attempts: 0, earlier });
  }

  return {
    verify: (verifyPassword) => async (ctx, username, password) => {
      const result = await verifyPassword(ctx, username, password);
      if (!("error" in result)) ctx.state.signIn = { username, methods: ["password"] };
      else if (isUsername(username)) {
        if (result.status === 429) count("member.sign_in_throttled", { username }, ctx.ip);
        else if (result.status < 500) count("member.sign_in_failed", { username }, ctx.ip);
      }
      return result;
    },

    verifyCode: (verifyCode) => async (ctx, pending, codes) => {
      const result = await verifyCode(ctx, pending, codes);
      if (result && "error" in result) {
        const userId = pending.proof.accountId;
        const isThrottled = result.status === 429;
        count(isThrottled ? "member.sign_in_throttled" : "member.second_factor_failed", { userId }, ctx.ip);
      }
      return result;
    },

    passkeyFailed: (ctx, userId) => count("member.second_factor_failed", { userId }, ctx.ip),

    complete: (devices) => ({
      ...devices,
      async remember(ctx, userId, options) {
        await devices.remember(ctx, userId, options);
        if (options?.silent) return;
        const { username = "", methods = [], isAgain = false } = ctx.state.signIn ?? {};
        // First, so that the failed attempts stand before the successful one.
        for (const type of FAILURE_TYPES) {
          hours.delete(keyOf(type, { username }));
          hours.delete(keyOf(type, { userId }));
        }
        await Promise.all(pending);
        const type = isAgain ? "member.reauthenticated" : "member.signed_in";
        await memberEvents.record({ id: userId, address: ctx.ip }, { userId, type, methods });
      },
    }),

    async close() {
      hours.clear();
      await Promise.all(pending);
    },
  };
}

function keyOf(type: FailureType, subject: Subject): string {
  if ("userId" in subject) return `${type} id ${subject.userId}`;
  return `${type} name ${subject.username.normalize("NFKC").toLowerCase()}`;
}

/** Returns whether an account can have this name; only such attempts are looked up. */
function isUsername(username: string): boolean {
  return username.length > 0 && username.length <= 255 && !/\p{Cc}/u.test(username);
}

import type { Knex } from "knex";
import { sha256 } from "../crypto/ids.ts";
import type { Database } from "../database/index.ts";
import { lockUser } from "../locks.ts";
import { recordNotice } from "./notices.ts";

const DAY_MS = 24 * 3600 * 1000;
/** How long a device stays known after its last sign-in. */
export const KNOWN_DEVICE_MS = 180 * DAY_MS;
// More browsers than a user has. Beyond that, the least recently used device is forgotten.
const DEVICES_PER_USER = 20;
// A device that is used to guess a password is treated as unknown.
const FAILURES_PER_DEVICE = 10;
const DESCRIPTION_MAX = 100;

export type Device = {
  /** The random value of the device's cookie, or a name that no cookie can have. */
  token: string;
  /** What the user recognizes it by, such as "Firefox on Linux". */
  description: string;
};

export type KnownDeviceStore = ReturnType<typeof createKnownDeviceStore>;

/** Devices that users have signed in from. Limits on guessing passwords and codes don't affect them. */
export function createKnownDeviceStore({ knex, transaction }: Database) {
  const confirm = (trx: Knex, userId: string, token: string) =>
    known(trx, userId, token).update({ ...renewed(), failures: 0 });

  return {
    /** Returns whether a device is known, and counts an attempt. After ten it is unknown, until `remember`. */
    async attempt(userId: string, token: string): Promise<boolean> {
      const device = known(knex, userId, token).where("failures", "<", FAILURES_PER_DEVICE);
      return (await device.increment("failures", 1)) > 0;
    },

    /** Undoes `attempt` after the right password. Wrong codes that follow it still count. */
    async undoAttempt(userId: string, token: string): Promise<void> {
      await known(knex, userId, token).where("failures", ">", 0).decrement("failures", 1);
    },

    /** Remembers a device and returns whether it was unknown. Then records a notice, if there is an address. */
    async remember(userId: string, device: Device, address?: string): Promise<boolean> {
      if (await confirm(knex, userId, device.token)) return false;
      return transaction(async (trx) => {
        await lockUser(trx, userId);
        if (await confirm(trx, userId, device.token)) return false; // a concurrent sign-in has remembered it
        await insert(trx, userId, device);
        const data = { address, browser: device.description };
        if (address !== undefined) await recordNotice(trx, { userId, kind: "new_device", data });
        return true;
      });
    },
  };
}

/** Forgets all devices of a user, because the password changes: one of them may be an attacker's. */
export async function forgetDevices(trx: Knex.Transaction, userId: string): Promise<void> {
  await trx("known_devices").where({ user_id: userId }).delete();
}

async function insert(trx: Knex.Transaction, userId: string, { token, description }: Device): Promise<void> {
  const token_hash = sha256(token);
  const mine = () => trx("known_devices").where({ user_id: userId });
  await mine().where({ token_hash }).delete(); // expired, but not yet purged
  const hashes = await mine().orderBy("last_used_at", "desc").pluck("token_hash");
  const oldest = hashes.slice(DEVICES_PER_USER - 1);
  if (oldest.length > 0) await mine().whereIn("token_hash", oldest).delete();
  await trx("known_devices").insert({
    user_id: userId,
    token_hash,
    description: description.slice(0, DESCRIPTION_MAX),
    created_at: Date.now(),
    ...renewed(),
  });
}

function renewed() {
  const now = Date.now();
  return { last_used_at: now, expires_at: now + KNOWN_DEVICE_MS };
}

function known(knex: Knex, userId: string, token: string) {
  return knex("known_devices")
    .where({ user_id: userId, token_hash: sha256(token) })
    .where("expires_at", ">", Date.now());
}

/** A key with the time from which it is used, in epoch milliseconds. The first key has none. */
export type Scheduled = { active_from?: number };

/**
 * Returns the keys that are valid at a time: first the one to sign with, then those that only verify. A new key is known
 * before it is used, and its predecessor stays valid until what it signed last has expired.
 * @param keys newest first
 * @param lifetimeMs how long what a key signs is valid
 */
export function keysInUse<Key extends Scheduled>(
  keys: readonly Key[],
  now: number,
  lifetimeMs: number,
): [Key, ...Key[]] {
  const valid = keys.filter((_, index) => endOf(keys, index, lifetimeMs) > now);
  const active = valid.find((key) => activeFrom(key) <= now) ?? (valid.at(-1) as Key);
  return [active, ...valid.filter((key) => key !== active)];
}

/** Returns when a key is no longer valid: after its successor was first used, its signatures expire one by one. */
export function endOf(keys: readonly Scheduled[], index: number, lifetimeMs: number): number {
  const successor = keys[index - 1];
  return successor ? activeFrom(successor) + lifetimeMs : Number.POSITIVE_INFINITY;
}

/** Returns the keys without those that have ended. */
export function withoutEnded<Key extends Scheduled>(
  keys: readonly Key[],
  now: number,
  lifetimeMs: number,
): Key[] {
  return keys.filter((_, index) => endOf(keys, index, lifetimeMs) > now);
}

export function activeFrom({ active_from = 0 }: Scheduled): number {
  return active_from;
}

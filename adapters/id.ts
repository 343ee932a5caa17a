import { randomBytes } from "node:crypto";
import { monotonicFactory } from "ulid";

const nextUlid = monotonicFactory();

/** A public id: prefix, underscore, ULID. Ids of one process sort in the order in which they were made. */
export function newId(prefix: "org" | "usr" | "lnk" | "sec"): string {
  return `${prefix}_${nextUlid()}`;
}

/** 32 random bytes behind a prefix; only `[A-Za-z0-9_-]`, so that it needs no encoding anywhere. */
export function newSecret(prefix: string): string {
  return prefix + randomBytes(32).toString("base64url");
}

/** A client id: `lgc_` and 16 random bytes. */
export function newClientId(): string {
  return `lgc_${randomBytes(16).toString("base64url")}`;
}

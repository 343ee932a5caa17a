import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { readKeyFile } from "../../server/keys/encryption-keys.ts";
import { endOf, keysInUse, withoutEnded } from "../../server/keys/shared-keys.ts";
import { temporaryFolder } from "../harness/program.ts";

const LIFETIME = 100;
const names = (keys: { name: string }[]) => keys.map(({ name }) => name).join(" ");

const KEYS = [{ name: "next", active_from: 2000 }, { name: "current", active_from: 1000 }, { name: "first" }];

const MOMENTS: [now: number, inUse: string][] = [
  [999, "first next current"],
  [1000, "current next first"],
  [1099, "current next first"],
  [1100, "current next"],
  [2000, "next current"],
  [2100, "next"],
];

test("the newest active key signs, and those before it verify as long as their signatures live", (t) => {
  for (const [now, inUse] of MOMENTS) t.is(names(keysInUse(KEYS, now, LIFETIME)), inUse, `${now}`);
});

test("a key ends when its successor has been in use for the lifetime of its signatures", (t) => {
  const ends = [0, 1, 2].map((index) => endOf(KEYS, index, LIFETIME));
  t.deepEqual(ends, [Number.POSITIVE_INFINITY, 2100, 1100]);
  t.is(names(withoutEnded(KEYS, 1100, LIFETIME)), "next current");
});

const file = path.join(temporaryFolder("key"), "encryption.key");

function refusalOf(t: ExecutionContext, content: string, mode: number): string {
  writeFileSync(file, content);
  chmodSync(file, mode);
  return t.throws(() => readKeyFile(file)).message.replace(file, "encryption.key");
}

test("a key file without a key, or that other users can read, is refused with what to do", (t) => {
  t.regex(refusalOf(t, "broken", 0o600), /encryption\.key must contain 32 bytes in base64url$/);
  const key = Buffer.alloc(32, 7).toString("base64url");
  const isOpen = /encryption\.key must not be accessible to other users: run chmod 600 \S+encryption\.key$/;
  for (const mode of [0o644, 0o604]) t.regex(refusalOf(t, key, mode), isOpen);
});

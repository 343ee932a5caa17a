import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createBloomFilter, FILTER_BYTES, FILTER_FILE, FILTER_HASHES } from "./is-breached.ts";

// Builds `passwords.bloom` from the list that the README beside this file names. The result is always the same.
const SOURCE = "eac6323842b3261da0ef4c180c8e23f4d056522ea97c2925b8687f453b40a2be";
// Shorter passwords are too short to be used, but users add digits to them. Only the most frequent ones matter.
const MIN_LENGTH = 8;
const SHORT_MIN_LENGTH = 4;
const SHORT_COUNT = 100_000;

const [, , file] = process.argv;
if (!file) throw new Error("usage: node server/credentials/breached-passwords/build.ts <list>");
const list = readFileSync(file);
if (hash("sha256", list, "hex") !== SOURCE) throw new Error(`${file} is not the list that the README names`);

const bytes = new Uint8Array(FILTER_BYTES);
const filter = createBloomFilter(bytes, FILTER_HASHES);
const added = new Set<string>();
for (const [rank, line] of list.toString("utf8").split(/\r?\n/).entries()) {
  const password = line.toLowerCase();
  const minimum = rank < SHORT_COUNT ? SHORT_MIN_LENGTH : MIN_LENGTH;
  if (password.length >= minimum) added.add(password);
}
for (const password of added) filter.add(password);
writeFileSync(FILTER_FILE, bytes);

const share = bytes.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
const rate = (share / (FILTER_BYTES * 8)) ** FILTER_HASHES;
process.stdout.write(`${added.size} passwords, false-positive rate 1 in ${Math.round(1 / rate)}\n`);

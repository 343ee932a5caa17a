import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { normalizeText } from "../../../resources/http/text.ts";
import { withoutMarks } from "./skeleton.ts";

// Builds `table.json` from the two files that the README beside this file names. The result is always the same.
const CONFUSABLES = "2fb1ef5aa83ace3438c1cbd6f2fd413cd62ab20906b6101511eb5db11e70ae1c";
const NAMES = "806e9aed65037197f1ec85e12be6e8cd870fc5608b4de0fffd990f689f376a73";
const LETTERS = "lnkgate"; // and i, which looks like l
// Unicode doesn't compare these with the letter, but names them after it.
const SHAPES =
  "SMALL CAPITAL|TURNED|REVERSED|SCRIPT|OPEN|BARRED|LONG|DOTLESS|BLACKLETTER|INSULAR|MIDDLE-WELSH";
const NAMED = new RegExp(`^LATIN (?:SMALL |CAPITAL )?LETTER (?:(?:${SHAPES}) )*([A-Z])(?: WITH .*)?$`);

const [, , confusablesFile = "", namesFile = ""] = process.argv;
const prototypes: Record<string, string> = JSON.parse(read(confusablesFile, CONFUSABLES));
const names = new Map(read(namesFile, NAMES).split("\n").filter(Boolean).map(toCharacter));

function read(file: string, digest: string): string {
  const text = readFileSync(file, "utf8");
  if (hash("sha256", text, "hex") !== digest)
    throw new Error(`${file} is not the file that the README names`);
  return text;
}

function toCharacter(line: string): [character: string, name: string] {
  const [code = "", name = ""] = line.split(";");
  return [String.fromCodePoint(Number.parseInt(code, 16)), name];
}

function plainOf(text: string): string {
  return withoutMarks(normalizeText(text, "NFKD", text.length) ?? text);
}

function letterOf(character: string): string | undefined {
  const plain = plainOf(character);
  const letter = /^[a-z]$/.test(plain) ? plain : NAMED.exec(names.get(character) ?? "")?.[1]?.toLowerCase();
  return letter === "i" ? "l" : letter;
}

// What looks like the same character, apart from marks, looks alike.
const classes = Map.groupBy(Object.entries(prototypes), ([, prototype]) => plainOf(prototype) || prototype);
const found = [...names.keys()].map((character) => [letterOf(character), character] as const);
for (const [key, members] of classes) {
  const characters = [key, ...members.map(([character]) => character)];
  const own = letterOf(key);
  const letters = own ? [own] : new Set(characters.map(letterOf));
  for (const letter of letters) found.push(...characters.map((character) => [letter, character] as const));
}

const table: Record<string, string> = {};
for (const letter of LETTERS) {
  const characters = found.filter((one) => one[0] === letter).map((one) => plainOf(one[1]));
  const others = characters.filter((character) => [...character].length === 1 && character > "\x7f");
  table[letter] = [...new Set(others)].sort().join("");
}
writeFileSync(new URL("table.json", import.meta.url), `${JSON.stringify(table, undefined, 2)}\n`);

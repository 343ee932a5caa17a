// node verify-audit-log.mjs <export.csv> [hash]: proves that an unfiltered export is unchanged and contains a known hash.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [file, known] = process.argv.slice(2);
const rows = [[]];
const cells = /("(?:[^"]|"")*"|[^,\n]*)(,|\n|$)/g;
for (const [, cell, end] of readFileSync(file, "utf8").replace("\uFEFF", "").matchAll(cells)) {
  rows.at(-1).push(cell.replace(/^"|"$/g, "").replaceAll('""', '"').replace(/^'/, "") || null);
  if (end !== ",") rows.push([]);
}
const [names, ...lines] = rows.filter((row) => row.length > 1);
const entries = lines.map((line) => Object.fromEntries(names.map((name, index) => [name, line[index]])));
entries.sort((one, other) => one.seq - other.seq);
/** Compares what is shown with the record, whose names may be in camelCase and whose times may be numbers. */
function same(shown, real) {
  if (typeof shown !== "object" || !shown) return shown === real || Date.parse(shown) === real;
  const camelCase = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  const realPart = (name) => real[name] ?? real[camelCase(name)] ?? null;
  // These follow from the settings of the server, unless the link has a domain of its organization.
  const isDerived = (name) => ["short_url", "domain"].includes(name) && realPart(name) === null;
  return Object.keys(shown).every((name) => isDerived(name) || same(shown[name], realPart(name)));
}
for (const [index, entry] of entries.entries()) {
  const { seq, previous_hash, hash, record, data, actor_name, via_name, summary, ...columns } = entry;
  const isHash = createHash("sha256").update(`${previous_hash}\n${record}`).digest("hex") === hash;
  const isShown = same({ ...columns, seq: +seq, data: JSON.parse(data) }, JSON.parse(record));
  const isNext = index === 0 || entries[index - 1].hash === previous_hash;
  if (!(isHash && isShown && isNext)) throw new Error(`Entry ${seq} or the one before was changed.`);
}
if (known && !entries.some(({ hash }) => hash === known)) throw new Error("No entry has this hash.");
console.log(`Entries ${entries[0].seq} to ${entries.at(-1).seq} are unchanged.`);

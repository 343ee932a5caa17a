import test from "ava";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { withoutEscape } from "../../resources/links/import/values.ts";
import { csvHeader, exportName, toCsv } from "../../server/csv.ts";

const special = fc.string({ unit: fc.constantFrom(..."\",;\r\n\t'=+-@﹦⁺ aé😀"), maxLength: 6 });
/** A spreadsheet may trim spaces, and normalize what follows. */
const startsFormula = (text: string) =>
  /^'*\s*[=+\-@\t\r]/.test(text) ||
  /^[=+\-@]/.test(
    text
      .replace(/^'*\s*/, "")
      .slice(0, 1)
      .normalize("NFKC"),
  );
const rows = fc.array(fc.array(fc.oneof(special, fc.string()), { minLength: 2, maxLength: 2 }));

test("any text is read as it was written, with an apostrophe before a formula", (t) => {
  fc.assert(
    fc.property(rows, (texts) => {
      const expected = texts.map((cells) => cells.map((cell) => (startsFormula(cell) ? `'${cell}` : cell)));
      t.deepEqual(parse(toCsv(texts), { record_delimiter: "\n" }), expected);
    }),
  );
});

test("every character that becomes one of a formula is one, also behind spaces", (t) => {
  for (let code = 0x80; code < 0x10000; code++) {
    const character = String.fromCharCode(code);
    const isOne = /^[=+\-@]/.test(character.normalize("NFKC"));
    t.is(toCsv([[`${character}1`, ` ${character}`]]).startsWith("'"), isOne, code.toString(16));
  }
  t.is(toCsv([[" =1", "\u00a0+1", "' =1", "'1", " 1"]]), "' =1,'\u00a0+1,'' =1,'1, 1\n");
});

test("an import gives back what an export has escaped", (t) => {
  fc.assert(
    fc.property(fc.oneof(special, fc.string()), (cell) => {
      const [[read = ""] = []] = parse(toCsv([[cell, ""]]), { record_delimiter: "\n" }) as string[][];
      t.is(withoutEscape(read), cell);
    }),
  );
});

test("numbers are no formulas, and missing values are empty cells", (t) => {
  t.is(toCsv([[-1, 0, true, null, undefined, ""]]), "-1,0,true,,,\n");
  t.is(toCsv([["-1", "＝1", "a,b", 'a "b"']]), `'-1,'＝1,"a,b","a ""b"""\n`);
  t.is(csvHeader(["a", "b"]), "\ufeffa,b\n");
});

test("a file is named after the organization, in letters and digits of any script, and the day", (t) => {
  const date = new Date().toISOString().slice(0, 10);
  for (const [organization, name] of [
    ["Harbor Coffee", "harbor-coffee-"],
    [' ../Ärger & Söhne: "x" ', "ärger-söhne-x-"],
    ["東京 हिन्दी", "東京-हिन्दी-"],
    ["/\\?*", ""],
    [`${"a".repeat(59)}😀𝒜`, `${"a".repeat(59)}-`],
  ] as const)
    t.is(exportName(organization, "links"), `${name}links-${date}`);
});

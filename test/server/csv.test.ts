import test from "ava";
import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { csvHeader, toCsv } from "../../server/csv.ts";

const special = fc.string({ unit: fc.constantFrom(..."\",;\r\n\t'=+-@ aé😀"), maxLength: 6 });
const rows = fc.array(fc.array(fc.oneof(special, fc.string()), { minLength: 2, maxLength: 2 }));

test("any text is read as it was written, with an apostrophe before a formula", (t) => {
  fc.assert(
    fc.property(rows, (texts) => {
      const expected = texts.map((cells) => cells.map((cell) => cell.replace(/^(?='*[=+\-@\t\r])/, "'")));
      t.deepEqual(parse(toCsv(texts), { record_delimiter: "\n" }), expected);
    }),
  );
});

test("numbers are no formulas, and missing values are empty cells", (t) => {
  t.is(toCsv([[-1, 0, true, null, undefined, ""]]), "-1,0,true,,,\n");
  t.is(toCsv([["-1", "＝1", "a,b", 'a "b"']]), `'-1,'＝1,"a,b","a ""b"""\n`);
  t.is(csvHeader(["a", "b"]), "\ufeffa,b\n");
});

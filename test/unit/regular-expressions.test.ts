import test from "ava";
import { expressionsOf, problemOf } from "../../.ci/regular-expressions.ts";

const CONSTANT = "its text isn't constant";
const POLYNOMIAL = /^2nd degree polynomial, with /;

const FOUND: [code: string, problem: RegExp | string | undefined][] = [
  ["/\\s+$/", POLYNOMIAL],
  ["/^(a|a)*$/", /^exponential, with /],
  ["/(?<!x)\\s+$/", /^polynomial, with /],
  ["/[\\p{L}--a]+$/v", /^polynomial, with /],
  ['new RegExp("\\\\s+$")', POLYNOMIAL],
  ['RegExp(`${"\\\\s"}+$`)', POLYNOMIAL],
  ["const END = '\\\\s+';\nnew RegExp(String.raw`(?:\\d|${END})$`, 'i');", POLYNOMIAL],
  ["const END = /\\s+$/g;\nnew RegExp(END, 'i');", POLYNOMIAL],
  ["(name: string) => new RegExp(name)", CONSTANT],
  ["/\\s+/", undefined],
  ["/^(a|b)*$/", undefined],
  ["const text = '/\\\\s+$/'; // /\\s+$/", undefined],
];

for (const [code, expected] of FOUND)
  test(`the check of regular expressions ${expected ? "reports" : "accepts"} ${code}`, async (t) => {
    const problems = await Promise.all(expressionsOf("example.ts", code).map(problemOf));
    const problem = problems.find((one) => one !== undefined);
    if (expected instanceof RegExp) t.regex(problem ?? "", expected);
    else t.is(problem, expected);
  });

import test from "ava";
import type { Context } from "koa";
import { matchesIfNoneMatch, preconditionOf } from "../../resources/http/etag.ts";

const TAG = '"current"';

function contextWith(name: string, value: string): Context {
  return { get: (header: string) => (header.toLowerCase() === name ? value : "") } as Context;
}

/** Whether a header names the current tag, for changes (If-Match) and for reads (If-None-Match). */
const HEADERS: [header: string, isMatch: boolean, isNoneMatch: boolean][] = [
  [TAG, true, true],
  ['"x", "current" , "y"', true, true],
  // RFC 9110 §13.1.1 compares strongly, §13.1.2 weakly.
  ['W/"current"', false, true],
  ['"x", W/"current"', false, true],
  ['"earlier"', false, false],
  ["current", false, false],
  ['"*"', false, false],
  ['"curr"', false, false],
];

test("a tag matches as RFC 9110 says, strongly for changes and weakly for reads", (t) => {
  for (const [header, isMatch, isNoneMatch] of HEADERS) {
    t.is(preconditionOf(contextWith("if-match", header))?.(TAG), isMatch, header);
    t.is(matchesIfNoneMatch(contextWith("if-none-match", header), TAG), isNoneMatch, header);
  }
  t.true(matchesIfNoneMatch(contextWith("if-none-match", "*"), TAG));
  t.false(matchesIfNoneMatch(contextWith("if-none-match", ""), TAG));
});

test("without If-Match there is no precondition, and a star is that the resource exists", (t) => {
  const exists = () => true;
  t.is(preconditionOf(contextWith("if-match", ""), exists), undefined);
  t.is(preconditionOf(contextWith("if-match", "*"), exists), exists);
  t.is(preconditionOf(contextWith("if-match", "*")), undefined);
});

// What test files and the harness import as "ava" in a thread that runs many test files, each with a runner of its own.

import type { TestFn } from "ava";

let current: TestFn;
let isUsed = false;

/** Makes what is declared from now on belong to a test file. Returns a function that says whether anything was. */
export function declareWith(chain: TestFn): () => boolean {
  current = chain;
  isUsed = false;
  return () => isUsed;
}

function use(): TestFn {
  isUsed = true;
  return current;
}

const test = (...words: unknown[]) => Reflect.apply(use(), undefined, words);

export default new Proxy(test, { get: (_target, name) => use()[name as keyof TestFn] });

// `TextDecoder` also removes a byte order mark.
const utf8 = new TextDecoder();
// An escape may hide the name.
const MAY_NAME_PROTOTYPE = /__proto__|\\u/;

/**
 * Parses a UTF-8 text as JSON.
 * @throws SyntaxError also for a `__proto__`: copying the object would replace the prototype of the copy
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = utf8.decode(bytes);
  return JSON.parse(text, MAY_NAME_PROTOTYPE.test(text) ? rejectPrototype : undefined);
}

function rejectPrototype(name: string, value: unknown): unknown {
  if (name === "__proto__") throw new SyntaxError("a field must not be named __proto__");
  return value;
}

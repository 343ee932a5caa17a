import { Problem } from "../../resources/http/problem.ts";
import { invalidField } from "../../resources/http/validate.ts";

const PARTS_MAX = 100;
// They have two headers, and the name of the file.
const HEADERS_MAX = 4096;
const BREAK = "\r\n";

/**
 * Returns the fields of a form (RFC 7578 §4.1), texts as strings and files as parts of `body`: the platform's `formData()`
 * copies a file four times, and takes long for many parts or headers. Throws Problem 400, or 422 for too many fields.
 */
export function parseMultipart(body: Buffer, boundary: string): [name: string, value: string | Buffer][] {
  const delimiter = `${BREAK}--${boundary}`;
  const first = delimiter.slice(BREAK.length);
  if (body.toString("latin1", 0, first.length) !== first) throw unparsable();
  const fields: [name: string, value: string | Buffer][] = [];
  let at = first.length;
  // RFC 2046 §5.1.1: the last boundary ends with two hyphens.
  while (body.toString("latin1", at, at + 2) !== "--") {
    if (fields.length === PARTS_MAX)
      throw invalidField("", `must have at most ${PARTS_MAX} fields`, "invalid_request");
    const headersEnd = body.subarray(at, at + HEADERS_MAX).indexOf(BREAK + BREAK);
    const start = at + headersEnd + 2 * BREAK.length;
    const end = headersEnd < 0 ? -1 : body.indexOf(delimiter, start);
    if (end < 0) throw unparsable();
    const headers = body.toString("utf8", at, start);
    const [, name] = /[; ]name="([^"\r\n]*)"/i.exec(headers) ?? [];
    if (name === undefined) throw unparsable();
    const content = body.subarray(start, end);
    fields.push([name, /; *filename\*?=/i.test(headers) ? content : content.toString()]);
    at = end + delimiter.length;
  }
  return fields;
}

export function unparsable(): Problem {
  return new Problem(400, "invalid_request", "The body could not be parsed.");
}

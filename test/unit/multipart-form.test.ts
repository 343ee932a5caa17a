import test from "ava";
import type { Problem } from "../../resources/http/problem.ts";
import { parseMultipart } from "../../server/http/request-body.ts";

const fieldOf = (name: string, value: string) =>
  `--xyz\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

test("a form that the platform writes has its texts, and its files byte for byte", async (t) => {
  const bytes = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
  const form = new FormData();
  form.set("csrf", "tökén\n");
  form.set("empty", "");
  form.set("file", new File([bytes, "\r\n--", bytes], 'links; name="x".csv'));
  const request = new Response(form);
  const [, boundary = ""] = /boundary=(.*)/.exec(request.headers.get("content-type") ?? "") ?? [];
  const fields = Object.fromEntries(parseMultipart(Buffer.from(await request.arrayBuffer()), boundary));
  // The platform writes line breaks of texts as HTML forms do.
  t.is(fields.csrf, "tökén\r\n");
  t.is(fields.empty, "");
  t.deepEqual(fields.file, Buffer.concat([bytes, Buffer.from("\r\n--"), bytes]));
});

test("100 fields are read, and a file is a part of the body", (t) => {
  const file = '--xyz\r\ncontent-disposition: form-data; filename="a"; name="file"\r\n\r\nurl\r\n';
  const body = Buffer.from(`${fieldOf("a", "1").repeat(99)}${file}--xyz--`);
  const fields = parseMultipart(body, "xyz");
  t.is(fields.length, 100);
  const [name, value] = fields.at(-1) ?? [];
  t.deepEqual([name, String(value), Buffer.isBuffer(value) && value.buffer], ["file", "url", body.buffer]);
});

const REFUSED: Record<string, [body: string, status: number]> = {
  "an empty body": ["", 400],
  "another boundary": ["--abc\r\n", 400],
  "no end": [fieldOf("a", "1"), 400],
  "a part without an end": [fieldOf("a", "1") + fieldOf("b", "2").trimEnd(), 400],
  "a part without a name": ["--xyz\r\ncontent-disposition: form-data\r\n\r\n1\r\n--xyz--", 400],
  "headers of more than 4 KB": [`--xyz\r\n${"a: b\r\n".repeat(700)}${fieldOf("a", "1")}--xyz--`, 400],
  "101 fields": [`${fieldOf("a", "1").repeat(101)}--xyz--`, 422],
};
test("a form without an end or a name, with another boundary, or of too many fields is refused", (t) => {
  for (const [what, [body, status]] of Object.entries(REFUSED))
    t.is(t.throws<Problem>(() => parseMultipart(Buffer.from(body), "xyz"))?.status, status, what);
});

import test from "ava";
import { basic, createApp } from "../../harness/clients/oauth.ts";
import { sendRaw } from "../../harness/clients/raw.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
const { app } = await createApp(service);
const FORM_TYPE = "application/x-www-form-urlencoded";
test.after.always(() => service.close());

const MALFORMED: Record<string, string | Buffer> = {
  "60 KB of data": `grant_type=client_credentials&x=${"x".repeat(60_000)}`,
  "2 MB of data": `x=${"x".repeat(2_000_000)}`,
  "100,000 parameters": Array.from({ length: 100_000 }, (_, index) => `a${index}=`).join("&"),
  "deeply nested names": `grant_type${"[a]".repeat(5000)}=x`,
  "prototype property names": "__proto__[grant_type]=client_credentials&constructor=x&toString=y",
  "invalid UTF-8": Buffer.from([0x67, 0x3d, 0xff, 0xfe, 0x00, 0x80]),
  "invalid percent escapes": "grant_type=%&scope=%zz&client_id=%c3%28",
  "NUL characters": "grant_type=client_credentials%00&scope=%00&client_id=%00",
  "a NUL in a refresh token": "grant_type=refresh_token&refresh_token=lgr_%00",
  "a NUL in a code": `grant_type=authorization_code&code=%00&code_verifier=${"x".repeat(43)}&redirect_uri=%00`,
};

for (const [what, body] of Object.entries(MALFORMED)) {
  for (const endpoint of ["token", "revoke", "introspect", "par"]) {
    test(`a body with ${what} gets a 4xx error at ${endpoint}`, async (t) => {
      const headers = ["authorization", basic(app).authorization, "content-type", FORM_TYPE];
      const answer = await sendRaw(service.url, `/oauth/${endpoint}`, { method: "POST", headers, body });
      t.true(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
      t.is(typeof JSON.parse(answer.text).error, "string");
    });
  }
}

test("a charset other than UTF-8 is rejected", async (t) => {
  const headers = ["authorization", basic(app).authorization, "content-type", `${FORM_TYPE}; charset=utf-7`];
  const answer = await sendRaw(service.url, "/oauth/token", {
    method: "POST",
    headers,
    body: "grant_type=x",
  });
  t.true(answer.status >= 400 && answer.status < 500);
});

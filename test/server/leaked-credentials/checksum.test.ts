import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { hasChecksum, withChecksum } from "../../../adapters/crypto/checksum.ts";
import { createApp, isAcceptedByApi, runCodeFlow } from "../../harness/clients/oauth.ts";
import { ROOT } from "../../harness/program.ts";
import { startTestService } from "../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

/** Loads the function that the documentation shows. */
async function documentedCheck(): Promise<(text: string) => boolean> {
  const document = readFileSync(`${ROOT}docs/leaked-credentials.md`, "utf8");
  const [, code = ""] = /```js\n([\s\S]*?)```/.exec(document) ?? [];
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-checksum-"));
  const file = path.join(folder, "check.mjs");
  writeFileSync(file, code);
  const { isCredential } = await import(file);
  rmSync(folder, { recursive: true });
  return isCredential;
}

test("the documented check accepts every new credential, and nothing that differs by a character", async (t) => {
  const isCredential = await documentedCheck();
  const { app, user } = await createApp(service);
  const { accessToken, refreshToken } = await runCodeFlow(service, app, user);
  const credentials = [app.clientSecret, await service.token(app), accessToken, refreshToken];
  for (const credential of credentials) {
    t.true(isCredential(credential), credential.slice(0, 4));
    for (let position = 0; position < credential.length; position++) {
      const other = credential[position] === "A" ? "B" : "A";
      const changed = credential.slice(0, position) + other + credential.slice(position + 1);
      t.false(isCredential(changed), `${credential.slice(0, 4)} ${position}`);
    }
  }
  t.true(await isAcceptedByApi(service, accessToken));
});

test("the checksum is the CRC-32 in base 62", (t) => {
  // The check value of CRC-32 (ISO/IEC 13239): the CRC of these nine digits.
  let number = 0;
  for (const digit of withChecksum("123456789").slice(-6)) {
    number = number * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit);
  }
  t.is(number, 0xcbf43926);
  t.true(hasChecksum(withChecksum("lga_x")));
  t.false(hasChecksum("lga_x"));
});

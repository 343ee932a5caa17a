import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { Webhook } from "standardwebhooks";
import { apiAt } from "../harness/clients/api.ts";
import { compileGo, HAS_GO } from "../harness/clients/go.ts";
import { PYTHON } from "../harness/clients/python.ts";
import { blocksOf } from "../harness/examples.ts";
import { freePort, Program, temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";
import { skip } from "../harness/skip.ts";
import { createWebhook, type Received, startReceiver, until } from "../harness/webhooks.ts";

const receiver = await startReceiver();
const service = await startTestService({ WEBHOOK_ALLOW_HOSTS: "127.0.0.1" });
const folder = temporaryFolder("signatures");

// Each reads requests, one line of JSON each, and prints whether they are genuine.
const MAINS: Record<string, string> = {
  TypeScript: `
for await (const line of (await import("node:readline")).createInterface(process.stdin)) {
  const { secret, headers, text } = JSON.parse(line);
  console.log(isGenuine(secret, headers, Buffer.from(text)));
}`,
  Python: `
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print("true" if is_genuine(request["secret"], request["headers"], request["text"].encode()) else "false")`,
  Go: `package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func main() {
	lines := json.NewDecoder(os.Stdin)
	for lines.More() {
		var request struct { Secret, Text string; Headers map[string]string }
		if err := lines.Decode(&request); err != nil { panic(err) }
		headers := http.Header{}
		for name, value := range request.Headers { headers.Set(name, value) }
		fmt.Println(isGenuine(request.Secret, headers, []byte(request.Text)))
	}
}`,
};
const MISSING: Record<string, boolean> = { TypeScript: false, Python: !PYTHON, Go: !HAS_GO };

type SignedRequest = Pick<Received, "headers" | "text"> & { secret: string };

async function start(language: string): Promise<Program> {
  const code = blocksOf("docs/webhooks.md").find(
    ({ title, heading }) => title === language && heading === "Verify signatures",
  )?.code;
  const main = MAINS[language] as string;
  if (language === "TypeScript")
    return new Program(process.execPath, ["--input-type=module-typescript", "--eval", code + main]);
  if (language === "Python") return new Program(PYTHON as string, ["-c", code + main]);
  writeFileSync(path.join(folder, "signature.go"), code as string);
  writeFileSync(path.join(folder, "main.go"), main);
  return new Program(await compileGo(path.join(folder, "main.go"), path.join(folder, "signature.go")), []);
}

async function receive(): Promise<SignedRequest> {
  const api = apiAt(service.url, await service.token(await service.createOrganization()));
  const path = `/${crypto.randomUUID()}`;
  const { secret } = await createWebhook(api, receiver.url(path));
  await api.createLink({ title: "schön" });
  const [{ headers, text }] = (await receiver.waitFor(path, 1)) as [Received];
  return { headers, text, secret };
}

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

function signedAgo({ secret, text, headers }: SignedRequest, seconds: number): SignedRequest {
  const at = new Date(Date.now() - seconds * 1000);
  const signature = new Webhook(secret).sign(headers["webhook-id"] as string, at, text);
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signed = { "webhook-timestamp": timestamp, "webhook-signature": signature };
  return { secret, text, headers: { ...headers, ...signed } };
}

const withHeader =
  (name: string, change: (signature: string) => string) =>
  ({ headers, ...request }: SignedRequest) => ({
    ...request,
    headers: { ...headers, [`webhook-${name}`]: change(headers["webhook-signature"] as string) },
  });
const aMinuteAgo = () => String(Math.floor(Date.now() / 1000) - 60);

type Change = (request: SignedRequest) => SignedRequest;
const CASES: [what: string, isGenuine: boolean, change: Change][] = [
  ["as it was sent", true, (request) => request],
  ["during a rotation", true, withHeader("signature", (signature) => `v1,AAAA ${signature}`)],
  ["signed four minutes ago", true, (request) => signedAgo(request, 240)],
  ["signed six minutes ago", false, (request) => signedAgo(request, 360)],
  ["signed six minutes ahead", false, (request) => signedAgo(request, -360)],
  ["with another body", false, (request) => ({ ...request, text: request.text.replace("schön", "schon") })],
  ["without headers", false, (request) => ({ ...request, headers: {} })],
  ["with the secret of another webhook", false, (request) => ({ ...request, secret: OTHER_SECRET })],
  ["with another ID", false, withHeader("id", () => "evt_1")],
  ["with another timestamp", false, withHeader("timestamp", aMinuteAgo)],
  ["with a timestamp that is no number", false, withHeader("timestamp", () => "now")],
  ["with a signature of another length", false, withHeader("signature", () => "v1,AAAA")],
  ["with another version of signature", false, withHeader("signature", (one) => one.replace("v1,", "v1a,"))],
];

for (const [language, isMissing] of Object.entries(MISSING)) {
  const title = `the documented ${language} function accepts a delivery, and refuses every tampered one`;
  if (isMissing) skip(title, `${language} is not installed`);
  else
    test(title, async (t) => {
      const [program, request] = await Promise.all([start(language), receive()]);
      program.write(CASES.map(([, , change]) => `${JSON.stringify(change(request))}\n`).join(""));
      const { stdout, stderr } = await program.ended;
      t.is(stderr, "");
      const verdicts = stdout.trim().split("\n");
      t.deepEqual(
        CASES.map(([what], index) => [what, verdicts[index]]),
        CASES.map(([what, isGenuine]) => [what, String(isGenuine)]),
      );
    });
}

test("the documented receiver accepts a delivery, and refuses every tampered one", async (t) => {
  const [request, port] = await Promise.all([receive(), freePort()]);
  const code = blocksOf("docs/webhooks.md").find(({ language }) => language === "js")?.code ?? "";
  const settings = { WEBHOOK_SECRET: request.secret, PORT: String(port) };
  const program = new Program(process.execPath, ["--input-type=module", "--eval", code], { settings });
  const send = ({ headers, text: body }: Pick<Received, "headers" | "text">) => {
    const signed = Object.entries(headers).filter(([name]) => name.startsWith("webhook-"));
    return fetch(`http://localhost:${port}`, { method: "POST", headers: Object.fromEntries(signed), body });
  };
  await until(() => send(request).catch(() => undefined));
  for (const [what, isGenuine, change] of CASES) {
    const changed = change(request);
    // The receiver has one secret.
    if (changed.secret === request.secret) t.is((await send(changed)).status, isGenuine ? 204 : 401, what);
  }
  await program.says(/^evt_\w+ link\.created \{/m);
  await program.stop();
});

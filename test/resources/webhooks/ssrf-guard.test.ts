import test from "ava";
import { apiAt, isProblem } from "../../harness/clients/api.ts";
import { startTestService } from "../../harness/service.ts";
import { createWebhook, type WebhookBody, type WebhookPage } from "../../harness/webhooks.ts";

const strict = await startTestService();
const permissive = await startTestService({
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1:9000, receiver.test, [::1], 10.1.2.3",
});
const createApi = async ({ url, createOrganization, token } = strict) =>
  apiAt(url, await token(await createOrganization()));
test.after.always(() => Promise.all([strict.close(), permissive.close()]));

const ACCEPTED = [
  "https://example.com/hook",
  "https://example.com:443/hook",
  "https://example.com:8443/hook?key=value",
  "HTTPS://EXAMPLE.COM/hook",
  "https://xn--bcher-kva.example/hook",
  "https://localhost.example.com/hook",
  "https://8.8.8.8/hook",
  "https://168.63.129.15/hook",
  "https://172.15.255.255/hook",
  "https://172.32.0.0/hook",
  "https://100.63.255.255/hook",
  "https://[2606:4700:4700::1111]/hook",
];

const REFUSED: Record<string, string[]> = {
  "a non-public IPv4 address": [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
  ],
  "an IPv4 address in another notation": [
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "127.0.1",
    "0",
    "127.0.0.1.",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0xa9fea9fe",
    "2852039166",
    "%31%32%37.0.0.1",
  ],
  "a non-public IPv6 address": [
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[100::1]",
    "[2001:2::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[4000::1]",
  ],
  "an IPv6 address that embeds an IPv4 address": [
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:8.8.8.8]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::808:808]",
    "[64:ff9b:1::a00:1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
  ],
  "a hostname of this machine or a private network": [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost..",
    "app.localhost",
    "printer.local",
    "metadata.google.internal",
    "metadata.google.internal.",
    "ｌocalhost",
  ],
};

for (const url of ACCEPTED) {
  test(`${url} is accepted as a webhook URL`, async (t) => {
    const { url: stored } = await createWebhook(await createApi(), url);
    t.is(stored, url);
  });
}

for (const [kind, hosts] of Object.entries(REFUSED)) {
  test(`${kind} is rejected on every allowed port`, async (t) => {
    const api = await createApi();
    for (const url of hosts.flatMap((host) => [`https://${host}/hook`, `https://${host}:8443/`])) {
      const reply = await api.send("POST", "/v1/webhooks", { json: { url, events: ["link.created"] } });
      t.is(reply.status, 422, url);
      isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
    }
    t.deepEqual((await api.get<WebhookPage>("/v1/webhooks")).body.data, []);
  });
}

const MALFORMED: [name: string, url: unknown][] = [
  ["plain http", "http://example.com/hook"],
  ["plain http on 443", "http://example.com:443/hook"],
  ["another scheme", "ftp://example.com/hook"],
  ["a file", "file:///etc/passwd"],
  ["gopher", "gopher://example.com:443/"],
  ["data", "data:text/plain,x"],
  ["JavaScript", "javascript:alert(1)"],
  ["a WebSocket", "wss://example.com/hook"],
  ["port 22", "https://example.com:22/hook"],
  ["port 80", "https://example.com:80/hook"],
  ["port 0", "https://example.com:0/hook"],
  ["port 6379", "https://example.com:6379/hook"],
  ["port 65536", "https://example.com:65536/hook"],
  ["a username", "https://user@example.com/hook"],
  ["a password", "https://user:password@example.com/hook"],
  ["a host that looks like a user", "https://example.com@127.0.0.1/hook"],
  ["an empty user", "https://@127.0.0.1/hook"],
  ["a fragment", "https://example.com/hook#part"],
  ["an empty fragment", "https://example.com/hook#"],
  ["a backslash", "https://example.com\\@127.0.0.1/"],
  ["a space", "https://example.com/a hook"],
  ["a line break", "https://example.com/\r\nX: y"],
  ["a tab in the host", "https://exam\tple.com/"],
  ["a NUL", "https://example.com/\u0000"],
  ["a lone surrogate", "https://example.com/\ud800"],
  ["no host", "https:///hook"],
  ["one slash", "https:/example.com/hook"],
  ["no scheme", "example.com/hook"],
  ["a path", "/hook"],
  ["an empty string", ""],
  ["over 2048 characters", `https://example.com/${"x".repeat(2048)}`],
  ["a number", 5],
  ["null", null],
  ["a list", ["https://example.com/hook"]],
];
for (const [name, url] of MALFORMED) {
  test(`${name} is rejected as a webhook URL, at creation and in an update`, async (t) => {
    const api = await createApi();
    const events = ["link.created"];
    const expected = { status: 422, code: "invalid_url", fields: ["url"] };
    isProblem(t, await api.send("POST", "/v1/webhooks", { json: { url, events } }), expected);
    const { id, secret, ...webhook } = await createWebhook(api, "https://example.com/hook");
    isProblem(t, await api.send("PATCH", `/v1/webhooks/${id}`, { json: { url } }), expected);
    t.deepEqual((await api.get<WebhookBody>(`/v1/webhooks/${id}`)).body, { id, ...webhook });
  });
}

const WITH_ALLOWLIST: [url: string, isAccepted: boolean][] = [
  ["http://127.0.0.1:9000/hook", true],
  ["https://127.0.0.1:9000/hook", true],
  ["http://2130706433:9000/hook", true],
  ["http://127.0.0.1:9001/hook", false],
  ["http://127.0.0.1/hook", false],
  ["https://127.0.0.1/hook", false],
  ["http://127.0.0.2:9000/hook", false],
  ["http://localhost:9000/hook", false],
  ["http://receiver.test/hook", true],
  ["http://receiver.test:1234/hook", true],
  ["http://RECEIVER.test/hook", true],
  ["http://other.receiver.test/hook", false],
  ["http://receiver.test.example.com/hook", false],
  ["http://example.com/hook", false],
  ["http://[::1]:3000/hook", true],
  ["http://[::ffff:127.0.0.1]:9000/hook", false],
  ["https://10.1.2.3/hook", true],
  ["https://10.1.2.4/hook", false],
  ["http://user:password@receiver.test/hook", false],
  ["ftp://receiver.test/hook", false],
  ["http://example.com/?receiver.test", false],
  ["https://example.com/hook", true],
];
for (const [url, isAccepted] of WITH_ALLOWLIST) {
  const verdict = isAccepted ? "is accepted" : "is rejected";
  test(`${url} ${verdict} with an allowlist of hosts`, async (t) => {
    const api = await createApi(permissive);
    const reply = await api.send("POST", "/v1/webhooks", { json: { url, events: ["link.created"] } });
    if (isAccepted) {
      t.is(reply.status, 201, reply.text);
      return;
    }
    isProblem(t, reply, { status: 422, code: "invalid_url", fields: ["url"] });
  });
}

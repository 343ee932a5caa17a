import test from "ava";
import { type DomainRules, domainSchemas } from "../../resources/domains/schema.ts";
import { HOST_MAX } from "../../resources/links/rules.ts";

const RULES: DomainRules = {
  ownHosts: new Set(["links.acme.example", "mcp.acme.example:8443", "s.acme.example"]),
  shortHost: "s.acme.example",
  ownWords: new Set(),
  allowsLocalhost: false,
};

function read(host: unknown, changes: Partial<DomainRules> = {}) {
  const { data, error } = domainSchemas({ ...RULES, ...changes }).create.safeParse({ host });
  return data ? { host: data.host } : { refusal: error?.issues[0]?.message };
}

const label = (length: number) => "a".repeat(length);
/** The longest host below which the record still is a name of DNS: 253 - "_linkgate.".length. */
const LONGEST = `${label(63)}.${label(63)}.${label(63)}.${label(243 - 3 * 64 - 8)}.example`;

const ACCEPTED: [host: string, canonical: string][] = [
  ["go.example.com", "go.example.com"],
  ["GO.Example.COM", "go.example.com"],
  ["go.example.com.", "go.example.com"],
  ["müller.example", "xn--mller-kva.example"],
  ["xn--mller-kva.example", "xn--mller-kva.example"],
  ["💩.example", "xn--ls8h.example"],
  ["ｇｏ。example.com", "go.example.com"],
  ["acme.github.io", "acme.github.io"],
  ["1.example.com", "1.example.com"],
  ["localhost.example.com", "localhost.example.com"],
  [LONGEST, LONGEST],
];

test("a host is accepted in the form in which requests name it", (t) => {
  t.is(`_linkgate.${LONGEST}`.length, HOST_MAX);
  for (const [host, canonical] of ACCEPTED) t.deepEqual(read(host), { host: canonical }, host);
});

const words = (text: string) => text.split(" ");

const REFUSED: Record<string, [rule: RegExp, hosts: string[]]> = {
  "IP addresses in all forms": [
    /host of a domain|public suffix/,
    [
      ...words("127.0.0.1 1.2.3 127.1 2130706433 0x7f.1 0x7f000001 017700000001 1.2.3.4. １.2.3.4 [::1] ::1"),
      ...words("[::ffff:1.2.3.4] 0:0:0:0:0:0:0:1 1.2.3.4:80 256.256.256.256"),
    ],
  ],
  "what a URL parser takes for an address": [
    /host of a domain/,
    words("go.1 999.1 go.0x1 go.acme.123 go.09"),
  ],
  ports: [/must not have a port/, words("go.example.com:8080 go.example.com:0 go.example.com:65536")],
  "hosts of this machine": [/host of a domain/, words("localhost LOCALHOST. localhost:3000")],
  "hosts of private networks": [
    /must be public/,
    words("go.localhost go.localhost:3000 go.local go.internal"),
  ],
  "hosts of the service": [
    /must not be a host of this service/,
    words("links.acme.example LINKS.acme.example. s.acme.example mcp.acme.example:8443 s.acme.example:443"),
  ],
  "public suffixes": [
    /must not be a public suffix/,
    words("co.uk CO.UK. github.io s3.amazonaws.com com.au pages.dev blogspot.com"),
  ],
  "single labels": [/host of a domain/, words("com example com. ")],
  "labels that aren't of a host": [
    /host of a domain/,
    [
      ...words("go_x.example.com _linkgate.example.com -go.example.com go-.example.com *.example.com"),
      ...words(`go..example.com .example.com go.example.com.. xn--.example ${label(64)}.example`),
    ],
  ],
  "what is more than a host": [
    /host of a domain/,
    [
      ...words("https://go.example.com //go.example.com go.example.com/ go.example.com/x go.example.com?x"),
      ...words("go.example.com#x go.example.com\\x user@go.example.com user:password@go.example.com"),
      ...words("go.example.com,other.example go.example.com;x mailto:a@b.example go.example.com:80:80"),
      ...["go.example.com other.example", "go.localhost:1:2"],
    ],
  ],
  "white space and control characters": [
    /host of a domain/,
    [
      ...[" go.example.com", "go.example.com ", "go .example.com", "go.example.com\n", "go.exa\tmple.com"],
      ...words(
        "go.example.com\0 \0go.example.com go\0.example.com go.example.com\u001f go\u007f.example.com",
      ),
      ...words("go.\u202eexample.com \u200dgo.example.com \ud800.example"),
      "go.example.com\r\nHost: other.example",
    ],
  ],
  "more characters than a name of DNS has": [
    /at most 253 characters|host of a domain/,
    words(
      `a${LONGEST} ${`${LONGEST}.example.com`.slice(0, 254)} ${"a.".repeat(125)}com ${"é".repeat(120)}.example`,
    ),
  ],
};

for (const [what, [rule, hosts]] of Object.entries(REFUSED))
  test(`a domain is not one of ${what}`, (t) => {
    for (const host of hosts) {
      const { host: accepted, refusal } = read(host);
      t.is(accepted, undefined, JSON.stringify(host));
      t.regex(refusal ?? "", rule, JSON.stringify(host));
    }
  });

test("the length of a host is checked before anything else", (t) => {
  for (const text of ["a.", "[", "xn--", "é", "\0", "1."])
    t.is(read(text.repeat(50_000)).refusal, "must be at most 253 characters");
  for (const text of [undefined, null, 5, ["go.example.com"], { host: "go.example.com" }])
    t.truthy(read(text).refusal);
});

test("hosts below localhost are domains outside production only, with and without a port", (t) => {
  for (const host of ["go.localhost", "go.localhost:3000"]) {
    t.deepEqual(read(host, { allowsLocalhost: true }), { host });
    t.is(read(host).refusal, "must be public");
  }
  t.truthy(read("localhost", { allowsLocalhost: true }).refusal);
  const ownHosts = new Set(["go.localhost:3000"]);
  t.truthy(read("go.localhost:3000", { allowsLocalhost: true, ownHosts }).refusal);
});

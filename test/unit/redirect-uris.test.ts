import test from "ava";
import { isKnownTarget } from "../../server/clients/app-policy.ts";
import {
  canonicalRedirectUri,
  redirectTargetOf,
  validateRedirectUris,
} from "../../server/clients/redirect-uris.ts";
import { words } from "../harness/words.ts";

const ACCEPTED = words(`
  https://app.example.com https://app.example.com:8443/callback https://app.example.com/callback?tenant=a
  https://app.example.com/a/../b https://app.example.com/%61 https://APP.example.com/Callback
  https://app.example.com./cb https://localhost.example.com/cb
  http://localhost http://localhost:3000/callback http://127.0.0.1:8080/callback http://[::1]/callback
  com.example.app:/ com.example.app://callback/path?x=1
  cursor://anysphere.cursor-retrieval/oauth/callback cursor://anysphere.cursor-mcp/oauth/callback`);

for (const uri of ACCEPTED)
  test(`${uri} is accepted when it is set`, (t) => t.deepEqual(validateRedirectUris([uri]), []));

// Operating systems start programs with the first three.
const REJECTED = [
  ...words(`
    ms-msdt:/id smb://files.example.com/share vscode://vscode.github-authentication/did-authenticate
    cursor://another.extension/callback myapp:/callback intent://x#Intent;end ftp://app.example.com
    JavaScript:alert(1) data:text/html,x file:///etc/passwd blob:https://app.example.com/x about:blank
    view-source:https://app.example.com
    https://192.0.2.1./callback https://0x7f000001/callback https://[2001:db8::1]/callback
    http://app.example.com/callback http://127.0.0.2/callback http://0.0.0.0/callback
    http://localhost.example.com/callback http://localhost@evil.example/callback
    https://localhost/callback https://127.0.0.1/callback https://*.example.com/callback https://app.example.com/*
    https://user@app.example.com/ https://app.example.com\\@evil.example/ https://bücher.example/
    https:// https://app.example.com:99999/ https://app.example.com/# com.example.app:/cb#x
    /callback //app.example.com/callback app.example.com/callback ?x=1`),
  ...["", "java\tscript:alert(1)", "https://app.example.com/a b", " https://app.example.com/"],
  ...["https://app.example.com/\u0000", "https://app.example.com/\r\nx"],
  `https://app.example.com/${"x".repeat(2048)}`,
];

for (const uri of REJECTED)
  test(`${JSON.stringify(uri.slice(0, 60))} is rejected when it is set`, (t) => {
    const [error, ...others] = validateRedirectUris([uri]);
    t.is(error?.index, 0);
    t.regex(error?.message ?? "", /^must /);
    t.deepEqual(others, []);
  });

test("each invalid URI of a list is reported, including duplicates and more than 20", (t) => {
  const good = "https://app.example.com/";
  const indexes = validateRedirectUris([good, "http://x.example/", good, "x"]).map(({ index }) => index);
  t.deepEqual(indexes, [1, 2, 3]);
  const many = Array.from({ length: 21 }, (_, index) => `https://app.example.com/${index}`);
  t.deepEqual(validateRedirectUris(many.slice(1)), []);
  t.is(validateRedirectUris(many).length, 1);
});

test("only a loopback URI without a path gets the slash that URL parsers add", (t) => {
  for (const uri of ["http://127.0.0.1:33418", "http://localhost", "http://[::1]:1"])
    t.is(canonicalRedirectUri(uri), `${uri}/`);
  for (const uri of words("http://127.0.0.1/ http://127.0.0.1/a https://app.example.com http://127.0.0.2"))
    t.is(canonicalRedirectUri(uri), uri);
});

test("a redirect URI with a private-use scheme leads to that scheme, even if it contains a host", (t) => {
  const rest = ["claude.ai/callback", "localhost/", "accounts.example:443/"];
  for (const one of rest)
    t.deepEqual(redirectTargetOf(`com.evil.app://${one}`), { name: "com.evil.app", isLocal: false });
  t.deepEqual(redirectTargetOf("http://127.0.0.1:80/"), { name: "127.0.0.1", isLocal: true });
  t.deepEqual(redirectTargetOf("https://claude.ai/a"), { name: "claude.ai", isLocal: false });
});

const TARGETS: [uri: string, isKnown: boolean][] = [
  ["http://127.0.0.1:33418/", true],
  ["https://vscode.dev/redirect", true],
  ["https://vscode.dev/redirect/other", false],
  ["cursor://anysphere.cursor-mcp/oauth/callback", true],
  ["https://chatgpt.com/connector/oauth/0123456789ab", true],
  ["https://chatgpt.com/connector/oauth/0123456789abc", false],
  ["https://agent.example/callback", false],
];

test("a known client or the user's computer is recognized by the exact redirect URI", (t) => {
  for (const [uri, isKnown] of TARGETS) t.is(isKnownTarget(uri), isKnown, uri);
});

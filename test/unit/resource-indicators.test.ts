import test from "ava";
import { errors } from "oidc-provider";
import {
  canonicalResource,
  clientCredentialsScope,
  workloadScope,
} from "../../server/provider/resource-indicators.ts";

const API = "https://links.example/v1";

const SAME: [resource: string, canonical: string][] = [
  [`${API}/`, API],
  ["HTTPS://LINKS.EXAMPLE/v1", API],
  ["https://Links.example/", "https://links.example"],
  ["https://links.example", "https://links.example"],
  ["HTTP://[::1]:80/mcp/", "http://[::1]:80/mcp"],
];

const OTHERS = [
  ...[`${API}//`, "https://links.example/V1", `${API}?x`, `${API}#`, "https://x@links.example/v1"],
  ...["https://X@LINKS.EXAMPLE/v1", "https://links.example/x/../v1", "https://links.example/./v1"],
  ...["https://links.example/%761", "https://links.example\\v1", ` ${API}`, `${API} `, `${API}\n`],
  ...["/v1", "v1", "urn:linkgate:v1"],
];

test("a resource is the same in any case of scheme and host and with a trailing slash, and not otherwise", (t) => {
  for (const [resource, canonical] of SAME) t.is(canonicalResource(resource), canonical);
  for (const resource of OTHERS) t.not(canonicalResource(resource), API, JSON.stringify(resource));
});

const ALL = "links:read links:write domains:read domains:write webhooks:read webhooks:write";
const GRANTED: [requested: string, granted: string][] = [
  ["", ALL],
  ["webhooks:read", "webhooks:read"],
  ["links:read links:read", "links:read"],
  ["links:write", "links:write"],
  ["openid links:read offline_access", "links:read"],
];

const words = (text: string) => text.split(" ").filter(Boolean);

const REJECTED = "admin:*|links:read admin:all|LINKS:READ|openid|offline_access|links|links:*".split("|");

test("a client is granted the scopes of the API that it requests for itself, or all, and no unknown ones", (t) => {
  for (const [requested, granted] of GRANTED)
    t.is(clientCredentialsScope(words(requested)), granted, requested);
  for (const scope of REJECTED)
    t.throws(() => clientCredentialsScope(words(scope)), { instanceOf: errors.InvalidScope }, scope);
});

const OF_WORKLOADS: [rule: string, requested: string, granted: string | undefined][] = [
  ["links:write webhooks:read", "", "links:write webhooks:read"],
  ["links:write webhooks:read", "webhooks:read", "webhooks:read"],
  ["links:write", "links:read", "links:read"],
  ["links:read", "links:read links:write webhooks:read", "links:read"],
  ["links:read", "openid links:read", "links:read"],
  ["links:write", "webhooks:write", undefined],
  ["links:write", "links:write admin", undefined],
];

test("a workload is granted the scopes that it requests as far as its rule has them, and no others", (t) => {
  for (const [rule, requested, granted] of OF_WORKLOADS) {
    const grant = () => workloadScope(words(requested), words(rule));
    if (granted) t.is(grant(), granted);
    else t.throws(grant, { instanceOf: errors.InvalidScope }, requested);
  }
});

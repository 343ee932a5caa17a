import test from "ava";
import { hostKeyOf, networkKeyOf } from "../../../server/rate-limits/ip-key.ts";

const KEYS: [address: string, network: string, host: string][] = [
  ["198.51.100.7", "198.51.100", "198.51.100.7"],
  ["198.51.100.7:5678", "198.51.100", "198.51.100.7"],
  ["::ffff:198.51.100.7", "198.51.100", "198.51.100.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:DB8:1:2::", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:0db8:0001:0002::1", "2001:db8:1:2", "2001:db8:1:2"],
  ["[2001:db8:1:2::1]:5678", "2001:db8:1:2", "2001:db8:1:2"],
  ["2001:db8::1", "2001:db8:0:0", "2001:db8:0:0"],
  ["::1", "0:0:0:0", "0:0:0:0"],
  ["unknown", "unknown", "unknown"],
  ["", "", ""],
];

for (const [address, network, host] of KEYS) {
  test(`"${address}" counts for the network "${network}" and the host "${host}"`, (t) => {
    t.is(networkKeyOf(address), network);
    t.is(hostKeyOf(address), host);
  });
}
const SAME: [a: string, b: string][] = [
  ["2001:DB8::1", "2001:db8::1"],
  ["2001:0db8::0001", "2001:db8::1"],
  ["2001:db8::1", "2001:db8:0:0:ffff::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["[2001:db8::1]:5678", "2001:db8::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["203.0.113.9:5678", "203.0.113.9:5679"],
  ["203.0.113.9:5678", "203.0.113.9"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["::FFFF:203.0.113.9", "203.0.113.9"],
  ["::ffff:cb00:7109", "203.0.113.9"],
];

for (const [a, b] of SAME) {
  test(`${a} counts as ${b}`, (t) => {
    t.is(hostKeyOf(a), hostKeyOf(b));
    t.is(networkKeyOf(a), networkKeyOf(b));
  });
}

test("addresses of one /24 share a key, but are different hosts", (t) => {
  t.is(networkKeyOf("203.0.113.9"), networkKeyOf("203.0.113.250"));
  t.not(hostKeyOf("203.0.113.9"), hostKeyOf("203.0.113.250"));
});

const DIFFERENT: [a: string, b: string][] = [
  ["203.0.113.9", "203.0.114.9"],
  ["2001:db8::1", "2001:db8:0:1::1"],
  ["2001:db8::1", "203.0.113.9"],
  ["unknown", "203.0.113.9"],
  ["unknown", "hidden"],
];

for (const [a, b] of DIFFERENT) {
  test(`${a} and ${b} have different keys`, (t) => {
    t.not(hostKeyOf(a), hostKeyOf(b));
    t.not(networkKeyOf(a), networkKeyOf(b));
  });
}

// node verify-attestation.mjs <attestation.json> <jwks.json>: proves that a server's key signed an attestation.
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const [attestation, keys] = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, "utf8")));
const { payloadType, payload, signatures } = attestation;
const content = Buffer.from(payload, "base64");
// DSSE 1.0: the signature also covers the type and the length.
const signed = Buffer.concat([
  Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${content.length} `),
  content,
]);
const isValid = signatures.some(({ keyid, sig }) => {
  const key = keys.keys.find(({ kid }) => kid === keyid);
  return key && verify("sha256", signed, createPublicKey({ key, format: "jwk" }), Buffer.from(sig, "base64"));
});
if (!isValid) throw new Error("None of the keys signed the attestation.");
const { subject, predicate } = JSON.parse(content);
const { result, passedTests, warnedTests, failedTests, configuration } = predicate;
console.log(`${subject[0].name} at ${configuration[0].uri}: ${result}`);
console.log(`${passedTests.length} passed, ${warnedTests.length} warnings, ${failedTests.length} failed`);

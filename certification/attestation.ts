import { createPrivateKey, createPublicKey, hash, sign, verify } from "node:crypto";
import type { JWK } from "jose";
import type { Report } from "./report.ts";

const PAYLOAD_TYPE = "application/vnd.in-toto+json";
const STATEMENT = "https://in-toto.io/Statement/v1";
const TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1";

/** Dead Simple Signing Envelope 1.0 */
export type Envelope = {
  payloadType: string;
  /** The statement, in base64. */
  payload: string;
  signatures: { keyid: string; sig: string }[];
};

/** What was checked. `digest` is the SHA-256 of the package, in hexadecimal. */
export type Subject = {
  version: string;
  digest: string;
  settings: Record<string, unknown>;
  auditLogs: AuditLogs;
};

/** The heads of the hash chains: `sha256` is of the lines `<log> <last_seq> <head_hash>`, sorted. */
type AuditLogs = { count: number; ok: boolean; sha256: string };

type Head = { organization_id: string; ok: boolean; last_seq: number; head_hash: string };

export function summarizeHeads(heads: readonly Head[]): AuditLogs {
  const lines = heads.map(
    ({ organization_id, last_seq, head_hash }) => `${organization_id} ${last_seq} ${head_hash}\n`,
  );
  return { count: heads.length, ok: heads.every(({ ok }) => ok), sha256: sha256(lines.sort().join("")) };
}

/** Returns an in-toto statement about a run of the checks. */
export function createStatement({ issuer, checks, failed, warning }: Report, subject: Subject) {
  const { version, digest, settings, auditLogs } = subject;
  const idsOf = (verdict: string) => checks.filter((check) => check.verdict === verdict).map(({ id }) => id);
  return {
    _type: STATEMENT,
    subject: [{ name: `linkgate ${version}`, digest: { sha256: digest } }],
    predicateType: TEST_RESULT,
    predicate: {
      result: failed > 0 ? "FAILED" : warning > 0 ? "WARNED" : "PASSED",
      configuration: [
        { name: "server", uri: issuer, annotations: { finished_at: new Date().toISOString() } },
        describe("settings", settings),
        describe("audit-logs", auditLogs),
      ],
      passedTests: idsOf("passed"),
      warnedTests: idsOf("warning"),
      failedTests: idsOf("failed"),
    },
  };
}

/** Signs with a P-256 key. */
export function signStatement(statement: object, key: JWK): Envelope {
  const payload = Buffer.from(JSON.stringify(statement));
  const privateKey = createPrivateKey({ key: key as never, format: "jwk" });
  const sig = sign("sha256", preAuthenticationEncoding(PAYLOAD_TYPE, payload), privateKey);
  return {
    payloadType: PAYLOAD_TYPE,
    payload: payload.toString("base64"),
    signatures: [{ keyid: String(key.kid), sig: sig.toString("base64") }],
  };
}

/** Returns the statement of an envelope, or undefined if none of the keys signed it. */
export function verifyEnvelope(
  { payloadType, payload, signatures }: Envelope,
  keys: readonly JWK[],
): object | undefined {
  const content = Buffer.from(payload, "base64");
  const signed = preAuthenticationEncoding(payloadType, content);
  const isValid = signatures.some(({ keyid, sig }) => {
    const key = keys.find(({ kid, kty }) => kid === keyid && kty === "EC");
    if (!key) return false;
    const publicKey = createPublicKey({ key: key as never, format: "jwk" });
    return verify("sha256", signed, publicKey, Buffer.from(sig, "base64"));
  });
  return isValid && payloadType === PAYLOAD_TYPE ? JSON.parse(content.toString()) : undefined;
}

/** DSSE 1.0: what is signed names its type and its length. */
function preAuthenticationEncoding(type: string, payload: Buffer): Buffer {
  const start = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `;
  return Buffer.concat([Buffer.from(start), payload]);
}

/** An in-toto resource descriptor. */
function describe(name: string, content: object) {
  const text = JSON.stringify(content);
  return { name, mediaType: "application/json", digest: { sha256: sha256(text) }, annotations: content };
}

function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

import type { KoaContextWithOIDC, Provider } from "oidc-provider";

type Proof = { thumbprint: string; jti: string; iat: number };
type Module = {
  default(provider: Provider, ctx: KoaContextWithOIDC): Promise<Proof | undefined>;
  checkDpopReplay(provider: Provider, ctx: KoaContextWithOIDC, proof: Proof, clientId: string): Promise<void>;
};

// The library passes these functions to its own grants only, and exports them from no entry point.
const path: string = "oidc-provider/lib/helpers/validate_dpop.js";
const { default: validateProof, checkDpopReplay: checkReplay } = (await import(path)) as Module;

export { checkReplay, validateProof };

import { listen } from "./listen.ts";
import { createProvider } from "./provider.ts";

// The reference for the engine: plain oidc-provider with its memory adapter. Nothing is stored.
await listen(createProvider().callback());

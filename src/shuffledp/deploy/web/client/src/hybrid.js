// The hybrid of ML-KEM-768 and X25519, for tasks that are sealed with it.
export { XWing } from "@hpke/hybridkem-x-wing";

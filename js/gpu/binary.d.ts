/** WebAssembly as the bundler puts it into a script. */
declare module "*.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}

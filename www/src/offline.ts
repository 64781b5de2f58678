/** Keeps the page for times without a network, where the browser can. */
export async function keepOffline(): Promise<void> {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.register("./service-worker.js");
  if (!navigator.serviceWorker.controller) {
    await new Promise((resolve) =>
      navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }),
    );
  }
  // What came before the worker was there it asks for once more, from the browser's own cache, and keeps. It asks by itself: of files that a
  // page asks for when it is left, Firefox says that they failed.
  const here = new URL(".", location.href).href;
  const fetched = performance.getEntriesByType("resource").map(({ name }) => name);
  navigator.serviceWorker.controller?.postMessage(fetched.filter((url) => url.startsWith(here)));
}

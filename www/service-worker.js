// Keeps the page for times without a network. The build fills in its files and a version.
const FILES = __FILES__;
// A host may have the page in several places, whose caches are one store.
const PREFIX = `attnscope ${self.registration.scope} `;
const CACHE = PREFIX + __VERSION__;

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll(FILES))
      .then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => {
  const drop = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(drop());
});

// What was kept is of this build and answers at once; anything else is fetched, and kept.
async function answer(request, event) {
  const cache = await caches.open(CACHE);
  // A file is the same to whoever asks, whatever a server says of Origin.
  const kept = await cache.match(request, { ignoreSearch: request.mode === "navigate", ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  // Where there is no room to keep it, the page has it all the same.
  if (response.ok) event.waitUntil(cache.put(request, response.clone()));
  return response;
}

// All of this site, but for the documentation, whose builds are its own.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { scope } = self.registration;
  const { href } = new URL(request.url);
  const isOurs = href.startsWith(scope) && !href.startsWith(`${scope}docs/`);
  if (request.method !== "GET" || !isOurs) return;
  event.respondWith(answer(request, event));
});

// What a page had before this worker took it over.
self.addEventListener("message", (event) => {
  event.waitUntil(Promise.all(event.data.map((url) => answer(new Request(url), event))));
});

// As a server renders: there is no window, and importing leaves nothing behind but what a worker listens with.
const before = Object.keys(globalThis);
for (const entry of ["", "/slim", "/views", "/elements", "/anywidget", "/global", "/worker"]) {
  await import(`attnscope${entry}`);
}
console.log(JSON.stringify(Object.keys(globalThis).filter((name) => !before.includes(name))));

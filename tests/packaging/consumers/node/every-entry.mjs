// As a server renders: there is no window, and importing does nothing.
const before = Object.keys(globalThis);
for (const entry of ["", "/slim", "/views", "/elements"]) await import(`attnscope${entry}`);
console.log(JSON.stringify(Object.keys(globalThis).filter((name) => !before.includes(name))));

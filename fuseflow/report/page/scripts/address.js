// The address says which thing is chosen: the key of the thing, behind the # of the address bar.

function address() { return location.hash.slice(1); }

function goToAddress(key) { location.hash = "#" + key; }

window.addEventListener("hashchange", () => follow());

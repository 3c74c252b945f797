// The page begins with what the address bar says. Without scripts, all views stand below each other.

document.documentElement.classList.add("live");
follow();
